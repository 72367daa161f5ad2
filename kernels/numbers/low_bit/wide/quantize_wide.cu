#pragma once

// Low bits: what quantize.cu does, as fast as memory is read. A thread has 16 weights, two in a register, and spends few
// instructions on each, above all of those that go at half the others' rate:
//
//   range   the larger ones of two pairs of weights at once
//   scale   quotients by reciprocals, of which a tensor's is found once
//   code    rounded by an addition; what may be past the last code saturates in the instruction that multiplies
//   word    a code is moved to its place while the one before it is added

#include <cstddef>
#include <cstdint>

#include "kernels/base/simt/hopper.hpp"
#include "kernels/base/simt/packed.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/numbers/low_bit/codes.hpp"
#include "kernels/numbers/low_bit/kernels.hpp"

namespace tilestep::low_bit::SIMT_BACKEND {

constexpr int kWide = 16;  // weights of a thread: 32 bytes of BF16
using Pairs = unsigned[kWide / 2];
constexpr unsigned kSigns = 0x80008000u;  // of a pair

__device__ inline float weight_of(const Pairs& w, int i) {
  return simt::unpack_bf16(w[i / 2], i % 2);
}
__device__ inline void load_pairs(Weights weights, int chunk, Pairs& w) {
  for (int i = 0; i < 2; ++i) {
    const uint4 loaded = simt::as<const uint4>(weights)[2 * chunk + i];
    w[4 * i] = loaded.x;
    w[4 * i + 1] = loaded.y;
    w[4 * i + 2] = loaded.z;
    w[4 * i + 3] = loaded.w;
  }
}

// ---- a group's range ----------------------------------------------------------------------------

/// Over the weights of `lanes` neighbouring lanes: the largest magnitude, as a range around 0.
__device__ inline Range wide_magnitude(const Pairs& w, int lanes) {
  unsigned most = w[0];
  for (int i = 1; i < kWide / 2; ++i) most = simt::max_magnitude_bf16x2(most, w[i]);
  most = simt::max_magnitude_bf16x2(most, most >> 16) & 0x7FFFu;
  for (int apart = 1; apart < lanes; apart *= 2) {
    most = simt::max_bf16x2(most, __shfl_xor_sync(kAllLanes, most, apart));
  }
  const float largest = simt::unpack_bf16(most, 0);
  return {-largest, largest, 0.0f};
}

/// The lowest and the highest. A shuffle moves both: the highest, and the lowest with its sign turned.
__device__ inline Range wide_range(const Pairs& w, int lanes) {
  unsigned high = w[0], low = w[0];
  for (int i = 1; i < kWide / 2; ++i) {
    high = simt::max_bf16x2(high, w[i]);
    low = simt::min_bf16x2(low, w[i]);
  }
  low ^= kSigns;
  unsigned both = simt::max_bf16x2(simt::permute_bytes(high, low, 0x5410),
                                   simt::permute_bytes(high, low, 0x7632));
  for (int apart = 1; apart < lanes; apart *= 2) {
    both = simt::max_bf16x2(both, __shfl_xor_sync(kAllLanes, both, apart));
  }
  return {-simt::unpack_bf16(both, 1), simt::unpack_bf16(both, 0), 0.0f};
}

// ---- a group's scale ----------------------------------------------------------------------------

struct TensorScale {
  float scale, inverse;
};

/// 1 / x, rounded: of a normal number that has a normal reciprocal.
__device__ inline float reciprocal(float x) {
  const float near = simt::near_reciprocal(x);
  return fmaf(fmaf(-x, near, 1.0f), near, near);
}

/// choose_scale's without divisions, as far as codes need it; it looks after what is rare itself.
template <Format kFormat>
__device__ inline Scale wide_scale(const Range& range, const TensorScale& tensor) {
  const float largest = fabsf(fmaxf(-range.low, range.high));
  Scale scale;
  if constexpr (kFormat == Format::mxfp4) {
    scale.bits = max(static_cast<int>(__float_as_uint(largest) >> 23) - 2, 0);
    scale.inverse = __uint_as_float(scale.bits == 0 ? 0u : (254u - scale.bits) << 23);
  } else if constexpr (kFormat == Format::nvfp4) {
    if (tensor.scale < power_of_two(-100)) return choose_scale<kFormat>(range, tensor.scale);
    const float wanted = quotient(largest, E2m1::largest(), 1 / E2m1::largest());
    const float number = quotient(wanted, tensor.scale, tensor.inverse);
    scale.bits = simt::hopper::pack_e4m3(number, 0.0f, 0.0f, 0.0f) & 0xFFu;
    scale.step = simt::unpack_fp16(simt::unpack_e4m3x2(scale.bits), 0) * tensor.scale;
    scale.inverse = scale.bits == 0 ? 0.0f : simt::near_reciprocal(scale.step);
  } else if constexpr (kFormat == Format::int4_zero) {
    const float low = fminf(range.low, 0.0f), spread = fmaxf(range.high, 0.0f) - low;
    scale.bits = simt::pack_fp16(quotient(spread, 15.0f, 1 / 15.0f), 0.0f);
    scale.step = simt::unpack_fp16(scale.bits, 0);
    if (!(spread < power_of_two(19)) || scale.bits == 0) return choose_scale<kFormat>(range, 0.0f);
    scale.inverse = reciprocal(scale.step);
    scale.zero = static_cast<int>(whole(quotient(-low, scale.step, scale.inverse), 0.0f, 15.0f));
  } else {
    scale = choose_scale<kFormat>(range, tensor.scale);
  }
  return scale;
}

// ---- codes side by side -------------------------------------------------------------------------

/// 1.5 · 2^23: FP32's numbers are 1 apart there, so that a sum with it is rounded and ends in the whole number.
constexpr float kOnes = 12582912.0f;
constexpr unsigned kOnesBits = 0x4B400000u;

/// `value` at the place of each code of so many bits, added up.
__host__ __device__ constexpr unsigned at_each(unsigned value, int bits) {
  unsigned word = 0;
  for (int at = 0; at < 32; at += bits) word += value << at;
  return word;
}

/// A word of kBits each of numbers that were added to kOnes, the first in the lowest bits, and kOnes' own bits at each.
template <int kBits>
__device__ inline unsigned with_ones(const float (&codes)[kWide], int first) {
  unsigned word = 0;
  for (int i = 32 / kBits - 1; i >= 0; --i) {
    word = (word << kBits) + __float_as_uint(codes[first + i]);
  }
  return word;
}
/// The same without kOnes' bits, which are subtracted once; signed numbers are raised meanwhile, so that none borrows
/// from the next. `more` is added to the word.
template <int kBits, bool kSigned = false>
__device__ inline unsigned side_by_side(const float (&codes)[kWide], int first, unsigned more = 0) {
  const unsigned word = with_ones<kBits>(codes, first);
  constexpr unsigned kRaised = kSigned ? at_each(1u << (kBits - 1), kBits) : 0u;
  return (word + (more + kRaised - at_each(kOnesBits, kBits))) ^ kRaised;
}

/// The signs of eight weights, each in the highest of its four bits.
__device__ inline unsigned signs_of(const Pairs& w, int first) {
  const unsigned* pairs = &w[first / 2];
  const unsigned a = simt::permute_bytes(pairs[0], pairs[1], 0x7351);
  const unsigned b = simt::permute_bytes(pairs[2], pairs[3], 0x7351);
  const unsigned even = simt::permute_bytes(a, b, 0x5410), odd = simt::permute_bytes(a, b, 0x7632);
  return (even >> 4 & 0x08080808u) | (odd & 0x80808080u);
}

/// 1 / step, as a number and what it lacks: a product with both is the quotient, rounded once.
struct Inverse {
  float high, low;

