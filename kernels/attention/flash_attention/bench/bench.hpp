#pragma once

#include <vector>

#include "kernels/attention/flash_attention/run/run.hpp"

namespace tilestep::flash_attention {

/// What is timed: attention in BF16, batch 1, of random numbers.
struct BenchSizes {
  std::vector<int> lengths = {1024, 4096, 16384};
  std::vector<int> head_dims = {64, 128};  ///< of them, each with so many heads
  std::vector<int> heads = {32, 16};
  std::vector<int> backward_lengths = {4096, 16384};  ///< of the backward pass
  /// Lengths up to which flash-1 is timed, which has a block a head and nothing else to do, and naive, which stores all
  /// scores (further by the memory that they take).
  int longest_flash_1 = 4096, longest_stored = 16384;
  int counted_length = 8192, counted_heads = 16;  ///< of the bytes that L2 and DRAM count
  int rounds = 2;
  /// At this length, where the ladder is compared with its peers, there are more.
  int compared_length = 16384, compared_rounds = 3;
  double settle_ms = 600;  ///< of a kernel in a round, before its times count
  bool peers = true;       ///< whether PyTorch is asked
  bool quick = false;      ///< the ladder alone

  /// At a length that all rungs are timed at.
  static BenchSizes of_quick() {
    return {.lengths = {4096},
            .head_dims = {128},
            .heads = {16},
            .backward_lengths = {},
            .quick = true};
  }
};

/// The bench with these sizes. The device can time. Tables:
///  - `ladder`: rung, what_changed
///  - `ladder_measured`: rung, head_dim, mask, length, configuration, tflops, p10, p90, fraction (of cuDNN),
///    torch_fraction
///  - `configurations`: rung, configuration, head_dim, mask, length, tflops
///  - `peers`: peer, head_dim, mask, length, tflops, p10, p90
///  - `backward`: as ladder_measured, of the backward pass, with time
///  - `backward_peers`: peer, head_dim, mask, length, tflops, p10, p90
///  - `causal`: rung, head_dim, length, time_full, time_causal, ratio, work_ratio
///  - `bytes`: rung, tensor bytes: formula, l2, dram, l2_ratio, dram_ratio, least
///  - `pipes`: rung, head_dim, tensor_pipe, exp_pipe, share_of_exponentials
///  - `resources`: rung, configuration, threads, registers, spilled, shared, blocks
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::flash_attention
