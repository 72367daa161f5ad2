// What the lesson times: launches one by one and in a graph, a decode step in all ways, products round the edges of tiles,
// loads of one number, and events beside the device's own clock.

#include "kernels/systems/launches/bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>

#include "kernels/base/lab/quick.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "kernels/systems/fusion/kernels.hpp"
#include "kernels/systems/launches/dispatch.hpp"
#include "kernels/systems/launches/lesson.hpp"
#include "kernels/systems/launches/reference.hpp"

namespace tilestep::launches {
namespace {

using lab::real, lab::whole;

constexpr std::size_t kPeriod = 1000003;  // a prime: rows and layers differ
constexpr lab::Pace kPoint{150, 20, 10, 20};

std::size_t product_of(int a, int b, int c = 1) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c);
}
std::vector<std::uint16_t> scaled(std::int64_t seed, float scale) {
  std::mt19937 generator = lab::generator_of(seed);
  std::vector<std::uint16_t> bits;
  for (const float one : lab::uniform_floats(generator, kPeriod))
    bits.push_back(numeric::Bf16::bits(scale * one));
  return bits;
}
template <class T>
simt::Span<T> part(simt::Span<T> all, std::size_t count) {
  return {all.data, count};
}
double now_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

/// A model that fills memory, and the arrays of its steps.
class TimedModel {
 public:
  TimedModel(simt::Device& device, const StepShape& shape)
      : device_(device),
        kernels_(static_cast<const Kernels&>(device.kernels(kLessonId))),
        shape_(shape),
        weights_(weights_of(shape)),
        table_(device, weights_.table),
        gains_(device, weights_.gains),
        gate_(device, product_of(shape.layers, shape.inner, shape.width), weights_.gate),
        up_(device, product_of(shape.layers, shape.inner, shape.width), weights_.up),
        down_(device, product_of(shape.layers, shape.inner, shape.width), weights_.down),
        tokens_(device, all_tokens()),
        h_(device, product_of(kMostBatch, shape.width)),
        n_(device, h_.count()),
        d_(device, h_.count()),
        gates_(device, product_of(kMostBatch, shape.inner)),
        ups_(device, gates_.count()),
        a_(device, gates_.count()),
        arrived_(device, 1) {}

  double bytes() const { return static_cast<double>(gate_.bytes() + up_.bytes() + down_.bytes()); }
  simt::Buffer<float>& h() { return h_; }

  /// All launches of a step.
  void launch_all(int batch) {
    StepShape shape = shape_;
    shape.batch = batch;
    kernels_.embed(device_, shape, tokens_.span(), table_.span(), h_.span(), {});
    const auto width = static_cast<std::size_t>(shape.width);
    for (int layer = 0; layer < shape.layers; ++layer) {
      const simt::Span<const float> gains{
          gains_.span().data + static_cast<std::size_t>(layer) * width, width};
      kernels_.norm(device_, shape, h_.span(), gains, n_.span(), {});
      multiply("gate", gate_, layer, shape.inner, shape.width, batch, n_, gates_);
      multiply("up", up_, layer, shape.inner, shape.width, batch, n_, ups_);
      kernels_.act(device_, shape, gates_.span(), ups_.span(), a_.span(), {});
      multiply("down", down_, layer, shape.width, shape.inner, batch, a_, d_);
      kernels_.add(device_, shape, d_.span(), h_.span(), {});
    }
  }
  /// The whole step as one kernel, and the counter's reset.
  void launch_one(int batch) {
    StepShape shape = shape_;
    shape.batch = batch;
    arrived_.fill(0);
    kernels_.persistent(device_, shape,
                        {tokens_.span(), table_.span(), gains_.span(), gate_.span(), up_.span(),
                         down_.span(), h_.span(), a_.span(), arrived_.span()},
                        {}, true);
  }
  lab::Closest compared(int batch) {
    std::vector<double>& exact = exact_[batch];
    if (exact.empty()) {
      std::vector<int> tokens = all_tokens();
      tokens.resize(static_cast<std::size_t>(batch));
      exact = reference_step(shape_, weights_, tokens);
    }
    double largest = 1;
    for (const double one : exact) largest = std::max(largest, std::abs(one));
    const std::vector<float> got = h_.download(exact.size());
    return lab::compared(got, exact, std::vector<double>(exact.size(), bound_of(shape_, largest)));
  }

