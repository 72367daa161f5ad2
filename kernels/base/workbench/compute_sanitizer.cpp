#include "kernels/base/workbench/compute_sanitizer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "kernels/base/lab/report.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/workbench/folders.hpp"
#include "kernels/base/workbench/program.hpp"
#include "kernels/base/workbench/sources.hpp"

namespace tilestep::workbench {
namespace {

namespace fs = std::filesystem;

/// Instrumented kernels are slower by far.
constexpr std::chrono::seconds kSanitizerLimit{90};
constexpr const char* kSanitized = "TILESTEP_SANITIZED";
constexpr std::string_view kErrorMark = "=========";

std::string value_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

using lab::trimmed;

/// "Invalid …" as the middle of a sentence; names such as "__global__" and "COMPUTE" stay.
std::string in_sentence(std::string_view text) {
  std::string words(text);
  const bool name = words.size() > 1 && std::isupper(static_cast<unsigned char>(words[1])) != 0;
  if (!words.empty() && !name) {
    words[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(words[0])));
  }
  return words;
}

/// "(3,0,0)" after `word` in "by thread (3,0,0) in block (1,0,0)".
std::string index_after(std::string_view line, std::string_view word) {
  const std::size_t at = line.find(word);
  if (at == line.npos) return {};
  const std::size_t open = line.find('(', at), close = line.find(')', at);
  if (open == line.npos || close == line.npos || close < open) return {};
  return std::string(line.substr(open, close - open + 1));
}

/// "copy" of "void tilestep::coalescing::copy<(int)4>(float *)+0x1d0 in …".
std::string function_in(std::string_view frame) {
  std::string name(frame);
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (std::size_t at = name.find(kAnonymous); at != name.npos; at = name.find(kAnonymous)) {
    name.erase(at, kAnonymous.size());
  }
  name = name.substr(0, name.find_first_of("<(+"));
  const std::size_t colons = name.rfind("::"), space = name.rfind(' ');
  if (colons != name.npos) return name.substr(colons + 2);
  return space == name.npos ? name : name.substr(space + 1);
}

/// The line of the source `path` in "… in /folder/edited/kernels/…/access.cu:42", or in the older "0xb0 in
/// access.cu:42:copy(float *)"; 0: it is of another file. Without a folder a name is all there is to go by.
int line_in(std::string_view frame, std::string_view path) {
  const std::size_t in = frame.rfind(" in ");
  const std::string_view place = in == frame.npos ? frame : frame.substr(in + 4);
  const std::string_view name = name_of_file(path);
  for (std::size_t at = place.find(name); at != place.npos; at = place.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (end >= place.size() || place[end] != ':') continue;
    const bool alone = at == 0;
    const bool edited = place.substr(0, end).ends_with(fmt::format("edited/{}", path));
    if (!alone && !edited) continue;
    int line = 0;
    std::from_chars(place.data() + end + 1, place.data() + place.size(), line);
    return line;
  }
  return 0;
}

/// Takes an indented line of a finding.
void take_detail(std::string_view line, std::string_view path, SanitizerFinding& finding) {
  constexpr std::string_view kFrame = "Device Frame:";
  const bool at = line.starts_with("at "), frame = line.starts_with(kFrame);
  if (at || frame) {
    const std::string_view where = trimmed(line.substr(at ? 3 : kFrame.size()));
    if (finding.line == 0) finding.line = line_in(where, path);
    // The outermost, which comes last, is the kernel. Older ones begin with a number or end in a name.
    // What begins with a $ is a routine of the compiler's own, a division's say.
    if (!where.starts_with("0x") && where.find("+0x") != where.npos) {
      const std::string function = function_in(where);
      if (!function.starts_with('$')) finding.kernel = function;
    }
  } else if (line.starts_with("by thread")) {
    finding.thread = index_after(line, "thread");
    finding.block = index_after(line, "block");
  } else if (line.starts_with("Address ")) {
    finding.what += "; " + in_sentence(line);
  } else if (line.starts_with("and is ")) {
    finding.what += " " + std::string(line);
  }
}

std::optional<SanitizerFinding> better(std::optional<SanitizerFinding> best,
                                       SanitizerFinding found) {
  const bool placed = !found.thread.empty() || found.line > 0;
  if (!placed || (best && (best->line > 0 || found.line == 0))) return best;
  return found;
}

/// A line of its own words after the mark, such as "Error: …"; empty: there is none.
std::string complaint_in(std::string_view output) {
  std::string first;
  while (!output.empty()) {
    const std::string_view line = output.substr(0, output.find('\n'));
    output.remove_prefix(std::min(line.size() + 1, output.size()));
    const std::string_view said =
        trimmed(line.starts_with(kErrorMark) ? line.substr(kErrorMark.size()) : line);
    if (said.find("rror") != said.npos) return std::string(said);
    if (first.empty() && said != "COMPUTE-SANITIZER") first = said;
  }
  return first;
}

std::vector<std::string> command_of(const SanitizedRun& run, const std::string& sanitizer,
                                    const fs::path& source) {
  std::vector<std::string> words = {"env",
                                    fmt::format("{}=1", kSanitized),
                                    sanitizer,
                                    "--tool",
                                    run.barriers ? "synccheck" : "memcheck",
                                    "--show-backtrace",
                                    "device",
                                    "--print-limit",
                                    "8",
                                    fs::read_symlink("/proc/self/exe").string(),
                                    "run",
                                    run.lesson,
                                    "--backend",
                                    "cuda",
                                    "--kernel",
                                    source.string()};
  for (const auto& [knob, value] : run.settings) {
    words.insert(words.end(), {"--set", fmt::format("{}={}", knob, lab::to_text(value))});
  }
  return words;
}

}  // namespace

