#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention/kv_cache/inputs.hpp"

/// \file
/// A cache in fewer bits: numbers, their scales, and the values they represent.
namespace tilestep::kv_cache {

/// Rows of a page and K/V head, as `Inputs` has them, in few bits. A number represents itself times its scale; scales
/// are symmetric: the largest number that shares one maps to the largest of the format (448, 127 or 7).
struct Quantized {
  std::vector<std::uint8_t> bytes;  ///< int4: two numbers each, the first in the low half
  std::vector<float> scales;  ///< [rows], or by channel [cached heads × channels]; 16 bits: none
  std::vector<float> values;  ///< the values that the bytes represent, in the numbers' places
};
/// `values` [pages × cached_heads × page_size × channels]. For bf16: the same numbers, without scales.
Quantized quantized(const std::vector<float>& values, const Inputs& shape, int channels,
                    KvType type, Scales scales);

/// The largest number of a format of 8 or 4 bits.
float largest_of(KvType type);

/// A cache as a kernel gets it. mla has no v.
struct Cache {
  Quantized k, v;
};
Cache cache_of(const Inputs& inputs, KvType type, Scales scales);

/// A format's error in a request's answer: root mean squares over the numbers of its tokens and heads, each relative to
/// the root mean square of the exact ones.
struct FormatError {
  double key = 0, score = 0, output = 0;
};
/// Of the request `request`, by direct softmax in double.
FormatError format_error(const Inputs& inputs, int request, KvType type, Scales scales);

}  // namespace tilestep::kv_cache
