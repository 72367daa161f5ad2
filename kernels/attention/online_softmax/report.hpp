#pragma once

#include <cstddef>
#include <vector>

#include "kernels/attention/online_softmax/kernels.hpp"
#include "kernels/attention/online_softmax/reference.hpp"

/// What a run and a bench report, and what they report it of.
namespace tilestep::online_softmax {

/// A run's data: the kernels' output, and the reference in double.
struct Outcome {
  Params params;
  Trace trace;
  std::vector<float> output;          ///< queries × head_dim, by the timed kernel
  std::vector<float> recorded;        ///< the same by the recording kernel: the chosen query alone
  std::vector<PrefixState> expected;  ///< by the algorithm as it ran, with or without the rescale
  numeric::AllBounded reference;      ///< the same, of `output`
};

/// The report of a run: summary, tables `tiles`, `naive`, `ladder`, measurements, checks, trace.
lab::Report report_of(const Outcome& outcome);

/// The rungs with their reads and writes, and why each is faster than the one before.
lab::Table ladder_table();

/// The timed work: softmax of each row of a random FP32 matrix of 2^28 elements, 1 GiB in and 1 GiB
/// out, many times the size of any L2, so that every launch reads its input from memory; and the
/// lesson's own attention kernel at a size that fills a GPU.
struct BenchSizes {
  std::size_t elements = std::size_t{1} << 28;  ///< a multiple of all columns
  std::vector<int> columns = {1024, 2048, 4096, 8192, 16384, 32768};
  int main_columns = 8192;
  int wide_columns = one_read_columns(1024);  ///< of rows too large for any cache
  AttentionShape attention = {4096, 4096, 128, 64, false};
  bool quick = false;  ///< the ladder at main_columns only

  static BenchSizes of_quick() { return {.columns = {8192}, .quick = true}; }
};

/// The bench with these sizes: tables `ladder`, `ladder_measured`, `ladder_blocks` and
/// `ladder_uncached`. The device can time.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::online_softmax
