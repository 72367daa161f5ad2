#include "kernels/attention/flash_attention/bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "kernels/attention/flash_attention/backward/bench_problem.hpp"
#include "kernels/attention/flash_attention/bench/counts.hpp"
#include "kernels/attention/flash_attention/run/ledger.hpp"
#include "kernels/base/lab/quick.hpp"

namespace tilestep::flash_attention {
namespace {

using lab::column, lab::real, lab::whole;

constexpr const char* kWhatIsCompared =
    "Against double at three queries of the first head and of the last; tolerance: the running "
    "bound of both products' sums, of exp, of each rescale, of weights and O in BF16.";

constexpr const char* kWhatIsComparedBackward =
    "dQ of three queries, dK and dV of three keys, of the first head and of the last, against "
    "double "
    "from the O and log-sum-exp that the forward kernel left; tolerance: the running bound of the "
    "products' sums, of exp, of D, of weights, dS and results in BF16.";

class Bench : public lab::Bench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes)
      : lab::Bench(start),
        kernels_(kernels_of(device)),
        sizes_(sizes),
        library_(kernels_.library(device)),
        torch_(sizes.peers) {}

  void run() {
    report.add(ladder_table());
    if (sizes_.quick) {
      lab::leave_out(report, {"other lengths", "other head dimensions", "the backward pass",
                              "hardware counters"});
    }
    const double share =
        0.87 / static_cast<double>(2 * sizes_.head_dims.size() *
                                   (sizes_.lengths.size() + sizes_.backward_lengths.size()));
    double from = 0.02;
    for (std::size_t i = 0; i < sizes_.head_dims.size(); ++i) {
      for (const int length : sizes_.lengths) {
        for (const Mask mask : {Mask::none, Mask::causal}) {
          climb_one({{mask, length, 0, 0},
                     sizes_.heads[i],
                     sizes_.heads[i],
                     sizes_.head_dims[i],
                     ScoreMod::none},
                    from, from + share);
          from += share;
        }
      }
      for (const int length : sizes_.backward_lengths) {
        for (const Mask mask : {Mask::none, Mask::causal}) {
          climb_back({{mask, length, 0, 0},
                      sizes_.heads[i],
                      sizes_.heads[i],
                      sizes_.head_dims[i],
                      ScoreMod::none},
                     from, from + share);
          from += share;
        }
      }
    }
    add_tables();
    if (!sizes_.quick) {
      add_backward_tables();
      add_counts(*this, sizes_);
    }
    lab::append(report.checks, ladder.checks());
    report.summary = summary();
  }

 private:
  // ---- the ladder -----------------------------------------------------------------------------------

  static std::string words_of(const Task& task) {
    return fmt::format("{} {} {}", task.head_dim,
                       task.rule.mask == Mask::causal ? "causal" : "full", task.length());
  }

  /// Whether the variant is timed at all: scores must find room, and a block a head must not take all day.
  bool is_timed(Variant variant, const Task& task) const {
    if (variant == Variant::flash_1) return task.length() <= sizes_.longest_flash_1;
    if (variant != Variant::naive) return true;
    const double matrices =
        2.0 * kElementBytes * task.heads * task.length() * score_pitch(task.length());
    return task.length() <= sizes_.longest_stored &&
           matrices < 0.5 * static_cast<double>(device.info().memory_bytes);
  }

  lab::Rung rung_of(Variant variant, BenchProblem& problem) {
    lab::Rung rung =
        lab::rung_of(variant, fmt::format("ladder_{}", name_of(variant)), kWhatIsCompared);
    rung.variant = fmt::format("{} {}", name_of(variant), words_of(problem.task()));
    rung.cells = {{"what_changed", rung.why}};
    for (const TimedKernel& kernel : timed_kernels(kernels_, variant, problem.task().head_dim)) {
      rung.configurations.push_back(
          {.name = kernel.name, .make = [&problem, kernel] { return problem.runnable(kernel); }});
    }
    return rung;
  }

  /// cuDNN by its own interface, where it has the attention.
  lab::Rung library_rung(BenchProblem& problem) {
    lab::Rung peer;
    peer.name = library_.name;
    peer.why = "a peer";
    peer.variant = fmt::format("{} {}", library_.name, words_of(problem.task()));
    peer.rate_id = "library_cudnn";
    peer.check = "library";
    peer.check_detail = "As above, twice the tolerance.";
    peer.cells = {{"what_changed", peer.why}, {"backend", "cudnn"}};
    const int plans =
        std::min(kernels_.library_plans(device, problem.library_attention()), kMostPlans);
    for (int plan = 0; plan < plans; ++plan) {
      peer.configurations.push_back({.name = fmt::format("plan {} of {}", plan + 1, plans),
                                     .make = [&problem, plan] { return problem.library(plan); }});
    }
    return peer;
  }

  /// PyTorch's, for a backward pass.
  std::vector<lab::Rung> backward_peers_of(const Task& task) {
    std::vector<lab::Rung> peers;
    if (!torch_.available()) return peers;
    for (const char* backend : {"cudnn", "flash"}) {
      lab::Rung peer = torch_.rung(backend, task, "backward");
      peer.rate_id = fmt::format("library_{}_backward", backend);
      peer.variant = fmt::format("{} {}", peer.name, words_of(task));
      peers.push_back(std::move(peer));
    }
    return peers;
  }

