#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/base/lab/timing.hpp"
#include "kernels/memory/coalescing/bench.hpp"
#include "kernels/memory/coalescing/reference.hpp"
#include "kernels/memory/coalescing/report.hpp"

// What is timed: the lesson's own kernel, one element a thread, over arrays many times any L2.

namespace tilestep::coalescing {
namespace {

using lab::measured;
using lab::rate_of;
using lab::Spread;
using lab::spread_of;

constexpr int kSamples = 25;
constexpr std::int64_t kCheckedElements = 4096;
constexpr std::int64_t kCostElements = 65536;  // enough for every pattern to repeat
constexpr int kStrides[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 40, 48, 56, 64};
constexpr int kOffsets = 32;
constexpr std::array kAccesses = {Access::load, Access::store};

/// What a launch moves, by its pattern's definition.
struct Traffic {
  double useful = 0;  ///< bytes that lanes asked for, on both sides; one place asked for twice by
                      ///< a request counts once
  double moved = 0;   ///< 32 for each sector of each request
  double sectors_per_request = 0;
};
Traffic traffic_of(Params params) {
  const auto elements = static_cast<double>(params.elements);
  params.elements = std::min(params.elements, kCostElements);
  const PatternCost cost = reference_cost(shape_of(params), kCostElements);
  const double scale = elements / static_cast<double>(params.elements);
  const double plain = elements * params.element_bytes();
  return {plain + scale * static_cast<double>(cost.bytes_used),
          plain + scale * static_cast<double>(cost.sectors * kSectorBytes),
          cost.sectors_per_request()};
}

class PatternBench {
 public:
  PatternBench(const Bench& bench, double copy)
      : bench_(bench),
        copy_(copy),
        plain_(bench.device, static_cast<std::size_t>(bench.sizes.access_elements)),
        wide_(bench.device, static_cast<std::size_t>(shape_of(widest()).array_elements)) {
    bench.kernels.fill_random(bench.device, plain_.span(), 3);
    bench.kernels.fill_random(bench.device, wide_.span(), 5);
  }

  void run() {
    std::vector<Params> by_stride;
    for (const int stride : kStrides) {
      by_stride.push_back(params(Pattern::strided, ElementSize::bytes_4));
      by_stride.back().stride = stride;
    }
    sweep("bandwidth_by_stride", "stride", "Useful bandwidth against stride", by_stride,
          &Params::stride);
    std::vector<Params> by_offset;
    for (int offset = 0; offset < kOffsets; ++offset) {
      by_offset.push_back(params(Pattern::offset, ElementSize::bytes_4));
      by_offset.back().offset = offset;
    }
    sweep("bandwidth_by_offset", "offset", "Useful bandwidth against offset", by_offset,
          &Params::offset);
    bench_.progress.report(0.6, "timing every pattern and element size");
    all_patterns();
  }

 private:
  Params widest() const {
    Params p = params(Pattern::strided, ElementSize::bytes_4);
    p.stride = kStrides[std::size(kStrides) - 1];
    return p;
  }

  /// As many bytes a side for every element size.
  Params params(Pattern pattern, ElementSize size) const {
    Params p;
    p.pattern = pattern;
    p.element_size = size;
    p.elements = bench_.sizes.access_elements * 4 / p.element_bytes();
    return p;
  }

  Spread rate(const Params& p, const Traffic& traffic) {
    bench_.progress.check();
    const PatternShape shape = shape_of(p);
    simt::TimingPlan plan;
    plan.samples = kSamples;
    const bool load = p.access == Access::load;
    const auto bytes = [](simt::Buffer<unsigned>& words) {
      return simt::Span<unsigned char>{reinterpret_cast<unsigned char*>(words.span().data),
                                       words.bytes()};
    };
    const auto work = [&] {
      bench_.kernels.access(bench_.device, shape, bytes(load ? wide_ : plain_),
                            bytes(load ? plain_ : wide_));
    };
    return rate_of(spread_of(bench_.device.time_ms(work, plan)), traffic.useful);
  }

