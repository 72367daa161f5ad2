#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "kernels/base/lab/check.hpp"
#include "kernels/memory/coalescing/bench/bench.hpp"
#include "kernels/memory/coalescing/reference.hpp"
#include "kernels/memory/coalescing/report.hpp"

// What is timed: the lesson's own accesses, four loads a thread, over arrays many times any L2; beside them
// some with one load a thread, so that it can be seen what that costs.

namespace tilestep::coalescing {
namespace {

using lab::column, lab::real, lab::whole;

constexpr std::int64_t kCheckedElements = 4103;
constexpr std::int64_t kCostElements = 65536;  // enough for every pattern to repeat
constexpr int kStrides[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 40, 48, 56, 64};
constexpr int kCountedStrides[] = {1, 2, 4, 8, 16, 32, 64};
constexpr int kOffsets = 32;
constexpr int kFetchBytes = 64;  // of DRAM
constexpr int kThreadsOfMultiprocessor = 2048;
constexpr std::array kAccesses = {Access::load, Access::store};

/// Who makes the accesses: the lesson's kernel; as many blocks of it as are resident, each for many
/// chunks; the sweep's kernel.
enum class Way { one_load, resident, four_loads };
constexpr auto names_of(Way) {
  return std::to_array<std::string_view>(
      {"1 load a thread", "1 load, resident blocks", "4 loads a thread"});
}
constexpr auto kWays = all_of<Way>();

void launch(const Bench& bench, const PatternShape& shape, Way way, int resident,
            simt::Span<const unsigned char> in, simt::Span<unsigned char> out) {
  if (way == Way::one_load) return bench.kernels.access(bench.device, shape, in, out);
  bench.kernels.sweep(bench.device, shape,
                      way == Way::resident ? SweepConfig{1, resident} : SweepConfig{4}, in, out);
}

Params params_of(Pattern pattern, ElementSize size, Access access, std::int64_t elements) {
  return {.pattern = pattern, .element_size = size, .access = access, .elements = elements};
}

/// What a launch moves, by its pattern's definition; bytes of both sides.
struct Traffic {
  double useful = 0;   ///< that lanes asked for; one place asked for twice by a request counts once
  double moved = 0;    ///< 32 for each sector of each request
  double stored = 0;   ///< the same of a store: a sector that it writes in part is read as well
  double fetched = 0;  ///< where memory is read in pieces of 64, each piece once
  double sectors_per_request = 0;

  double of_copy(double bytes) const { return useful / bytes; }
  double moved_by(Access access) const { return access == Access::load ? moved : stored; }
};
Traffic traffic_of(Params params) {
  const auto elements = static_cast<double>(params.elements);
  params.elements = std::min(params.elements, kCostElements);
  const PatternShape shape = shape_of(params);
  const RequestTotals cost = reference_cost(shape, kCostElements);
  std::map<std::int64_t, std::uint32_t> used;  // by sector: a bit a byte
  std::set<std::int64_t> pieces;
  IndexWalk walk(shape);
  for (std::int64_t i = 0; i < params.elements; ++i) {
    const std::int64_t first = walk.next() * params.element_bytes();
    const std::uint32_t bytes =
        params.element_bytes() == 16 ? 0xFFFF : (1u << params.element_bytes()) - 1;
    used[first / kSectorBytes] |= bytes << (first % kSectorBytes);
    pieces.insert(first / kFetchBytes);
  }
  const auto partial = std::count_if(used.begin(), used.end(),
                                     [](const auto& sector) { return ~sector.second != 0; });
  const double scale = elements / static_cast<double>(params.elements);
  const double plain = elements * params.element_bytes();
  const double moved = plain + scale * static_cast<double>(cost.sectors * kSectorBytes);
  return {plain + scale * static_cast<double>(cost.bytes_used), moved,
          moved + scale * static_cast<double>(partial * kSectorBytes),
          plain + scale * static_cast<double>(pieces.size() * kFetchBytes),
          cost.per_request(cost.sectors)};
}

class PatternBench {
 public:
  PatternBench(Bench& bench, double copy)
      : bench_(bench),
        copy_(copy),
        plain_(bench.device, static_cast<std::size_t>(bench.sizes.access_elements)),
        wide_(bench.device,
              static_cast<std::size_t>(shape_of(strided(*std::rbegin(kStrides))).array_elements)) {
    bench.kernels.fill_random(bench.device, plain_.span(), 3);
    bench.kernels.fill_random(bench.device, wide_.span(), 5);
  }

