#pragma once

#include <cstdint>

namespace tilestep::simt::emulated {

/// The linear half of XORWOW (G. Marsaglia, "Xorshift RNGs", 2003): five words, which a step shifts
/// by one. Advances them by steps + sequences · 2^67 steps, by powers of the step's matrix over
/// GF(2).
void xorwow_skip(std::uint32_t (&words)[5], std::uint64_t steps, std::uint64_t sequences);

}  // namespace tilestep::simt::emulated