std::string SanitizerFinding::sentence() const {
  std::string who = kernel.empty() ? "" : kernel + ": ";
  if (!thread.empty()) who += fmt::format("thread {} of block {}: ", thread, block);
  return who + what;
}

std::optional<SanitizerFinding> finding_in(std::string_view output, std::string_view path) {
  std::optional<SanitizerFinding> best;
  SanitizerFinding found;
  while (!output.empty()) {
    const std::string_view line = output.substr(0, output.find('\n'));
    output.remove_prefix(std::min(line.size() + 1, output.size()));
    if (!line.starts_with(kErrorMark)) continue;  // the program's own
    const std::string_view said = line.substr(kErrorMark.size());
    if (said.starts_with("     ")) {  // four more than the words of a finding
      take_detail(trimmed(said), path, found);
      continue;
    }
    best = better(std::move(best), std::exchange(found, {}));
    found.what = in_sentence(trimmed(said));
  }
  return better(std::move(best), std::move(found));
}

std::string compute_sanitizer() {
  const std::string asked = value_of("TILESTEP_COMPUTE_SANITIZER"), home = value_of("CUDA_HOME");
  if (!asked.empty()) return find_program(asked);
  std::vector<std::string> names = {"compute-sanitizer", "/usr/local/cuda/bin/compute-sanitizer"};
  if (!home.empty()) names.insert(names.begin() + 1, home + "/bin/compute-sanitizer");
  for (const std::string& name : names) {
    if (std::string program = find_program(name); !program.empty()) return program;
  }
  return {};
}

Sanitized run_sanitized(const SanitizedRun& run, const std::function<bool()>& stop) {
  const std::string sanitizer = compute_sanitizer();
  if (sanitizer.empty()) return {{}, "is not installed here"};
  try {
    const OwnFolder folder("sanitized");
    const fs::path source = folder.path() / name_of_file(run.edit.path);
    write_whole(source, run.edit.text);
    const Ran ran = run_program(command_of(run, sanitizer, source), kSanitizerLimit, 0, stop);
    if (auto finding = finding_in(ran.output, run.edit.path)) return {std::move(finding), ""};
    if (ran.timed_out)
      return {{}, fmt::format("found nothing within {} seconds", kSanitizerLimit.count())};
    if (ran.output.find("ERROR SUMMARY") != std::string::npos) return {{}, "found nothing"};
    return {{}, fmt::format("could not run it: {}", complaint_in(ran.output))};
  } catch (const Cancelled&) {
    throw;
  } catch (const std::exception& error) {  // of files and of starting it
    return {{}, fmt::format("could not be run: {}", error.what())};
  }
}

bool is_sanitized() {
  return !value_of(kSanitized).empty();
}

}  // namespace tilestep::workbench