  __device__ explicit Inverse(const Scale& scale)
      : high(scale.inverse), low(fmaf(-scale.step, scale.inverse, 1.0f) * scale.inverse) {}
  __device__ float times(float x) const { return fmaf(x, high, x * low); }
};

/// Integers, added to kOnes. A weight has 8 bits and a scale in FP16 11, so that their quotient is a tie or 2^-12 away
/// from one. Rounded to a multiple of 2^-13 first, it is where it belongs in spite of the reciprocal's own rounding.
template <Format kFormat>
__device__ inline void round_to_integers(const Pairs& w, const Scale& scale,
                                         float (&codes)[kWide]) {
  constexpr float kGrid = 1536.0f;  // 1.5 · 2^10
  const float most = kGrid + static_cast<float>(15 - scale.zero);
  for (int i = 0; i < kWide; ++i) {
    float x = fmaf(weight_of(w, i), scale.inverse, kGrid);
    if constexpr (kFormat == Format::int4_zero) x = fminf(x, most);
    codes[i] = x + (kOnes - kGrid);
  }
}

/// For a scale so small that FP16 is coarse: a weight may be past the last code.
template <Format kFormat>
__device__ inline void saturate_integers(const Pairs& w, const Scale& scale,
                                         float (&codes)[kWide]) {
  for (int i = 0; i < kWide; ++i) {
    const unsigned code = code_of<kFormat>(weight_of(w, i), scale);
    codes[i] = kOnes + number_of<kFormat>(code) - static_cast<float>(scale.zero);
  }
}

/// E2M1's code without its sign, added to kOnes: 2x up to 2, then x + 2 up to 4, then x / 2 + 4. Three ramps that end at
/// 1, of which no more than one is not 0 or 1, so that its rounding is the sum's. `half` is half the scale's reciprocal.
__device__ inline float e2m1_code(float weight, float half) {
  const float w = fabsf(weight);
  const float first = simt::saturated(w * half), second = simt::saturated(fmaf(w, half, -1.0f)),
              third = simt::saturated(fmaf(w, half, -2.0f));
  return fmaf(4.0f, first, fmaf(2.0f, second, kOnes)) + third;
}

/// Two weights at a time beside half the scale, rounded down to BF16: no weight is between.
__device__ inline unsigned ternary_codes(const Pairs& w, float step) {
  const unsigned half = __float_as_uint(0.5f * step) >> 16;
  unsigned words[2] = {0, 0};
  for (int i = kWide / 2 - 1; i >= 0; --i) {
    const unsigned beyond = simt::greater_bf16x2(w[i] & ~kSigns, half | half << 16);
    const unsigned code = ((w[i] >> 14 & 0x00020002u) | 0x00010001u) & beyond;
    words[i / 4] = (words[i / 4] << 4) + code;
  }
  // Even weights are in the low halves, odd ones in the high ones.
  return simt::permute_bytes(words[0], words[1], 0x5410) |
         simt::permute_bytes(words[0], words[1], 0x7632) << 2;
}

// ---- quantize -----------------------------------------------------------------------------------

template <Format kFormat>
__device__ inline void wide_codes(const Pairs& w, const Scale& scale, unsigned (&words)[4]) {
  constexpr int kBits = code_bits(kFormat), kPerWord = 32 / kBits;
  float x[kWide];
  if constexpr (kFormat == Format::ternary) {
    words[0] = ternary_codes(w, scale.step);
  } else if constexpr (kFormat == Format::fp8_e4m3 || kFormat == Format::fp8_e5m2) {
    const Inverse inverse(scale);
    for (int i = 0; i < kWide; ++i) x[i] = inverse.times(weight_of(w, i));
    for (int i = 0; i < 4; ++i) {
      const float* four = &x[4 * i];
      words[i] = kFormat == Format::fp8_e4m3
                     ? simt::hopper::pack_e4m3(four[0], four[1], four[2], four[3])
                     : simt::pack_e5m2(four[0], four[1], four[2], four[3]);
    }
  } else if constexpr (kFormat == Format::mxfp4 || kFormat == Format::nvfp4) {
    for (int i = 0; i < kWide; ++i) x[i] = e2m1_code(weight_of(w, i), 0.5f * scale.inverse);
    for (int i = 0; i < 2; ++i) words[i] = side_by_side<4>(x, 8 * i) | signs_of(w, 8 * i);
  } else {
    constexpr bool kSigned = kFormat != Format::int4_zero;
    if (scale.step < power_of_two(-14)) {
      saturate_integers<kFormat>(w, scale, x);
    } else {
      round_to_integers<kFormat>(w, scale, x);
    }
    const unsigned zeros = static_cast<unsigned>(scale.zero) * at_each(1, kBits);
    for (int i = 0; i < kWide / kPerWord; ++i) {
      words[i] = side_by_side<kBits, kSigned>(x, kPerWord * i, zeros);
    }
  }
}

/// A thread's chunks.
constexpr int kWideThreads = 256, kChunks = 2;
__device__ inline int chunk_of(int i) {
  return static_cast<int>((blockIdx.x * kChunks + i) * kWideThreads + threadIdx.x);
}
__device__ inline void load_chunks(Weights weights, int chunks, Pairs (&w)[kChunks]) {
  for (int i = 0; i < kChunks; ++i) load_pairs(weights, min(chunk_of(i), chunks - 1), w[i]);
}

template <Format kFormat>
__device__ inline void quantize_chunk(const Pairs& w, int chunk, const Matrix& matrix, Group group,
                                      simt::Global<const Range> ranges, const TensorScale& tensor,
                                      simt::Global<std::uint8_t> codes,
                                      const Scales<std::uint8_t>& scales) {
  const int across = matrix.columns / kWide;
  const bool inside = chunk < matrix.rows * across;
  Range range;
  int number = 0;  // of the group
  bool is_first = chunk == 0;
  if (group == Group::tensor) {
    range = ranges[matrix.rows];
  } else if (group == Group::row) {
    number = inside ? chunk / across : 0;
    is_first = chunk == number * across;
    range = ranges[number];
  } else {
    const int shift = static_cast<int>(group);  // 2^shift lanes share a group
    number = chunk >> shift;
    is_first = chunk == number << shift;
    range =
        kFormat == Format::int4_zero ? wide_range(w, 1 << shift) : wide_magnitude(w, 1 << shift);
  }
  const Scale scale = wide_scale<kFormat>(range, tensor);
  unsigned words[4];
  wide_codes<kFormat>(w, scale, words);
  if (!inside) return;
  if constexpr (code_bits(kFormat) == 8) {
    simt::as<uint4>(codes)[chunk] = make_uint4(words[0], words[1], words[2], words[3]);
  } else if constexpr (code_bits(kFormat) == 4) {
    simt::as<uint2>(codes)[chunk] = make_uint2(words[0], words[1]);
  } else {
    simt::as<unsigned>(codes)[chunk] = words[0];
  }
  if (is_first) write_scale<kFormat>(scales, number, scale);
}

template <Format kFormat>
__global__ void __launch_bounds__(kWideThreads)
    quantize_wide(Weights weights, Matrix matrix, Group group, simt::Global<const Range> ranges,
                  simt::Global<std::uint8_t> codes, Scales<std::uint8_t> scales) {
  Pairs w[kChunks];
  load_chunks(weights, matrix.rows * (matrix.columns / kWide), w);
  TensorScale tensor{};
  if constexpr (kFormat == Format::nvfp4) {
    tensor.scale = tensor_scale_of(ranges[matrix.rows]);
    tensor.inverse = inverse_of(tensor.scale);
  }
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    quantize_chunk<kFormat>(w[i], chunk_of(i), matrix, group, ranges, tensor, codes, scales);
  }
}

