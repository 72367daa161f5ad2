// Low bits: codes become numbers again, and W [rows × columns] is multiplied by x.
//
//   product              y = W · x; codes become numbers in registers, where they are multiplied
//   dequantize           the numbers in memory, for another kernel to multiply
//   product_of_numbers   y = W · x from those
//
// A thread has 8 neighbouring weights, a warp a row. Every access to what W is stored in is on the tape.

#include <cstddef>
#include <cstdint>

#include "kernels/base/simt/simt.hpp"
#include "kernels/numbers/low_bit/codes.hpp"
#include "kernels/numbers/low_bit/kernels.hpp"

namespace tilestep::low_bit::SIMT_BACKEND {

/// W in few bits, in memory.
struct InFewBits {
  simt::Global<const std::uint8_t> codes;
  Scales<const std::uint8_t> scales;
  simt::Global<const Range> ranges;
  Matrix matrix;
  Group group;
};

// ---- a group's scale ----------------------------------------------------------------------------

/// Number `group`'s scale, from memory into registers.
template <Format kFormat>
__device__ inline Scale read_scale(const InFewBits& w, int group, const Watch& watch) {
  Scale scale;
  if constexpr (kFormat == Format::mxfp4) {
    scale.step = e8m0(watch.traced(w.scales.scales, kScalesSite)[group]);
  } else if constexpr (kFormat == Format::nvfp4) {
    const Range all = watch.traced(w.ranges, kRangesSite)[w.matrix.rows];
    const unsigned bits = watch.traced(w.scales.scales, kScalesSite)[group];
    scale.step = E4m3::value(bits) * tensor_scale_of(all);
  } else if constexpr (scale_bits(kFormat) == 32) {
    scale.step = __uint_as_float(
        watch.traced(simt::as<const unsigned>(w.scales.scales), kScalesSite)[group]);
  } else {
    const unsigned bits =
        watch.traced(simt::as<const std::uint16_t>(w.scales.scales), kScalesSite)[group];
    scale.step = simt::unpack_fp16(bits, 0);
  }
  if constexpr (kFormat == Format::int4_zero) {
    scale.zero = watch.traced(w.scales.zeros, kZerosSite)[group];
    if (breaks(watch, Break::wrong_zero_point)) ++scale.zero;
  }
  scale.offset = static_cast<float>(-scale.zero) * scale.step;
  return scale;
}

// ---- codes to numbers ---------------------------------------------------------------------------

template <Format kFormat>
__device__ inline void load_codes(const InFewBits& w, int chunk, const Watch& watch,
                                  unsigned (&code)[kWeights]) {
  constexpr int kBits = code_bits(kFormat), kPerWord = 32 / kBits;
  unsigned words[2] = {0, 0};
  if constexpr (kBits == 8) {
    const uint2 loaded = watch.traced(simt::as<const uint2>(w.codes), kCodesSite)[chunk];
    words[0] = loaded.x;
    words[1] = loaded.y;
  } else if constexpr (kBits == 4) {
    words[0] = watch.traced(simt::as<const unsigned>(w.codes), kCodesSite)[chunk];
  } else {
    words[0] = watch.traced(simt::as<const std::uint16_t>(w.codes), kCodesSite)[chunk];
  }
  for (int i = 0; i < kWeights; ++i) {
    code[i] = words[i / kPerWord] >> (i % kPerWord * kBits) & ((1u << kBits) - 1);
  }
}

/// A thread's eight numbers of a super-block, and the scale that made them.
__device__ inline Scale load_q4_k(const InFewBits& w, int chunk, const Watch& watch,
                                  float (&value)[kWeights]) {
  constexpr int kWordsOfBlock = kSuperBlockBytes / 4;
  const int block = chunk / 32, lane = chunk % 32, group = lane / kGroupLanes, j = group % 4;
  const auto bytes = watch.traced(w.codes, kCodesSite) + block * kSuperBlockBytes;
  unsigned s = bytes[4 + j], m = bytes[8 + j];
  if (group < 4) {
    s &= 63;
    m &= 63;
  } else {
    const unsigned low = bytes[12 + j];
    s = (low & 15) | s >> 6 << 4;
    m = low >> 4 | m >> 6 << 4;
  }
  const unsigned both =
      watch.traced(simt::as<const unsigned>(w.codes), kCodesSite)[block * kWordsOfBlock];
  Scale scale;
  scale.step = simt::unpack_fp16(both, 0) * static_cast<float>(s);
  scale.offset = -(simt::unpack_fp16(both, 1) * static_cast<float>(m));
  if (breaks(watch, Break::wrong_zero_point)) scale.offset = 0;
  const uint2 loaded =
      watch.traced(simt::as<const uint2>(w.codes),
                   kCodesSite)[block * (kSuperBlockBytes / 8) + 2 + lane / 8 * 4 + lane % 4];
  for (int i = 0; i < kWeights; ++i) {
    const unsigned byte = (i < 4 ? loaded.x : loaded.y) >> (i % 4 * 8) & 0xFF;
    const unsigned code = group % 2 == 0 ? byte & 15 : byte >> 4;
    value[i] = value_of<Format::q4_k>(code, scale);
  }
  return scale;
}

/// The scale that makes numbers of a group's codes; where one is to multiply the whole sum, 1 for now.
template <Format kFormat>
__device__ inline Scale scale_of(const InFewBits& w, int group, const Watch& watch) {
  Scale scale = read_scale<kFormat>(w, group, watch);
  if (breaks(watch, Break::scale_after_sum)) {
    scale.step = 1;
    scale.offset = static_cast<float>(-scale.zero);
  }
  return scale;
}

/// A thread's eight numbers, and the scale that made them.
template <Format kFormat>
__device__ inline Scale load_numbers(const InFewBits& w, int chunk, const Watch& watch,
                                     float (&value)[kWeights]) {
  if constexpr (kFormat == Format::q4_k) {
    return load_q4_k(w, chunk, watch, value);
  } else {
    unsigned code[kWeights];
    load_codes<kFormat>(w, chunk, watch, code);
    const int group = chunk * kWeights / weights_of(w.group, w.matrix);
    const Scale scale = scale_of<kFormat>(w, group, watch);
    for (int i = 0; i < kWeights; ++i) value[i] = value_of<kFormat>(code[i], scale);
    return scale;
  }
}

// ---- the product --------------------------------------------------------------------------------

__device__ inline void note_factors(const Watch& watch, int chunk, const float (&v)[kWeights],
                                    const Scale& scale, float after) {
  Factors factors;
  for (int i = 0; i < kWeights; ++i) factors.w[i] = v[i];
  factors.step = scale.step;
  factors.offset = scale.offset;
  factors.after = after;
  watch.note(kFactorsSite, chunk, factors);
}

/// The sum over all lanes.
__device__ inline float warp_sum(float sum) {
  for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(kAllLanes, sum, apart);
  return sum;
}

template <Format kFormat>
__global__ void product(InFewBits w, Weights x, simt::Global<float> y, Watch watch) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (row >= w.matrix.rows) return;
  const int chunks = w.matrix.columns / kWeights;
  float after = 1.0f;
  if constexpr (kFormat != Format::q4_k) {
    if (breaks(watch, Break::scale_after_sum)) {
      const int groups = w.matrix.columns / weights_of(w.group, w.matrix);
      after = read_scale<kFormat>(w, row * groups, watch).step;
    }
  }
  float sum = 0.0f;
  for (int chunk = lane; chunk < chunks; chunk += 32) {
    float v[kWeights], input[kWeights];
    const Scale scale =
        load_numbers<kFormat>(w, row * chunks + chunk, watch, v);  // [step: numbers]
    load_weights(x, chunk, input);
    for (int i = 0; i < kWeights; ++i) sum += v[i] * input[i];  // [step: multiply]
    note_factors(watch, row * chunks + chunk, v, scale, after);
  }
  sum = warp_sum(sum);
  if (lane == 0) y[row] = sum * after;
}

