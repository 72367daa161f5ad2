#include "kernels/base/workbench/assembly_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <tuple>

namespace tilestep::workbench {
namespace {

std::string bytes(int count) {
  return count >= 10'240 && count % 1024 == 0 ? fmt::format("{} KiB", count / 1024)
                                              : fmt::format("{} B", count);
}

std::string spills_of(const AssemblyKernel& kernel, bool brief) {
  const int stored = kernel.spill_store_bytes, loaded = kernel.spill_load_bytes;
  if (stored == 0 && loaded == 0) return brief ? "0 spilled" : "no spills";
  if (brief) return fmt::format("{}/{} B spilled", stored, loaded);
  return fmt::format("spills: {} stored, {} loaded", bytes(stored), bytes(loaded));
}

/// The last part of a demangled name: "weights" of "…::f(float*)::weights".
std::string last_part(std::string_view name) {
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<' || name[i] == '(') ++depth;
    if (name[i] == '>' || name[i] == ')') --depth;
    if (depth == 0 && name.compare(i, 2, "::") == 0) begin = i + 2;
  }
  return std::string(name.substr(begin));
}

}  // namespace

bool is_of(const AssemblyLine& instruction, int line) {
  if (line <= 0) return false;
  const auto& calls = instruction.callers;
  return instruction.line == line || std::find(calls.begin(), calls.end(), line) != calls.end();
}

int row_of_line(const AssemblyKernel& kernel, int line) {
  const auto found = std::find_if(kernel.lines.begin(), kernel.lines.end(),
                                  [line](const AssemblyLine& each) { return is_of(each, line); });
  return found == kernel.lines.end() ? -1 : static_cast<int>(found - kernel.lines.begin());
}

int kernel_of_line(const std::vector<AssemblyKernel>& kernels, int line, int now) {
  // How far its nearest instruction stands from the line, whether it is another one than now, and its length.
  using Rank = std::tuple<int, bool, std::size_t>;
  int best = now;
  std::optional<Rank> least;
  for (int i = 0; i < static_cast<int>(kernels.size()); ++i) {
    const AssemblyKernel& kernel = kernels[static_cast<std::size_t>(i)];
    int distance = -1;
    for (const AssemblyLine& each : kernel.lines) {
      if (each.line == 0) continue;
      const int far = is_of(each, line) ? 0 : std::abs(each.line - line);
      if (distance < 0 || far < distance) distance = far;
    }
    if (distance < 0) continue;
    const Rank rank(distance, i != now, kernel.lines.size());
    if (!least || rank < *least) least = rank, best = i;
  }
  return best;
}

int place_of(const std::vector<AssemblyKernel>& kernels, const std::string& symbol) {
  const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const AssemblyKernel& each) {
    return each.symbol == symbol;
  });
  return found == kernels.end() ? -1 : static_cast<int>(found - kernels.begin());
}

std::string readable_instruction(std::string_view text) {
  constexpr std::string_view kMangled = "_Z", kParameter = "_param_";
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
  };
  std::string shown;
  while (!text.empty()) {
    const std::size_t at = text.find(kMangled);
    shown += text.substr(0, at);
    if (at == text.npos) break;
    text.remove_prefix(at);
    std::size_t end = 0;
    while (end < text.size() && is_part(text[end])) ++end;
    const std::string symbol(text.substr(0, end));
    text.remove_prefix(end);
    const std::size_t parameter = symbol.rfind(kParameter);
    const bool begins_here = shown.empty() || !is_part(shown.back());
    shown += !begins_here               ? symbol
             : parameter != symbol.npos ? symbol.substr(parameter + 1)
                                        : last_part(full_name_of(symbol));
  }
  return shown;
}

std::string resources_of(const AssemblyKernel& kernel, bool brief) {
  std::string said;
  const auto add = [&](const std::string& part) { said += (said.empty() ? "" : " · ") + part; };
  if (kernel.registers >= 0) {
    add(fmt::format("{} {}", kernel.registers, brief ? "reg" : "registers"));
  }
  if (kernel.spill_store_bytes >= 0 && kernel.spill_load_bytes >= 0) add(spills_of(kernel, brief));
  if (kernel.shared_bytes >= 0) add(bytes(kernel.shared_bytes) + " shared");
  if (kernel.stack_bytes >= 0 && !brief) {
    add(kernel.stack_bytes == 0 ? "no stack" : bytes(kernel.stack_bytes) + " stack");
  }
  return said;
}

}  // namespace tilestep::workbench
