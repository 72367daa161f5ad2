#include "kernels/attention/flash_attention/bench/counts.hpp"

#include <fmt/format.h>

#include <functional>
#include <optional>

#include "kernels/attention/flash_attention/run/ledger.hpp"
#include "kernels/base/simt/counters.hpp"

namespace tilestep::flash_attention {
namespace {

using lab::column, lab::real, lab::whole;
namespace metric = simt::metric;

/// Bytes that come to the multiprocessors from L2, for L1, cp.async and TMA, and that go there. Sectors counted in L2
/// itself are fewer: on their way requests of neighbours for the same bytes become one.
const lab::Counter kL2{
    "l2_bytes",
    "MB",
    {{"l1tex__m_xbar2l1tex_read_bytes.sum", "l1tex__m_l1tex2xbar_write_bytes.sum"}},
    1e-6};
const lab::Counter kDram{
    "dram_bytes", "MB", {{metric::kDramBytesRead, metric::kDramBytesWritten}}, 1e-6};
/// Of shares of elapsed cycles: one launch would be counted together with the way between host and device.
constexpr int kLaunches = 10;
const lab::Counter kTensor{
    "tensor_pipe",
    "%",
    {{"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"}, {metric::kTensorPipe}},
    1,
    kLaunches};
/// The unit that has the exponentials (MUFU).
const lab::Counter kExpCounter{"exp_pipe",
                               "%",
                               {{"sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed"},
                                {"sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active"},
                                {"sm__pipe_xu_cycles_active.avg.pct_of_peak_sustained_active"}},
                               1,
                               kLaunches};

class Counts {
 public:
  Counts(lab::Bench& bench, const BenchSizes& sizes)
      : device_(bench.device),
        progress_(bench.progress),
        report_(bench.report),
        kernels_(kernels_of(bench.device)),
        sizes_(sizes) {}

  void run() {
    if (device_.counters().available) count();
    add_resources();
  }

 private:
  std::optional<double> counted(const lab::Counter& counter, const std::function<void()>& launch) {
    progress_.check();
    return lab::count(device_, counter, launch);
  }

  void count() {
    lab::Table bytes{
        "bytes",
        fmt::format("Bytes of one launch: {} heads, length {}", sizes_.counted_heads,
                    sizes_.counted_length),
        {"rung", whole("head_dim", "head dimension"), real("formula", "asked, by formula", "MB", 1),
         real("l2", "from and to L2", "MB", 1), real("l2_ratio", "L2 / asked", "", 3),
         real("dram", "DRAM", "MB", 1), real("least", "Q, K, V, O, lse once", "MB", 1),
         real("dram_ratio", "DRAM / least", "", 3)}};
    lab::Table pipes{
        "pipes",
        fmt::format("Which unit is busy: {} heads, length {}", sizes_.counted_heads,
                    sizes_.counted_length),
        {"rung", whole("head_dim", "head dimension"), real("tensor_pipe", "tensor cores", "%", 1),
         real("exp_pipe", "exponentials", "%", 1)}};
    for (const int head_dim : sizes_.head_dims) {
      BenchProblem problem(device_, {{Mask::none, sizes_.counted_length, 0, 0},
                                     sizes_.counted_heads,
                                     sizes_.counted_heads,
                                     head_dim,
                                     ScoreMod::none});
      for (const Variant variant : all_of<Variant>()) {
        const auto timed = timed_kernels(kernels_, variant, head_dim);
        if (timed.empty()) continue;
        progress_.report(0.9, fmt::format("counting {}", name_of(variant)));
        count_one(bytes, pipes, problem, timed.front());
      }
    }
    report_.add(std::move(bytes));
    report_.add(std::move(pipes));
  }

  void count_one(lab::Table& bytes, lab::Table& pipes, BenchProblem& problem,
                 const TimedKernel& kernel) {
    const Task& task = problem.task();
    const std::string name = fmt::format("{} {}", name_of(kernel.variant), task.head_dim);
    const std::string detail = fmt::format("one launch of {}, {} heads, length {}", kernel.name,
                                           task.heads, task.length());
    const lab::Runnable runnable = problem.runnable(kernel);
    const auto add = [&](const lab::Counter& counter) {
      const std::optional<double> value = counted(counter, runnable.launch);
      if (value) report_.add(lab::counted(counter.id, name, *value, counter.unit, detail));
      return value;
    };
    const double asked = asked_bytes_of(plan_of(kernels_, kernel, task), task) / 1e6;
    const double least = problem.bytes() / 1e6;
    const auto ratio = [](const std::optional<double>& value, double of) {
      return value ? lab::Cell(*value / of) : lab::Cell();
    };
    const auto l2 = add(kL2);
    const auto dram = add(kDram);
    bytes.add({kernel.variant, task.head_dim, asked, l2, ratio(l2, asked), dram, least,
               ratio(dram, least)});
    const auto tensor = add(kTensor);
    const auto exponentials = add(kExpCounter);
    pipes.add({kernel.variant, task.head_dim, tensor, exponentials});
  }

  /// What the compiled kernels take of a multiprocessor.
  void add_resources() {
    lab::Table table{
        "resources",
        "What the timed kernels take of a multiprocessor",
        {"rung", column("configuration", "configuration"), whole("head_dim", "head dimension"),
         whole("threads"), whole("registers"), whole("spilled", "spilled", "B"),
         whole("shared", "shared memory", "B"), whole("blocks", "blocks at once")}};
    for (const int head_dim : sizes_.head_dims) {
      for (const Variant variant : all_of<Variant>()) {
        for (const TimedKernel& kernel : timed_kernels(kernels_, variant, head_dim)) {
          const simt::Resources r = resources_of(kernel, head_dim);
          const auto known = [&r](auto value) {
            return r.compiled ? lab::Cell(value) : lab::Cell();
          };
          table.add({variant, kernel.name, head_dim, r.threads, known(r.registers),
                     known(r.local_bytes), r.dynamic_shared_bytes,
                     known(r.blocks_per_multiprocessor)});
        }
      }
    }
    report_.add(std::move(table));
  }

  simt::Resources resources_of(const TimedKernel& kernel, int head_dim) const {
    if (kernel.configuration >= 0) return kernels_.resources(device_, kernel.configuration);
    flash_3::Problem problem = flash_3_problem_of(kernel.variant);
    problem.head_dim = head_dim;
    problem.rule.length = 1024;
    return kernels_.resources(device_, problem);
  }

  simt::Device& device_;
  lab::Progress& progress_;
  lab::Report& report_;
  const Kernels& kernels_;
  const BenchSizes& sizes_;
};

}  // namespace

void add_counts(lab::Bench& bench, const BenchSizes& sizes) {
  Counts(bench, sizes).run();
}

}  // namespace tilestep::flash_attention
