#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/attention/online_softmax/lesson.hpp"
#include "kernels/base/simt/simt.hpp"

/// The kernels' interface for the lesson's driver; implemented by launch.cu, once per backend.
namespace tilestep::online_softmax {

/// Sizes of an attention launch. scores [queries × keys], values [keys × head_dim], output
/// [queries × head_dim], all FP32 and row-major.
struct AttentionShape {
  int queries = 0;
  int keys = 0;
  int tile_width = 0;
  int head_dim = 0;
  bool skip_rescale = false;
};

/// Sites on a tape: a StepRecord for each tile, and the weight of each key.
inline constexpr std::uint32_t kStepSite = 0;
inline constexpr std::uint32_t kWeightSite = 1;

/// The ladder: softmax of each row of a matrix.
enum class Rung { three_pass, online_two_pass, online_one_read };
constexpr auto names_of(Rung) {
  return std::to_array<std::string_view>({"three-pass", "online-two-pass", "online-one-read"});
}
constexpr auto reasons_of(Rung) {
  return std::to_array<std::string_view>(
      {"The textbook: one sweep for the maximum, one for the sum, one to write.",
       "Maximum and sum in one sweep, the sum rescaled when the maximum rises: one read fewer.",
       "The row stays in registers until it is written: every byte crosses the memory bus once "
       "each way, as in a copy."});
}
inline constexpr auto kRungs = all_of<Rung>();
/// The number of times the rung reads each input element.
constexpr int reads_of(Rung rung) {
  return 3 - static_cast<int>(rung);
}

/// Block sizes that every rung is compiled for.
inline constexpr int kRowBlocks[] = {128, 256, 512, 1024};

/// The widest row that `online_one_read` keeps in the registers of a block of `threads`: at most 64
/// numbers per thread, and at most half of a multiprocessor's 65536 registers, since a thread needs
/// registers for other things too.
constexpr int one_read_columns(int threads) {
  return threads * 64 < 32768 ? threads * 64 : 32768;
}

/// An FP32 matrix and the number of threads per row (one of kRowBlocks).
struct RowShape {
  std::size_t rows = 0;
  int columns = 0;
  int threads = 256;
};

class Kernels : public simt::KernelSet {
 public:
  /// The timed kernel: all queries, nothing recorded. Asynchronous. Throws Error for an unsupported
  /// shape (each size must be at least 1, head_dim ≤ 128, tile_width ≤ 1024). With a tape it is
  /// explained: it computes only `query`, into its row of `output`; the tape's chosen thread has the
  /// component of the output that is shown.
  virtual void attention(simt::Device& device, const AttentionShape& shape, Accumulator format,
                         simt::Span<const float> scores, simt::Span<const float> values,
                         simt::Span<float> output, const simt::Tape& tape = {},
                         int query = 0) const = 0;

  /// Softmax's two sums without the maximum: sums[0] = Σ exp(s_j) v_j, sums[1] = Σ exp(s_j), in
  /// FP32.
  virtual void naive_sums(simt::Device& device, simt::Span<const float> scores,
                          simt::Span<const float> values, simt::Span<float> sums) const = 0;

  /// Softmax of each row, asynchronous; an all −inf row gives zeros. Throws Error for an empty
  /// matrix, a block size that is not compiled, or a row too wide for the rung.
  virtual void softmax_rows(simt::Device& device, Rung rung, const RowShape& shape,
                            simt::Span<const float> input, simt::Span<float> output) const = 0;
};

}  // namespace tilestep::online_softmax
