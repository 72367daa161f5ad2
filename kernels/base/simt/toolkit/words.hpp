#pragma once

/// \file
/// The rest of CUDA's words for the host compiler: what an edited source may use and no kernel of ours needs. Meaning and
/// argument order are those of the CUDA C++ Programming Guide. Beside it lie the headers that people include; what is
/// not here gets a sentence (kernels/base/workbench/cuda_words.cpp). Included by emulated_dialect.hpp, and by nobody
/// under nvcc.

#include "kernels/base/simt/toolkit/atomics.hpp"
#include "kernels/base/simt/toolkit/bits.hpp"
#include "kernels/base/simt/toolkit/math.hpp"
#include "kernels/base/simt/toolkit/rounding.hpp"
#include "kernels/base/simt/toolkit/threads.hpp"
#include "kernels/base/simt/toolkit/vectors.hpp"
