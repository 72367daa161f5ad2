#include "kernels/attention/decode/bench/bench.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "kernels/attention/decode/bench/latent_problem.hpp"
#include "kernels/attention/decode/cost.hpp"
#include "kernels/attention/decode/kernels.hpp"
#include "kernels/attention/kv_cache/bench/cache_bench.hpp"
#include "kernels/base/lab/quick.hpp"

namespace tilestep::decode {
namespace {

using lab::column, lab::real, lab::whole;

/// Of shares of elapsed cycles: one launch would be counted together with the way between host and device.
constexpr int kLaunches = 20;
const lab::Counter kDramPipe{
    "dram_pipe", "%", {{"dram__throughput.avg.pct_of_peak_sustained_elapsed"}}, 1, kLaunches};
const lab::Counter kIssueSlots{"issue_slots",
                               "%",
                               {{"sm__inst_issued.avg.pct_of_peak_sustained_elapsed"},
                                {"sm__inst_executed.avg.pct_of_peak_sustained_elapsed"}},
                               1,
                               kLaunches};
const lab::Counter kAluPipe{"alu_pipe",
                            "%",
                            {{"sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_elapsed"}},
                            1,
                            kLaunches};

class Bench : public CacheBench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes)
      : CacheBench(start, kernels_of(start.device),
                   {sizes.rounds, sizes.side_rounds, sizes.settle_ms, sizes.side_settle_ms}),
        sizes_(sizes),
        library_(kernels_.library(device)) {}

  void run() {
    lab::Table rungs{"ladder", "The ladder", {"rung", column("what_changed", "what changed")}};
    for (const Rung rung : all_of<Rung>()) rungs.add({rung, reason_of(rung)});
    report.add(std::move(rungs));
    if (sizes_.quick) {
      lab::leave_out(report, {"formats", "schemes", "batches", "contexts", "MLA", "bytes counted"});
    }
    climb_ladder();
    if (!sizes_.quick) {
      climb_formats();
      climb_schemes();
      climb_batches();
      climb_contexts();
      climb_latent();
    }
    report.summary = summary();
  }

 private:
  using Cutting = Launching::Cutting;

  // ---- the ladder -----------------------------------------------------------------------------------

  static Launching launching_of(Rung rung, int splits) {
    switch (rung) {
      case Rung::repeat_kv:
        return {.cutting = Cutting::repeat_kv};
      case Rung::one_block:
        return {.cutting = Cutting::even, .splits = 1};
      case Rung::even_splits:
        return {.cutting = Cutting::even, .splits = splits};
      case Rung::balanced:
        return {};
    }
    return {};
  }

  std::optional<lab::Rung> library_rung(BenchProblem& problem) {
    if (!library_.available) return std::nullopt;
    const int plans = kernels_.library_plans(device, problem.library_attention());
    if (plans == 0) return std::nullopt;
    lab::Rung peer;
    peer.name = library_.name;
    peer.why = "a cache in one piece, requests of one length";
    peer.variant = fmt::format("{} {}", library_.name, words_of(problem.step()));
    peer.rate_id = "library_cudnn";
    peer.check = "library";
    peer.check_detail = kWhatIsCompared;
    peer.cells = {{"what_changed", peer.why}};
    for (int plan = 0; plan < std::min(plans, kMostPlans); ++plan) {
      peer.configurations.push_back({.name = fmt::format("plan {} of {}", plan + 1, plans),
                                     .make = [&problem, plan] { return problem.library(plan); }});
    }
    return peer;
  }

  void climb_ladder() {
    Step even = sizes_.step;
    even.ragged = false;
    BenchProblem problem(device, kernels_, sizes_.step), contiguous(device, kernels_, even);
    lab::LadderPlan plan = plan_for(sizes_.step, false);
    plan.rate_id = "decode_rate";
    plan.time_id = "decode_time";
    plan.fraction_id = "fraction_of_read";
    plan.counters = {dram_bytes()};
    plan.peers = {reading(problem)};
    if (auto peer = library_rung(contiguous)) plan.peers.push_back(std::move(*peer));
    for (const Rung of : all_of<Rung>()) {
      lab::Rung rung = made(std::string(name_of(of)), fmt::format("ladder_{}", name_of(of)),
                            problem, launching_of(of, sizes_.splits));
      rung.variant = rung.name;
      rung.why = reason_of(of);
      rung.cells = {{"what_changed", rung.why}};
      plan.rungs.push_back(std::move(rung));
    }
    lab::Climb climb = this->climb(plan, 0.02, 0.35);
    compare_with_library(climb);
    add_ladder_tables(climb);
  }

  void compare_with_library(lab::Climb& climb) {
    if (climb.peers.size() < 2 || !climb.peers[1].timed() || !climb.peers[1].rate.stable()) return;
    const lab::Timed& peer = climb.peers[1];
    for (lab::Timed& timed : climb.rungs) {
      if (!timed.timed() || !timed.rate.stable()) continue;
      const double fraction = timed.rate.median / peer.rate.median;
      timed.cells["cudnn_fraction"] = fraction;
      report.add(lab::derived("fraction_of_cudnn", timed.variant, fraction, "",
                              fmt::format("{:.5g} / {:.5g} GB/s of {}, timed in turn; it reads a "
                                          "cache in one piece",
                                          timed.rate.median, peer.rate.median, peer.name)));
    }
  }

