#include "kernels/experts/moe_routing/bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/lab/quick.hpp"
#include "kernels/base/simt/counters.hpp"
#include "kernels/experts/moe_routing/bench/problem.hpp"

// The timed problem: y = W · x of random tokens, each for one expert, in the order of the experts;
// the counts are made on the host. Every scheme and cuBLAS called once per expert run on the same
// routing in one run, each after more than half a second of its own load, so that the clock has
// settled to it. A rate counts only useful FLOPs: 2 · tokens · hidden · width. Every
// configuration's result is compared with double before its time counts.

namespace tilestep::moe_routing {
namespace {

using lab::column, lab::real, lab::whole;

constexpr double kMainSkew = 1;
constexpr auto kAllSchemes = all_of<Scheme>();
/// The part of the device's memory that a layout may take.
constexpr double kMostMemory = 0.8;
constexpr std::size_t kMostGanttRows = 300;  // of a scheme

struct RoutingCase {
  Routing routing;
  double skew;  ///< of `skewed`, else 0

  std::string name() const {
    return routing == Routing::skewed ? fmt::format("{} {:g}", name_of(routing), skew)
                                      : std::string(name_of(routing));
  }
  /// Whether it is one of the two that the lesson's headline compares.
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
  std::string name = fmt::format("{}, {}", name_of(scheme), routing.name());
  if (experts != size.experts[0]) name += fmt::format(", {} experts", experts);
  return name;
}

std::vector<lab::Counter> counters() {
  return {{"tensor_pipe", "%", {{simt::metric::kTensorPipe}}},
          {"tensor_instructions",
           "instructions",
           {{simt::metric::kTensorInstructions}, {"sm__inst_executed_pipe_tensor_op_hmma.sum"}}}};
}

std::string detail_of_check(bool library) {
  return fmt::format(
      "Against double on every routing{}: of every expert its first and last row and some between, "
      "none of their elements NaN, six of each compared; tolerance: what rounding can explain{}.",
      library ? "" : " and configuration",
      library ? " in any order of additions" : " in the order of the kernel's additions");
}

class Bench : public lab::Bench {
 public:
  Bench(const lab::Bench& start, const BenchSize& size)
      : lab::Bench(start),
        size_(size),
        kernels_(kernels_of(device)),
        library_(kernels_.library(device)) {
    simt::require_capability(device.info(), "the grouped product on BF16 tensor cores", 80);
    const auto all = kernels_.configurations();
    for (int i = 0; i < static_cast<int>(all.size()); ++i) {
      const Configuration& one = all[static_cast<std::size_t>(i)];
      if (one.hopper && !runs_wgmma(device.info())) continue;
      if (size.width % one.tile_width == 0) usable_.push_back(i);
    }
  }

  void run() {
    if (size_.quick) {
      lab::leave_out(report, {fmt::format("{} experts", size_.experts[1]), "other skews",
                              "hardware counters"});
    }
    std::vector<RoutingCase> routings;
    std::copy_if(std::begin(kRoutingCases), std::end(kRoutingCases), std::back_inserter(routings),
                 [&](const RoutingCase& routing) { return !size_.quick || routing.is_main(); });
    const std::size_t sizes = size_.quick ? 1 : size_.experts.size();
    const double steps = static_cast<double>(sizes * routings.size());
    for (std::size_t i = 0; i < sizes; ++i) {
      const int experts = size_.experts[i];
      progress.report(done, fmt::format("making {} experts", experts));
      const GroupedProblem problem(device, size_.tokens, experts, size_.hidden, size_.width);
      for (const RoutingCase& routing : routings) climb_case(problem, routing, 1 / steps);
    }
    add_ladder();
    add_skew_keeps();
    add_tables();
    report.summary = summary();
  }

 private:
  const Configuration& configuration(int number) const {
    return kernels_.configurations()[static_cast<std::size_t>(number)];
  }
  /// Of the headline, which is counted and recorded as well.
  bool is_main(const GroupedProblem& problem, const RoutingCase& routing) const {
    return problem.experts == size_.experts[0] && routing.is_main();
  }

  // ---- what runs ----

  lab::Runnable runnable(const GroupedProblem& problem, GroupedLayout layout, int number) {
    auto laid_out = std::make_shared<LaidOut>(device, problem, std::move(layout),
                                              configuration(number).tile_width);
    const auto launch = [this, number, laid_out] {
      kernels_.grouped_gemm(device, number, laid_out->shape(), laid_out->arrays(), {});
    };
    return moe_routing::runnable(device, problem, laid_out, numeric::Adding::tensor_core, launch);
  }