  void run() {
    std::vector<Params> by_stride, by_offset;
    for (const int stride : kStrides) by_stride.push_back(strided(stride));
    for (int offset = 0; offset < kOffsets; ++offset) {
      by_offset.push_back(params(Pattern::offset, ElementSize::bytes_4));
      by_offset.back().offset = offset;
    }
    bench_.progress.report(0.35, "timing strides");
    sweep("bandwidth_by_stride", "stride", "Useful bandwidth against stride", by_stride,
          &Params::stride);
    bench_.progress.report(0.45, "timing offsets");
    sweep("bandwidth_by_offset", "offset", "Useful bandwidth against offset", by_offset,
          &Params::offset);
    bench_.progress.report(0.55, "timing loads and blocks");
    by_launch();
    bench_.progress.report(0.6, "timing every pattern and element size");
    all_patterns();
    if (!bench_.device.counters().available) return;
    bench_.progress.report(0.8, "counting what memory moves");
    count_dram();
  }

 private:
  /// As many bytes a side for every element size.
  Params params(Pattern pattern, ElementSize size) const {
    Params p = params_of(pattern, size, Access::load, 0);
    p.elements = bench_.sizes.access_elements * 4 / p.element_bytes();
    return p;
  }
  Params strided(int stride, ElementSize size = ElementSize::bytes_4) const {
    Params p = params(Pattern::strided, size);
    p.stride = stride;
    return p;
  }

  std::function<void()> launch_of(const Params& p, Way way = Way::four_loads) {
    const auto bytes = [](simt::Buffer<unsigned>& words) {
      return simt::Span<unsigned char>{reinterpret_cast<unsigned char*>(words.span().data),
                                       words.bytes()};
    };
    const bool load = p.access == Access::load;
    return [this, way, shape = shape_of(p), in = bytes(load ? wide_ : plain_),
            out = bytes(load ? plain_ : wide_)] {
      launch(bench_, shape, way, threads_ / kThreadsPerBlock, in, out);
    };
  }

  lab::Spread rate(const Params& p, const Traffic& traffic, Way way = Way::four_loads) {
    const lab::Pace& pace = std::exchange(warm_, true) ? lab::kNextPoint : lab::kShown;
    const std::vector<double> times =
        lab::settled_times(bench_.device, bench_.progress, launch_of(p, way), pace, false);
    return lab::rate_of(lab::spread_of(times), traffic.useful);
  }

  void sweep(const char* id, const char* knob, const char* title, std::vector<Params>& points,
             int Params::*member) {
    lab::Table table{id,
                     fmt::format("{}, {} accesses of 4 bytes, {}", title,
                                 bench_.sizes.access_elements, name_of(Way::four_loads)),
                     {whole(knob, knob, "elements"), whole("load", "load", "GB/s"),
                      whole("load_p10", "load p10", "GB/s"), whole("load_p90", "load p90", "GB/s"),
                      whole("store", "store", "GB/s"), whole("store_p10", "store p10", "GB/s"),
                      whole("store_p90", "store p90", "GB/s"),
                      whole("expected", "expected from the sectors", "GB/s"),
                      whole("expected_store", "expected of stores", "GB/s"),
                      whole("expected_64", "expected of 64-byte fetches", "GB/s")}};
    for (Params& p : points) {
      const Traffic traffic = traffic_of(p);
      std::vector<lab::Cell> row = {p.*member};
      for (const Access access : kAccesses) {
        p.access = access;
        const lab::Spread spread = rate(p, traffic);
        lab::append(row, {spread.median, spread.p10, spread.p90});
        if (p.pattern == Pattern::strided) by_stride_[{p.stride, access}] = spread.median;
      }
      for (const double bytes : {traffic.moved, traffic.stored, traffic.fetched}) {
        row.emplace_back(copy_ * traffic.of_copy(bytes));
      }
      table.add(std::move(row));
    }
    bench_.report.add(std::move(table));
  }