  void add_ladder_tables(lab::Climb& climb) {
    add_table("ladder_measured",
              fmt::format("A step of decoding on {}: {}, {} query heads of {}, {} K/V heads",
                          device.info().name, words_of(sizes_.step), sizes_.step.heads,
                          sizes_.step.row.key, sizes_.step.kv_heads),
              timed_columns({"rung", column("what_changed", "what changed"), "configuration"},
                            {real("fraction", "of reading alone", "", 3),
                             real("cudnn_fraction", "of cuDNN", "", 3)}),
              climb.rungs);
    add_table("peers", "Peers, in turn with them",
              timed_columns({lab::Column{"rung", "peer"}, column("what_changed", "what it does"),
                             "configuration"}),
              climb.peers);
    lab::Table bytes{"bytes",
                     "Bytes of a launch between L2 and DRAM",
                     {"rung", real("least", "K, V, q, O and table once", "MB", 1),
                      real("dram", "DRAM", "MB", 1), real("dram_ratio", "DRAM / least", "", 3)}};
    for (const lab::Timed& timed : climb.rungs) {
      const std::optional<double> dram = timed.number("dram");
      if (!dram) continue;
      const double least = least_bytes(sizes_.step) / 1e6;
      bytes.add({timed.name, least, *dram, *dram / least});
    }
    if (!bytes.rows.empty()) report.add(std::move(bytes));
  }

  // ---- what else is swept ---------------------------------------------------------------------------

  void climb_formats() {
    std::vector<lab::Timed> rows;
    for (const int page_size : {16, 64}) {
      std::optional<double> plain;
      for (const KvType type : all_of<KvType>()) {
        Step step = sizes_.step;
        step.page_size = page_size;
        step.type = type;
        BenchProblem problem(device, kernels_, step);
        lab::LadderPlan plan = plan_for(step, true);
        plan.rate_id = "format_rate";
        plan.counters = {kDramPipe, kIssueSlots, kAluPipe};
        plan.rungs = {made("paged-balanced", fmt::format("format_{}", name_of(type)), problem, {})};
        plan.cells = {{"kv_dtype", lab::Cell(type)}, {"page_size", lab::Cell(page_size)}};
        lab::Timed timed = climb(plan, 0.03).rungs.at(0);
        if (!timed.timed()) continue;
        const double time = timed.time_ms.median;
        if (type == KvType::bf16) plain = time;
        timed.cells["tokens"] = step.batch / time * 1e3;
        if (plain) {
          timed.cells["speedup"] = *plain / time;
          report.add(lab::derived(
              "format_speedup", fmt::format("{} pages of {}", name_of(type), page_size),
              *plain / time, "", fmt::format("{:.4g} ms / {:.4g} ms", *plain, time)));
        }
        rows.push_back(std::move(timed));
      }
    }
    add_table(
        "formats", fmt::format("Formats of the cache: {}", words_of(sizes_.step)),
        timed_columns({lab::Column{"kv_dtype", "format"}, whole("page_size", "page")},
                      {real("tokens", "tokens of a layer", "1/s", 0),
                       real("speedup", "of BF16", "", 2), real("dram_pipe", "DRAM busy", "%", 1),
                       real("issue_slots", "issue slots used", "%", 1),
                       real("alu_pipe", "integer and logic unit", "%", 1)}),
        rows);
  }

  void climb_schemes() {
    std::vector<lab::Timed> rows;
    for (const int shared_by : sizes_.shared_by) {
      Step step = sizes_.step;
      step.kv_heads = step.heads / shared_by;
      if (shared_by == 1)
        step.batch = std::max(step.batch / 4, 1);  // or its cache fills the memory
      BenchProblem problem(device, kernels_, step);
      lab::LadderPlan plan = plan_for(step, true);
      plan.rungs = {made("paged-balanced", "schemes", problem, {})};
      const Scheme scheme = shared_by == 1       ? Scheme::mha
                            : step.kv_heads == 1 ? Scheme::mqa
                                                 : Scheme::gqa;
      const LayerShape layer{scheme, step.heads, step.kv_heads, step.row};
      plan.cells = {{"scheme", lab::Cell(scheme)},
                    {"shared_by", lab::Cell(shared_by)},
                    {"batch", lab::Cell(step.batch)},
                    {"token_bytes", lab::Cell(token_bytes(layer, step.type))},
                    {"intensity", lab::Cell(intensity(layer, step.type, Scales::token))}};
      lab::Timed timed = climb(plan, 0.02).rungs.at(0);
      if (!timed.timed()) continue;
      timed.cells["tokens"] = step.batch / timed.time_ms.median * 1e3;
      rows.push_back(std::move(timed));
    }
    add_table("schemes", "Query heads that share a K/V head",
              timed_columns(
                  {lab::Column{"scheme", "scheme"}, whole("shared_by", "query heads a K/V head"),
                   whole("batch"), whole("token_bytes", "cache of a token", "B"),
                   real("intensity", "intensity", "FLOP/B", 1)},
                  {real("tokens", "tokens of a layer", "1/s", 0)}),
              rows);
  }

