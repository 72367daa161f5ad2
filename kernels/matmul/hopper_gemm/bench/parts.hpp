#pragma once

#include <functional>

#include "kernels/matmul/hopper_gemm/bench/bench.hpp"
#include "kernels/matmul/hopper_gemm/run/problem.hpp"

/// What the bench has beside its ladders, each adding tables and measurements to the bench's report.
namespace tilestep::hopper_gemm {

/// Number of the first compiled configuration that is `wanted`. Throws Error if there is none.
int configuration_where(const Kernels& kernels,
                        const std::function<bool(const Configuration&)>& wanted);

/// What the parts of the bench work with.
class BenchPart {
 public:
  BenchPart(lab::Bench& bench, const BenchSizes& sizes)
      : kernels_(kernels_of(bench.device)),
        sizes_(sizes),
        device_(bench.device),
        progress_(bench.progress),
        report_(bench.report) {}

 protected:
  const Kernels& kernels_;
  const BenchSizes& sizes_;
  simt::Device& device_;
  lab::Progress& progress_;
  lab::Report& report_;
};

// ---- what the hardware counts: bench_counts.cpp ---------------------------------------------------

/// Conflicts of stores in shared memory. The hardware also counts that TMA or a wgmma comes between.
lab::Counter store_conflicts();
lab::Counter dram_traffic();  ///< MB, read and written
lab::Counter l2_reads();      ///< MB
/// C's way out of shared memory with the swizzle and without, bytes by the order of the tiles, passes of
/// matrices; nothing where there are no counters, but for the passes that follow from addresses.
void add_counts(lab::Bench& bench, const BenchSizes& sizes);

// ---- stages, data, instructions, resources: bench_roofs.cpp ---------------------------------------

/// How many stages are enough, what the data change, what one wgmma takes, and what the compiled kernels
/// take of a multiprocessor.
void add_roofs(lab::Bench& bench, const BenchSizes& sizes);

}  // namespace tilestep::hopper_gemm
