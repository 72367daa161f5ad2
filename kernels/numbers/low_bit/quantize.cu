// Low bits: W [rows × columns] from BF16 to codes that share scales. The way back is in product.cu.
//
//   row_ranges, tensor_range   what each row of W spans, and all of W
//   quantize                   a scale for every group of weights, a code for every weight
//   quantize_q4_k              the same in super-blocks of 256, whose scales are codes themselves
//
// A thread has 8 neighbouring weights: 16 bytes of BF16. The lanes of a group find its range by shuffles.

#include <cstddef>
#include <cstdint>

#include "kernels/base/simt/simt.hpp"
#include "kernels/numbers/low_bit/codes.hpp"
#include "kernels/numbers/low_bit/kernels.hpp"

namespace tilestep::low_bit::SIMT_BACKEND {

constexpr int kRowThreads = 256;  // of row_ranges and tensor_range

// ---- ranges -------------------------------------------------------------------------------------

__device__ inline Range joined(const Range& a, const Range& b) {
  return {fminf(a.low, b.low), fmaxf(a.high, b.high), a.mean + b.mean};
}
__device__ inline Range no_range() {
  return {INFINITY, -INFINITY, 0.0f};
}

/// Over all threads of the block, in a tree; in thread 0.
__device__ inline Range block_range(Range range) {
  __shared__ simt::Array<Range, kRowThreads> ranges;
  const int thread = static_cast<int>(threadIdx.x);
  ranges[thread] = range;
  for (int half = kRowThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) ranges[thread] = joined(ranges[thread], ranges[thread + half]);
  }
  return ranges[thread];
}

__global__ void row_ranges(Weights weights, Matrix matrix, simt::Global<Range> ranges) {
  const auto row = weights + static_cast<std::ptrdiff_t>(blockIdx.x) * matrix.columns;
  Range range = no_range();
  for (int i = static_cast<int>(threadIdx.x); i < matrix.columns; i += kRowThreads) {
    const float weight = simt::unpack_bf16(row[i], 0);
    range = joined(range, {weight, weight, fabsf(weight)});
  }
  range = block_range(range);
  range.mean /= static_cast<float>(matrix.columns);
  if (threadIdx.x == 0) ranges[static_cast<int>(blockIdx.x)] = range;
}

/// Behind the rows' ranges, that of all.
__global__ void tensor_range(simt::Global<Range> ranges, Matrix matrix) {
  Range range = no_range();
  for (int i = static_cast<int>(threadIdx.x); i < matrix.rows; i += kRowThreads) {
    range = joined(range, ranges[i]);
  }
  range = block_range(range);
  range.mean /= static_cast<float>(matrix.rows);
  if (threadIdx.x == 0) ranges[matrix.rows] = range;
}

// ---- a thread's eight weights -------------------------------------------------------------------

/// Over the weights of `lanes` neighbouring lanes.
__device__ inline Range group_range(const float (&w)[kWeights], int lanes) {
  Range range{w[0], w[0], 0.0f};
  for (int i = 1; i < kWeights; ++i) {
    range.low = fminf(range.low, w[i]);
    range.high = fmaxf(range.high, w[i]);
  }
  for (int apart = 1; apart < lanes; apart *= 2) {
    range.low = fminf(range.low, __shfl_xor_sync(kAllLanes, range.low, apart));
    range.high = fmaxf(range.high, __shfl_xor_sync(kAllLanes, range.high, apart));
  }
  return range;
}

/// Codes side by side, the first in the lowest bits.
template <Format kFormat>
__device__ inline void store_codes(simt::Global<std::uint8_t> codes, int chunk,
                                   const unsigned (&code)[kWeights]) {
  constexpr int kBits = code_bits(kFormat), kPerWord = 32 / kBits;
  unsigned words[2] = {0, 0};
  for (int i = 0; i < kWeights; ++i) words[i / kPerWord] |= code[i] << (i % kPerWord * kBits);
  if constexpr (kBits == 8) {
    simt::as<uint2>(codes)[chunk] = make_uint2(words[0], words[1]);
  } else if constexpr (kBits == 4) {
    simt::as<unsigned>(codes)[chunk] = words[0];
  } else {
    simt::as<std::uint16_t>(codes)[chunk] = static_cast<std::uint16_t>(words[0]);
  }
}

// ---- quantize -----------------------------------------------------------------------------------

