#include "kernels/experts/moe_routing/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "kernels/base/simt/counters.hpp"
#include "kernels/experts/moe_routing/bench_parts.hpp"

// What is timed: y = W · x of random tokens, each for one expert, in the order of the experts;
// the counts are made on the host. Every scheme and cuBLAS called once for each expert run on the
// same routing in one run, each after more than half a second of itself, so that the clock is the
// one that the load leaves. A rate counts useful FLOPs alone: 2 · tokens · hidden · width. Every
// configuration's result is compared with double before its time counts.

namespace tilestep::moe_routing {
namespace {

constexpr double kMainSkew = 1;
constexpr Scheme kAllSchemes[] = {Scheme::padded_to_capacity, Scheme::tile_padded, Scheme::packed};

constexpr int kSamples = 30;
constexpr double kSettleMs = 600;
/// To choose among configurations, the clock need not have settled.
constexpr int kFewSamples = 10;
constexpr double kShortSettleMs = 40;
constexpr double kMostSeconds = 3;
/// Of the device's memory a layout may take so much.
constexpr double kMostMemory = 0.8;
constexpr std::size_t kMostGanttRows = 300;  // of a scheme

struct RoutingCase {
  Routing routing;
  double skew;  ///< of `skewed`, else 0

  std::string name() const {
    return routing == Routing::skewed ? fmt::format("{} {:g}", to_text(routing), skew)
                                      : std::string(to_text(routing));
  }
  /// One of the two that the lesson's headline compares.
  bool is_main() const {
    return routing == Routing::balanced || (routing == Routing::skewed && skew == kMainSkew);
  }
};
constexpr RoutingCase kRoutingCases[] = {{Routing::balanced, 0},
                                         {Routing::skewed, 0.5},
                                         {Routing::skewed, kMainSkew},
                                         {Routing::skewed, 1.5},
                                         {Routing::one_hot, 0}};

std::string shape_of(const BenchSize& size, int experts) {
  return fmt::format("{} tokens, {} experts of {} x {}", size.tokens, experts, size.width,
                     size.hidden);
}

/// "packed, skewed 1"; the number of experts where it is not the headline's.
std::string variant_of(const BenchSize& size, Scheme scheme, const RoutingCase& routing,
                       int experts) {
  std::string name = fmt::format("{}, {}", to_text(scheme), routing.name());
  if (experts != size.experts[0]) name += fmt::format(", {} experts", experts);
  return name;
}

class Bench {
 public:
  Bench(simt::Device& device, lab::Progress& progress, const BenchSize& size, lab::Report& report)
      : size_(size),
        device_(device),
        kernels_(static_cast<const Kernels&>(device.kernels(kLessonId))),
        progress_(progress),
        report_(report),
        library_(kernels_.library(device)) {
    const int capability = device.info().compute_capability;
    if (capability != 0 && capability < 80) {
      throw Error(fmt::format("the grouped product needs BF16 tensor cores, compute capability 8.0 "
                              "or higher; {} has {}.{}",
                              device.info().name, capability / 10, capability % 10),
                  ExitCode::unavailable);
    }
    const auto all = kernels_.configurations();
    for (int i = 0; i < static_cast<int>(all.size()); ++i) {
      if (!all[static_cast<std::size_t>(i)].hopper || capability == 90) usable_.push_back(i);
    }
  }

  void run() {
    for (const int experts : size_.experts) {
      tell(fmt::format("making {} experts", experts));
      const GroupedProblem problem(device_, size_.tokens, experts, size_.hidden, size_.width);
      for (const RoutingCase& routing : kRoutingCases) time_routing(problem, routing);
      if (experts != size_.experts[0]) continue;
      for (const RoutingCase& routing : kRoutingCases) {
        if (routing.is_main()) count_and_record(problem, routing);
      }
    }
    add_checks();
    add_ladder();
    add_skew_keeps();
    report_.tables.push_back(std::move(rates_));
    report_.tables.push_back(std::move(configurations_));
    report_.tables.push_back(std::move(gantt_));
    if (!counters_.rows.empty()) report_.tables.push_back(std::move(counters_));
  }

