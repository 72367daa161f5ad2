#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "kernels/base/simt/counters.hpp"
#include "kernels/matmul/tiling/bench_parts.hpp"

// What is timed: C = A·B of square matrices of random numbers, every rung and cuBLAS in one run,
// each after more than half a second of itself, so that the clock is the one that the load leaves.
// The roofs are the device's own copy and cuBLAS. Every rung's result is compared with double
// before its time counts.

namespace tilestep::tiling {
namespace {

constexpr int kSizes[] = {4096, 8192};
constexpr int kMainSize = 8192;
constexpr int kCountedSize = 4096;
/// A rung is not timed where its samples would take longer than this.
constexpr double kMostSeconds = 60;
constexpr int kFewSamples = 20;
constexpr int kManySamples = 40;
constexpr double kSettleMs = 600;
/// To choose among configurations, the clock need not have settled.
constexpr double kShortSettleMs = 50;
constexpr int kMostWarmups = 2000;

class Bench {
 public:
  Bench(simt::Device& device, lab::Progress& progress, lab::Report& report)
      : device_(device),
        kernels_(static_cast<const Kernels&>(device.kernels(kLessonId))),
        progress_(progress),
        report_(report),
        library_(kernels_.library(device)) {
    for (int i = 0; i < kVariants; ++i) {
      const auto variant = static_cast<Variant>(i);
      if (variant != Variant::tensor_core || device.info().compute_capability >= 80) {
        rungs_.push_back(variant);
      }
    }
  }

  void run() {
    check_all_sizes();
    measure_copy();
    for (const int size : kSizes) time_size(size);
    add_results();
    add_resources();
    add_counters();
    add_roofline();
  }

 private:
  struct Result {
    Runner runner;
    std::optional<Variant> variant;
    int size = 0;
    Spread tflops;
    double peer = 0;  ///< TFLOP/s of the library in the same format and run; 0: not there
  };

  void tell(double fraction, std::string note) {
    progress_.report(fraction, note);
    progress_.check();
  }

  /// Every rung over sizes that its tiles divide and such that they do not.
  void check_all_sizes() {
    std::map<Variant, Worst> worst;
    const GemmShape shapes[] = {{1, 1, 1},         {33, 7, 100},    {128, 128, 128},
                                {257, 100, 129},   {512, 512, 512}, {1000, 1100, 1030},
                                {2048, 2048, 2048}};
    for (const GemmShape& shape : shapes) {
      tell(0.02, fmt::format("checking the rungs at {} x {} x {}", shape.m, shape.n, shape.k));
      Problem problem(device_, shape);
      for (const Variant variant : rungs_) {
        const Runner runner = rung_runner(device_, kernels_, variant, kBestConfiguration);
        worst[variant].add(error_of(device_, runner, problem));
      }
    }
    for (const Variant variant : rungs_) {
      const Worst& w = worst[variant];
      report_.checks.push_back(
          {fmt::format("ladder_{}", to_text(variant)), w.ok, w.error, w.bound,
           "Against double at 1, 33 x 7 x 100, 128, 257 x 100 x 129, 512, 1000 x 1100 x 1030 and "
           "2048 (there 256 elements); tolerance: what rounding can explain in the order of the "
           "kernel's additions."});
    }
  }

  void measure_copy() {
    tell(0.1, "measuring the copy");
    constexpr std::size_t kBytes = std::size_t{1} << 30;
    simt::Buffer<float> from(device_, kBytes / sizeof(float));
    simt::Buffer<float> to(device_, kBytes / sizeof(float));
    const std::vector<float> random = make_matrices({4096, 1, 4096}, 5, false).a;
    for (std::size_t at = 0; at < from.count(); at += random.size()) {
      device_.copy_in(from.span().data + at, random.data(), random.size() * sizeof(float));
    }
    const auto copy = [&] {
      device_.copy_on_device(to.span().data, from.span().data, from.bytes());
    };
    simt::TimingPlan plan;
    plan.samples = kManySamples;
    const Spread rate =
        rate_of(spread_of(device_.time_ms(copy, plan)), 2.0 * static_cast<double>(kBytes), 1e-6);
    copy_tb_s_ = rate.median * 1e-3;
    report_.measurements.push_back(
        measured("copy_bandwidth", "", rate, "GB/s",
                 "the device's own copy of 1 GiB, counted as read and written"));
  }