/// Byte r of the words of four neighbouring lanes, by lane r of them.
__device__ inline unsigned transposed(unsigned word) {
  const bool odd = threadIdx.x % 2 != 0, upper = threadIdx.x % 4 >= 2;
  const unsigned next = __shfl_xor_sync(kAllLanes, word, 1);
  // Bytes 0 and 2 of two lanes, or 1 and 3.
  const unsigned two =
      odd ? simt::permute_bytes(next, word, 0x7351) : simt::permute_bytes(word, next, 0x6240);
  const unsigned others = __shfl_xor_sync(kAllLanes, two, 2);
  return upper ? simt::permute_bytes(others, two, 0x7632)
               : simt::permute_bytes(two, others, 0x5410);
}

/// A lane's part of a super-block: two words of codes, its group's scale and minimum, and what they count in.
struct SuperPart {
  uint2 codes;
  unsigned bits, units;
};

/// A super-block has 16 lanes, a group two of them.
__device__ inline SuperPart q4_k_part(const Pairs& w) {
  constexpr unsigned kLanes = kSuperBlock / kWide;
  // A group has two lanes: the even one looks after the scale, the odd one after the minimum.
  const Range range = wide_range(w, 2);
  const bool is_odd = threadIdx.x % 2 != 0;
  const float low = fminf(range.low, 0.0f);
  const float spread = fmaxf(range.high, 0.0f) - low;
  const float wanted = is_odd ? -low : quotient(spread, 15.0f, 1 / 15.0f);
  float most = wanted;
  for (unsigned apart = 2; apart < kLanes; apart *= 2) {
    most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, apart));
  }
  const unsigned unit = simt::pack_fp16(quotient(most, 63.0f, 1 / 63.0f), 0.0f);
  const float number = simt::unpack_fp16(unit, 0);
  // By 0 there is no quotient, and no number is 0 in whole ones.
  const unsigned own = unit | whole(quotient(wanted, number, reciprocal(number)), 0.0f, 63.0f)
                                  << 16;
  const unsigned other_lane = __shfl_xor_sync(kAllLanes, own, 1);
  const unsigned of_scale = is_odd ? other_lane : own, of_minimum = is_odd ? own : other_lane;
  SuperPart part;
  part.units = simt::permute_bytes(of_scale, of_minimum, 0x5410);
  const Scale scale = q4_k_scale(part.units, of_scale >> 16, of_minimum >> 16);
  part.bits = scale.bits;

  float x[kWide];
  const float by = scale.step > 0 ? simt::near_reciprocal(15.0f * scale.step) : 0.0f,
              from = -scale.offset * by;
  for (int i = 0; i < kWide; ++i) {
    x[i] = fmaf(simt::saturated(fmaf(weight_of(w, i), by, from)), 15.0f, kOnes);
  }
  unsigned bytes[4];
  for (int i = 0; i < 4; ++i) bytes[i] = with_ones<8>(x, 4 * i);
  // Of 64 weights the first 32 have the bytes' low halves, the others the high ones. Lanes that share bytes store half of
  // them each.
  const bool is_high = threadIdx.x % 4 >= 2;
  const unsigned times = is_high ? 16 : 1, other_times = is_high ? 1 : 16;
  unsigned word[2];
  for (int i = 0; i < 2; ++i) {
    const unsigned other = __shfl_xor_sync(kAllLanes, is_high ? bytes[i] : bytes[2 + i], 2);
    word[i] = (is_high ? bytes[2 + i] : bytes[i]) * times +
              (other * other_times - 17 * at_each(kOnesBits, 8));
  }
  part.codes = make_uint2(word[0], word[1]);
  return part;
}