  /// What it costs to have one load in flight, and to replace blocks, beside what the sectors do.
  void by_launch() {
    lab::Table table{"bandwidth_by_launch",
                     "Useful bandwidth by loads of a thread and blocks of the launch: strided",
                     {whole("stride", "stride", "elements"), whole("element_bytes", "element", "B"),
                      "access", column("launch", "launched"), "bandwidth", "p10", "p90",
                      whole("expected", "expected from the sectors", "GB/s")}};
    for (const ElementSize size : {ElementSize::bytes_4, ElementSize::bytes_16}) {
      for (const int stride : kCountedStrides) {
        Params p = strided(stride, size);
        const Traffic traffic = traffic_of(p);
        for (const Access access : kAccesses) {
          p.access = access;
          for (const Way way : kWays) {
            const lab::Spread spread = rate(p, traffic, way);
            table.add({stride, p.element_bytes(), access, way, spread.median, spread.p10,
                       spread.p90, copy_ * traffic.of_copy(traffic.moved_by(access))});
          }
        }
      }
    }
    bench_.report.add(std::move(table));
  }

  void all_patterns() {
    lab::Table table{
        "bandwidth_by_pattern",
        fmt::format("Useful bandwidth of every pattern, {} bytes accessed by each launch, {} "
                    "(stride {}, offset {}, {} fields)",
                    4 * bench_.sizes.access_elements, name_of(Way::four_loads), Params{}.stride,
                    Params{}.offset, Params{}.fields),
        {"pattern", whole("element_bytes", "element", "B"), "access", "bandwidth", "p10", "p90",
         whole("expected", "expected from the sectors", "GB/s"),
         real("sectors_per_request", "sectors per request", "", 2)}};
    lab::Table by_element{
        "bandwidth_by_element",
        "Sequential loads, 1 a thread, every byte used: bytes in flight make the difference",
        {whole("element_bytes", "element", "B"), "bandwidth", "p10", "p90",
         whole("thread_bytes", "in flight of a thread", "B"),
         whole("threads", "threads at once, at most"),
         whole("in_flight", "in flight, at most", "KiB")}};
    for (const Pattern pattern : kPatterns) {
      if (!is_timed(pattern)) continue;
      for (const ElementSize size : kElementSizes) {
        Params p = params(pattern, size);
        const Traffic traffic = traffic_of(p);
        for (const Access access : kAccesses) {
          p.access = access;
          const lab::Spread spread = rate(p, traffic);
          table.add({pattern, p.element_bytes(), access, spread.median, spread.p10, spread.p90,
                     copy_ * traffic.of_copy(traffic.moved_by(access)),
                     traffic.sectors_per_request});
          if (access != Access::load) continue;
          if (pattern == Pattern::sequential) {
            const lab::Spread lone = rate(p, traffic, Way::one_load);
            by_element.add({p.element_bytes(), lone.median, lone.p10, lone.p90, p.element_bytes(),
                            threads_, threads_ * p.element_bytes() / 1024.0});
          }
          if (size != ElementSize::bytes_4) continue;
          bench_.report.add(
              lab::measured("useful_bandwidth", name_of(pattern), spread, "GB/s",
                            fmt::format("loads, {} elements of 4 bytes", p.elements)));
        }
      }
    }
    bench_.report.add(std::move(table));
    bench_.report.add(std::move(by_element));
  }