 private:
  struct Chosen {
    int configuration = 0;
    double ms = INFINITY;
  };

  void tell(const std::string& note) {
    const auto steps = size_.experts.size() * (1 + std::size(kRoutingCases) * (1 + kSchemes));
    progress_.report(std::min(0.99, told_++ / static_cast<double>(steps)), note);
    progress_.check();
  }
  const Configuration& configuration(int number) const {
    return kernels_.configurations()[static_cast<std::size_t>(number)];
  }

  /// Under load the clock falls until power and heat have settled: what is timed comes after that.
  lab::Spread time(const std::function<void()>& work, int samples, double settle_ms) {
    simt::TimingPlan plan;
    plan.warmups = 1;
    plan.samples = 1;
    const double once_ms = device_.time_ms(work, plan).front();
    plan.samples = samples;
    plan.warmups = std::clamp(static_cast<int>(settle_ms / once_ms), 1, 2000);
    plan.max_seconds = kMostSeconds;
    return lab::spread_of(device_.time_ms(work, plan));
  }
  double useful_flops() const { return 2.0 * size_.tokens * size_.hidden * size_.width; }
  lab::Spread tflops_of(const lab::Spread& time_ms) const {
    return lab::rate_of(time_ms, useful_flops() * 1e-3);
  }
  std::function<void()> work_of(int configuration, LaidOut& laid_out) {
    return [this, configuration, &laid_out] {
      kernels_.grouped_gemm(device_, configuration, laid_out.shape(), laid_out.arrays(), {});
    };
  }

  void time_routing(const GroupedProblem& problem, const RoutingCase& routing) {
    const auto counts = top1_counts(routing.routing, routing.skew, size_.tokens, problem.experts);
    tell(fmt::format("timing cuBLAS, {} experts, {}", problem.experts, routing.name()));
    const std::optional<lab::Spread> peer = time_library(problem, routing, counts);
    for (const Scheme scheme : kAllSchemes) {
      tell(fmt::format("timing {}, {} experts, {}", to_text(scheme), problem.experts,
                       routing.name()));
      time_scheme(problem, routing, counts, scheme, peer);
    }
  }

  std::optional<lab::Spread> time_library(const GroupedProblem& problem, const RoutingCase& routing,
                                          const std::vector<int>& counts) {
    if (!library_.available) return std::nullopt;
    LaidOut laid_out(device_, problem, layout_of(counts, Scheme::packed, 1), 0);
    const auto work = [&] {
      kernels_.library_loop(device_, laid_out.shape(), laid_out.arrays(),
                            laid_out.layout().first_slot, laid_out.layout().kept);
    };
    worst_["cuBLAS loop"].add(error_of(device_, problem, laid_out, true, work));
    const lab::Spread tflops = tflops_of(time(work, kSamples, kSettleMs));
    // The headline's peer; the others are in the table.
    if (problem.experts == size_.experts[0] && routing.routing == Routing::balanced) {
      report_.measurements.push_back(lab::measured(
          "library_bf16", library_.name, tflops, "TFLOP/s",
          shape_of(size_, problem.experts) + ", once for each expert, plain calls on one stream, " +
              routing.name()));
    }
    return tflops;
  }