  /// The configurations whose layouts fit in memory.
  lab::Rung rung(const GroupedProblem& problem, const RoutingCase& routing,
                 const std::vector<int>& counts, Scheme scheme) {
    lab::Rung rung =
        lab::rung_of(scheme, fmt::format("grouped_{}", name_of(scheme)), detail_of_check(false));
    rung.variant = variant_of(size_, scheme, routing, problem.experts);
    rung.cells = {{"scheme", rung.name}};
    for (const int number : usable_) {
      const Configuration& tile = configuration(number);
      const GroupedLayout layout = layout_of(counts, scheme, tile.tile_tokens);
      const double bytes = LaidOut::bytes_of(problem, layout) +
                           static_cast<double>(problem.weights.bytes() + problem.x.bytes());
      if (bytes > kMostMemory * static_cast<double>(device.info().memory_bytes)) continue;
      rung.configurations.push_back(
          {.name = std::string(tile.name),
           .make = [this, &problem, layout, number] { return runnable(problem, layout, number); },
           .cells = {{"number", number}, {"slots", layout.tiles() * layout.tile}}});
    }
    return rung;
  }

  lab::Rung library(const GroupedProblem& problem, const RoutingCase& routing,
                    const std::vector<int>& counts) {
    const auto make = [this, &problem, &counts]() -> lab::Runnable {
      auto laid_out =
          std::make_shared<LaidOut>(device, problem, layout_of(counts, Scheme::packed, 1), 0);
      const auto launch = [this, laid_out] {
        kernels_.library_loop(device, laid_out->shape(), laid_out->arrays(),
                              laid_out->layout().first_slot, laid_out->layout().kept);
      };
      return moe_routing::runnable(device, problem, laid_out,
                                   numeric::Adding::any_order_tensor_core, launch);
    };
    // The headline's peer has a measurement of its own; the others are in the table.
    const bool headline =
        problem.experts == size_.experts[0] && routing.routing == Routing::balanced;
    return {.name = "cuBLAS",
            .why = "the peer",
            .configurations = {{.name = "once for each expert, plain calls on one stream, " +
                                        routing.name(),
                                .make = make}},
            .check = "grouped_cuBLAS_loop",
            .check_detail = detail_of_check(true),
            .variant = library_.name,
            .rate_id = headline ? "library_bf16" : ""};
  }

  void climb_case(const GroupedProblem& problem, const RoutingCase& routing, double share) {
    const auto counts = top1_counts(routing.routing, routing.skew, size_.tokens, problem.experts);
    lab::LadderPlan plan;
    plan.rate = lab::Rate::tflop_per_s;
    plan.work = {.bytes_read = static_cast<double>(problem.weights.bytes() + problem.x.bytes()),
                 .bytes_written = 4.0 * size_.tokens * size_.width,
                 .flops = 2.0 * size_.tokens * size_.hidden * size_.width};
    plan.shape = shape_of(size_, problem.experts);
    plan.note = "useful FLOPs alone";
    plan.cells = {{"routing", name_of(routing.routing)}, {"experts", problem.experts}};
    if (routing.routing == Routing::skewed) plan.cells["skew"] = routing.skew;
    plan.rate_id = "moe_rate";
    plan.fraction_id = "fraction_of_cublas";
    if (library_.available) plan.peers = {library(problem, routing, counts)};
    for (const Scheme scheme : kAllSchemes) {
      plan.rungs.push_back(rung(problem, routing, counts, scheme));
    }
    if (is_main(problem, routing)) plan.counters = counters();
    lab::Climb climb = this->climb(plan, share);
    for (lab::Timed& timed : climb.rungs) {
      timed.cells["cublas_tflops"] = timed.number("peer");
      timed.cells["of_cublas"] = timed.number("fraction");
    }
    rates_.insert(rates_.end(), climb.rungs.begin(), climb.rungs.end());
    // From here on a routing has its full name: "skewed 1".
    for (auto* rows : {&climb.rungs, &climb.configurations}) {
      for (lab::Timed& timed : *rows) timed.cells["routing"] = routing.name();
    }
    lab::append(configurations_, std::move(climb.configurations));
    if (!is_main(problem, routing)) return;
    for (std::size_t i = 0; i < climb.rungs.size(); ++i) {
      if (climb.rungs[i].timed()) record(problem, routing, counts, kAllSchemes[i], climb.rungs[i]);
    }
    lab::append(counted_, std::move(climb.rungs));
  }

  /// A recorded run of the best configuration, beside the timed ones.
  void record(const GroupedProblem& problem, const RoutingCase& routing,
              const std::vector<int>& counts, Scheme scheme, const lab::Timed& timed) {
    const int number = static_cast<int>(timed.number("number").value());
    LaidOut laid_out(device, problem, layout_of(counts, scheme, configuration(number).tile_tokens),
                     configuration(number).tile_width);
    const std::vector<RanTile> tiles = record_tiles(device, kernels_, number, laid_out);
    report.add(lab::traced(
        "busy_share", timed.variant, 100 * busy_share(tiles), "%",
        "time with a tile of all the time of the blocks, from the first tile's begin to the last "
        "one's end, in one recorded run"));
    if (routing.routing != Routing::skewed || scheme == Scheme::tile_padded) return;
    for (const RanTile& run : runs_of_experts(tiles, kMostGanttRows)) {
      gantt_.add({scheme, routing.name(), run.lane, run.expert, run.begin_us, run.end_us});
    }
  }