  /// What really crosses to memory and back for a useful byte, as the hardware counts it.
  void count_dram() {
    lab::Table table{
        "dram_by_stride",
        "DRAM traffic by stride, counted: bytes moved for each useful byte",
        {whole("stride", "stride", "elements"), "access", real("read", "read", "B/B", 2),
         real("written", "written", "B/B", 2),
         whole("expected", "expected from DRAM traffic", "GB/s"), column("bandwidth", "measured")}};
    std::vector<Params> points;
    std::vector<std::function<void()>> works;
    for (const Access access : kAccesses) {
      for (const int stride : kCountedStrides) {
        points.push_back(strided(stride));
        points.back().access = access;
        works.push_back(launch_of(points.back()));
      }
    }
    const auto counted = simt::count_global_traffic(bench_.device, works, true);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const Params& p = points[i];
      const double useful = traffic_of(p).useful;
      const double read = counted[i].dram_bytes_read / useful;
      const double written = counted[i].dram_bytes_written / useful;
      table.add({p.stride, p.access, read, written, copy_ / (read + written),
                 by_stride_[{p.stride, p.access}]});
      const std::string variant = fmt::format("{} {}", name_of(p.access), p.stride);
      const char* detail = "strided, of 4 bytes, for each useful byte, read and written";
      bench_.report.add(lab::counted("dram_read_per_byte", variant, read, "B/B", detail));
      bench_.report.add(lab::counted("dram_written_per_byte", variant, written, "B/B", detail));
    }
    bench_.report.add(std::move(table));
  }

  Bench& bench_;
  double copy_;
  simt::Buffer<unsigned> plain_, wide_;
  int threads_ = bench_.device.info().multiprocessors * kThreadsOfMultiprocessor;  ///< at once
  bool warm_ = false;  ///< whether something was timed before
  std::map<std::pair<int, Access>, double> by_stride_;
};

/// Correctness comes before any timing: every pattern, size, direction and launch once.
lab::Check check_patterns(const Bench& bench) {
  std::int64_t wrong = 0;
  for (const Pattern pattern : kPatterns) {
    for (const ElementSize size : kElementSizes) {
      for (const Access access : kAccesses) {
        const PatternShape shape = shape_of(params_of(pattern, size, access, kCheckedElements));
        for (const Way way : kWays) {
          if (way == Way::resident && pattern != Pattern::strided) continue;
          Arrays arrays(bench.device, shape, 1);
          launch(bench, shape, way, 3, arrays.in.span(), arrays.out.span());
          wrong += wrong_elements(shape, shape.elements, arrays.host_in, arrays.out.download(),
                                  Arrays::kUntouched);
        }
      }
    }
  }
  return lab::none_wrong(
      "patterns_correct", wrong,
      "Wrong elements over every pattern, element size, direction and launch; copying is exact.");
}

// ---- counted beside traced ----------------------------------------------------------------------

std::vector<Params> sweep_points() {
  std::vector<Params> points;
  for (const ElementSize size : kElementSizes) {
    for (const Access access : kAccesses) {
      const auto add = [&](Pattern pattern) -> Params& {
        // All requests are traced, none is left to a guess.
        return points.emplace_back(
            params_of(pattern, size, access, std::int64_t{kTracedBlocks} * kThreadsPerBlock));
      };
      for (const Pattern pattern :
           {Pattern::sequential, Pattern::reversed, Pattern::permuted_warp, Pattern::permuted,
            Pattern::broadcast, Pattern::matrix_row, Pattern::matrix_column}) {
        add(pattern);
      }
      for (const int stride : {1, 2, 3, 4, 8, 16, 32, 64}) add(Pattern::strided).stride = stride;
      for (const int offset : {0, 1, 3, 8, 17, 31}) add(Pattern::offset).offset = offset;
      for (const int fields : {2, 3, 5, 8}) {
        add(Pattern::aos).fields = fields;
        add(Pattern::soa).fields = fields;
      }
    }
  }
  return points;
}

/// The value of the knob that the pattern has; nothing if it has none but the seed.
lab::Cell shown_setting(const Params& params) {
  const auto setting = setting_of(params);
  if (!setting || knob_of(params.pattern) == "seed") return {};
  return std::get<std::int64_t>(*setting);
}

struct CountedPoint {
  double traced = 0;
  double counted = 0;