  /// The first is the one that `fraction` refers to: cuDNN, without a mask by its own interface, else PyTorch's.
  std::vector<lab::Rung> peers_of(BenchProblem& problem) {
    std::vector<lab::Rung> peers;
    const Task& task = problem.task();
    if (library_.available && task.rule.mask == Mask::none) {
      lab::Rung peer = library_rung(problem);
      if (!peer.configurations.empty()) peers.push_back(std::move(peer));
    }
    if (!torch_.available()) return peers;
    for (const char* backend : {"cudnn", "flash"}) {
      if (backend == std::string_view("cudnn") && !peers.empty()) continue;
      lab::Rung peer = torch_.rung(backend, task, "forward");
      peer.variant = fmt::format("{} {}", peer.name, words_of(task));
      peers.push_back(std::move(peer));
    }
    return peers;
  }

  void climb_one(const Task& task, double from, double to) {
    BenchProblem problem(device, task);
    lab::LadderPlan plan = plan_for(task, problem.bytes(), problem.flops(), "");
    plan.rate_id = "attention_rate";
    plan.time_id = "attention_time";
    plan.fraction_id = "fraction_of_cudnn";
    plan.peers = peers_of(problem);
    if (!plan.peers.empty() &&
        std::get<std::string>(plan.peers[0].cells.at("backend")) != "cudnn") {
      plan.fraction_id.clear();
    }
    for (const Variant variant : all_of<Variant>()) {
      if (is_timed(variant, task)) plan.rungs.push_back(rung_of(variant, problem));
    }
    keep(climb(plan, from, to), task);
  }

  /// What the ladders of both directions have in common.
  lab::LadderPlan plan_for(const Task& task, double bytes, double flops, const char* pass) const {
    lab::LadderPlan plan;
    plan.rate = lab::Rate::tflop_per_s;
    plan.work = {.bytes_read = bytes, .flops = flops};
    plan.shape = fmt::format("{}{} heads of {}, {}, length {}", pass, task.heads, task.head_dim,
                             name_of(task.rule.mask), task.length());
    plan.cells = {{"head_dim", lab::Cell(task.head_dim)},
                  {"mask", lab::Cell(task.rule.mask)},
                  {"length", lab::Cell(task.length())}};
    plan.rounds = task.length() == sizes_.compared_length ? sizes_.compared_rounds : sizes_.rounds;
    plan.turn = {sizes_.settle_ms, 14, 8, 20};
    plan.flush_l2 = false;  // products take longer than the bytes do, and the load must not pause
    return plan;
  }

  /// The backward pass: dQ, dK and dV, with D and dQ's conversion.
  void climb_back(const Task& task, double from, double to) {
    BackwardProblem problem(device, task);
    lab::LadderPlan plan = plan_for(task, problem.bytes(), problem.flops(), "backward, ");
    plan.rate_id = "backward_rate";
    plan.time_id = "backward_time";
    plan.peers = backward_peers_of(task);
    if (!plan.peers.empty()) plan.fraction_id = "fraction_of_cudnn";
    for (const BackwardRung of : all_of<BackwardRung>()) {
      if (!is_timed(of)) continue;
      lab::Rung rung =
          lab::rung_of(of, fmt::format("ladder_{}", name_of(of)), kWhatIsComparedBackward);
      rung.variant = fmt::format("{} {}", name_of(of), words_of(task));
      rung.cells = {{"what_changed", rung.why}};
      for (const TimedBackward& kernel : timed_backward(kernels_, of, task.head_dim)) {
        rung.configurations.push_back(
            {.name = kernel.name, .make = [&problem, kernel] { return problem.runnable(kernel); }});
      }
      plan.rungs.push_back(std::move(rung));
    }
    lab::Climb climb = this->climb(plan, from, to);
    compare_with_torch(climb);
    for (lab::Timed& timed : climb.rungs) {
      if (timed.timed()) backward_rows_.push_back(std::move(timed));
    }
    for (lab::Timed& timed : climb.peers) {
      if (timed.timed()) backward_peers_.push_back(std::move(timed));
    }
  }

  /// The kernels for Hopper run on nothing else.
  bool is_timed(BackwardRung rung) const {
    const int capability = device.info().compute_capability;
    return rung != BackwardRung::hopper || capability == 0 || capability / 10 == 9;
  }

  void compare_with_torch(lab::Climb& climb) {
    const lab::Timed* flash = nullptr;
    for (const lab::Timed& peer : climb.peers) {
      if (peer.timed() && std::get<std::string>(peer.cells.at("backend")) == "flash") flash = &peer;
    }
    if (flash == nullptr || !flash->rate.stable()) return;
    for (lab::Timed& timed : climb.rungs) {
      if (!timed.timed() || !timed.rate.stable()) continue;
      const double fraction = timed.rate.median / flash->rate.median;
      timed.cells["torch_fraction"] = fraction;
      report.add(lab::derived("fraction_of_torch", timed.variant, fraction, "",
                              fmt::format("{:.4g} / {:.4g} TFLOP/s of {}, timed in turn",
                                          timed.rate.median, flash->rate.median, flash->name)));
    }
  }

