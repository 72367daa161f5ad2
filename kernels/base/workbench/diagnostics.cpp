#include "kernels/base/workbench/diagnostics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/workbench/sources.hpp"

namespace tilestep::workbench {
namespace {

/// "FILE:LINE:COLUMN: rest", of which the column may be missing; nvcc writes "FILE(LINE): rest".
struct Placed {
  std::string_view file;
  int line = 0, column = 0;
  std::string_view rest;
};

std::optional<int> number_at(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::optional<Placed> placed(std::string_view line) {
  const std::size_t at = line.find_first_of(":(");
  if (at == line.npos || at == 0) return std::nullopt;
  Placed it{line.substr(0, at), 0, 0, line.substr(at + 1)};
  const auto number = number_at(it.rest);
  if (!number) return std::nullopt;
  it.line = *number;
  if (line[at] == '(') {
    if (!it.rest.starts_with("): ")) return std::nullopt;
    it.rest.remove_prefix(3);
    return it;
  }
  if (it.rest.starts_with(":") && !it.rest.starts_with(": ")) {
    it.rest.remove_prefix(1);
    const auto column = number_at(it.rest);
    if (!column) return std::nullopt;
    it.column = *column;
  }
  if (!it.rest.starts_with(":")) return std::nullopt;
  it.rest.remove_prefix(1);
  it.rest.remove_prefix(std::min(it.rest.find_first_not_of(' '), it.rest.size()));
  return it;
}

std::optional<lab::Severity> severity_of(std::string_view& rest) {
  using lab::Severity;
  struct Word {
    std::string_view text;
    Severity severity;
  };
  for (const Word& word : {Word{"fatal error", Severity::error}, Word{"error", Severity::error},
                           Word{"warning", Severity::warning}, Word{"note", Severity::note}}) {
    if (!rest.starts_with(word.text)) continue;
    const std::size_t colon = rest.find(": ");  // nvcc: "error #20: …"
    if (colon == rest.npos || colon > word.text.size() + 12) continue;
    rest.remove_prefix(colon + 2);
    return word.severity;
  }
  return std::nullopt;
}

class OutputReader {
 public:
  explicit OutputReader(std::string_view path) : path_(path) {}

  void take(std::string_view line) {
    auto it = placed(line);
    if (!it) return;
    const auto severity = severity_of(it->rest);
    const bool mine = it->file.ends_with(path_);
    if (!severity) {
      // "…: required from here" says which line of the source asked for what is wrong elsewhere.
      if (mine && it->rest.starts_with("required from")) because_of_ = *it;
      return;
    }
    if (*severity == lab::Severity::note) return;
    add(*it, *severity, mine);
    because_of_.reset();
  }
  std::vector<lab::Diagnostic> all() {
    std::stable_sort(all_.begin(), all_.end(),
                     [](const auto& a, const auto& b) { return a.severity < b.severity; });
    if (all_.size() > kMostDiagnostics) all_.resize(kMostDiagnostics);
    return all_;
  }

 private:
  void add(const Placed& it, lab::Severity severity, bool mine) {
    lab::Diagnostic said{it.line, it.column, severity, lab::shown(it.rest)};
    if (!mine) {
      said.text = fmt::format("{} ({}, line {})", said.text, name_of_file(it.file), it.line);
      said.line = because_of_ ? because_of_->line : 0;
      said.column = because_of_ ? because_of_->column : 0;
    }
    const bool known = std::any_of(all_.begin(), all_.end(), [&](const lab::Diagnostic& other) {
      return other.line == said.line && other.text == said.text;
    });
    if (!known) all_.push_back(std::move(said));
  }

  std::string path_;
  std::optional<Placed> because_of_;
  std::vector<lab::Diagnostic> all_;
};

}  // namespace

std::vector<lab::Diagnostic> diagnostics_in(std::string_view output, std::string_view path) {
  OutputReader reader(path);
  while (!output.empty()) {
    const std::size_t end = std::min(output.find('\n'), output.size());
    reader.take(output.substr(0, end));
    output.remove_prefix(std::min(end + 1, output.size()));
  }
  return reader.all();
}

std::string sentence_of(const std::vector<lab::Diagnostic>& diagnostics, std::string_view path) {
  const std::string_view name = name_of_file(path);
  const auto is_error = [](const lab::Diagnostic& each) {
    return each.severity == lab::Severity::error;
  };
  const auto errors = std::count_if(diagnostics.begin(), diagnostics.end(), is_error);
  const auto first = std::find_if(diagnostics.begin(), diagnostics.end(), is_error);
  if (first == diagnostics.end()) return fmt::format("{} does not compile", name);
  std::string sentence =
      first->line == 0
          ? fmt::format("{} does not compile: {}", name, first->text)
          : fmt::format("{} does not compile: line {}: {}", name, first->line, first->text);
  if (errors > 1)
    sentence += fmt::format(" (and {} more error{})", errors - 1, errors > 2 ? "s" : "");
  return sentence;
}

}  // namespace tilestep::workbench
