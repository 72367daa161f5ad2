#include "kernels/base/inspect/operations.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "kernels/base/simt/error.hpp"
#include "kernels/base/workbench/program.hpp"

namespace tilestep::inspect {
namespace {

struct Word {
  std::string_view begins;
  Operations operations;
};
/// x86-64's scalar instructions, and what is called in their place.
constexpr Word kWords[] = {
    {"addss", {1, 0}}, {"subss", {1, 0}}, {"mulss", {1, 0}}, {"divss", {1, 0}}, {"sqrtss", {1, 0}},
    {"addsd", {0, 1}}, {"subsd", {0, 1}}, {"mulsd", {0, 1}}, {"divsd", {0, 1}}, {"sqrtsd", {0, 1}},
};
constexpr Word kCalls[] = {{"<fmaf@plt>", {2, 0}}, {"<fma@plt>", {0, 2}}};
constexpr std::string_view kHook = "<tilestep_steps@plt>";

/// "    11b9:\tcall   1030 <fmaf@plt>"
struct Instruction {
  std::uint64_t at = 0;
  std::string_view text;
};

bool read(std::string_view line, Instruction& instruction) {
  const std::size_t colon = line.find(":\t");
  if (colon == line.npos) return false;
  const std::size_t digits = std::min(line.find_first_not_of(' '), colon);
  const auto [end, error] =
      std::from_chars(line.data() + digits, line.data() + colon, instruction.at, 16);
  instruction.text = line.substr(colon + 2);
  return error == std::errc() && end == line.data() + colon;
}

}  // namespace

std::map<std::uint64_t, Operations> read_operations(std::string_view disassembly) {
  std::map<std::uint64_t, Operations> all;
  Operations* now = nullptr;
  bool hooked = false;  // the next instruction is where the hook returns
  while (!disassembly.empty()) {
    const std::size_t end = std::min(disassembly.find('\n'), disassembly.size());
    const std::string_view line = disassembly.substr(0, end);
    disassembly.remove_prefix(std::min(end + 1, disassembly.size()));
    Instruction instruction;
    if (!read(line, instruction)) {
      if (line.ends_with(">:")) now = nullptr;  // a function
      continue;
    }
    if (std::exchange(hooked, false)) now = &all[instruction.at];
    const std::string_view text = instruction.text;
    if (text.starts_with("call")) {
      hooked = text.ends_with(kHook);
      for (const Word& each : kCalls) {
        if (now == nullptr || !text.ends_with(each.begins)) continue;
        now->fp32 += each.operations.fp32;
        now->fp64 += each.operations.fp64;
      }
    } else if (now != nullptr) {
      for (const Word& each : kWords) {
        if (!text.starts_with(each.begins)) continue;
        now->fp32 += each.operations.fp32;
        now->fp64 += each.operations.fp64;
      }
    }
  }
  return all;
}

std::map<std::uint64_t, Operations> operations_of(const std::string& module) {
  try {
    const workbench::Ran ran = workbench::run_program(
        {"objdump", "-d", "--no-show-raw-insn", module}, std::chrono::seconds(10));
    if (ran.status == 0) return read_operations(ran.output);
  } catch (const Error&) {
  }
  return {};
}

}  // namespace tilestep::inspect
