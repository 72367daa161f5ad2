#pragma once

// Numbers of a row as they lie in memory: 16 bytes of them at a time, or one where rows are not aligned to that.

#include <cstdint>

#include "kernels/base/simt/hopper.hpp"
#include "kernels/base/simt/mma.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/systems/fusion/kernels.hpp"

namespace tilestep::fusion::SIMT_BACKEND {

/// Two numbers that share a register.
template <Dtype kType>
__device__ inline float half_of(unsigned pair, int half) {
  return kType == Dtype::bf16 ? simt::unpack_bf16(pair, half) : simt::unpack_fp16(pair, half);
}
template <Dtype kType>
__device__ inline unsigned pair_of(float low, float high) {
  return kType == Dtype::bf16 ? simt::pack_bf16(low, high) : simt::pack_fp16(low, high);
}

/// 16 bytes: four numbers of FP32, or eight of BF16 or FP16, and as many E4M3 codes.
template <Dtype kType>
struct Wide {
  using Memory = uint4;
  static constexpr Dtype kDtype = kType;
  static constexpr int kNumbers = kType == Dtype::fp32 ? 4 : 8;
  using Codes = std::conditional_t<kNumbers == 4, unsigned, uint2>;
  using Numbers = float[kNumbers];

  __device__ static void unpack(const uint4& words, Numbers& numbers) {
    const unsigned word[4] = {words.x, words.y, words.z, words.w};
    for (int i = 0; i < kNumbers; ++i) {
      if constexpr (kType == Dtype::fp32) {
        numbers[i] = __uint_as_float(word[i]);
      } else {
        numbers[i] = half_of<kType>(word[i / 2], i % 2);
      }
    }
  }
  __device__ static uint4 pack(const Numbers& n) {
    if constexpr (kType == Dtype::fp32) {
      return make_uint4(__float_as_uint(n[0]), __float_as_uint(n[1]), __float_as_uint(n[2]),
                        __float_as_uint(n[3]));
    } else {
      return make_uint4(pair_of<kType>(n[0], n[1]), pair_of<kType>(n[2], n[3]),
                        pair_of<kType>(n[4], n[5]), pair_of<kType>(n[6], n[7]));
    }
  }
  __device__ static Codes codes(const Numbers& n) {
    const unsigned low = simt::hopper::pack_e4m3(n[0], n[1], n[2], n[3]);
    if constexpr (kNumbers == 4) {
      return low;
    } else {
      return make_uint2(low, simt::hopper::pack_e4m3(n[4], n[5], n[6], n[7]));
    }
  }
};

/// One number, and its code.
template <Dtype kType>
struct Narrow {
  using Memory = std::conditional_t<kType == Dtype::fp32, float, std::uint16_t>;
  static constexpr Dtype kDtype = kType;
  static constexpr int kNumbers = 1;
  using Codes = std::uint8_t;
  using Numbers = float[1];

  __device__ static void unpack(Memory bits, Numbers& numbers) {
    if constexpr (kType == Dtype::fp32) {
      numbers[0] = bits;
    } else {
      numbers[0] = half_of<kType>(bits, 0);
    }
  }
  __device__ static Memory pack(const Numbers& n) {
    if constexpr (kType == Dtype::fp32) {
      return n[0];
    } else {
      return static_cast<Memory>(pair_of<kType>(n[0], 0.0f));
    }
  }
  __device__ static Codes codes(const Numbers& n) {
    return static_cast<Codes>(simt::hopper::pack_e4m3(n[0], 0.0f, 0.0f, 0.0f));
  }
};

}  // namespace tilestep::fusion::SIMT_BACKEND
