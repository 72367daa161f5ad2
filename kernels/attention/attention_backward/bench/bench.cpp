#include "kernels/attention/attention_backward/bench/bench.hpp"

#include <fmt/format.h>

#include "kernels/attention/attention_backward/bench/problem.hpp"
#include "kernels/base/lab/quick.hpp"

namespace tilestep::attention_backward {
namespace {

constexpr const char* kWhatIsCompared =
    "dQ of three queries, dK and dV of three keys, of the first head and of the last, against "
    "double from the O and log-sum-exp that the forward kernel left; tolerance: the running bound "
    "of the products' sums, of exp, of D, of weights, dS and results in BF16.";

class Bench : public AttentionBench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes)
      : AttentionBench(start, sizes.pace), kernels_(kernels_of(device)), sizes_(sizes) {}

  void run() {
    if (sizes_.quick) {
      lab::leave_out(report, {"other lengths", "other head dimensions"});
    }
    for_each_task(sizes_.head_dims, sizes_.heads, sizes_.lengths,
                  [&](const Task& task, double share) { climb_one(task, 0.95 * share); });
    add_rates("backward", "The backward pass", "backward_peers",
              "The backward pass's peers, timed in turn with it", true);
    report.summary = summary();
  }

 private:
  /// D and dQ's conversion are part of it.
  void climb_one(const Task& task, double share) {
    BackwardProblem problem(device, task);
    lab::LadderPlan plan = plan_for(task, problem.bytes(), problem.flops(), "backward, ");
    plan.rate_id = "backward_rate";
    plan.time_id = "backward_time";
    plan.peers = torch_peers(task, "backward", "_backward");
    if (!plan.peers.empty()) plan.fraction_id = "fraction_of_cudnn";
    for (const BackwardRung of : all_of<BackwardRung>()) {
      if (!is_timed(of)) continue;
      lab::Rung rung = lab::rung_of(of, fmt::format("ladder_{}", name_of(of)), kWhatIsCompared);
      rung.variant = fmt::format("{} {}", name_of(of), words_of(task));
      rung.cells = {{"what_changed", rung.why}};
      const TimedBackward kernel = timed_backward(kernels_, of, task.head_dim);
      rung.configurations.push_back(
          {.name = kernel.name, .make = [&problem, kernel] { return problem.runnable(kernel); }});
      plan.rungs.push_back(std::move(rung));
    }
    keep(climb(plan, share));
  }

  /// The kernels for Hopper run on nothing else.
  bool is_timed(BackwardRung rung) const {
    const int capability = device.info().compute_capability;
    return rung != BackwardRung::hopper || capability == 0 || capability / 10 == 9;
  }

  std::string summary() const {
    if (rows_.empty()) return "Nothing was timed.";
    const lab::Timed& last = rows_.back();
    return fmt::format("{} reaches {}", last.variant, headline("backward_rate", last.variant, 0)) +
           missing_peers() + ".";
  }

  const Kernels& kernels_;
  const BenchSizes& sizes_;
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  return lab::run_bench<Bench>(device, progress, sizes);
}

}  // namespace tilestep::attention_backward
