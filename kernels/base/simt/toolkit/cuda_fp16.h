#pragma once

/// \file
/// CUDA's header of this name, for edited sources under emulation: FP16.

#include "kernels/base/simt/toolkit/small_floats.hpp"

inline namespace tilestep_toolkit {

using __half = SmallFloat<Fp16Format>;
using half = __half;
using __half2 = SmallFloat2<Fp16Format>;
using half2 = __half2;
using nv_half = __half;
using nv_half2 = __half2;

TILESTEP_SMALL_WORDS(Fp16Format, half, half2)

}  // namespace tilestep_toolkit
