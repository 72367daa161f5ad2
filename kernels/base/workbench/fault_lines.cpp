#include "kernels/base/workbench/fault_lines.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "kernels/base/workbench/program.hpp"
#include "kernels/base/workbench/sources.hpp"

namespace tilestep::workbench {
namespace {

constexpr std::chrono::seconds kLimit{5};

/// Whether a compiler's name for a file is that of the edited source, which is compiled below a folder "edited".
bool is_edited(std::string_view file, const EditedModule& module) {
  return file.ends_with("edited/" + module.path);
}

/// "…/one_pass.cu:42 (discriminator 3)": 42 where that is the edited source, else 0.
int line_in(const std::string& place, const EditedModule& module) {
  const std::size_t colon = place.rfind(':');
  if (colon == std::string::npos) return 0;
  if (!is_edited(std::string_view(place).substr(0, colon), module)) return 0;
  return std::atoi(place.c_str() + colon + 1);  // 0 for '?'
}

/// A note at each other line of the edited source that the sentence names, as that of a barrier where others wait.
std::vector<lab::Diagnostic> notes(const std::string& sentence, int line,
                                   const EditedModule& module) {
  std::vector<lab::Diagnostic> all;
  const std::string end = fmt::format(" of {}", name_of_file(module.path));
  constexpr std::string_view kLine = "line ";
  for (std::size_t at = sentence.find(kLine); at != std::string::npos;
       at = sentence.find(kLine, at)) {
    at += kLine.size();
    const std::size_t digits =
        std::min(sentence.find_first_not_of("0123456789", at), sentence.size());
    const int other = std::atoi(sentence.c_str() + at);
    if (other > 0 && other != line && sentence.compare(digits, end.size(), end) == 0) {
      all.push_back({other, 0, lab::Severity::note, sentence});
    }
  }
  return all;
}

}  // namespace

std::vector<int> lines_of(const std::vector<const void*>& addresses, const EditedModule& module) {
  std::vector<int> lines(addresses.size(), 0);
  std::vector<std::size_t> asked;
  std::vector<std::string> words = {"addr2line", "-a", "-i", "-e", module.file};
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    Dl_info info{};
    if (dladdr(addresses[i], &info) == 0 || info.dli_fname != module.file) continue;
    asked.push_back(i);
    words.push_back(fmt::format("0x{:x}", reinterpret_cast<std::uintptr_t>(addresses[i]) -
                                              reinterpret_cast<std::uintptr_t>(info.dli_fbase)));
  }
  if (asked.empty()) return lines;
  Ran ran;
  try {
    ran = run_program(words, kLimit);
  } catch (const Error&) {
    return lines;  // not installed; the sentence is told without a line
  }
  // Before the places of each address, innermost first, stands the address.
  std::istringstream output(ran.output);
  std::size_t at = 0;
  for (std::string text; std::getline(output, text);) {
    if (text.starts_with("0x")) {
      if (++at > asked.size()) break;
    } else if (at > 0 && lines[asked[at - 1]] == 0) {
      lines[asked[at - 1]] = line_in(text, module);
    }
  }
  return lines;
}

bool stand_in_source(const std::vector<const void*>& kernels, const EditedModule& module,
                     bool shared) {
  // Without addr2line nobody can tell: then one too many counts.
  static const bool blind = find_program("addr2line").empty();
  const auto in_module = [&](const void* kernel) {
    Dl_info info{};
    return dladdr(kernel, &info) != 0 && info.dli_fname == module.file;
  };
  if (blind || shared) return std::any_of(kernels.begin(), kernels.end(), in_module);
  const std::vector<int> lines = lines_of(kernels, module);
  return std::any_of(lines.begin(), lines.end(), [](int line) { return line > 0; });
}

int line_of(const simt::FaultPlace& place, const EditedModule& module) {
  if (place.line > 0 && is_edited(place.file, module)) return static_cast<int>(place.line);
  for (const int line : lines_of(place.callers, module)) {
    if (line > 0) return line;
  }
  return 0;
}

std::string with_line(const std::string& sentence, int line, const EditedModule& module) {
  if (line == 0) return sentence;
  const std::string where = fmt::format("line {} of {}", line, name_of_file(module.path));
  const std::size_t said = sentence.find(where);
  if (said != std::string::npos) return sentence;
  return fmt::format("{} ({})", sentence, where);
}

lab::SourceError located(const simt::KernelFault& fault, const EditedModule& module) {
  const int line = line_of(fault.place(), module);
  std::vector<lab::Diagnostic> all = {{line, 0, lab::Severity::error, fault.what()}};
  for (lab::Diagnostic& note : notes(fault.what(), line, module)) all.push_back(std::move(note));
  return {with_line(fault.what(), line, module), std::move(all), fault.code()};
}

}  // namespace tilestep::workbench