  struct Way {
    const char* name;
    Launching how;
  };

  /// Requests of one length, launched in several ways: a point for each value of a number of the step.
  void climb_ways(const std::string& id, std::string title, Step step, const char* number,
                  int Step::*member, const std::vector<int>& values, const std::vector<Way>& ways,
                  double target) {
    std::vector<lab::Timed> rows;
    step.ragged = false;
    for (const int value : values) {
      step.*member = value;
      BenchProblem problem(device, kernels_, step);
      lab::LadderPlan plan = plan_for(step, true);
      for (const Way& way : ways) plan.rungs.push_back(made(way.name, id, problem, way.how));
      plan.cells = {{number, lab::Cell(value)}};
      keep(rows, climb(plan, target));
    }
    add_table(id, std::move(title),
              timed_columns({whole(number), lab::Column{"rung", "launching"}}), rows);
  }

  void climb_batches() {
    climb_ways("batches", "Requests of one length: a block for each K/V head, against equal pieces",
               sizes_.step, "batch", &Step::batch, sizes_.batches,
               {{"a block each", {Cutting::even, 1}}, {"equal pieces", {}}}, 0.01);
  }

  void climb_contexts() {
    Step alone = sizes_.step;
    alone.batch = 1;
    climb_ways(
        "contexts", "One request alone", alone, "context", &Step::context, sizes_.contexts,
        {{"a block each", {Cutting::even, 1}},
         {"pieces for all", {}},
         {"pieces of 256 tokens", {.least = kLeastTokens}},
         {"pieces of 256 tokens, second kernel", {.merge_apart = true, .least = kLeastTokens}}},
        0.008);
  }

  /// MLA, whose limit is the tensor cores: beside the same cache's bytes.
  void climb_latent() {
    const int capability = device.info().compute_capability;
    if (capability != 0 && capability / 10 != 9) return;
    std::vector<lab::Timed> rows;
    for (const bool ragged : {false, true}) {
      for (const int page_size : sizes_.latent_page_sizes) {
        if (ragged && page_size != sizes_.latent_page_sizes.front()) continue;
        Step step = sizes_.step;
        step.ragged = ragged;
        step.page_size = page_size;
        LatentProblem problem(device, step, sizes_.latent_heads);
        lab::LadderPlan plan = plan_for(step, false);
        plan.rate = lab::Rate::tflop_per_s;
        const double bytes = least_bytes(problem.step());
        plan.work = {.bytes_read = bytes, .flops = attention_flops(problem.step())};
        plan.rate_id = "latent_rate";
        plan.cells = {{"page_size", lab::Cell(page_size)},
                      {"requests", lab::Cell(ragged ? "ragged" : "of one length")}};
        for (const bool balanced : {false, true}) {
          lab::Rung rung;
          rung.name = balanced ? "equal pieces" : "a cluster each";
          rung.variant =
              fmt::format("{}, {}{}", rung.name, ragged ? "ragged, " : "", words_of(step));
          rung.check = "latent";
          rung.check_detail = kWhatIsCompared;
          rung.configurations = {
              {.name = fmt::format("pages of {}", page_size),
               .make = [&problem, balanced] { return problem.runnable(balanced); }}};
          plan.rungs.push_back(std::move(rung));
        }
        lab::Climb climb = this->climb(plan, 0.01);
        for (lab::Timed& timed : climb.rungs) {
          if (timed.timed()) {
            timed.cells["bandwidth"] = bytes / timed.time_ms.median / 1e6;
          }
        }
        keep(rows, std::move(climb));
      }
    }
    add_table("latent",
              fmt::format("MLA, absorbed: {} query heads share rows of 512 + 64 numbers",
                          sizes_.latent_heads),
              {lab::Column{"rung", "launching"}, whole("page_size", "page"),
               column("requests", "requests"), lab::Column{"time", "time"},
               lab::Column{"tflops", "rate"}, real("p10", "", "TFLOP/s", 1),
               real("p90", "", "TFLOP/s", 1), real("bandwidth", "cache read", "GB/s", 0)},
              rows);
  }

  std::string summary() const {
    const std::string rung(name_of(Rung::balanced));
    std::string text = fmt::format("{}: {} reads its cache at {}", words_of(sizes_.step), rung,
                                   headline("decode_rate", rung, 0));
    if (const lab::Measurement* of = report.measurement("fraction_of_read", rung)) {
      text += fmt::format(", {:.2f} of a kernel that only reads", of->value);
    }
    if (!library_.available) text += "; " + library_.reason;
    return text + ".";
  }

  static constexpr int kMostPlans = 4;
  static constexpr int kLeastTokens = 256;

  const BenchSizes& sizes_;
  simt::LibraryStatus library_;
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  return lab::run_bench<Bench>(device, progress, sizes);
}

}  // namespace tilestep::decode
