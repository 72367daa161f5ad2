#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/attention/kv_cache/kernels.hpp"
#include "kernels/attention/kv_cache/layer.hpp"
#include "kernels/attention/kv_cache/paged/work_plan.hpp"
#include "kernels/attention/kv_cache/quantize.hpp"
#include "kernels/attention/kv_cache/reference.hpp"
#include "kernels/base/lab/report.hpp"

namespace tilestep::kv_cache {

struct Asked {
  std::int64_t loaded = 0, stored = 0;
  bool operator==(const Asked&) const = default;
};
/// By paged::Tensor.
using Ledger = std::array<Asked, paged::kTensors>;

/// Tokens of an item of a request of `context` tokens.
int tokens_of(const paged::WorkItem& item, int page_size, int context);

/// The output and records of an explained launch, on the host.
struct Outcome {
  paged::Problem problem;
  paged::WorkPlan plan;
  std::vector<float> o, lse;            ///< [batch × heads × value], [batch × heads]
  std::vector<paged::ItemTrace> items;  ///< of the plan; of those unwritten `block` is −1
  std::vector<paged::StepTrace> steps;  ///< [items × problem.followed.step_pitch]
  std::vector<float> part_o, part_m, part_l, weights;  ///< [slots × most_rows (× value)]
  Ledger asked{}, formula{};
  std::vector<std::uint64_t>
      key_bytes;  ///< addresses of the traced item's copies of K, 16 bytes each, rising

  const paged::WorkItem& traced() const {
    return plan.items[static_cast<std::size_t>(problem.followed.traced_item)];
  }
  /// An item's steps. Throws Error if it has the followed row and the kernel has not recorded all of them.
  std::span<const paged::StepTrace> steps_of(std::size_t item) const;
};

/// A kernel's way to run a case: how work is cut for it, and its launch.
struct Way {
  paged::Cut cut;
  int room = paged::kMostRows;       ///< most query rows of an item
  int tile = paged::kExplainedTile;  ///< tokens that a block takes at a time
  int look_up = 1;                   ///< tokens that are looked up together
  std::function<void(const paged::Problem&, const paged::Arrays&, const simt::Tape&)> launch;
};
/// The way of the kernel for heads.
Way way_of(simt::Device& device, const PagedKernels& kernels, const Case& of, const Inputs& inputs);

/// The problem of the kernel for heads.
paged::Problem paged_problem_of(const Case& of, const Inputs& inputs, const paged::WorkPlan& plan);

/// Runs the explained kernel. How the requests are cut: `of.splits` parts each, or with 0 pieces of equal length, of
/// three pages and more, at most one for each multiprocessor of an H200. Pages that successive requests' tables begin
/// with are cut once for as many requests as a block has room for. The item with entry `traced_page` of the followed
/// row's table records its addresses. Throws Error as the device does.
Outcome run_explained(simt::Device& device, const Case& of, const Inputs& inputs,
                      const Cache& cache, const paged::Followed& followed, const Way& way,
                      int traced_page = 0);

/// The same problem with K and V as stored in the cache.
Inputs as_cached(const Inputs& inputs, const Cache& cache);
/// Throws Error for work items that an edited kernel left unrecorded: a picture would show zeros.
void require_items(const Outcome& shown);
/// Numbers of O that are off by more than rounding can explain.
int wrong_numbers(const Outcome& shown, const Reference& exact);
/// Checks of O, log-sum-exps, bytes and items of an unbroken kernel.
void add_checks(lab::Report& report, const Inputs& inputs, const Outcome& sound,
                const Reference& exact);

}  // namespace tilestep::kv_cache
