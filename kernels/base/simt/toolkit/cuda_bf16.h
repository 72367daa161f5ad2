#pragma once

/// \file
/// CUDA's header of this name, for edited sources under emulation: BF16.

#include "kernels/base/simt/toolkit/small_floats.hpp"

inline namespace tilestep_toolkit {

using __nv_bfloat16 = SmallFloat<Bf16Format>;
using nv_bfloat16 = __nv_bfloat16;
using __nv_bfloat162 = SmallFloat2<Bf16Format>;
using nv_bfloat162 = __nv_bfloat162;

TILESTEP_SMALL_WORDS(Bf16Format, bfloat16, bfloat162)

}  // namespace tilestep_toolkit
