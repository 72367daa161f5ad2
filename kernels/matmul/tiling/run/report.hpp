#pragma once

#include <string>
#include <vector>

#include "kernels/matmul/tiling/kernels.hpp"
#include "kernels/matmul/tiling/lesson.hpp"
#include "kernels/matmul/tiling/reference.hpp"

/// The parts that the lesson's answers are put together from.
namespace tilestep::tiling {

/// What a run has gathered: what the kernels wrote, and the answers in double.
struct Outcome {
  Params params;
  GemmShape shape;
  Matrices matrices;
  Trace trace;
  int tile_m = 1, tile_n = 1;   ///< what a block of the counted launch computes; 1 × 1: no tiles
  std::vector<float> counted;   ///< C by the counting run of the chosen variant
  std::vector<float> timed;     ///< C by the same kernel as it is timed
  std::vector<float> recorded;  ///< the chosen block by the recording run, rows × columns
  numeric::AllBounded reference;
  Resources resources;      ///< of the launch
  std::int64_t uneven = 0;  ///< in the blocks of `Trace::rungs`, as record_rung counts
};

/// What a launch over all of C wrote, and how many elements it loaded (0 unless `counted`).
struct CountedRun {
  std::vector<float> c;
  std::int64_t loads = 0;
};
/// A rung as it is timed, or with bounds checks and `counted`; tensor-core takes the matrices as
/// BF16.
CountedRun run_gemm(simt::Device& device, Variant variant, int configuration,
                    const GemmShape& shape, const Matrices& matrices, bool counted);

/// Runs the kernels with `params`: counts loads, records the chosen block, looks for races.
Outcome gather(const Params& params, simt::Device& device, lab::Progress& progress);

/// One block of a rung with tiles, on matrices of its size: who stores what of C, and what a thread
/// reads of shared memory. `shared-tile` takes the picture's `tile`. `uneven` counts what a kernel as it
/// was built has none of: elements of C that not one thread stores once, threads that read more or less.
Rung record_rung(simt::Device& device, Variant variant, const Params& params, std::int64_t& uneven);

/// The chosen block of a matrix like C, row-major.
template <class T>
std::vector<T> block_of(const Trace& trace, const std::vector<T>& c) {
  std::vector<T> values;
  for (int row = 0; row < trace.rows(); ++row) {
    const auto first = c.begin() + (trace.first_row() + row) * trace.n + trace.first_column();
    values.insert(values.end(), first, first + trace.columns());
  }
  return values;
}

/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Outcome& outcome);

/// The rungs with what changed in each.
lab::Table ladder_table();

/// One labelled dot of the roofline.
struct RooflinePoint {
  std::string label;
  double flop_per_byte = 0;
  double tflops = 0;
  lab::Provenance provenance = lab::Provenance::derived;
  std::string formula;
  std::string bound = {};  ///< of a derived dot: what keeps it down: DRAM, L2 or compute
};
/// Roofs, measured; L2's is 0 where it is not known.
struct Roofs {
  double dram_tb_s = 0, l2_tb_s = 0, tflops = 0;
};
/// Attention for one head without and with tiles, as its bytes and FLOPs say: what the roofs allow.
/// With tiles K and V come from L2, so that they have a dot under each of the two memory roofs.
std::vector<RooflinePoint> attention_points(const Roofs& roofs);
lab::Table roofline_table(const std::vector<RooflinePoint>& points);

/// Floating-point operations of C = A·B: a product and an addition each.
inline double flops_of(const GemmShape& shape) {
  return 2.0 * shape.m * shape.n * shape.k;
}
/// Bytes if A and B are read once (`input_bytes` an element) and C is written once in FP32.
inline double ideal_bytes(const GemmShape& shape, int input_bytes) {
  const double inputs =
      static_cast<double>(shape.m) * shape.k + static_cast<double>(shape.k) * shape.n;
  return input_bytes * inputs + 4.0 * shape.m * shape.n;
}

}  // namespace tilestep::tiling
