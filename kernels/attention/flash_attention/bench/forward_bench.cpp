#include "kernels/attention/flash_attention/bench/forward_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "kernels/attention/flash_attention/run/explained.hpp"
#include "kernels/base/lab/quick.hpp"
#include "kernels/base/simt/counters.hpp"

namespace tilestep::flash_attention {
namespace {

using lab::column, lab::real, lab::whole;
namespace metric = simt::metric;

constexpr const char* kWhatIsCompared =
    "Against double at three queries of the first head and of the last; tolerance: the running "
    "bound of both products' sums, of exp, of each rescale, of weights and O in BF16.";

constexpr int kMostPlans = 4;

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

}  // namespace

ForwardBench::ForwardBench(const lab::Bench& start, const ForwardSizes& sizes)
    : AttentionBench(start, sizes.pace),
      kernels_(kernels_of(device)),
      sizes_(sizes),
      library_(kernels_.library(device)) {}

void ForwardBench::run() {
  lab::Table rungs{"ladder", "The ladder", {"rung", column("what_changed", "what changed")}};
  for (const ForwardKernel& kernel : kernels_at(sizes_.head_dims.back())) {
    rungs.add({kernel.rung, kernel.why});
  }
  report.add(std::move(rungs));
  if (sizes_.quick) {
    lab::leave_out(report, {"other lengths", "other head dimensions", "hardware counters"});
  }
  for_each_task(sizes_.head_dims, sizes_.heads, sizes_.lengths,
                [&](const Task& task, double share) { climb_one(task, 0.87 * share); });
  add_rates("ladder_measured", "The ladder", "peers", "The peers, timed in turn with them");
  add_table("configurations", "Every compiled configuration (fewer samples)",
            {"rung",
             "configuration",
             whole("head_dim", "head dimension"),
             {"mask", "mask"},
             whole("length"),
             {"tflops", "rate"}},
            configurations_);
  add_causal();
  if (!sizes_.quick) {
    if (device.counters().available) add_counts();
    add_resources();
  }
  report.summary = summary();
}

// ---- the ladder -------------------------------------------------------------------------------------

/// cuDNN by its own interface, where it has the attention.
lab::Rung ForwardBench::library_rung(BenchProblem& problem) {
  lab::Rung peer;
  peer.name = library_.name;
  peer.why = "a peer";
  peer.variant = fmt::format("{} {}", library_.name, words_of(problem.task()));
  peer.rate_id = "library_cudnn";
  peer.check = "library";
  peer.check_detail = "As above, twice the tolerance.";
  peer.cells = {{"what_changed", peer.why}, {"backend", "cudnn"}};
  const int plans =
      std::min(kernels_.library_plans(device, library_attention(problem.task())), kMostPlans);
  for (int plan = 0; plan < plans; ++plan) {
    peer.configurations.push_back(
        {.name = fmt::format("plan {} of {}", plan + 1, plans),
         .make = [this, &problem, plan] { return library_runnable(device, problem, plan); }});
  }
  return peer;
}

/// The first is the one that `fraction` refers to: cuDNN, without a mask by its own interface, else PyTorch's.
std::vector<lab::Rung> ForwardBench::peers_of(BenchProblem& problem) {
  std::vector<lab::Rung> peers;
  const Task& task = problem.task();
  if (library_.available && task.rule.mask == Mask::none) {
    lab::Rung peer = library_rung(problem);
    if (!peer.configurations.empty()) peers.push_back(std::move(peer));
  }
  lab::append(peers, peers.empty() ? torch_peers(task, "forward", "")
                                   : torch_peers(task, "forward", "", {"flash"}));
  return peers;
}

void ForwardBench::climb_one(const Task& task, double share) {
  BenchProblem problem(device, task);
  lab::LadderPlan plan = plan_for(task, problem.bytes(), problem.flops(), "");
  plan.rate_id = "attention_rate";
  plan.time_id = "attention_time";
  plan.fraction_id = "fraction_of_cudnn";
  plan.peers = peers_of(problem);
  if (!plan.peers.empty() && std::get<std::string>(plan.peers[0].cells.at("backend")) != "cudnn") {
    plan.fraction_id.clear();
  }
  for (const ForwardKernel& kernel : kernels_at(task.head_dim)) {
    if (!is_timed(kernel.rung, task)) continue;
    lab::Rung rung;
    rung.name = kernel.rung;
    rung.why = kernel.why;
    rung.variant = fmt::format("{} {}", kernel.rung, words_of(task));
    rung.check = fmt::format("ladder_{}", kernel.rung);
    rung.check_detail = kWhatIsCompared;
    rung.cells = {{"what_changed", rung.why}};
    rung.configurations = {{.name = kernel.configuration,
                            .make = [&problem, kernel] { return kernel.make(problem); }}};
    plan.rungs.push_back(std::move(rung));
  }
  lab::Climb climb = this->climb(plan, share);
  for (const lab::Timed& timed : climb.rungs) {
    if (!timed.timed()) continue;
    times_[{timed.name, task.head_dim, task.length(), task.rule.mask}] = timed.time_ms.median;
  }
  keep(std::move(climb));
}

void ForwardBench::add_causal() {
  lab::Table causal{"causal",
                    "A causal mask halves the work: what becomes of the time",
                    {"rung", whole("head_dim", "head dimension"), whole("length"),
                     real("time_full", "full", "ms", 3), real("time_causal", "causal", "ms", 3),
                     real("ratio", "full / causal", "", 2)}};
  for (const auto& [key, full] : times_) {
    const auto& [rung, dim, tokens, of] = key;
    const auto found = times_.find({rung, dim, tokens, Mask::causal});
    if (of != Mask::none || found == times_.end()) continue;
    causal.add({rung, dim, tokens, full, found->second, full / found->second});
  }
  report.add(std::move(causal));
}

// ---- counters ---------------------------------------------------------------------------------------

void ForwardBench::add_counts() {
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
    BenchProblem problem(device, {{Mask::none, sizes_.counted_length, 0, 0},
                                  sizes_.counted_heads,
                                  sizes_.counted_heads,
                                  head_dim,
                                  ScoreMod::none});
    for (const ForwardKernel& kernel : kernels_at(head_dim)) {
      progress.report(0.9, fmt::format("counting {}", kernel.rung));
      count_one(bytes, pipes, problem, kernel);
    }
  }
  report.add(std::move(bytes));
  report.add(std::move(pipes));
}