 private:
  static std::vector<int> all_tokens() { return {7, 3, 11, 2, 19, 23, 5, 13}; }
  static Weights weights_of(const StepShape& shape) {
    StepShape small = shape;
    small.inner = 1;  // its matrices repeat a period instead
    Weights made = make_weights(small, 1);
    made.gate = scaled(2, std::sqrt(3.0f / static_cast<float>(shape.width)));
    made.up = scaled(3, std::sqrt(3.0f / static_cast<float>(shape.width)));
    made.down = scaled(4, std::sqrt(3.0f / static_cast<float>(shape.inner)));
    return made;
  }
  void multiply(const char* name, const lab::Repeated<std::uint16_t>& w, int layer, int rows, int k,
                int batch, const simt::Buffer<float>& x, simt::Buffer<float>& y) {
    const std::size_t count = product_of(rows, k);
    kernels_.product(
        device_, name, Loads::vectors, {rows, k, batch},
        {{w.span().data + static_cast<std::size_t>(layer) * count, count}, x.span(), y.span()}, {});
  }

  simt::Device& device_;
  const Kernels& kernels_;
  const StepShape shape_;
  const Weights weights_;
  simt::Buffer<float> table_, gains_;
  lab::Repeated<std::uint16_t> gate_, up_, down_;
  simt::Buffer<int> tokens_;
  simt::Buffer<float> h_, n_, d_, gates_, ups_, a_;
  simt::Buffer<unsigned> arrived_;
  std::map<int, std::vector<double>> exact_;
};

