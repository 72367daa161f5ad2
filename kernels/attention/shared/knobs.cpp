#include "kernels/attention/shared/knobs.hpp"

#include <fmt/format.h>

#include "kernels/base/lab/knob.hpp"

namespace tilestep::attention {

void check_heads(int heads, int kv_heads) {
  if (heads % kv_heads == 0) return;
  std::string allowed;
  for (int each = 1; each <= heads; ++each) {
    if (heads % each == 0)
      fmt::format_to(std::back_inserter(allowed), "{}{}", each == 1 ? "" : ", ", each);
  }
  lab::refuse_with("kv_heads", std::int64_t{kv_heads}, fmt::format("heads = {}", heads), allowed,
                   std::int64_t{1});
}

const lab::Replay& replay_of_runs() {
  static constexpr const char* kLastBit =
      "how many are past a tolerance is a matter of the last bit";
  static const lab::Replay kReplay{
      .of_machine = {{"trace.clock_unit", "its clock"},
                     {"trace.visits.begin", "its clock"},
                     {"trace.visits.end", "its clock"},
                     {"trace.blocks.begin", "its clock"},
                     {"trace.blocks.end", "its clock"},
                     {"trace.events", "its clock, and the order that it gives"},
                     {"tables.blocks.begin", "its clock"},
                     {"tables.blocks.end", "its clock"},
                     {"tables.lanes", "its clock"},
                     {"trace.wrong", kLastBit},
                     {"trace.wrong_dk", kLastBit},
                     {"trace.wrong_dv", kLastBit},
                     {"trace.result", kLastBit},
                     {"tables.broken", kLastBit}},
      .rounding = 0x1p-7,
      .rounding_why =
          "Tensor cores cut off what the emulation rounds: a number of O may then be "
          "the next one of BF16, 2^-7 away."};
  return kReplay;
}

}  // namespace tilestep::attention
