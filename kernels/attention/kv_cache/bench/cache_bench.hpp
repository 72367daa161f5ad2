#pragma once

#include <string>
#include <vector>

#include "kernels/attention/kv_cache/bench/paged_problem.hpp"
#include "kernels/base/lab/bench.hpp"

namespace tilestep::kv_cache {

/// Shared by the benches of a cache: the timing of a step, and the read-only peer.
class CacheBench : public lab::Bench {
 protected:
  /// The timing length of a ladder, and of a point beside it.
  struct Patience {
    int rounds = 3, side_rounds = 1;
    double settle_ms = 600, side_settle_ms = 150;
  };
  CacheBench(const lab::Bench& start, const PagedKernels& kernels, const Patience& patience)
      : lab::Bench(start), kernels_(kernels), patience_(patience) {}

  static std::string words_of(const Step& step);
  lab::LadderPlan plan_for(const Step& step, bool side) const;
  static lab::Rung made(std::string name, std::string check, BenchProblem& problem,
                        const Launching& how);
  /// A read-only kernel, the peer of all.
  static lab::Rung reading(BenchProblem& problem);
  static void keep(std::vector<lab::Timed>& rows, lab::Climb climb);
  /// Columns of what was varied, of time and bandwidth, and more.
  static std::vector<lab::Column> timed_columns(std::vector<lab::Column> varied,
                                                const std::vector<lab::Column>& more = {});

  static constexpr const char* kWhatIsCompared =
      "O of three heads of three requests against double, of the cache's own numbers; tolerance: "
      "the running bound of both products' sums, of exp, of weights and O in 16 bits.";

  const PagedKernels& kernels_;
  Patience patience_;
};

/// Bytes read from and written to DRAM, counted.
lab::Counter dram_bytes();

}  // namespace tilestep::kv_cache