  /// Under load the clock falls until power and heat have settled: what is timed comes after that.
  Spread time(const Runner& runner, Problem& problem, int samples, double settle_ms) {
    const auto work = [&] { runner.launch(problem); };
    simt::TimingPlan plan;
    plan.warmups = 1;
    plan.samples = 1;
    const double once_ms = spread_of(device_.time_ms(work, plan)).median;
    plan.samples = samples;
    plan.warmups = std::clamp(static_cast<int>(settle_ms / once_ms), 1, kMostWarmups);
    plan.max_seconds = 20;
    return spread_of(device_.time_ms(work, plan));
  }

  void check_timed(const Runner& runner, Problem& problem) {
    const Worst worst = error_of(device_, runner, problem);
    report_.checks.push_back(
        {fmt::format("{}, {} at {}", runner.id, runner.configuration, problem.shape.m), worst.ok,
         worst.error, worst.bound,
         fmt::format("Against double at {} random elements of C and its four corners, none of the "
                     "others NaN; tolerance: what rounding can explain{}.",
                     kProbes - 4,
                     runner.adding == Adding::in_order || runner.adding == Adding::tensor_core
                         ? " in the order of the kernel's additions"
                         : " in any order of additions")});
  }

  void time_size(int size) {
    tell(size == kMainSize ? 0.4 : 0.15, fmt::format("making matrices of {0} x {0}", size));
    Problem problem(device_, {size, size, size});
    const double peer_fp32 = time_library(problem, {Precision::fp32, Precision::fp32_pedantic});
    const double peer_bf16 = time_library(problem, {Precision::bf16});
    for (const Variant variant : rungs_) {
      tell(size == kMainSize ? 0.5 : 0.2, fmt::format("timing {} at {}", to_text(variant), size));
      time_rung(variant, problem, variant == Variant::tensor_core ? peer_bf16 : peer_fp32);
    }
  }

  /// The faster of the library's ways; 0 without a library.
  double time_library(Problem& problem, std::initializer_list<Precision> ways) {
    if (!library_.available) return 0;
    std::optional<Result> best;
    for (const Precision precision : ways) {
      const Runner runner = library_runner(device_, kernels_, precision);
      check_timed(runner, problem);
      Result result{runner, std::nullopt, problem.shape.m, {}, 0};
      result.tflops = tflops_of(time(runner, problem, kManySamples, kSettleMs), problem.shape);
      if (!best || result.tflops.median > best->tflops.median) best = result;
    }
    best->peer = best->tflops.median;
    results_.push_back(*best);
    return best->peer;
  }

  /// Finds the best configuration, then measures it anew: the samples that chose it do not count.
  void time_rung(Variant variant, Problem& problem, double peer) {
    const double scale = std::pow(problem.shape.m / static_cast<double>(kSizes[0]), 3);
    if (seconds_at_first_[variant] * scale * kFewSamples > kMostSeconds) return;
    const auto all = kernels_.configurations(variant);
    const int size = problem.shape.m;
    int best = 0;
    double best_ms = INFINITY;
    for (int i = 0; i < static_cast<int>(all.size()); ++i) {
      const Runner runner = rung_runner(device_, kernels_, variant, i);
      check_timed(runner, problem);
      // The slow rungs have one configuration: no need to choose.
      if (all.size() == 1) break;
      const Spread time_ms = time(runner, problem, kFewSamples, kShortSettleMs);
      configurations_.rows.push_back(
          {std::string(to_text(variant)), runner.configuration, static_cast<double>(size),
           tflops_of(time_ms, problem.shape).median,
           peer > 0 ? lab::Cell(tflops_of(time_ms, problem.shape).median / peer) : lab::Cell()});
      if (time_ms.median < best_ms) {
        best_ms = time_ms.median;
        best = i;
      }
    }
    best_[variant] = best;
    const Runner runner = rung_runner(device_, kernels_, variant, best);
    const bool slow = variant <= Variant::coalesced;
    const Spread time_ms = time(runner, problem, slow ? kFewSamples : kManySamples, kSettleMs);
    if (size == kSizes[0]) seconds_at_first_[variant] = time_ms.median * 1e-3;
    results_.push_back({runner, variant, size, tflops_of(time_ms, problem.shape), peer});
  }

