#include "kernels/attention/flash_attention_3/bench/bench.hpp"

#include <fmt/format.h>

#include "kernels/attention/flash_attention_3/run/run.hpp"
#include "kernels/base/lab/quick.hpp"

namespace tilestep::flash_attention_3 {
namespace {

using flash_attention::ForwardKernel;

double asked_bytes(const attention::Task& task) {
  const TileSizes sizes = timed_sizes(task.head_dim);
  TilePlan plan;
  plan.rule = task.rule;
  plan.block_q = sizes.rows();
  plan.block_k = sizes.keys;
  plan.cut(task.length());
  double bytes = 0;
  for (const Asked& one : ledger_of(plan, task)) {
    bytes += static_cast<double>(one.loaded + one.stored);
  }
  return bytes;
}

class Bench final : public flash_attention::ForwardBench {
 public:
  using ForwardBench::ForwardBench;

 private:
  std::vector<ForwardKernel> kernels_at(int head_dim) const override {
    auto all =
        flash_attention::forward_kernels(device, flash_attention::Variant::flash_2, head_dim);
    for (const Rung rung : all_of<Rung>()) all.push_back(kernel_of(rung, head_dim));
    return all;
  }

  ForwardKernel kernel_of(Rung rung, int head_dim) const {
    const Kernels& kernels = kernels_of(device);
    const TileSizes sizes = timed_sizes(head_dim);
    const auto make = [&device = device, &kernels, rung](flash_attention::BenchProblem& problem) {
      return problem.judged(
          [&device, &kernels, &problem, rung] {
            kernels.run(device, {problem.task(), rung},
                        {problem.q(), problem.k(), problem.v(), problem.o(), problem.lse()});
          },
          "flash-3", roundings_of(OutputOf::timed));
    };
    const auto resources = [&device = device, &kernels, rung, head_dim] {
      return kernels.resources(device,
                               {{{Mask::none, 1024, 0, 0}, 1, 1, head_dim, ScoreMod::none}, rung});
    };
    return {std::string(name_of(rung)),
            std::string(reason_of(rung)),
            fmt::format("{}x{}, {} warpgroups of 64 queries", sizes.rows(), sizes.keys,
                        sizes.consumers),
            make,
            resources,
            asked_bytes};
  }

  std::string headliner() const override { return std::string(name_of(Rung::pipelined)); }
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  return lab::run_bench<Bench>(device, progress, sizes);
}

}  // namespace tilestep::flash_attention_3