/// The four words before the codes of two super-blocks: by the first four lanes those of one, by the next four those of
/// the other.
__device__ inline unsigned heads_of(const SuperPart& first, const SuperPart& second) {
  const unsigned lane = threadIdx.x % 16, from = threadIdx.x % 32 - lane + lane % 4 * 2;
  const unsigned bits = first.bits | second.bits << 16, shift = lane % 8 >= 4 ? 16 : 0;
  const unsigned early = __shfl_sync(kAllLanes, bits, from) >> shift & 0xFFFu;
  const unsigned late = __shfl_sync(kAllLanes, bits, from + 8) >> shift & 0xFFFu;
  const unsigned units = shift != 0 ? second.units : first.units;
  // Lane i of four has byte i of each word, and then word i + 1, the last lane the first.
  return transposed(six_bits_of(early, late) | (units >> lane % 4 * 8) << 24);
}

/// A block's chunks, two of a thread at a time, are loaded while those before them become codes: in a loop, since in a row
/// the compiler moves loads down to where their numbers are used.
constexpr int kRounds = 4;

__global__ void __launch_bounds__(kWideThreads)
    quantize_q4_k_wide(Weights weights, Matrix matrix, simt::Global<std::uint8_t> blocks) {
  constexpr unsigned kLanes = kSuperBlock / kWide;
  constexpr int kApart = kWideThreads / static_cast<int>(kLanes) * kSuperBlockBytes;
  const int chunks = matrix.rows * (matrix.columns / kWide);
  const unsigned lane = threadIdx.x % kLanes;  // of the super-block
  const unsigned code = lane / 4 * 4 + lane % 2 * 2 + lane / 2 % 2;
  int chunk = static_cast<int>(blockIdx.x * kRounds * kChunks * kWideThreads + threadIdx.x);
  auto block = blocks + static_cast<std::ptrdiff_t>(static_cast<unsigned>(chunk) / kLanes) *
                            kSuperBlockBytes;
  const auto load = [&](int at, Pairs(&w)[kChunks]) {
    for (int i = 0; i < kChunks; ++i) {
      load_pairs(weights, min(at + i * kWideThreads, chunks - 1), w[i]);
    }
  };
  Pairs w[kChunks], ahead[kChunks];
  load(chunk, w);
#pragma unroll 1
  for (int round = 1;; ++round) {
    if (round < kRounds) load(chunk + kChunks * kWideThreads, ahead);
    const SuperPart parts[kChunks] = {q4_k_part(w[0]), q4_k_part(w[1])};
    const unsigned head = heads_of(parts[0], parts[1]);
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      if (chunk + i * kWideThreads >= chunks) continue;
      const auto own = block + i * kApart;
      simt::as<uint2>(own + 16)[static_cast<int>(code)] = parts[i].codes;
      if (static_cast<int>(lane / 4) == i) {
        simt::as<unsigned>(own)[static_cast<int>((lane + 1) % 4)] = head;
      }
    }
    if (round == kRounds) return;
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
#pragma unroll
      for (int j = 0; j < kWide / 2; ++j) w[i][j] = ahead[i][j];
    }
    chunk += kChunks * kWideThreads;
    block += kChunks * kApart;
  }
}

}  // namespace tilestep::low_bit::SIMT_BACKEND
