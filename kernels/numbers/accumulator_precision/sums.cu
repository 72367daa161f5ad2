// Accumulator precision: the kernels of the lesson.
//
//   rounded_sum    s = round(s + t): a sum kept in a small format
//   promoted_sum   partial sums in the small format, added into an FP32 total every N terms
//   kahan_sum      remembers what an addition loses, and corrects the next term by it
//   pairwise_sum   adds sums of equal size: neighbours, then pairs of neighbours, and so on
//
// One thread per sum: sum c adds up column c of terms [terms × sums]. Every operation is rounded once
// to the accumulator's format (numeric/small_float.hpp); terms are FP32. The products themselves are
// not the subject here: the terms of a dot product are exact, as on tensor cores. A tape records
// every addition for the picture and compiles to nothing in the timed kernel.
//
//   exact_gemm     C = A·B^T of E4M3 numbers in FP64, where none of these sums needs rounding
//   scaled_gemm    C = A·B^T of E4M3 numbers with one scale per block
//   widen          E4M3 numbers as FP16 and BF16
//
// The tensor cores' kernels are in tensor_core.cu.

#include <cstddef>
#include <cstdint>

#include "kernels/base/numeric/small_float.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/numbers/accumulator_precision/kernels.hpp"

namespace tilestep::accumulator_precision::SIMT_BACKEND {

constexpr int kScaleDepth = 128;  // of k, summed before scaling

// ---- small parts --------------------------------------------------------------------------------

/// An addition in the accumulator's format: the exact sum, rounded once.
struct Adder {
  SumMethod method;
  int sum;

  __device__ float round(double exact, int term, int place) const {
    const bool random = method.rounding == Rounding::stochastic;
    return static_cast<float>(
        numeric::round_to(method.format, exact, method.rounding, overflow_of(method.format),
                          random ? random_bits(method.seed, sum, term, place) : 0));
  }
  __device__ float plus(float a, float b, int term, int place) const {
    return round(numeric::add_to_odd(static_cast<double>(a), static_cast<double>(b)), term, place);
  }
};

/// The sum that this thread computes.
__device__ inline int own_sum() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

// ---- the lesson's kernels -----------------------------------------------------------------------

template <class Tape>
__global__ void rounded_sum(simt::Global<const float> terms, simt::Global<float> sums,
                            SumShape shape, SumMethod method, Tape tape) {
  const int sum = own_sum();
  if (sum >= shape.sums) return;
  const Adder adder{method, sum};
  float s = 0.0f;
  for (int i = 0; i < shape.terms; ++i) {
    const float t = terms[i * shape.sums + sum];
    const float before = s;
    s = adder.plus(s, t, i, 0);  // [step: rounded]
    tape.note(kStepSite, i, Step{before, t, s, s, 0.0f});
  }
  sums[sum] = s;
}

template <class Tape>
__global__ void promoted_sum(simt::Global<const float> terms, simt::Global<float> sums,
                             SumShape shape, SumMethod method, Tape tape) {
  const int sum = own_sum();
  if (sum >= shape.sums) return;
  const Adder adder{method, sum};
  float total = 0.0f;  // FP32, in an ordinary register
  float partial = 0.0f;
  for (int i = 0; i < shape.terms; ++i) {
    const float t = terms[i * shape.sums + sum];
    const float before = partial;
    partial = adder.plus(partial, t, i, 0);  // [step: promoted]
    const float after = partial;
    if ((i + 1) % method.promote_every == 0) {
      total += partial;
      partial = 0.0f;  // small again, so that its spacing is small again
    }
    tape.note(kStepSite, i, Step{before, t, after, total + partial, total});
  }
  sums[sum] = total + partial;
}

template <class Tape>
__global__ void kahan_sum(simt::Global<const float> terms, simt::Global<float> sums, SumShape shape,
                          SumMethod method, Tape tape) {
  const int sum = own_sum();
  if (sum >= shape.sums) return;
  const Adder adder{method, sum};
  float s = 0.0f;
  float c = 0.0f;  // by how much s is too large
  for (int i = 0; i < shape.terms; ++i) {
    const float t = terms[i * shape.sums + sum];
    const float before = s;
    const float y = adder.plus(t, -c, i, 0);
    s = adder.plus(s, y, i, 1);  // [step: kahan]
    c = adder.plus(adder.plus(s, -before, i, 2), -y, i, 3);
    tape.note(kStepSite, i, Step{before, y, s, s, c});
  }
  sums[sum] = s;
}

/// Pairwise's partial sums added up, smallest first. `waiting` has a bit for each level that holds
/// one.
__device__ inline float answer(const Adder& adder, const float (&level)[kLevels], unsigned waiting,
                               int term) {
  float result = 0.0f;
  bool first = true;
  for (int l = 0; l < kLevels; ++l) {
    if ((waiting >> l & 1u) == 0) continue;
    result = first ? level[l] : adder.plus(result, level[l], term, kAnswerPlace + l);
    first = false;
  }
  return result;
}

template <class Tape>
__global__ void pairwise_sum(simt::Global<const float> terms, simt::Global<float> sums,
                             SumShape shape, SumMethod method, Tape tape) {
  const int sum = own_sum();
  if (sum >= shape.sums) return;
  const Adder adder{method, sum};
  float level[kLevels] = {};  // level[l]: a sum of 2^l terms, waiting for a partner
  float before = 0.0f;
  for (int i = 0; i < shape.terms; ++i) {
    const float t = terms[i * shape.sums + sum];
    float carry = adder.round(static_cast<double>(t), i, 0);
    const unsigned waiting = static_cast<unsigned>(i);  // i in binary says which levels are full
    int l = 0;
    for (; (waiting >> l & 1u) != 0; ++l) {
      carry = adder.plus(level[l], carry, i, 1 + l);  // [step: pairwise]
    }
    level[l] = carry;
    if constexpr (Tape::kRecords) {
      const float now = answer(adder, level, waiting + 1, i);
      tape.note(kStepSite, i, Step{before, t, now, now, 0.0f});
      before = now;
    }
  }
  sums[sum] = answer(adder, level, static_cast<unsigned>(shape.terms), shape.terms - 1);
}

// ---- matrices -----------------------------------------------------------------------------------

using E4m3Bits = simt::Global<const std::uint8_t>;

__device__ inline double e4m3(std::uint8_t bits) {
  return numeric::decode(numeric::kE4m3, bits);
}

__global__ void exact_gemm(E4m3Bits a, E4m3Bits b, simt::Global<double> c, GemmShape shape) {
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= shape.m || column >= shape.n) return;
  const auto a_row = a + static_cast<std::ptrdiff_t>(row) * shape.k;
  const auto b_row = b + static_cast<std::ptrdiff_t>(column) * shape.k;
  double sum = 0;
  for (int kk = 0; kk < shape.k; ++kk) sum += e4m3(a_row[kk]) * e4m3(b_row[kk]);
  c[static_cast<std::ptrdiff_t>(row) * shape.n + column] = sum;
}