template <Format kFormat, class Tape>
__global__ void quantize(Weights weights, Matrix matrix, Group group,
                         simt::Global<const Range> ranges, simt::Global<std::uint8_t> codes,
                         Scales<std::uint8_t> scales, Tape tape) {
  const int chunk = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (chunk >= matrix.rows * matrix.columns / kWeights) return;  // whole warps
  float w[kWeights];
  load_weights(weights, chunk, w);

  const int size = weights_of(group, matrix), first = chunk * kWeights;
  const bool of_all = group == Group::tensor || breaks(tape, Break::one_scale);
  const Range range = of_all                ? ranges[matrix.rows]
                      : group == Group::row ? ranges[first / matrix.columns]
                                            : group_range(w, size / kWeights);  // [step: range]
  float tensor_scale = 0;
  if constexpr (kFormat == Format::nvfp4) tensor_scale = tensor_scale_of(ranges[matrix.rows]);
  const Scale scale = choose_scale<kFormat>(range, tensor_scale);  // [step: scale]

  unsigned code[kWeights];
  for (int i = 0; i < kWeights; ++i) code[i] = code_of<kFormat>(w[i], scale);  // [step: codes]
  store_codes<kFormat>(codes, chunk, code);
  if (first % size == 0) {
    write_scale<kFormat>(scales, first / size, scale);
    tape.note(kGroupSite, first / size, GroupNote{range, scale});
  }
}

// ---- Q4_K ---------------------------------------------------------------------------------------

/// A warp has a super-block: eight groups, each with a scale and a minimum of 6 bits, in units of two FP16 numbers.
template <class Tape>
__global__ void quantize_q4_k(Weights weights, Matrix matrix, simt::Global<std::uint8_t> blocks,
                              Tape tape) {
  const int chunk = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (chunk >= matrix.rows * matrix.columns / kWeights) return;
  const int lane = chunk % 32;
  float w[kWeights];
  load_weights(weights, chunk, w);
  Range range = group_range(w, kGroupLanes);  // [step: range_q4_k]
  float low = fminf(range.low, 0.0f);
  float wanted = (fmaxf(range.high, 0.0f) - low) / 15.0f;

  float most_scale = wanted, most_minimum = -low;
  for (int apart = kGroupLanes; apart < 32; apart *= 2) {
    most_scale = fmaxf(most_scale, __shfl_xor_sync(kAllLanes, most_scale, apart));
    most_minimum = fmaxf(most_minimum, __shfl_xor_sync(kAllLanes, most_minimum, apart));
  }
  if (breaks(tape, Break::one_scale)) {
    wanted = most_scale;
    low = -most_minimum;
  }
  const unsigned both = simt::pack_fp16(most_scale / 63.0f, most_minimum / 63.0f);
  const int s = six_bits(wanted, simt::unpack_fp16(both, 0)),
            m = six_bits(-low, simt::unpack_fp16(both, 1));
  Scale scale = q4_k_scale(both, static_cast<unsigned>(s), static_cast<unsigned>(m));
  scale.wanted = wanted;  // [step: scale_q4_k]

  unsigned bytes[2] = {0, 0};
  for (int i = 0; i < kWeights; ++i) {
    const float x = quotient(w[i] - scale.offset, scale.step, scale.inverse);
    bytes[i / 4] |= whole(x, 0.0f, 15.0f) << (i % 4 * 8);  // [step: codes_q4_k]
  }
  // Of 64 weights the first 32 have the bytes' low halves, the others the high ones.
  const auto block = blocks + static_cast<std::ptrdiff_t>(chunk / 32) * kSuperBlockBytes;
  const unsigned other[2] = {__shfl_xor_sync(kAllLanes, bytes[0], kGroupLanes),
                             __shfl_xor_sync(kAllLanes, bytes[1], kGroupLanes)};
  if (lane / kGroupLanes % 2 == 0) {
    simt::as<uint2>(block + 16)[lane / 8 * 4 + lane % 4] =
        make_uint2(bytes[0] | other[0] << 4, bytes[1] | other[1] << 4);
  }
  const unsigned early = __shfl_sync(kAllLanes, scale.bits, lane % 4 * kGroupLanes);
  const unsigned late = __shfl_sync(kAllLanes, scale.bits, (lane % 4 + 4) * kGroupLanes);
  if (lane < 4) write_six_bits(block, lane, early, late);
  if (lane == 0) simt::as<unsigned>(block)[0] = both;
  if (lane % kGroupLanes == 0) {
    tape.note(kGroupSite, chunk / kGroupLanes, GroupNote{range, scale});
  }
}

}  // namespace tilestep::low_bit::SIMT_BACKEND
