#include "kernels/attention/paged_kv/bench/bench.hpp"

#include <fmt/format.h>

#include <optional>

#include "kernels/attention/kv_cache/bench/cache_bench.hpp"
#include "kernels/attention/paged_kv/kernels.hpp"
#include "kernels/base/lab/quick.hpp"

namespace tilestep::paged_kv {
namespace {

using lab::real, lab::whole;
using namespace kv_cache;

class Bench : public CacheBench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes)
      : CacheBench(start, kernels_of(start.device), {.side_settle_ms = sizes.settle_ms}),
        sizes_(sizes) {}

  void run() {
    if (sizes_.quick) lab::leave_out(report, {"prefixes"});
    climb_page_sizes();
    if (!sizes_.quick) climb_prefixes();
    const std::string step = words_of(sizes_.step);
    report.summary =
        fmt::format("{}: read at {}.", step, headline("page_rate", "paged-balanced " + step, 0));
  }

 private:
  /// Points that are timed one after another, each beside reading alone.
  void climb_page_sizes() {
    std::vector<lab::Timed> rows;
    for (const int page_size : sizes_.page_sizes) {
      Step step = sizes_.step;
      step.page_size = page_size;
      BenchProblem problem(device, kernels_, step);
      lab::LadderPlan plan = plan_for(step, true);
      plan.rate_id = "page_rate";
      plan.peers = {reading(problem)};
      plan.peers[0].rate_id.clear();
      plan.rungs = {made("paged-balanced", "page_sizes", problem, {})};
      plan.cells = {{"page_size", lab::Cell(page_size)}};
      keep(rows, climb(plan, 0.1));
    }
    add_table(
        "page_sizes", "Sizes of a page, in shuffled order",
        timed_columns({whole("page_size", "page")}, {real("fraction", "of reading alone", "", 3)}),
        rows);
  }

  void climb_prefixes() {
    std::vector<lab::Timed> rows;
    for (const int prefix : sizes_.prefixes) {
      Step alone = sizes_.step;
      alone.ragged = false;
      Step common = alone;
      common.prefix = prefix;
      BenchProblem copies(device, kernels_, alone), stored_once(device, kernels_, common);
      lab::LadderPlan plan = plan_for(common, true);
      plan.counters = {dram_bytes()};
      const std::string check = "prefixes";
      plan.rungs = {
          made("a copy for each request", check, copies, {}),
          made("stored once, read by each", check, stored_once, {}),
          made("stored once, read once for several", check, stored_once, {.prefix_once = true})};
      plan.rungs[0].cells = {{"cache", lab::Cell(cache_bytes(alone) / 1e6)}};
      for (const std::size_t i : {1, 2}) {
        plan.rungs[i].cells = {{"cache", lab::Cell(cache_bytes(common) / 1e6)}};
      }
      plan.cells = {{"prefix", lab::Cell(prefix)}};
      std::optional<double> first;
      for (lab::Timed& timed : climb(plan, 0.1).rungs) {
        if (!timed.timed()) continue;
        const double time = timed.time_ms.median;
        if (!first) first = time;
        timed.cells["tokens"] = common.batch / time * 1e3;
        timed.cells["speedup"] = *first / time;
        rows.push_back(std::move(timed));
      }
    }
    add_table(
        "prefixes",
        fmt::format("A prefix that all {} requests of {} tokens have in common", sizes_.step.batch,
                    sizes_.step.context),
        {whole("prefix"), lab::Column{"rung", "its pages"}, real("cache", "cache held", "MB", 0),
         real("dram", "DRAM", "MB", 0), lab::Column{"time", "time"},
         real("tokens", "tokens of a layer", "1/s", 0), real("speedup", "of copies", "", 2)},
        rows);
  }

  const BenchSizes& sizes_;
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  return lab::run_bench<Bench>(device, progress, sizes);
}

}  // namespace tilestep::paged_kv