class Bench : public lab::Bench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes)
      : lab::Bench(start),
        sizes_(sizes),
        kernels_(static_cast<const Kernels&>(device.kernels(kLessonId))) {}

  void run() {
    if (sizes_.quick)
      lab::leave_out(report, {"other batches", "other rows", "events beside the device's clock"});
    time_launches();
    time_waits();
    time_steps();
    time_staircase();
    time_loads();
    add_compilers(*this, sizes_, 0.1);
    add_head_dims(*this, sizes_, 0.05);
    if (!sizes_.quick) time_clocks();
    const lab::Measurement* one = report.measurement("step_bandwidth", "persistent");
    report.summary = fmt::format(
        "A decode step of one token reads its weights at {} as one persistent kernel on {}; a copy "
        "reaches {}.",
        lab::headline(one, 0), device.info().name, headline("copy_bandwidth", "", 0));
  }

 private:
  /// A rung with one configuration.
  static lab::Rung rung(std::string name, std::string why, std::string configuration,
                        std::function<lab::Runnable()> make) {
    lab::Rung made{.name = std::move(name), .why = std::move(why), .configurations = {}};
    made.configurations = {{.name = std::move(configuration), .make = std::move(make)}};
    return made;
  }

  // ---- launches -------------------------------------------------------------------------------------

  void time_launches() {
    const auto many = [this] {
      for (int i = 0; i < sizes_.launches; ++i) kernels_.nothing(device, {});
    };
    const std::string said = fmt::format("{} launches", sizes_.launches);
    lab::LadderPlan plan;
    plan.work = {.bytes_read = static_cast<double>(sizes_.launches)};
    plan.turn = kPoint;
    plan.flush_l2 = false;
    plan.rungs = {rung("one by one", "each launch is a call of the driver", said,
                       [many]() -> lab::Runnable {
                         return {many, {}};
                       }),
                  rung("in a graph", "the driver is called once for all", said,
                       [this, many]() -> lab::Runnable {
                         return {device.graph_of(many), {}};
                       })};
    std::vector<lab::Timed> rows = climb(plan, 0.1).rungs;
    for (lab::Timed& timed : rows) {
      if (!timed.timed()) continue;
      const auto each = [&](double ms) { return ms * 1e3 / sizes_.launches; };
      const lab::Spread spread{each(timed.time_ms.median), each(timed.time_ms.p10),
                               each(timed.time_ms.p90), timed.time_ms.samples};
      add_cost(timed.name, spread, std::string(std::get<std::string>(timed.cells.at("why"))));
      report.add(lab::measured("launch_cost", timed.name, spread, "µs",
                               fmt::format("{} empty kernels in a row, by events / {}",
                                           sizes_.launches, sizes_.launches)));
    }
  }

  void add_cost(const std::string& what, const lab::Spread& us, const std::string& why) {
    costs_.rows.push_back({what, us.median, us.p10, us.p90, why});
  }

  /// By the host's clock: what the host is kept busy for, and how long it waits for an answer.
  void time_waits() {
    std::vector<double> calls, waits;
    const int rounds =
        sizes_.quick ? std::min(sizes_.waits, lab::kQuickTurn.samples) : sizes_.waits;
    for (int i = 0; i < rounds; ++i) {
      progress.check();
      const double begin = now_us();
      kernels_.nothing(device, {});
      const double called = now_us();
      device.synchronize();
      calls.push_back(called - begin);
      waits.push_back(now_us() - begin);
    }
    const auto add = [&](const char* what, std::vector<double> samples, const char* why) {
      const lab::Spread spread = lab::spread_of(std::move(samples));
      add_cost(what, spread, why);
      report.add(lab::measured("host_cost", what, spread, "µs", "by the host's clock"));
    };
    add("the call alone", calls, "the host goes on once the launch is in the queue");
    add("launch and wait", waits,
        "what cudaDeviceSynchronize costs where nothing else is to be done");
    report.add(costs_);
  }

  // ---- a decode step ----------------------------------------------------------------------------------

  void time_steps() {
    auto model = std::make_shared<TimedModel>(device, sizes_.model);
    // A copy of half as many bytes reads and writes as many as a step reads.
    const auto copied = static_cast<std::size_t>(model->bytes() / 2);
    simt::Buffer<unsigned char> from(device, copied), to(device, copied);
    std::vector<lab::Timed> rows;
    for (const int batch : sizes_.batches) {
      lab::LadderPlan plan;
      plan.work = {.bytes_read = model->bytes()};
      plan.flush_l2 = false;  // its weights are more than L2 holds
      plan.shape = fmt::format("batch {}", batch);
      plan.rate_id = batch == 1 ? "step_bandwidth" : "";
      plan.cells = {{"batch", batch}};
      plan.rungs = {
          step_rung(
              "eager", "a call per kernel", *model, batch,
              [model, batch] { model->launch_all(batch); }, false),
          step_rung(
              "graph", "one call; the next kernel is ready when one ends", *model, batch,
              [model, batch] { model->launch_all(batch); }, true),
          step_rung(
              "persistent", "one kernel: the next weights are on their way while blocks wait",
              *model, batch, [model, batch] { model->launch_one(batch); }, true)};
      plan.peers = {
          lab::device_copy(device, "copy", to.span().data, from.span().data, from.bytes())};
      if (batch == 1) plan.peers.front().rate_id = "copy_bandwidth";
      lab::Climb climbed = climb(plan, 0.4 / static_cast<double>(sizes_.batches.size()));
      lab::append(rows, std::move(climbed.rungs));
    }
    for (lab::Timed& timed : rows) {
      if (timed.timed()) timed.cells["each"] = timed.time_ms.median * 1e3;
    }
    add_table(
        "decode",
        fmt::format("A decode step of {} layers, {} x {}, BF16", sizes_.model.layers,
                    sizes_.model.width, sizes_.model.inner),
        {"rung", whole("batch", "tokens"), real("each", "time", "µs", 1),
         real("bandwidth", "weights read", "GB/s", 0), real("p10", "", "GB/s", 0),
         real("p90", "", "GB/s", 0), real("fraction", "of copy", "", 3), lab::Column{"why", "why"}},
        rows);
  }
  lab::Rung step_rung(const char* name, const char* why, TimedModel& model, int batch,
                      const std::function<void()>& launch, bool in_graph) {
    lab::Rung made =
        rung(name, why, fmt::format("batch {}", batch),
             [this, &model, batch, launch, in_graph]() -> lab::Runnable {
               return lab::judged(device, model.h(), in_graph ? device.graph_of(launch) : launch,
                                  [&model, batch] { return model.compared(batch); });
             });
    made.check = "steps";
    made.check_detail = "h of a step against double; FP32 sums, layer after layer.";
    return made;
  }

  // ---- a staircase --------------------------------------------------------------------------------------

  std::vector<int> staircase_rows() const {
    if (!sizes_.rows.empty()) return sizes_.rows;
    std::vector<int> rows;
    for (int edge = kTileM; edge <= 17 * kTileM; edge += kTileM) {
      for (const int m : {edge - 64, edge, edge + 1}) rows.push_back(m);
    }
    return rows;
  }

  /// Needs Hopper's instructions, or the emulation's. All times follow from three: a product's own cost, a wave's and a
  /// tile's, since tiles share memory and power. Three points say them: the first, the last of the first wave, the last.
  void time_staircase() {
    if (device.info().compute_capability != 0 && device.info().compute_capability != 90) return;
    const auto& products = static_cast<const fusion::Kernels&>(device.kernels("fusion"));
    const std::vector<int> all = staircase_rows();
    const int most = *std::max_element(all.begin(), all.end());
    const lab::Repeated<std::uint16_t> x(device, product_of(most, sizes_.k), scaled(5, 1)),
        w(device, product_of(sizes_.n, sizes_.k), scaled(6, 1));
    simt::Buffer<std::uint16_t> y(device, product_of(most, sizes_.n));
    struct Point {
      int m;
      Tiling tiling;
      lab::Spread us;
    };
    std::vector<Point> points;
    for (const int m : all) {
      lab::LadderPlan plan;
      plan.work = {.flops = 2.0 * m * sizes_.n * sizes_.k};
      plan.rate = lab::Rate::tflop_per_s;
      plan.turn = kPoint;
      plan.rounds = 1;
      plan.flush_l2 = false;
      const auto launch = [&, m] {
        products.multiply(device, fusion::Epilogue::none, fusion::TileSize::large,
                          {m, sizes_.n, sizes_.k},
                          {part(x.span(), product_of(m, sizes_.k)),
                           w.span(),
                           {},
                           part(y.span(), product_of(m, sizes_.n))});
      };
      lab::Rung made =
          rung("product", "", fmt::format("m = {}", m), [&, m, launch]() -> lab::Runnable {
            return lab::judged(device, y, launch, [&, m] { return compared_product(m, x, w, y); });
          });
      made.check = "products";
      made.check_detail =
          "Numbers of the first and last row against double: half a spacing of BF16.";
      plan.rungs = {std::move(made)};
      const lab::Climb climbed = climb(plan, 0.3 / static_cast<double>(all.size()));
      if (!climbed.rungs.front().timed()) continue;
      const lab::Spread& ms = climbed.rungs.front().time_ms;
      points.push_back({m,
                        tiling_of(m, sizes_.n, multiprocessors()),
                        {1e3 * ms.median, 1e3 * ms.p10, 1e3 * ms.p90, ms.samples}});
    }
    if (points.size() < 2) return;
    const auto later = std::find_if(points.begin(), points.end(), [&](const Point& point) {
      return point.tiling.waves > points.front().tiling.waves;
    });
    const Point &first = points.front(), &full = *(later - 1), &last = points.back();
    const auto apart = [](double us, int count) { return count > 0 ? us / count : 0.0; };
    const double tile = apart(full.us.median - first.us.median,
                              full.tiling.tiles() - first.tiling.tiles()),
                 wave = apart(last.us.median - full.us.median -
                                  tile * (last.tiling.tiles() - full.tiling.tiles()),
                              last.tiling.waves - full.tiling.waves);
    lab::Table table{
        "staircase",
        fmt::format("A product of m x {} with {} x {}, BF16, tiles of {} x {}", sizes_.k, sizes_.n,
                    sizes_.k, kTileM, kTileN),
        {whole("m"), whole("tiles"), whole("waves"), real("time", "time", "µs", 2),
         real("p10", "", "µs", 2), real("p90", "", "µs", 2),
         real("predicted", "predicted", "µs", 2), real("ratio", "predicted / time", "", 3)}};
    int near = 0;
    for (const Point& point : points) {
      const double predicted = first.us.median +
                               tile * (point.tiling.tiles() - first.tiling.tiles()) +
                               wave * (point.tiling.waves - first.tiling.waves);
      const double ratio = predicted / point.us.median;
      near += std::abs(ratio - 1) <= 0.1 ? 1 : 0;
      table.add({point.m, point.tiling.tiles(), point.tiling.waves, point.us.median, point.us.p10,
                 point.us.p90, predicted, ratio});
    }
    report.add(std::move(table));
    report.add(lab::derived(
        "staircase_near", "", static_cast<double>(near) / static_cast<double>(points.size()), "",
        "share of the points whose time is predicted within 10 % from waves and tiles"));
  }
  int multiprocessors() const { return std::max(device.info().multiprocessors, 1); }

  lab::Closest compared_product(int m, const lab::Repeated<std::uint16_t>& x,
                                const lab::Repeated<std::uint16_t>& w,
                                const simt::Buffer<std::uint16_t>& y) const {
    lab::Closest closest;
    const auto k = static_cast<std::size_t>(sizes_.k);
    for (const int row : {0, m - 1}) {
      const std::vector<std::uint16_t> its = x.values(static_cast<std::size_t>(row) * k, k);
      const std::vector<std::uint16_t> got = y.download(product_of(row, sizes_.n), 8);
      for (std::size_t column = 0; column < got.size(); ++column) {
        const std::vector<std::uint16_t> other = w.values(column * k, k);
        double sum = 0, size = 0;
        for (std::size_t i = 0; i < k; ++i) {
          const double one = static_cast<double>(numeric::Bf16::value(its[i])) *
                             static_cast<double>(numeric::Bf16::value(other[i]));
          sum += one;
          size += std::abs(one);
        }
        closest.add(numeric::Bf16::value(got[column]), sum,
                    std::abs(sum) * 0x1p-8 + size * 0x1p-13);
      }
    }
    return closest;
  }

  // ---- loads of one number --------------------------------------------------------------------------------

  void time_loads() {
    const ProductShape& shape = sizes_.streamed;
    const std::size_t count = product_of(shape.rows, shape.k);
    const lab::Repeated<std::uint16_t> w(device, count + 1, scaled(7, 1));
    std::mt19937 generator = lab::generator_of(8);
    const std::vector<float> numbers =
        lab::uniform_floats(generator, static_cast<std::size_t>(shape.k));
    simt::Buffer<float> x(device, numbers), y(device, static_cast<std::size_t>(shape.rows));
    lab::LadderPlan plan;
    plan.work = {.bytes_read = 2.0 * static_cast<double>(count)};
    plan.turn = kPoint;
    plan.rate_id = "loads_bandwidth";
    for (const bool single : {false, true}) {
      const std::size_t offset = single ? 1 : 0;
      const auto launch = [&, single, offset] {
        kernels_.product(device, "product", single ? Loads::single : Loads::vectors, shape,
                         {{w.span().data + offset, count}, x.span(), y.span()}, {});
      };
      lab::Rung made =
          rung(single ? "single" : "vectors",
               single ? "W begins at an odd number: two bytes per load" : "16 bytes per load",
               "a row per warp", [&, offset, launch]() -> lab::Runnable {
                 return lab::judged(device, y, launch, [&, offset] {
                   lab::Closest closest;
                   const std::vector<float> got = y.download(1);
                   const auto k = static_cast<std::size_t>(shape.k);
                   const std::vector<double> exact =
                       reference_product({1, shape.k, 1}, w.values(offset, k), numbers);
                   closest.add(got[0], exact[0], product_bound(shape.k));
                   return closest;
                 });
               });
      made.check = "loads";
      made.check_detail = "The first number against double; FP32 sums of k products.";
      plan.rungs.push_back(std::move(made));
    }
    std::vector<lab::Timed> rows = climb(plan, 0.1).rungs;
    const auto first = rows.front().timed() ? rows.front().time_ms.median : 0;
    for (lab::Timed& timed : rows) {
      if (timed.timed() && first > 0) timed.cells["slower"] = timed.time_ms.median / first;
    }
    add_table("loads", fmt::format("W of {} x {} in BF16, times one row", shape.rows, shape.k),
              {"rung", real("bandwidth", "weights read", "GB/s", 0), real("p10", "", "GB/s", 0),
               real("p90", "", "GB/s", 0), real("slower", "times as long", "", 2),
               lab::Column{"why", "why"}},
              rows);
  }

  // ---- events beside the device's clock -------------------------------------------------------------------

  void time_clocks() {
    const ProductShape& shape = sizes_.streamed;
    const lab::Repeated<std::uint16_t> w(device, product_of(shape.rows, shape.k), scaled(7, 1));
    simt::Buffer<float> x(device, static_cast<std::size_t>(shape.k)),
        y(device, static_cast<std::size_t>(shape.rows));
    x.fill(0);
    simt::Buffer<unsigned long long> begin(device, 1), end(device, 1);
    const auto launch = [&](const Stamps& stamps) {
      kernels_.product(device, "product", Loads::vectors, shape, {w.span(), x.span(), y.span()},
                       stamps);
    };
    std::vector<double> stamped;
    for (int i = 0; i < 20; ++i) {
      progress.check();
      begin.fill(0xFF);
      end.fill(0);
      launch({begin.span(), end.span(), 0});
      device.synchronize();
      stamped.push_back((static_cast<double>(end.download().front()) -
                         static_cast<double>(begin.download().front())) *
                        1e-3);
    }
    const lab::Spread stamps = lab::spread_of(stamped);
    const lab::Spread ms = lab::spread_of(lab::settled_times(
        device, progress, [&] { launch({}); }, kPoint, false));
    const lab::Spread events{1e3 * ms.median, 1e3 * ms.p10, 1e3 * ms.p90, ms.samples};
    report.add(lab::measured("clock", "events", events, "µs", "CUDA events round a product"));
    report.add(lab::measured("clock", "stamps", stamps, "µs",
                             "globaltimer, from its first block's begin to its last one's end"));
    report.add(
        lab::derived("clock_ratio", "", stamps.median / events.median, "", "stamps / events"));
  }

  const BenchSizes sizes_;
  const Kernels& kernels_;
  lab::Table costs_{"costs",
                    "What a launch costs",
                    {"what", real("time", "time", "µs", 2), real("p10", "", "µs", 2),
                     real("p90", "", "µs", 2), lab::Column{"why", "why"}}};
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  return lab::run_bench<Bench>(device, progress, sizes);
}

}  // namespace tilestep::launches