template <Format kFormat>
__global__ void dequantize(InFewBits w, simt::Global<float> numbers, Watch watch) {
  const int chunk = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (chunk >= w.matrix.rows * w.matrix.columns / kWeights) return;
  float v[kWeights];
  load_numbers<kFormat>(w, chunk, watch, v);
  const auto out = watch.traced(simt::as<float4>(numbers), kNumbersSite);
  out[2 * chunk] = make_float4(v[0], v[1], v[2], v[3]);
  out[2 * chunk + 1] = make_float4(v[4], v[5], v[6], v[7]);
}

/// In the same order as `product`, so that y is the same to the last bit.
__global__ void product_of_numbers(simt::Global<const float> numbers, Matrix matrix, Weights x,
                                   simt::Global<float> y, Watch watch) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (row >= matrix.rows) return;
  const int chunks = matrix.columns / kWeights;
  const auto in = watch.traced(simt::as<const float4>(numbers), kNumbersSite);
  float sum = 0.0f;
  for (int chunk = lane; chunk < chunks; chunk += 32) {
    const int at = row * chunks + chunk;
    const float4 low = in[2 * at], high = in[2 * at + 1];  // [step: read_numbers]
    const float v[kWeights] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    float input[kWeights];
    load_weights(x, chunk, input);
    for (int i = 0; i < kWeights; ++i) sum += v[i] * input[i];  // [step: multiply_numbers]
    Scale none;
    none.step = 1;
    note_factors(watch, at, v, none, 1.0f);
  }
  sum = warp_sum(sum);
  if (lane == 0) y[row] = sum;
}

}  // namespace tilestep::low_bit::SIMT_BACKEND