  void sweep(const char* id, const char* knob, const char* title, std::vector<Params>& points,
             int Params::*member) {
    lab::Table table{id,
                     fmt::format("{}, {} accesses of 4 bytes", title, bench_.sizes.access_elements),
                     {{knob, knob, "elements", 0},
                      {"load", "load", "GB/s", 0},
                      {"load_p10", "load p10", "GB/s", 0},
                      {"load_p90", "load p90", "GB/s", 0},
                      {"store", "store", "GB/s", 0},
                      {"store_p10", "store p10", "GB/s", 0},
                      {"store_p90", "store p90", "GB/s", 0},
                      {"expected", "expected from the sectors", "GB/s", 0}},
                     {}};
    for (Params& p : points) {
      const Traffic traffic = traffic_of(p);
      std::vector<lab::Cell> row;
      row.emplace_back(static_cast<double>(p.*member));
      for (const Access access : kAccesses) {
        p.access = access;
        const Spread spread = rate(p, traffic);
        for (const double value : {spread.median, spread.p10, spread.p90}) row.emplace_back(value);
      }
      row.emplace_back(copy_ * traffic.useful / traffic.moved);
      table.rows.push_back(std::move(row));
    }
    bench_.report.tables.push_back(std::move(table));
  }

  void all_patterns() {
    lab::Table table{
        "bandwidth_by_pattern",
        fmt::format("Useful bandwidth of every pattern, {} bytes accessed by each launch (stride "
                    "{}, offset {}, {} fields)",
                    4 * bench_.sizes.access_elements, Params{}.stride, Params{}.offset,
                    Params{}.fields),
        {{"pattern", "pattern", "", -1},
         {"element_bytes", "element", "B", 0},
         {"access", "access", "", -1},
         {"bandwidth", "bandwidth", "GB/s", 0},
         {"p10", "p10", "GB/s", 0},
         {"p90", "p90", "GB/s", 0},
         {"expected", "expected from the sectors", "GB/s", 0},
         {"sectors_per_request", "sectors per request", "", 2}},
        {}};
    for (const Pattern pattern : kPatterns) {
      for (const ElementSize size : kElementSizes) {
        Params p = params(pattern, size);
        const Traffic traffic = traffic_of(p);
        for (const Access access : kAccesses) {
          p.access = access;
          const Spread spread = rate(p, traffic);
          table.rows.push_back(
              {std::string(to_text(pattern)), static_cast<double>(p.element_bytes()),
               std::string(to_text(access)), spread.median, spread.p10, spread.p90,
               copy_ * traffic.useful / traffic.moved, traffic.sectors_per_request});
          if (size != ElementSize::bytes_4 || access != Access::load) continue;
          bench_.report.measurements.push_back(
              measured("useful_bandwidth", to_text(pattern), spread, "GB/s",
                       fmt::format("loads, {} elements of 4 bytes", p.elements)));
        }
      }
    }
    bench_.report.tables.push_back(std::move(table));
  }

  const Bench& bench_;
  double copy_;
  simt::Buffer<unsigned> plain_, wide_;
};

/// Correctness comes before any timing: every pattern, size and direction once.
lab::Check check_patterns(const Bench& bench) {
  std::int64_t wrong = 0;
  for (const Pattern pattern : kPatterns) {
    for (const ElementSize size : kElementSizes) {
      for (const Access access : kAccesses) {
        Params p;
        p.pattern = pattern;
        p.element_size = size;
        p.access = access;
        p.elements = kCheckedElements;
        const PatternShape shape = shape_of(p);
        Arrays arrays(bench.device, shape, 1);
        bench.kernels.access(bench.device, shape, arrays.in.span(), arrays.out.span());
        wrong += wrong_elements(shape, shape.elements, arrays.host_in, arrays.out.download(),
                                Arrays::kUntouched);
      }
    }
  }
  return {"patterns_correct", wrong == 0, static_cast<double>(wrong), 0,
          "Wrong elements over every pattern, element size and direction; copying is exact."};
}

// ---- counted beside traced ----------------------------------------------------------------------

struct SweepPoint {
  Params params;
  lab::Cell setting;  ///< of the knob that the pattern has
};

std::vector<SweepPoint> sweep_points() {
  std::vector<SweepPoint> points;
  for (const ElementSize size : kElementSizes) {
    for (const Access access : kAccesses) {
      const auto add = [&](Pattern pattern, int Params::*member, int value) {
        SweepPoint point;
        point.params.pattern = pattern;
        point.params.element_size = size;
        point.params.access = access;
        // All requests are traced, none is left to a guess.
        point.params.elements = std::int64_t{kTracedBlocks} * kThreadsPerBlock;
        if (member != nullptr) {
          point.params.*member = value;
          point.setting = static_cast<double>(value);
        }
        points.push_back(std::move(point));
      };
      for (const Pattern pattern :
           {Pattern::sequential, Pattern::reversed, Pattern::permuted_warp, Pattern::permuted,
            Pattern::broadcast, Pattern::matrix_row, Pattern::matrix_column}) {
        add(pattern, nullptr, 0);
      }
      for (const int stride : {1, 2, 3, 4, 8, 16, 32, 64}) {
        add(Pattern::strided, &Params::stride, stride);
      }
      for (const int offset : {0, 1, 3, 8, 17, 31}) add(Pattern::offset, &Params::offset, offset);
      for (const int fields : {2, 3, 5, 8}) {
        add(Pattern::aos, &Params::fields, fields);
        add(Pattern::soa, &Params::fields, fields);
      }
    }
  }
  return points;
}

struct CountedPoint {
  double traced = 0;
  double counted = 0;