  /// Finds the best configuration, then measures it anew: the samples that chose it do not count.
  void time_scheme(const GroupedProblem& problem, const RoutingCase& routing,
                   const std::vector<int>& counts, Scheme scheme,
                   const std::optional<lab::Spread>& peer) {
    const Chosen best = choose(problem, routing, counts, scheme);
    std::vector<lab::Cell> row = {std::string(to_text(scheme)),
                                  std::string(to_text(routing.routing)),
                                  {},
                                  static_cast<double>(problem.experts)};
    if (routing.routing == Routing::skewed) row[2] = routing.skew;
    row.resize(rates_.columns.size());
    if (peer) row[8] = peer->median;
    if (std::isfinite(best.ms)) {
      const Configuration& tile = configuration(best.configuration);
      LaidOut laid_out(device_, problem, layout_of(counts, scheme, tile.tile_tokens),
                       tile.tile_width);
      const lab::Spread tflops =
          tflops_of(time(work_of(best.configuration, laid_out), kSamples, kSettleMs));
      const GroupedLayout& layout = laid_out.layout();
      row[4] = tflops.median;
      row[5] = tflops.p10;
      row[6] = tflops.p90;
      row[7] = static_cast<double>(layout.tiles()) * layout.tile;
      if (peer) row[9] = tflops.median / peer->median;
      row[10] = std::string(tile.name);
      add_measurements(variant_of(size_, scheme, routing, problem.experts), problem.experts, tile,
                       tflops, peer);
      if (problem.experts == size_.experts[0])
        best_[variant_of(size_, scheme, routing, problem.experts)] = best;
    }
    rates_.rows.push_back(std::move(row));
  }

  /// No time where no configuration's layout fits in memory.
  Chosen choose(const GroupedProblem& problem, const RoutingCase& routing,
                const std::vector<int>& counts, Scheme scheme) {
    Chosen best;
    for (const int number : usable_) {
      const Configuration& tile = configuration(number);
      GroupedLayout layout = layout_of(counts, scheme, tile.tile_tokens);
      const double bytes = LaidOut::bytes_of(problem, layout) +
                           static_cast<double>(problem.weights.bytes() + problem.x.bytes());
      if (bytes > kMostMemory * static_cast<double>(device_.info().memory_bytes)) continue;
      LaidOut laid_out(device_, problem, std::move(layout), tile.tile_width);
      const auto work = work_of(number, laid_out);
      worst_[std::string(to_text(scheme))].add(error_of(device_, problem, laid_out, false, work));
      const double ms = time(work, kFewSamples, kShortSettleMs).median;
      if (ms < best.ms) best = {number, ms};
      configurations_.rows.push_back({std::string(to_text(scheme)), routing.name(),
                                      static_cast<double>(problem.experts), std::string(tile.name),
                                      useful_flops() / ms * 1e-9});
    }
    return best;
  }

  void add_measurements(const std::string& variant, int experts, const Configuration& tile,
                        const lab::Spread& tflops, const std::optional<lab::Spread>& peer) {
    report_.measurements.push_back(lab::measured(
        "moe_rate", variant, tflops, "TFLOP/s",
        fmt::format("{}, useful FLOPs alone, {}", shape_of(size_, experts), tile.name)));
    medians_[variant] = tflops.median;
    if (!peer) return;
    report_.measurements.push_back(
        lab::derived("fraction_of_cublas", variant, tflops.median / peer->median, "",
                     fmt::format("{}: {:.1f} / {:.1f} TFLOP/s of the same run",
                                 shape_of(size_, experts), tflops.median, peer->median)));
  }

  // ---- a recorded and a counted run, beside the timed ones ----

  void count_and_record(const GroupedProblem& problem, const RoutingCase& routing) {
    const auto counts = top1_counts(routing.routing, routing.skew, size_.tokens, problem.experts);
    for (const Scheme scheme : kAllSchemes) {
      const std::string variant = variant_of(size_, scheme, routing, problem.experts);
      const auto best = best_.find(variant);
      if (best == best_.end()) continue;
      const int number = best->second.configuration;
      LaidOut laid_out(device_, problem,
                       layout_of(counts, scheme, configuration(number).tile_tokens),
                       configuration(number).tile_width);
      record(variant, scheme, routing, number, laid_out);
      count(variant, scheme, routing, work_of(number, laid_out));
    }
  }

  void record(const std::string& variant, Scheme scheme, const RoutingCase& routing, int number,
              LaidOut& laid_out) {
    const std::vector<RanTile> tiles = record_tiles(device_, kernels_, number, laid_out);
    lab::Measurement busy = lab::derived(
        "busy_share", variant, 100 * busy_share(tiles), "%",
        "time with a tile of all the time of the blocks, from the first tile's begin to the last "
        "one's end, in one recorded run");
    busy.provenance = lab::Provenance::traced;
    report_.measurements.push_back(std::move(busy));
    if (routing.routing != Routing::skewed || scheme == Scheme::tile_padded) return;
    for (const RanTile& run : runs_of_experts(tiles, kMostGanttRows)) {
      gantt_.rows.push_back({std::string(to_text(scheme)), routing.name(),
                             static_cast<double>(run.lane), static_cast<double>(run.expert),
                             run.begin_us, run.end_us});
    }
  }

