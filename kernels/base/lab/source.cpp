#include "kernels/base/lab/source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::lab {

SourceMarks::SourceMarks(std::string_view path, std::string_view text) : path_(path) {
  int line = 1;
  std::size_t counted = 0;  // up to here the line ends were counted
  for (std::size_t at = text.find(kStepMark); at != text.npos; at = text.find(kStepMark, at + 1)) {
    const auto from = text.begin() + static_cast<std::ptrdiff_t>(counted);
    line +=
        static_cast<int>(std::count(from, text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    counted = at;
    const std::size_t begin = at + kStepMark.size();
    const std::size_t end = text.find_first_of("]\n", begin);
    if (end == text.npos || text[end] != ']') {
      throw Error(fmt::format("{}:{}: the mark '{}' has no end ']'", path, line, kStepMark));
    }
    const std::string step(text.substr(begin, end - begin));
    const auto [first, fresh] = lines_.emplace(step, line);
    if (!fresh) {
      throw Error(fmt::format("{} marks the step '{}' twice, in lines {} and {}", path, step,
                              first->second, line));
    }
  }
}

int SourceMarks::line(std::string_view step) const {
  const auto found = lines_.find(step);
  if (found == lines_.end()) {
    throw Error(fmt::format("{} has no line with the mark '{}{}]'", path_, kStepMark, step));
  }
  return found->second;
}

SourceMarks source_marks(std::string_view path) {
  return {path, asset(path)};
}

namespace {

/// The end of the statement that begins at `at`: after its `;`, or after the block of an `if`; npos: none.
std::size_t statement_end(std::string_view text, std::size_t at) {
  int open = 0;
  for (; at < text.size(); ++at) {
    if (text.compare(at, 2, "//") == 0) at = std::min(text.find('\n', at), text.size() - 1);
    const char c = text[at];
    if (c == '(' || c == '{') ++open;
    if (c == ')' || c == '}') --open;
    if (open == 0 && (c == ';' || c == '}')) return at + 1;
  }
  return std::string_view::npos;
}

/// Whether a statement begins like a recording one.
bool begins_recording(std::string_view rest) {
  for (const std::string_view word :
       {"tape.note(",  "tape.put(",    "tape.add(",      "tape.tick(",    "tape.access(",
        "if (tape.",   "clock(tape",   "clock<",         "c.note(",       "note(k",
        "note(What::", "linger(tape",  "if (omits(tape", "loads(tape",    "stores(tape",
        "note_item(",  "note_copies(", "note_step(",     "note_softmax(", "note_output",
        "note_pair(",  "count_rows(",  "end_visit(",     "probe.",        "recorder."}) {
    if (rest.starts_with(word)) return true;
  }
  return false;
}

/// Whether a statement can begin after this line.
bool ends_statement(std::string_view line) {
  const std::string_view code = line.substr(0, line.find("//"));
  const std::size_t last = code.find_last_not_of(' ');
  return last == code.npos || code.substr(last, 1).find_first_of(";{}:") == 0;
}

}  // namespace

std::vector<LineRange> recorder_lines(std::string_view text) {
  std::vector<LineRange> all;
  int line = 1;
  bool begins = true;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t first = std::min(text.find_first_not_of(' ', at), text.size());
    const std::string_view rest = text.substr(first);
    std::size_t end = first;
    const std::size_t behind =
        begins && begins_recording(rest) ? statement_end(text, first) : first;
    if (behind == std::string_view::npos) break;
    // The line of a step is for reading, whatever it records.
    const std::string_view whole = text.substr(first, text.find('\n', behind) - first);
    if (behind > first && whole.find(kStepMark) == whole.npos) {
      end = behind;
      const auto more = std::count(text.begin() + static_cast<std::ptrdiff_t>(first),
                                   text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
      const LineRange range{line, line + static_cast<int>(more)};
      if (!all.empty() && all.back().last + 1 == range.first) {
        all.back().last = range.last;
      } else {
        all.push_back(range);
      }
      line = range.last;
    }
    const std::size_t next = std::min(text.find('\n', end), text.size() - 1) + 1;
    const std::string_view code =
        text.substr(first, std::min(text.find('\n', first), text.size()) - first);
    begins = end > first || code.starts_with('#') || ends_statement(code);
    at = next;
  }
  return all;
}

}  // namespace tilestep::lab
