#pragma once

#include <functional>
#include <vector>

#include "kernels/attention/kv_cache/explained/ledger.hpp"
#include "kernels/attention/kv_cache/kernels.hpp"
#include "kernels/attention/kv_cache/quantize.hpp"

namespace tilestep::kv_cache {

/// Whose steps are shown: a place among the requests that run, a query head, a component of O.
struct Chosen {
  int request = 0, head = 0, component = 0;
};

/// What an explained launch wrote and recorded, on the host.
struct Outcome {
  paged::Problem problem;
  paged::WorkPlan plan;
  std::vector<float> o, lse;             ///< [batch × heads × value], [batch × heads]
  std::vector<paged::Visit> visits;      ///< [items]
  std::vector<paged::StepRecord> steps;  ///< [items × step_pitch]
  int step_pitch = 1;
  std::vector<float> part_o, part_m, part_l, weights;  ///< [slots × most_rows (× value)]
  Ledger asked{}, formula{};
  int traced_item = 0;
  std::vector<std::uint64_t>
      key_bytes;  ///< where the traced item's copies of K began, 16 bytes each, rising
};

/// How a kernel takes a case: what is cut for it, how many query rows an item may have, and its launch.
struct Way {
  using Explain = std::function<void(const Outcome& outcome, const paged::Arrays& arrays,
                                     const paged::Explanation& what)>;
  paged::Cut cut;
  int room = paged::kMostRows;
  Explain explain;
};
/// That of the kernel for heads.
Way way_of(simt::Device& device, const PagedKernels& kernels, const Case& of, const Inputs& inputs);

/// How the requests are cut: `of.splits` parts each, or with 0 pieces of equal length, of three pages and more, at most
/// one for each multiprocessor of an H200. Pages with which tables of successive requests begin are cut once for as many
/// requests as a block has room for.
paged::WorkPlan plan_of(const Inputs& inputs, const Case& of, const Way& way);

/// What is asked of the kernel for heads.
paged::Problem paged_problem_of(const Case& of, const Inputs& inputs, const paged::WorkPlan& plan);

/// Runs the explained kernel. The item that has place `traced_page` of the chosen row's table tells its addresses.
/// Throws Error as the device does.
Outcome run_explained(simt::Device& device, const Case& of, const Inputs& inputs,
                      const Cache& cache, const Chosen& chosen, const Way& way,
                      int traced_page = 0);

}  // namespace tilestep::kv_cache