void ForwardBench::count_one(lab::Table& bytes, lab::Table& pipes, BenchProblem& problem,
                             const ForwardKernel& kernel) {
  const Task& task = problem.task();
  const std::string name = fmt::format("{} {}", kernel.rung, task.head_dim);
  const std::string detail = fmt::format("one launch of {}, {} heads, length {}",
                                         kernel.configuration, task.heads, task.length());
  const lab::Runnable runnable = kernel.make(problem);
  const auto add = [&](const lab::Counter& counter) {
    progress.check();
    const std::optional<double> value = lab::count(device, counter, runnable.launch);
    if (value) report.add(lab::counted(counter.id, name, *value, counter.unit, detail));
    return value;
  };
  const double asked = kernel.asked_bytes(task) / 1e6;
  const double least = problem.bytes() / 1e6;
  const auto ratio = [](const std::optional<double>& value, double of) {
    return value ? lab::Cell(*value / of) : lab::Cell();
  };
  const auto l2 = add(kL2);
  const auto dram = add(kDram);
  bytes.add(
      {kernel.rung, task.head_dim, asked, l2, ratio(l2, asked), dram, least, ratio(dram, least)});
  const auto tensor = add(kTensor);
  const auto exponentials = add(kExpCounter);
  pipes.add({kernel.rung, task.head_dim, tensor, exponentials});
}

/// What the compiled kernels take of a multiprocessor.
void ForwardBench::add_resources() {
  lab::Table table{
      "resources",
      "What the timed kernels take of a multiprocessor",
      {"rung", column("configuration", "configuration"), whole("head_dim", "head dimension"),
       whole("threads"), whole("registers"), whole("spilled", "spilled", "B"),
       whole("shared", "shared memory", "B"), whole("blocks", "blocks at once")}};
  for (const int head_dim : sizes_.head_dims) {
    for (const ForwardKernel& kernel : kernels_at(head_dim)) {
      const simt::Resources r = kernel.resources();
      const auto known = [&r](auto value) { return r.compiled ? lab::Cell(value) : lab::Cell(); };
      table.add({kernel.rung, kernel.configuration, head_dim, r.threads, known(r.registers),
                 known(r.local_bytes), r.dynamic_shared_bytes, known(r.blocks_per_multiprocessor)});
    }
  }
  report.add(std::move(table));
}

std::string ForwardBench::summary() const {
  if (sizes_.lengths.empty() || sizes_.head_dims.empty()) return "Nothing was timed.";
  const std::string where =
      fmt::format("{} {} full {}", headliner(), sizes_.head_dims.back(), sizes_.lengths.back());
  std::string text = fmt::format("{} at head dimension {} and length {} reaches {}", headliner(),
                                 sizes_.head_dims.back(), sizes_.lengths.back(),
                                 headline("attention_rate", where, 0));
  if (const lab::Measurement* of = report.measurement("fraction_of_cudnn", where)) {
    text += fmt::format(", {:.2f} of cuDNN", of->value);
  }
  return text + missing_peers(library_.available ? "" : library_.reason) + ".";
}

std::vector<ForwardKernel> forward_kernels(simt::Device& device, Variant variant, int head_dim) {
  const Kernels& kernels = kernels_of(device);
  std::vector<ForwardKernel> all;
  for (const TimedKernel& kernel : timed_kernels(kernels, variant, head_dim)) {
    all.push_back(
        {std::string(name_of(variant)), std::string(reason_of(variant)), kernel.name,
         [kernel](BenchProblem& problem) { return problem.runnable(kernel); },
         [&device, &kernels, kernel] { return kernels.resources(device, kernel.configuration); },
         [&kernels, kernel](const Task& task) {
           double bytes = 0;
           for (const Asked& one :
                ledger_of(plan_of(kernels, kernel, task), task, Break::none, {})) {
             bytes += static_cast<double>(one.loaded + one.stored);
           }
           return bytes;
         }});
  }
  return all;
}

}  // namespace tilestep::flash_attention