/// Number of the scale of an element.
__device__ inline int scale_at(const ScaleBlock& block, int row, int kk, int k) {
  return row / block.rows * ((k + block.columns - 1) / block.columns) + kk / block.columns;
}

__global__ void scaled_gemm(E4m3Bits a, E4m3Bits b, simt::Global<const float> a_scales,
                            simt::Global<const float> b_scales, ScaleBlock a_block,
                            ScaleBlock b_block, simt::Global<float> c, GemmShape shape) {
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= shape.m || column >= shape.n) return;
  float total = 0.0f;
  for (int k0 = 0; k0 < shape.k; k0 += kScaleDepth) {
    float partial = 0.0f;
    for (int kk = k0; kk < min(k0 + kScaleDepth, shape.k); ++kk) {
      const auto product =  // 8 significant bits: exact
          static_cast<float>(e4m3(a[static_cast<std::ptrdiff_t>(row) * shape.k + kk]) *
                             e4m3(b[static_cast<std::ptrdiff_t>(column) * shape.k + kk]));
      partial = __fadd_rn(partial, product);
    }
    // The partial sums are promoted anyway, so the scales cost only one more multiplication.
    const float scale = __fmul_rn(a_scales[scale_at(a_block, row, k0, shape.k)],
                                  b_scales[scale_at(b_block, column, k0, shape.k)]);
    total = __fadd_rn(total, __fmul_rn(partial, scale));
  }
  c[static_cast<std::ptrdiff_t>(row) * shape.n + column] = total;
}

__global__ void widen(E4m3Bits bits, simt::Global<std::uint16_t> fp16,
                      simt::Global<std::uint16_t> bf16, unsigned long long count) {
  const unsigned long long i =
      static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const double value = e4m3(bits[static_cast<std::ptrdiff_t>(i)]);
  fp16[static_cast<std::ptrdiff_t>(i)] =
      static_cast<std::uint16_t>(numeric::encode(numeric::kFp16, value));
  bf16[static_cast<std::ptrdiff_t>(i)] =
      static_cast<std::uint16_t>(numeric::encode(numeric::kBf16, value));
}

}  // namespace tilestep::accumulator_precision::SIMT_BACKEND