  double difference() const { return std::abs(counted - traced) / traced; }
};

/// One batch of points: traced one by one, then counted in one session of the profiler.
std::vector<CountedPoint> count_points(const Bench& bench, std::span<const Params> points) {
  std::vector<Arrays> arrays;
  std::vector<CountedPoint> results;
  std::vector<std::function<void()>> works;
  arrays.reserve(points.size());  // the works keep references
  for (const Params& point : points) {
    const PatternShape shape = shape_of(point);
    Arrays& at = arrays.emplace_back(bench.device, shape, point.seed);
    const RequestTotals totals = pattern_totals(
        traced_requests(bench.device, shape, point.blocks(), at), shape.element_bytes);
    results.push_back({totals.per_request(totals.sectors), 0});
    works.emplace_back([&bench, &at, shape] {
      bench.kernels.access(bench.device, shape, at.in.span(), at.out.span());
    });
  }
  const std::vector<simt::GlobalTraffic> counted =
      simt::count_global_traffic(bench.device, works, false);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool load = points[i].access == Access::load;
    results[i].counted =
        load ? counted[i].load_sectors_per_request() : counted[i].store_sectors_per_request();
  }
  return results;
}

std::string text_of(const Params& params) {
  const lab::Cell setting = shown_setting(params);
  const auto* value = std::get_if<double>(&setting);
  return fmt::format("{}{} {} of {} bytes", name_of(params.pattern),
                     value == nullptr ? "" : fmt::format(" {:g}", *value), name_of(params.access),
                     params.element_bytes());
}

}  // namespace

void bench_patterns(Bench& bench, double copy) {
  bench.report.add(check_patterns(bench));
  PatternBench(bench, copy).run();
}

void count_sweep(Bench& bench) {
  const simt::CounterStatus status = bench.device.counters();
  if (!status.available) {
    bench.progress.report(0.9, status.reason);
    return;
  }
  constexpr std::size_t kBatch = 60;
  const std::vector<Params> points = sweep_points();
  lab::Table table{
      "counted_sweep",
      "Sectors per request: counted by the hardware beside traced addresses",
      {"pattern", whole("element_bytes", "element", "B"), "access", whole("setting"),
       real("traced", "", "", 3), real("counted", "", "", 3), real("difference", "", "%", 2)}};
  double worst = 0;
  int outliers = 0;
  std::string names;
  for (std::size_t begin = 0; begin < points.size(); begin += kBatch) {
    bench.progress.check();
    const auto batch = std::span(points).subspan(begin, std::min(kBatch, points.size() - begin));
    const std::vector<CountedPoint> results = count_points(bench, batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Params& p = batch[i];
      const double difference = results[i].difference();
      worst = std::max(worst, difference);
      table.add({p.pattern, p.element_bytes(), p.access, shown_setting(p), results[i].traced,
                 results[i].counted, 100 * difference});
      if (difference <= kCountTolerance) continue;
      if (++outliers <= 12) names += (names.empty() ? "" : "; ") + text_of(p);
    }
  }
  bench.report.add(std::move(table));
  bench.report.add(lab::within(
      "counted_equals_traced", worst, kCountTolerance,
      fmt::format("Largest relative difference over {} points; outside the tolerance: {}{}.",
                  points.size(), outliers == 0 ? "none" : names,
                  outliers > 12 ? fmt::format(" and {} more", outliers - 12) : "")));
}

}  // namespace tilestep::coalescing