  void keep(lab::Climb climb, const Task& task) {
    compare_with_torch(climb);
    for (lab::Timed& timed : climb.rungs) {
      if (!timed.timed()) continue;
      times_[{timed.name, task.head_dim, task.length(), task.rule.mask}] = timed.time_ms.median;
      rows_.push_back(std::move(timed));
    }
    for (lab::Timed& timed : climb.peers) {
      if (timed.timed()) peers_.push_back(std::move(timed));
    }
    lab::append(configurations_, std::move(climb.configurations));
  }

  // ---- tables ---------------------------------------------------------------------------------------

  void add_tables() {
    const lab::Column head_dim = whole("head_dim", "head dimension"), mask{"mask", "mask"};
    const lab::Column length = whole("length"), rate{"tflops", "rate"};
    const lab::Column p10 = real("p10", "", "TFLOP/s", 2), p90 = real("p90", "", "TFLOP/s", 2);
    add_table("ladder_measured", fmt::format("The ladder on {}: BF16, batch 1", device.info().name),
              {"rung", column("what_changed", "what changed"), head_dim, mask, length,
               "configuration", rate, p10, p90, real("fraction", "of cuDNN", "", 3),
               real("torch_fraction", "of PyTorch's FlashAttention 2", "", 3)},
              rows_);
    add_table(
        "peers", "The peers, timed in turn with them",
        {lab::Column{"rung", "peer"}, head_dim, mask, length, "configuration", rate, p10, p90},
        peers_);
    add_table("configurations", "Every compiled configuration (fewer samples)",
              {"rung", "configuration", head_dim, mask, length, rate}, configurations_);
    lab::Table causal{
        "causal",
        "A causal mask halves the work: what becomes of the time",
        {"rung", head_dim, length, real("time_full", "full", "ms", 3),
         real("time_causal", "causal", "ms", 3), real("ratio", "full / causal", "", 2)}};
    for (const auto& [key, full] : times_) {
      const auto& [rung, dim, tokens, of] = key;
      const auto found = times_.find({rung, dim, tokens, Mask::causal});
      if (of != Mask::none || found == times_.end()) continue;
      causal.add({rung, dim, tokens, full, found->second, full / found->second});
    }
    report.add(std::move(causal));
  }

  void add_backward_tables() {
    const lab::Column head_dim = whole("head_dim", "head dimension"), mask{"mask", "mask"};
    const lab::Column length = whole("length"), rate{"tflops", "rate"};
    const lab::Column p10 = real("p10", "", "TFLOP/s", 2), p90 = real("p90", "", "TFLOP/s", 2);
    add_table("backward", fmt::format("The backward pass on {}: BF16, batch 1", device.info().name),
              {"rung",
               column("what_changed", "what changed"),
               head_dim,
               mask,
               length,
               "configuration",
               rate,
               p10,
               p90,
               {"time", "time"},
               real("fraction", "of cuDNN", "", 3),
               real("torch_fraction", "of PyTorch's FlashAttention 2", "", 3)},
              backward_rows_);
    add_table("backward_peers", "The backward pass's peers, timed in turn with it",
              {lab::Column{"rung", "peer"}, head_dim, mask, length, rate, p10, p90},
              backward_peers_);
  }

  std::string summary() const {
    if (sizes_.lengths.empty() || sizes_.head_dims.empty()) return "Nothing was timed.";
    const std::string where =
        fmt::format("flash-3 {} full {}", sizes_.head_dims.back(), sizes_.lengths.back());
    std::string text = fmt::format("flash-3 at head dimension {} and length {} reaches {}",
                                   sizes_.head_dims.back(), sizes_.lengths.back(),
                                   headline("attention_rate", where, 0));
    if (const lab::Measurement* of = report.measurement("fraction_of_cudnn", where)) {
      text += fmt::format(", {:.2f} of cuDNN", of->value);
    }
    if (!library_.available) text += "; " + library_.reason;
    if (!torch_.available()) text += "; " + torch_.reason();
    if (!torch_.complaint().empty()) text += "; " + torch_.complaint();
    return text + ".";
  }

  static constexpr int kMostPlans = 4;

  const Kernels& kernels_;
  const BenchSizes& sizes_;
  simt::LibraryStatus library_;
  TorchPeers torch_;
  std::vector<lab::Timed> rows_, peers_, configurations_, backward_rows_, backward_peers_;
  std::map<std::tuple<std::string, int, int, Mask>, double> times_;
};

}  // namespace

double asked_bytes_of(const Plan& plan, const Task& task) {
  double bytes = 0;
  for (const Asked& one : ledger_of(plan, task, Break::none, {})) {
    bytes += static_cast<double>(one.loaded + one.stored);
  }
  return bytes;
}

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  const BenchSizes asked = lab::sizes_asked(sizes);
  Bench bench({device, progress}, asked);
  bench.run();
  return std::move(bench.report);
}

}  // namespace tilestep::flash_attention
