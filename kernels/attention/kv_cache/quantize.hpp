#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention/kv_cache/inputs.hpp"

/// \file
/// A cache in fewer bits: numbers, their scales, and what they stand for.
namespace tilestep::kv_cache {

/// Rows of a page and K/V head, as `Inputs` has them, in few bits. A number stands for itself times its scale; scales
/// are symmetric, the largest of those that share one becomes the largest of the format (448, 127 or 7).
struct Quantized {
  std::vector<std::uint8_t> bytes;  ///< int4: two numbers each, the first in the low half
  std::vector<float> scales;  ///< [rows], or by channel [cached heads × channels]; 16 bits: none
  std::vector<float> values;  ///< what the bytes stand for, in the places of the numbers
};
/// `values` [pages × cached_heads × page_size × channels]. Of bf16: the same numbers, without scales.
Quantized quantized(const std::vector<float>& values, const Inputs& shape, int channels,
                    KvType type, Scales scales);

/// The largest number of a format of 8 or 4 bits.
float largest_of(KvType type);

/// A cache as a kernel gets it. Of mla there is no v.
struct Cache {
  Quantized k, v;
};
Cache cache_of(const Inputs& inputs, KvType type, Scales scales);

/// What a format costs a request's answer: root mean squares over the numbers of its tokens and heads, each for the
/// root mean square of what it should be.
struct FormatError {
  double key = 0, score = 0, output = 0;
};
/// Of the request `request`, by direct softmax in double.
FormatError format_error(const Inputs& inputs, int request, KvType type, Scales scales);

}  // namespace tilestep::kv_cache
