// 8-bit numbers for Q K^T: a tile's largest number becomes the format's largest (448 for E4M3, 127 for INT8), and
// all numbers of the tile are multiplied by the same factor and rounded to nearest even.
//
// A few channels of K are far from 0, in all rows alike (problem.hpp, `outliers`). They would take up the range and
// leave few steps to tell keys apart. So K's mean over the keys is subtracted first: that shifts all scores of a
// query by one number, q · mean, which a softmax does not see. The query's product with the mean is stored as well,
// so that the scores, and their log-sum-exp, can still be the true ones.

#include "kernels/attention/flash_attention/quantized/problem.hpp"
#include "kernels/attention/shared/device/softmax.hpp"
#include "kernels/base/simt/hopper.hpp"

namespace tilestep::flash_attention::SIMT_BACKEND {

using namespace attention::SIMT_BACKEND;
using attention::SIMT_BACKEND::online_softmax;  // and not the lesson of that name

using simt::hopper::Format;

constexpr DataType type_of(Format format) {
  return format == Format::s8 ? DataType::int8 : DataType::fp8;
}

/// Loads eight neighbouring BF16 numbers.
template <class From>
__device__ __forceinline__ void load8(float (&to)[8], const From& from) {
  ask(from, 0, 16);
  const uint4 raw = simt::as<const uint4>(array_of(from))[0];
  const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (int i = 0; i < 8; ++i) to[i] = simt::unpack_bf16(words[i / 2], i % 2);
}
/// Stores eight neighbouring 8-bit numbers.
template <Format kFormat, class To>
__device__ __forceinline__ void store8(const To& to, const float (&x)[8]) {
  ask(to, 1, 8);
  uint2 words;
  if constexpr (kFormat == Format::s8) {
    words.x = simt::hopper::pack_s8(x[0], x[1], x[2], x[3]);
    words.y = simt::hopper::pack_s8(x[4], x[5], x[6], x[7]);
  } else {
    words.x = simt::hopper::pack_e4m3(x[0], x[1], x[2], x[3]);
    words.y = simt::hopper::pack_e4m3(x[4], x[5], x[6], x[7]);
  }
  simt::as<uint2>(array_of(to))[0] = words;
}

/// K's mean over the keys: one block per head, each thread eight columns of every n-th key.
template <int kDim, class Tape>
__global__ void __launch_bounds__(kMeanThreads)
    key_means(ArrayOf<Tape, const std::uint16_t> k, ArrayOf<Tape, float> mean, int length) {
  constexpr int kChunks = kDim / 8, kRows = kMeanThreads / kChunks;
  const auto sums = simt::dynamic_shared<float>(kRows * kDim, 0, "sums");
  const int chunk = static_cast<int>(threadIdx.x) % kChunks;
  const int first = static_cast<int>(threadIdx.x) / kChunks;
  const auto head = static_cast<std::ptrdiff_t>(blockIdx.x);
  float sum[8] = {};
#pragma unroll 4
  for (int row = first; row < length; row += kRows) {
    float x[8];
    load8(x, k + ((head * length + row) * kDim + chunk * 8));
#pragma unroll
    for (int i = 0; i < 8; ++i) sum[i] += x[i];
  }
  for (int i = 0; i < 8; ++i) sums[first * kDim + chunk * 8 + i] = sum[i];
  __syncthreads();  // all rows' sums are written
  const int column = static_cast<int>(threadIdx.x);
  if (column >= kDim) return;
  float all = 0;
  for (int row = 0; row < kRows; ++row) all += sums[row * kDim + column];
  store(mean + (head * kDim + column), all / static_cast<float>(length));
}

/// The quantized form of Q or K, and the data stored beside it.
template <class Tape>
struct Quantized {
  template <class T>
  using Array = ArrayOf<Tape, T>;

  Array<const std::uint16_t> from;  ///< [heads × length × kDim]
  Array<std::uint8_t> to;
  Array<float> scales;      ///< [heads × tiles]
  Array<const float> mean;  ///< [heads / heads_of_mean × kDim]
  Array<float> q_mean;      ///< [heads × length], of Q alone
  int length;
  int heads_of_mean;  ///< heads that share a mean
  bool smooth;        ///< the mean is subtracted from K; Q is multiplied by it
};

/// One block per tile of kRows rows. Keys lose their mean, queries are multiplied by it.
template <Format kFormat, int kRows, int kDim, bool kKeys, class Tape>
__global__ void __launch_bounds__(kQuantizeThreads) quantize(Quantized<Tape> arrays) {
  constexpr int kChunks = kDim / 8, kAtOnce = kQuantizeThreads / kChunks;
  constexpr int kTurns = kRows / kAtOnce;
  constexpr float kLargest = largest_number(type_of(kFormat));
  const auto largest = simt::dynamic_shared<float>(kQuantizeThreads / 32, 0, "largest");
  const int tiles = (arrays.length + kRows - 1) / kRows;
  const int head = static_cast<int>(blockIdx.x) / tiles;
  const int first =
      static_cast<int>(blockIdx.x) % tiles * kRows + static_cast<int>(threadIdx.x) / kChunks;
  const int column = static_cast<int>(threadIdx.x) % kChunks * 8;
  const std::ptrdiff_t row_0 = static_cast<std::ptrdiff_t>(head) * arrays.length;

  float mean[8] = {};
  if (arrays.smooth) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      mean[i] = load(arrays.mean + (head / arrays.heads_of_mean * kDim + column + i));
    }
  }
  float x[kTurns][8] = {};
  float most = 0;
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int row = first + turn * kAtOnce;
    if (row < arrays.length) load8(x[turn], arrays.from + ((row_0 + row) * kDim + column));
    float product = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      product = fmaf(x[turn][i], mean[i], product);
      if (kKeys && row < arrays.length) x[turn][i] -= mean[i];
      most = fmaxf(most, fabsf(x[turn][i]));
    }
    if constexpr (!kKeys) {
      if (!arrays.smooth) continue;
#pragma unroll
      for (int lanes = 1; lanes < kChunks; lanes *= 2) {
        product += __shfl_xor_sync(kAllLanes, product, lanes);
      }
      if (column == 0 && row < arrays.length) store(arrays.q_mean + (row_0 + row), product);
    }
  }
#pragma unroll
  for (int lanes = 1; lanes < 32; lanes *= 2) {
    most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, lanes));
  }
  if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = most;
  __syncthreads();  // all warps' maxima are written
  for (int warp = 0; warp < kQuantizeThreads / 32; ++warp) most = fmaxf(most, largest[warp]);
  if (threadIdx.x == 0) store(arrays.scales + blockIdx.x, most / kLargest);
  // A tile of zeros stays zero; so does a tile too small for 1 / most.
  const float factor = most > 1e-30f ? kLargest / most : 0.0f;
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int row = first + turn * kAtOnce;
#pragma unroll
    for (int i = 0; i < 8; ++i) x[turn][i] *= factor;
    if (row >= arrays.length) continue;
    store8<kFormat>(arrays.to + ((row_0 + row) * kDim + column), x[turn]);
  }
}

}  // namespace tilestep::flash_attention::SIMT_BACKEND
