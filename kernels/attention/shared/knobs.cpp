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

lab::Replay replay_with(std::vector<lab::Replay::Part> more) {
  lab::Replay replay{
      .of_machine = {{"trace.clock_unit", "its clock"},
                     {"trace.visits.begin", "its clock"},
                     {"trace.visits.end", "its clock"},
                     {"trace.blocks.begin", "its clock"},
                     {"trace.blocks.end", "its clock"},
                     {"tables.blocks.begin", "its clock"},
                     {"tables.blocks.end", "its clock"},
                     {"trace.wrong", kLastBit},
                     {"trace.result", kLastBit},
                     {"tables.broken", kLastBit}},
      .rounding = 0x1p-7,
      .rounding_why =
          "Tensor cores cut off what the emulation rounds: a number of O may then be "
          "the next one of BF16, 2^-7 away."};
  replay.of_machine.insert(replay.of_machine.end(), more.begin(), more.end());
  return replay;
}

}  // namespace tilestep::attention