  void add_results() {
    lab::Table table{"ladder_measured",
                     fmt::format("The ladder on {}, random data", device_.info().name),
                     {{"rung", "rung", "", -1},
                      {"size", "M = N = K", "", 0},
                      {"what_changed", "what changed", "", -1},
                      {"configuration", "configuration", "", -1},
                      {"tflops", "rate", "TFLOP/s", 2},
                      {"p10", "p10", "TFLOP/s", 2},
                      {"p90", "p90", "TFLOP/s", 2},
                      {"fraction", "of cuBLAS", "", 3}},
                     {}};
    // Stable: within a size the rungs keep their order, the library's rows come last.
    std::stable_sort(results_.begin(), results_.end(), [](const Result& x, const Result& y) {
      const auto rank = [](const Result& r) {
        return r.variant ? static_cast<int>(*r.variant) : kVariants;
      };
      return x.size != y.size ? x.size > y.size : rank(x) < rank(y);
    });
    for (const Result& r : results_) {
      const std::string what = r.variant ? std::string(what_changed(*r.variant)) : "the peer";
      lab::Cell fraction;
      if (r.peer > 0) fraction = r.tflops.median / r.peer;
      table.rows.push_back({r.runner.label, static_cast<double>(r.size), what,
                            r.runner.configuration, r.tflops.median, r.tflops.p10, r.tflops.p90,
                            fraction});
      add_measurements(r);
    }
    report_.tables.push_back(std::move(table));
    report_.tables.push_back(configurations_);
  }

  void add_measurements(const Result& r) {
    const std::string detail = fmt::format("{}³, {}", r.size, r.runner.configuration);
    auto& out = report_.measurements;
    if (!r.variant) {
      out.push_back(measured(r.runner.tensor_core ? "library_bf16" : "library_fp32", library_.name,
                             r.tflops, "TFLOP/s", detail));
      return;
    }
    out.push_back(measured("gemm_rate", r.runner.label, r.tflops, "TFLOP/s", detail));
    if (r.peer <= 0) return;
    out.push_back(derived("fraction_of_cublas", r.runner.label, r.tflops.median / r.peer, "",
                          fmt::format("{}³: {:.2f} / {:.2f} TFLOP/s of the same run", r.size,
                                      r.tflops.median, r.peer)));
  }

  void add_resources() {
    lab::Table table{"resources",
                     "What the compiled kernels take of a multiprocessor",
                     {{"rung", "rung", "", -1},
                      {"configuration", "configuration", "", -1},
                      {"threads", "threads", "1/block", 0},
                      {"registers", "registers", "1/thread", 0},
                      {"spilled", "spilled", "B/thread", 0},
                      {"shared", "shared memory", "B/block", 0},
                      {"blocks", "blocks", "1/multiprocessor", 0},
                      {"occupancy", "occupancy limit", "", 3}},
                     {}};
    for (const Variant variant : rungs_) {
      const auto all = kernels_.configurations(variant);
      for (int i = 0; i < static_cast<int>(all.size()); ++i) {
        const Resources r = kernels_.resources(device_, variant, i);
        const double occupancy = r.blocks_per_multiprocessor * (r.threads / 32.0) /
                                 std::max(1, r.warps_per_multiprocessor);
        table.rows.push_back({std::string(to_text(variant)),
                              std::string(all[static_cast<std::size_t>(i)].name),
                              static_cast<double>(r.threads), static_cast<double>(r.registers),
                              static_cast<double>(r.local_bytes),
                              static_cast<double>(r.dynamic_shared_bytes + r.static_shared_bytes),
                              static_cast<double>(r.blocks_per_multiprocessor), occupancy});
        if (i != best_[variant]) continue;
        const std::string detail(all[static_cast<std::size_t>(i)].name);
        const std::string_view name = to_text(variant);
        auto& out = report_.measurements;
        out.push_back(derived("registers_per_thread", name, r.registers, "registers", detail));
        out.push_back(derived("blocks_per_multiprocessor", name, r.blocks_per_multiprocessor,
                              "blocks", detail));
        out.push_back(derived("occupancy_limit", name, occupancy, "", detail));
      }
    }
    report_.tables.push_back(std::move(table));
  }

