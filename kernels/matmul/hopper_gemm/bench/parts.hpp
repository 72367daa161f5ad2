#pragma once

#include <functional>

#include "kernels/matmul/hopper_gemm/bench/bench.hpp"
#include "kernels/matmul/hopper_gemm/run/problem.hpp"

/// The bench's parts besides its ladders; each adds tables and measurements to the bench's report.
namespace tilestep::hopper_gemm {

/// Number of the first compiled configuration that is `wanted`. Throws Error if there is none.
int configuration_where(const Kernels& kernels,
                        const std::function<bool(const Configuration&)>& wanted);

/// The inputs of the bench's parts.
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

// ---- hardware counters: counts.cpp ----------------------------------------------------------------

/// Bank conflicts of stores in shared memory. The hardware also counts interference from TMA or wgmma.
lab::Counter store_conflicts();
lab::Counter dram_traffic();  ///< MB, read and written
lab::Counter l2_reads();      ///< MB
/// C's stores through shared memory with the swizzle and without, bytes by the order of the tiles, passes of
/// matrices; without counters only the passes that follow from addresses.
void add_counts(lab::Bench& bench, const BenchSizes& sizes);

// ---- stages, data, instructions, resources: roofs.cpp ---------------------------------------------

/// The number of stages needed, the effect of the data, the cycles of one wgmma, and the compiled kernels'
/// share of a multiprocessor.
void add_roofs(lab::Bench& bench, const BenchSizes& sizes);

}  // namespace tilestep::hopper_gemm