  double difference() const { return std::abs(counted - traced) / traced; }
};

/// One batch of points: traced one by one, then counted in one session of the profiler.
std::vector<CountedPoint> count_points(const Bench& bench, std::span<const SweepPoint> points) {
  std::vector<Arrays> arrays;
  std::vector<CountedPoint> results;
  std::vector<std::function<void()>> works;
  arrays.reserve(points.size());  // the works keep references
  for (const SweepPoint& point : points) {
    const PatternShape shape = shape_of(point.params);
    Arrays& at = arrays.emplace_back(bench.device, shape, point.params.seed);
    const TraceTotals totals = pattern_totals(
        traced_requests(bench.device, shape, point.params.blocks(), at), shape.element_bytes);
    results.push_back({totals.sectors / static_cast<double>(totals.requests), 0});
    works.emplace_back([&bench, &at, shape] {
      bench.kernels.access(bench.device, shape, at.in.span(), at.out.span());
    });
  }
  const std::vector<simt::GlobalTraffic> counted =
      simt::count_global_traffic(bench.device, works, false);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool load = points[i].params.access == Access::load;
    results[i].counted =
        load ? counted[i].load_sectors_per_request() : counted[i].store_sectors_per_request();
  }
  return results;
}

std::string name_of(const Params& params) {
  const std::string_view knob = knob_of(params.pattern);
  const lab::Settings settings = knob_table().settings(params);
  return fmt::format("{}{} {} of {} bytes", to_text(params.pattern),
                     knob.empty() || knob == "seed"
                         ? ""
                         : fmt::format(" {}", lab::to_text(settings.find(knob)->second)),
                     to_text(params.access), params.element_bytes());
}

}  // namespace

void bench_patterns(const Bench& bench, double copy) {
  bench.report.checks.push_back(check_patterns(bench));
  PatternBench(bench, copy).run();
}

void count_sweep(const Bench& bench) {
  const simt::CounterStatus status = bench.device.counters();
  if (!status.available) {
    bench.progress.report(0.9, status.reason);
    return;
  }
  constexpr std::size_t kBatch = 60;
  const std::vector<SweepPoint> points = sweep_points();
  lab::Table table{"counted_sweep",
                   "Sectors per request: counted by the hardware beside traced addresses",
                   {{"pattern", "pattern", "", -1},
                    {"element_bytes", "element", "B", 0},
                    {"access", "access", "", -1},
                    {"setting", "setting", "", 0},
                    {"traced", "traced", "", 3},
                    {"counted", "counted", "", 3},
                    {"difference", "difference", "%", 2}},
                   {}};
  double worst = 0;
  int outliers = 0;
  std::string names;
  for (std::size_t begin = 0; begin < points.size(); begin += kBatch) {
    bench.progress.check();
    const auto batch = std::span(points).subspan(begin, std::min(kBatch, points.size() - begin));
    const std::vector<CountedPoint> results = count_points(bench, batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Params& p = batch[i].params;
      const double difference = results[i].difference();
      worst = std::max(worst, difference);
      table.rows.push_back({std::string(to_text(p.pattern)), static_cast<double>(p.element_bytes()),
                            std::string(to_text(p.access)), batch[i].setting, results[i].traced,
                            results[i].counted, 100 * difference});
      if (difference <= kCountTolerance) continue;
      if (++outliers <= 12) names += (names.empty() ? "" : "; ") + name_of(p);
    }
  }
  bench.report.tables.push_back(std::move(table));
  bench.report.checks.push_back(
      {"counted_equals_traced", outliers == 0, worst, kCountTolerance,
       fmt::format("Largest relative difference over {} points; outside the tolerance: {}{}.",
                   points.size(), outliers == 0 ? "none" : names,
                   outliers > 12 ? fmt::format(" and {} more", outliers - 12) : "")});
}

}  // namespace tilestep::coalescing