  struct Counter {
    const char* id;
    const char* label;
    const char* unit;
    std::vector<std::string> metrics;  ///< added up
    double scale;
    int decimals;
  };

  /// What the hardware counts during one launch of each rung's best configuration.
  void add_counters() {
    if (!device_.counters().available) return;
    const Counter counters[] = {{"dram_bytes",
                                 "DRAM traffic",
                                 "MB",
                                 {simt::metric::kDramBytesRead, simt::metric::kDramBytesWritten},
                                 1e-6,
                                 0},
                                {"bank_conflicts",
                                 "shared bank conflicts",
                                 "million",
                                 {simt::metric::kSharedBankConflicts},
                                 1e-6,
                                 2},
                                {"tensor_pipe",
                                 "tensor pipe active",
                                 "%",
                                 {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"},
                                 1,
                                 1},
                                {"achieved_occupancy",
                                 "achieved occupancy",
                                 "%",
                                 {"sm__warps_active.avg.pct_of_peak_sustained_active"},
                                 1,
                                 1}};
    lab::Table table{"counters",
                     fmt::format("Hardware counters at {0}³, one launch", kCountedSize),
                     {{"rung", "rung", "", -1}},
                     {}};
    for (const Counter& c : counters) table.columns.push_back({c.id, c.label, c.unit, c.decimals});
    Problem problem(device_, {kCountedSize, kCountedSize, kCountedSize});
    for (const Variant variant : rungs_) {
      tell(0.9, fmt::format("counting {}", to_text(variant)));
      const Runner runner = rung_runner(device_, kernels_, variant, best_[variant]);
      std::vector<lab::Cell> row = {runner.label};
      for (const Counter& counter : counters)
        row.push_back(count(counter, variant, runner, problem));
      table.rows.push_back(std::move(row));
    }
    report_.tables.push_back(std::move(table));
  }

  lab::Cell count(const Counter& counter, Variant variant, const Runner& runner, Problem& problem) {
    double value = 0;
    try {
      for (const auto& [name, counted] :
           simt::count(device_, counter.metrics, [&] { runner.launch(problem); })) {
        value += counted * counter.scale;
      }
    } catch (const Cancelled&) {
      throw;
    } catch (const Error&) {
      return {};  // a counter that this chip does not have
    }
    lab::Measurement m = derived(counter.id, runner.label, value, counter.unit,
                                 fmt::format("{}³, {}", kCountedSize, runner.configuration));
    m.provenance = lab::Provenance::counted;
    report_.measurements.push_back(m);
    if (std::string_view(counter.id) == "dram_bytes") {
      dram_bytes_[variant] = value / counter.scale;
    }
    return value;
  }

  void add_roofline() {
    std::vector<RooflinePoint> points;
    for (const Result& r : results_) {
      if (!r.variant) continue;
      const GemmShape shape{r.size, r.size, r.size};
      const int bytes = r.runner.tensor_core ? 2 : 4;
      points.push_back({fmt::format("{} {}³", r.runner.label, r.size),
                        flops_of(shape) / ideal_bytes(shape, bytes), r.tflops.median,
                        lab::Provenance::measured,
                        fmt::format("ideal: {}·(m·k + k·n) + 4·m·n, each matrix once", bytes)});
      const auto counted = dram_bytes_.find(*r.variant);
      if (r.size != kCountedSize || counted == dram_bytes_.end() || counted->second <= 0) continue;
      points.push_back({fmt::format("{} {}³, counted bytes", r.runner.label, r.size),
                        flops_of(shape) / counted->second, r.tflops.median,
                        lab::Provenance::measured, "DRAM bytes that the hardware counted"});
    }
    const lab::Measurement* bf16 = report_.measurement("library_bf16", library_.name);
    const lab::Measurement* fp32 = report_.measurement("library_fp32", library_.name);
    const double roof = bf16 != nullptr ? bf16->value : fp32 != nullptr ? fp32->value : 0;
    if (roof > 0) {
      for (RooflinePoint& point : attention_points(copy_tb_s_, roof)) {
        points.push_back(std::move(point));
      }
    }
    report_.tables.push_back(roofline_table(points));
    add_datasheet();
  }

  /// The datasheet's lines, for the one GPU whose datasheet this is.
  void add_datasheet() {
    if (device_.info().name.find("H200") == std::string::npos) return;
    const char* source = "NVIDIA H200 SXM datasheet, dense";
    auto& out = report_.measurements;
    out.push_back(derived("datasheet_bandwidth", "", 4800, "GB/s", source));
    out.push_back(derived("datasheet_fp32", "", 67, "TFLOP/s", source));
    out.push_back(derived("datasheet_bf16", "", 989, "TFLOP/s", source));
  }

  simt::Device& device_;
  const Kernels& kernels_;
  lab::Progress& progress_;
  lab::Report& report_;
  LibraryStatus library_;
  std::vector<Variant> rungs_;
  std::vector<Result> results_;
  std::map<Variant, double> seconds_at_first_;
  std::map<Variant, int> best_;
  std::map<Variant, double> dram_bytes_;
  double copy_tb_s_ = 0;
  lab::Table configurations_{"configurations",
                             "Every compiled configuration (fewer samples)",
                             {{"rung", "rung", "", -1},
                              {"configuration", "configuration", "", -1},
                              {"size", "M = N = K", "", 0},
                              {"tflops", "rate", "TFLOP/s", 2},
                              {"fraction", "of cuBLAS", "", 3}},
                             {}};
};

std::string summary_of(const lab::Report& report, const LibraryStatus& library) {
  const lab::Measurement* top = report.measurement("gemm_rate", to_text(Variant::warp_tile));
  const lab::Measurement* tensor = report.measurement("gemm_rate", to_text(Variant::tensor_core));
  std::string text =
      fmt::format("On {} the top FP32 rung reaches {:.1f} TFLOP/s", report.device.name, top->value);
  const auto fraction = [&](Variant variant) {
    const auto* m = report.measurement("fraction_of_cublas", to_text(variant));
    return m != nullptr ? fmt::format(" ({:.0f} % of cuBLAS)", 100 * m->value) : std::string();
  };
  text += fraction(Variant::warp_tile);
  if (tensor != nullptr) {
    text += fmt::format(" and tensor-core {:.0f} TFLOP/s{}", tensor->value,
                        fraction(Variant::tensor_core));
  }
  text += fmt::format(" at {}³.", kMainSize);
  if (!library.available) text += " No peer: " + library.reason + ".";
  return text;
}

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress) {
  if (!device.can_time()) {
    throw Error("the ladder can only be timed on a GPU, and " + device.info().name +
                    " runs the kernels under emulation, whose times say nothing about a GPU",
                ExitCode::unavailable);
  }
  lab::Report report;
  report.lesson = kLessonId;
  report.params = knob_table().settings(Params{});
  report.device = device.info();
  report.tables.push_back(ladder_table());
  Bench(device, progress, report).run();
  const auto& kernels = static_cast<const Kernels&>(device.kernels(kLessonId));
  report.summary = summary_of(report, kernels.library(device));
  progress.report(1, "done");
  return report;
}

}  // namespace tilestep::tiling
