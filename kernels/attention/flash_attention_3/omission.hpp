#pragma once

#include <array>
#include <string_view>

#include "kernels/attention/shared/task.hpp"
#include "kernels/base/lab/knob.hpp"

namespace tilestep::flash_attention_3 {

using namespace attention;

/// What a kernel may be made to omit, where nothing else can be broken.
enum class Omission { none, skip_rescale, mask_off_by_one };
constexpr auto names_of(Omission) {
  return std::to_array<std::string_view>({"none", "skip-rescale", "mask-off-by-one"});
}
constexpr Break break_of(Omission omission) {
  constexpr Break kBreaks[] = {Break::none, Break::skip_rescale, Break::mask_off_by_one};
  return kBreaks[static_cast<int>(omission)];
}
/// Throws Error for a mask that cannot be off by one.
inline void check_omission(Omission omission, Mask mask) {
  if (omission != Omission::mask_off_by_one || mask != Mask::none) return;
  lab::refuse_with("break", std::string(name_of(omission)), "mask = none", "none, skip-rescale",
                   std::string("none"));
}

}  // namespace tilestep::flash_attention_3