  // ---- what the runs add up to ----

  void add_ladder() {
    lab::Table table{"ladder",
                     fmt::format("The schemes on {}, random data", device.info().name),
                     {column("rung", "scheme and routing"), column("why", "what it does")}};
    for (const RoutingCase& routing : kRoutingCases) {
      if (!routing.is_main()) continue;
      for (const Scheme scheme : kAllSchemes) {
        table.add({variant_of(size_, scheme, routing, size_.experts[0]), reason_of(scheme)});
      }
    }
    report.add(std::move(table));
  }

  /// The share of a scheme's balanced rate that remains when the routing is not balanced.
  void add_skew_keeps() {
    for (const int experts : size_.experts) {
      for (const Scheme scheme : kAllSchemes) {
        const auto rate = [&](const RoutingCase& routing) {
          const auto* m =
              report.measurement("moe_rate", variant_of(size_, scheme, routing, experts));
          return m == nullptr || !m->stable() ? 0 : m->value;
        };
        const double balanced = rate(kRoutingCases[0]);
        for (const RoutingCase& routing : kRoutingCases) {
          const double skewed = rate(routing);
          if (routing.routing == Routing::balanced || balanced == 0 || skewed == 0) continue;
          report.add(lab::derived(
              "skew_keeps", variant_of(size_, scheme, routing, experts), skewed / balanced, "",
              fmt::format("{:.1f} / {:.1f} TFLOP/s, the scheme's own balanced rate", skewed,
                          balanced)));
        }
      }
    }
  }

  void add_tables() {
    const lab::Column useful = real("tflops", "useful", "TFLOP/s", 1);
    add_table("moe_rate",
              fmt::format("Useful TFLOP/s of {} tokens, experts of {} x {}, top-1", size_.tokens,
                          size_.width, size_.hidden),
              {"scheme", "routing", real("skew", "", "", 1), "experts", useful,
               real("p10", "", "TFLOP/s", 1), real("p90", "", "TFLOP/s", 1),
               column("slots", "slots run"), real("cublas_tflops", "cuBLAS loop", "TFLOP/s", 1),
               real("of_cublas", "of cuBLAS loop", "", 3), "configuration"},
              rates_);
    add_table("configurations", "Every compiled configuration (fewer samples)",
              {"scheme", "routing", "experts", "configuration", useful}, configurations_);
    report.add(std::move(gantt_));
    if (size_.quick || !device.counters().available) return;
    add_table("moe_counters",
              fmt::format("Hardware counters, {} experts, one launch", size_.experts[0]),
              {"scheme", "routing", real("tensor_pipe", "tensor pipe active", "%", 1),
               whole("tensor_instructions", "tensor instructions")},
              counted_);
  }

  std::string summary() const {
    const RoutingCase& balanced = kRoutingCases[0];
    const RoutingCase skewed{Routing::skewed, kMainSkew};
    std::string text =
        fmt::format("On {}, {}: ", device.info().name, shape_of(size_, size_.experts[0]));
    for (const Scheme scheme : {Scheme::packed, Scheme::padded_to_capacity}) {
      const auto* rate =
          report.measurement("moe_rate", variant_of(size_, scheme, balanced, size_.experts[0]));
      const auto* keeps =
          report.measurement("skew_keeps", variant_of(size_, scheme, skewed, size_.experts[0]));
      if (rate == nullptr || keeps == nullptr) continue;
      if (scheme != Scheme::packed) text += "; ";
      text += fmt::format(
          "{} reaches {} useful when balanced and keeps {:.0f} % of it when skewed (exponent {:g})",
          name_of(scheme), lab::headline(rate, 0), 100 * keeps->value, kMainSkew);
    }
    if (!library_.available) return text + ". No peer: " + library_.reason + ".";
    return text + ".";
  }

  const BenchSize size_;
  const Kernels& kernels_;
  LibraryStatus library_;
  std::vector<int> usable_;
  std::vector<lab::Timed> rates_, configurations_, counted_;
  lab::Table gantt_{"gantt",
                    fmt::format("When the blocks ran which expert, {} experts, some of the blocks",
                                size_.experts[0]),
                    {"scheme", "routing", whole("block"), whole("expert"),
                     real("begin_us", "begin", "µs", 1), real("end_us", "end", "µs", 1)}};
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSize& size) {
  return lab::run_bench<Bench>(device, progress, size);
}

}  // namespace tilestep::moe_routing
