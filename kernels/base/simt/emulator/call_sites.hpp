#pragma once

#include <cstdint>
#include <vector>

namespace tilestep::simt::emulated {

/// A number for the place that called, with those that called it: an access may stand in a function of simt's, and
/// whoever called that is meant. `frame` is __builtin_frame_address(0) of the function that the kernel called, `top` where
/// the stack ends. Edited sources keep frame pointers, since they are not optimized. 0: of which nothing is known.
std::uint32_t call_site(void** frame, const void* top);
/// Its callers, innermost first, as FaultPlace::callers.
std::vector<const void*> callers_of(std::uint32_t site);

}  // namespace tilestep::simt::emulated