  void count(const std::string& variant, Scheme scheme, const RoutingCase& routing,
             const std::function<void()>& work) {
    if (!device_.counters().available) return;
    const lab::Cell pipe =
        counted("tensor_pipe", variant, "%",
                {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"}, work);
    const lab::Cell instructions = counted(
        "tensor_instructions", variant, "instructions",
        {"sm__inst_executed_pipe_tensor.sum", "sm__inst_executed_pipe_tensor_op_hmma.sum"}, work);
    counters_.rows.push_back({std::string(to_text(scheme)), routing.name(), pipe, instructions});
  }

  /// The first of the metrics that the chip has; nothing if it has none.
  lab::Cell counted(const char* id, const std::string& variant, const char* unit,
                    const std::vector<std::string>& metrics, const std::function<void()>& work) {
    for (const std::string& metric : metrics) {
      try {
        const double value = simt::count(device_, {metric}, work).at(metric);
        lab::Measurement m = lab::derived(id, variant, value, unit, metric + ", one launch");
        m.provenance = lab::Provenance::counted;
        report_.measurements.push_back(std::move(m));
        return value;
      } catch (const Cancelled&) {
        throw;
      } catch (const Error&) {
        continue;  // a counter that this chip does not have
      }
    }
    return {};
  }

  // ---- what the runs add up to ----

  void add_checks() {
    for (const auto& [who, worst] : worst_) {
      std::string id = "grouped_" + who;
      std::replace(id.begin(), id.end(), ' ', '_');
      const bool library = who == "cuBLAS loop";
      report_.checks.push_back(
          {id, worst.ok, worst.error, worst.bound,
           fmt::format("Against double on every routing{}: of every expert its first and last row "
                       "and some between, none of their elements NaN, six of each compared; "
                       "tolerance: what rounding can explain{}.",
                       library ? "" : " and configuration",
                       library ? " in any order of additions"
                               : " in the order of the kernel's additions")});
    }
  }

  void add_ladder() {
    lab::Table table{"ladder",
                     fmt::format("The schemes on {}, random data", device_.info().name),
                     {{"rung", "scheme and routing", "", -1}, {"why", "what it does", "", -1}},
                     {}};
    for (const RoutingCase& routing : kRoutingCases) {
      if (!routing.is_main()) continue;
      for (const Scheme scheme : kAllSchemes) {
        table.rows.push_back({variant_of(size_, scheme, routing, size_.experts[0]),
                              std::string(what_it_does(scheme))});
      }
    }
    report_.tables.push_back(std::move(table));
  }

  /// What is left of a scheme's balanced rate when the routing is not balanced.
  void add_skew_keeps() {
    for (const int experts : size_.experts) {
      for (const Scheme scheme : kAllSchemes) {
        const auto balanced = medians_.find(variant_of(size_, scheme, kRoutingCases[0], experts));
        if (balanced == medians_.end()) continue;
        for (const RoutingCase& routing : kRoutingCases) {
          const std::string variant = variant_of(size_, scheme, routing, experts);
          const auto skewed = medians_.find(variant);
          if (routing.routing == Routing::balanced || skewed == medians_.end()) continue;
          report_.measurements.push_back(
              lab::derived("skew_keeps", variant, skewed->second / balanced->second, "",
                           fmt::format("{:.1f} / {:.1f} TFLOP/s, the scheme's own balanced rate",
                                       skewed->second, balanced->second)));
        }
      }
    }
  }

  const BenchSize size_;
  simt::Device& device_;
  const Kernels& kernels_;
  lab::Progress& progress_;
  lab::Report& report_;
  LibraryStatus library_;
  std::vector<int> usable_;
  int told_ = 0;
  std::map<std::string, Worst> worst_;
  std::map<std::string, double> medians_;
  std::map<std::string, Chosen> best_;
  lab::Table rates_{"moe_rate",
                    fmt::format("Useful TFLOP/s of {} tokens, experts of {} x {}, top-1",
                                size_.tokens, size_.width, size_.hidden),
                    {{"scheme", "scheme", "", -1},
                     {"routing", "routing", "", -1},
                     {"skew", "skew", "", 1},
                     {"experts", "experts", "", 0},
                     {"tflops", "useful", "TFLOP/s", 1},
                     {"p10", "p10", "TFLOP/s", 1},
                     {"p90", "p90", "TFLOP/s", 1},
                     {"slots", "slots run", "", 0},
                     {"cublas_tflops", "cuBLAS loop", "TFLOP/s", 1},
                     {"of_cublas", "of cuBLAS loop", "", 3},
                     {"configuration", "configuration", "", -1}},
                    {}};
  lab::Table configurations_{"configurations",
                             "Every compiled configuration (fewer samples)",
                             {{"scheme", "scheme", "", -1},
                              {"routing", "routing", "", -1},
                              {"experts", "experts", "", 0},
                              {"configuration", "configuration", "", -1},
                              {"tflops", "useful", "TFLOP/s", 1}},
                             {}};
  lab::Table gantt_{"gantt",
                    fmt::format("When the blocks ran which expert, {} experts, some of the blocks",
                                size_.experts[0]),
                    {{"scheme", "scheme", "", -1},
                     {"routing", "routing", "", -1},
                     {"block", "block", "", 0},
                     {"expert", "expert", "", 0},
                     {"begin_us", "begin", "µs", 1},
                     {"end_us", "end", "µs", 1}},
                    {}};
  lab::Table counters_{"moe_counters",
                       fmt::format("Hardware counters, {} experts, one launch", size_.experts[0]),
                       {{"scheme", "scheme", "", -1},
                        {"routing", "routing", "", -1},
                        {"tensor_pipe", "tensor pipe active", "%", 1},
                        {"tensor_instructions", "tensor instructions", "", 0}},
                       {}};
};

std::string summary_of(const lab::Report& report, const LibraryStatus& library,
                       const BenchSize& size) {
  const RoutingCase& balanced = kRoutingCases[0];
  const RoutingCase skewed{Routing::skewed, kMainSkew};
  std::string text =
      fmt::format("On {}, {}: ", report.device.name, shape_of(size, size.experts[0]));
  for (const Scheme scheme : {Scheme::packed, Scheme::padded_to_capacity}) {
    const auto* rate =
        report.measurement("moe_rate", variant_of(size, scheme, balanced, size.experts[0]));
    const auto* keeps =
        report.measurement("skew_keeps", variant_of(size, scheme, skewed, size.experts[0]));
    if (rate == nullptr || keeps == nullptr) continue;
    if (scheme != Scheme::packed) text += "; ";
    text += fmt::format(
        "{} reaches {:.0f} useful TFLOP/s when balanced and keeps {:.0f} % of it "
        "when skewed (exponent {:g})",
        to_text(scheme), rate->value, 100 * keeps->value, kMainSkew);
  }
  if (!library.available) return text + ". No peer: " + library.reason + ".";
  return text + ".";
}

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSize& size) {
  if (!device.can_time()) {
    throw Error("the grouped product can only be timed on a GPU, and " + device.info().name +
                    " runs the kernels under emulation, whose times say nothing about a GPU",
                ExitCode::unavailable);
  }
  lab::Report report;
  report.lesson = kLessonId;
  report.params = knob_table().settings(Params{});
  report.device = device.info();
  Bench(device, progress, size, report).run();
  const auto& kernels = static_cast<const Kernels&>(device.kernels(kLessonId));
  report.summary = summary_of(report, kernels.library(device), size);
  progress.report(1, "done");
  return report;
}

}  // namespace tilestep::moe_routing
