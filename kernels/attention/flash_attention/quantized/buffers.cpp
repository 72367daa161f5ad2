#include "kernels/attention/flash_attention/quantized/buffers.hpp"

#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/numeric/small_float.hpp"

namespace tilestep::flash_attention {
namespace {

using numeric::elements_of;

int tiles_in(int length, int block) {
  return (length + block - 1) / block;
}

std::vector<double> decoded(const std::vector<std::uint8_t>& bytes,
                            const std::vector<float>& scales, const QuantizedProblem& problem,
                            int block) {
  const int columns = problem.task.head_dim, length = problem.task.length();
  std::vector<double> numbers;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const int row = static_cast<int>(i) / columns;
    const std::size_t tile =
        numeric::index_of(row / length, row % length / block, tiles_in(length, block));
    const double number = problem.format == DataType::int8
                              ? static_cast<double>(static_cast<std::int8_t>(bytes[i]))
                              : numeric::decode(numeric::kE4m3, bytes[i]);
    numbers.push_back(number * static_cast<double>(scales[tile]));
  }
  return numbers;
}

}  // namespace

QuantizedBuffers::QuantizedBuffers(simt::Device& device, const QuantizedProblem& problem,
                                   const QuantizedSizes& sizes, const Inputs& inputs)
    : problem_(problem),
      sizes_(sizes),
      q_(device, words_of(inputs.q)),
      k_(device, words_of(inputs.k)),
      v_(device, words_of(inputs.v)),
      o_(lab::unwritten<std::uint16_t>(device, inputs.q.size())),
      begins_(device, std::span<const int>(inputs.begins)),
      lse_(lab::unwritten<float>(device, elements_of(problem.task.heads, problem.task.length()))),
      q_8_(lab::unwritten<std::uint8_t>(device, inputs.q.size())),
      k_8_(lab::unwritten<std::uint8_t>(device, inputs.k.size())),
      q_scales_(lab::unwritten<float>(
          device, elements_of(problem.task.heads, tiles_in(problem.task.length(), sizes.block_q)))),
      k_scales_(lab::unwritten<float>(
          device,
          elements_of(problem.task.kv_heads, tiles_in(problem.task.length(), sizes.block_k)))),
      k_mean_(lab::unwritten<float>(
          device,
          problem.smooth_k ? elements_of(problem.task.kv_heads, problem.task.head_dim) : 0)),
      q_mean_(lab::unwritten<float>(
          device, problem.smooth_k ? elements_of(problem.task.heads, problem.task.length()) : 0)) {}

QuantizedArrays QuantizedBuffers::arrays() {
  return {q_.span(),        k_.span(),        v_.span(),      begins_.span(),
          o_.span(),        lse_.span(),      q_8_.span(),    k_8_.span(),
          q_scales_.span(), k_scales_.span(), k_mean_.span(), q_mean_.span()};
}

std::vector<float> QuantizedBuffers::o() const {
  return values_of(o_.download());
}

QuantizedNumbers QuantizedBuffers::numbers() const {
  const Task& task = problem_.task;
  QuantizedNumbers numbers;
  numbers.block_q = sizes_.block_q;
  numbers.block_k = sizes_.block_k;
  numbers.q_scales = q_scales_.download();
  numbers.k_scales = k_scales_.download();
  numbers.k_mean = k_mean_.download();
  numbers.q_mean = q_mean_.download();
  numbers.k_mean.resize(elements_of(task.kv_heads, task.head_dim));  // 0: none was taken away
  numbers.q_mean.resize(elements_of(task.heads, task.length()));
  numbers.q = decoded(q_8_.download(), numbers.q_scales, problem_, sizes_.block_q);
  numbers.k = decoded(k_8_.download(), numbers.k_scales, problem_, sizes_.block_k);
  return numbers;
}

}  // namespace tilestep::flash_attention
