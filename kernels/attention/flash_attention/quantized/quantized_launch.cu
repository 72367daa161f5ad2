// How the kernels with scores of 8 bits are launched; the same text for both backends.

#include "kernels/attention/flash_attention/quantized/launches.hpp"
#include "kernels/attention/flash_attention/quantized/quantized.cu"
#include "kernels/attention/shared/device/call.hpp"
#include "kernels/base/simt/tensor_map.hpp"

namespace tilestep::flash_attention::SIMT_BACKEND {
namespace {

/// Throws Error unless the problem is one that there are kernels for, and its arrays are as long as it says.
void check_quantized(const simt::DeviceInfo& device, const QuantizedProblem& problem,
                     const QuantizedSizes& sizes, const QuantizedArrays& a) {
  if (device.compute_capability != 0 && device.compute_capability / 10 != 9) {
    simt::refuse_device(device, "attention with scores in 8 bits",
                        "compute capability 9.0 (Hopper)");
  }
  const Task& task = problem.task;
  if (!is_quantized(problem.format)) throw Error("flash-attention: 8-bit numbers are fp8 or int8");
  simt::require_within("flash-attention: length", task.length(), 1, kMostLength);
  simt::require_within("flash-attention: kv_heads", task.kv_heads, 1, kMostHeads);
  simt::require_multiple("flash-attention: heads", task.heads, task.kv_heads);
  simt::require_within("flash-attention: heads", task.heads, 1, kMostHeads);
  const auto rows = [&](int heads, int height) {
    return static_cast<std::size_t>(heads) *
           static_cast<std::size_t>(simt::blocks_for(task.length(), height));
  };
  const auto dim = static_cast<std::size_t>(task.head_dim);
  const auto all = [](std::size_t count, const auto&... spans) {
    return ((spans.count == count) && ...);
  };
  const bool good =
      all(rows(task.heads, 1) * dim, a.q, a.o, a.q_8) && all(rows(task.heads, 1), a.lse) &&
      all(rows(task.kv_heads, 1) * dim, a.k, a.v, a.k_8) &&
      all(rows(task.heads, sizes.block_q), a.q_scales) &&
      all(rows(task.kv_heads, sizes.block_k), a.k_scales) &&
      (!problem.smooth_k || (all(static_cast<std::size_t>(task.kv_heads) * dim, a.k_mean) &&
                             all(rows(task.heads, 1), a.q_mean))) &&
      (task.rule.mask != Mask::document || all(rows(1, 1), a.begins));
  if (!good) throw Error("flash-attention: the arrays do not have the lengths of the task");
}

template <class T>
simt::Span<const T> constant(simt::Span<T> span) {
  return {span.data, span.count};
}

/// K's mean, then Q and K in 8 bits.
template <class T, class Tape>
void start_quantize(const Call& call, const QuantizedProblem& problem, const QuantizedArrays& a,
                    const Tape& tape) {
  const auto array = [&](auto span, Tensor tensor) { return array_for(tape, span, tensor); };
  const Task& task = problem.task;
  const int length = task.length();
  if (problem.smooth_k) {
    constexpr std::size_t kBytes = std::size_t{kMeanThreads} * 8 * sizeof(float);
    call("key_means", task.kv_heads, kMeanThreads, kBytes, key_means<T::head_dim, Tape>,
         array(a.k, Tensor::k), array(a.k_mean, Tensor::k_mean), length);
  }
  const auto mean = array(constant(a.k_mean), Tensor::k_mean);
  const auto q_mean = array(a.q_mean, Tensor::q_mean);
  constexpr std::size_t kShared = kQuantizeThreads / 32 * sizeof(float);
  call("quantize_queries", task.heads * simt::blocks_for(length, T::block_q), kQuantizeThreads,
       kShared, quantize<T::kFormat, T::block_q, T::head_dim, false, Tape>,
       Quantized<Tape>{array(a.q, Tensor::q), array(a.q_8, Tensor::q_8),
                       array(a.q_scales, Tensor::scales), mean, q_mean, length,
                       task.heads / task.kv_heads, problem.smooth_k});
  call("quantize_keys", task.kv_heads * simt::blocks_for(length, T::block_k), kQuantizeThreads,
       kShared, quantize<T::kFormat, T::block_k, T::head_dim, true, Tape>,
       Quantized<Tape>{array(a.k, Tensor::k), array(a.k_8, Tensor::k_8),
                       array(a.k_scales, Tensor::scales), mean, q_mean, length, 1,
                       problem.smooth_k});
}

/// Boxes of `box_rows` rows, as wide as the swizzle.
template <class Number>
hopper::TensorMap map_of_rows(simt::Span<Number> array, const Task& task, int heads, int box_rows,
                              int box_columns) {
  return simt::tensor_map(array, {.rows = task.length(),
                                  .columns = task.head_dim,
                                  .box_rows = box_rows,
                                  .box_columns = box_columns,
                                  .swizzle = box_columns * static_cast<int>(sizeof(Number)),
                                  .matrices = heads});
}

template <class T, class Tape>
void start_attention(const Call& call, const QuantizedProblem& problem, const QuantizedArrays& a,
                     const Tape& tape) {
  const auto array = [&](auto span, Tensor tensor) { return array_for(tape, span, tensor); };
  const Task& task = problem.task;
  QuantizedMaps maps{};
  QuantizedOperands<Tape> operands{};
  if (call.resources == nullptr) {
    maps = {map_of_rows(a.q_8, task, task.heads, T::block_q, T::head_dim),
            map_of_rows(a.k_8, task, task.kv_heads, T::block_k, T::head_dim),
            map_of_rows(a.v, task, task.kv_heads, T::block_k, 64)};
    operands = {array(constant(a.q_8), Tensor::q_8),
                array(constant(a.k_8), Tensor::k_8),
                array(a.v, Tensor::v),
                array(constant(a.q_scales), Tensor::scales),
                array(constant(a.k_scales), Tensor::scales),
                array(constant(a.q_mean), Tensor::q_mean),
                simt::global(a.begins, "begins"),
                array(a.o, Tensor::o),
                array(a.lse, Tensor::lse),
                problem.smooth_k};
  }
  call("quantized_attention", task.heads * simt::blocks_for(task.length(), T::block_q), T::threads,
       static_cast<std::size_t>(T::kSizes.shared_bytes()), quantized_attention<T, Tape>, maps,
       operands, setting_of(task), tape);
}

/// Calls run(tiles) of the problem's format.
template <int kDim, bool kTimed, class Run>
void with_format(const QuantizedProblem& problem, Run run) {
  constexpr QuantizedSizes kSizes = quantized_sizes(kDim, kTimed);
  constexpr int kBlocks = kTimed ? 2 : 1;
  if (problem.format == DataType::int8) {
    run(QuantizedTiles<Format::s8, kDim, kSizes.block_q, kSizes.block_k, kBlocks>{});
  } else {
    run(QuantizedTiles<Format::e4m3, kDim, kSizes.block_q, kSizes.block_k, kBlocks>{});
  }
}

}  // namespace

void explain_quantized(simt::Device& device, const QuantizedProblem& problem, Break broken,
                       const QuantizedArrays& arrays, const Records& records) {
  const Task& task = problem.task;
  simt::with_constant<64, 128>("scores in 8 bits: head_dim", task.head_dim, [&](auto head_dim) {
    constexpr QuantizedSizes kSizes = quantized_sizes(decltype(head_dim)::value, false);
    check_quantized(device.info(), problem, kSizes, arrays);
    with_format<decltype(head_dim)::value, false>(problem, [&](auto tiles) {
      using T = decltype(tiles);
      const simt::Tape tape = tape_of(records, task, broken);
      start_quantize<T>({device}, problem, arrays, tape);
      start_attention<T>({device}, problem, arrays, tape);
    });
  });
}

void run_quantized(simt::Device& device, const QuantizedProblem& problem,
                   const QuantizedArrays& arrays) {
  simt::with_constant<128>("scores in 8 bits, timed: head_dim", problem.task.head_dim, [&](auto) {
    check_quantized(device.info(), problem, quantized_sizes(128, true), arrays);
    if (problem.task.mod != ScoreMod::none) {
      throw Error("flash-attention: the timed kernels have no score modifier");
    }
    with_format<128, true>(problem, [&](auto tiles) {
      using T = decltype(tiles);
      start_quantize<T>({device}, problem, arrays, simt::NoTape{});
      start_attention<T>({device}, problem, arrays, simt::NoTape{});
    });
  });
}

simt::Resources quantized_resources(simt::Device& device, const QuantizedProblem& problem) {
  simt::Resources resources;
  const Call call{device, &resources};
  with_format<128, true>(problem, [&](auto tiles) {
    start_attention<decltype(tiles)>(call, problem, {}, simt::NoTape{});
  });
  return resources;
}

}  // namespace tilestep::flash_attention::SIMT_BACKEND
