// What the lesson times: collectives between the GPUs of a host, by our kernels and by NCCL in turn; a product beside the
// gather that it needs; and steps of cut models beside the plan.

#include "kernels/systems/parallelism/bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>

#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/quick.hpp"
#include "kernels/systems/parallelism/bench/overlap.hpp"
#include "kernels/systems/parallelism/bench/step.hpp"
#include "kernels/systems/parallelism/bench/timed.hpp"
#include "kernels/systems/parallelism/lesson.hpp"

namespace tilestep::parallelism {
namespace {

using lab::real, lab::whole;

constexpr int kRounds = 3;
constexpr std::int64_t kHeadline = 1 << 28;

class Bench : public lab::Bench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes)
      : lab::Bench(start),
        sizes_(sizes),
        ranks_(std::clamp(kernels_of(device).gpus(), 2, kMostRanks)) {}

  void run() {
    if (sizes_.quick) lab::leave_out(report, {"other sizes", "other numbers of blocks"});
    struct Job {
      const char* words;
      std::function<void()> run;
    };
    std::vector<Job> jobs;
    for (const std::int64_t bytes : sizes_.reduced)
      jobs.push_back({"adding up", [this, bytes] { reduce(bytes); }});
    for (const std::int64_t bytes : sizes_.gathered)
      jobs.push_back({"gathering", [this, bytes] { move(gathered_, Op::all_gather, bytes); }});
    for (const std::int64_t bytes : sizes_.scattered)
      jobs.push_back(
          {"adding up parts", [this, bytes] { move(scattered_, Op::reduce_scatter, bytes); }});
    for (const std::int64_t bytes : sizes_.exchanged)
      jobs.push_back({"exchanging", [this, bytes] { move(exchanged_, Op::all_to_all, bytes); }});
    for (const OverlapShape& shape : sizes_.overlapped)
      jobs.push_back({"multiplying while tokens come", [this, &shape] { overlap(shape); }});
    jobs.push_back({"steps of cut models", [this] { steps(); }});
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      progress.check();
      progress.report(static_cast<double>(i) / static_cast<double>(jobs.size()), jobs[i].words);
      jobs[i].run();
    }
    if (!apart_) {
      report.summary =
          "Collectives, products and steps are right; links are timed between GPUs, one for each "
          "rank, and this machine has no second one with peer access.";
      return;
    }
    for (lab::Table* table :
         {&reduced_, &gathered_, &scattered_, &exchanged_, &overlapped_, &planned_}) {
      if (!table->rows.empty()) report.add(std::move(*table));
    }
    report.add(lab::derived("gpus", "", ranks_, "GPUs", "one for each rank"));
    report.summary = fmt::format(
        "An all-reduce of 256 MB between {} GPUs runs at {} of bus bandwidth by our ring; {}.",
        ranks_, headline("all_reduce_bandwidth", "ring", 0),
        why_no_nccl_.empty() ? "NCCL at " + headline("all_reduce_bandwidth", "NCCL", 0)
                             : why_no_nccl_);
    if (best_beside_ > 0)
      report.summary += fmt::format(
          " A product beside the gather that it needs is up to {:.2f} times as fast as after it.",
          best_beside_);
    report.summary += why_not_in_one_;
  }

 private:
  // ---- collectives ------------------------------------------------------------------------------------

  /// The number of blocks with which a call is fastest; nothing where it is wrong, or cannot be timed.
  struct Chosen {
    int call = 0, blocks = 0;
  };
  std::optional<Chosen> choose(Timed& timed, CallShape shape, const std::string& check,
                               const std::vector<int>& blocks) {
    std::optional<Chosen> best;
    double least = 0;
    for (const int some : blocks) {
      shape.blocks = some;
      shape.threads = sizes_.threads;
      const int call = timed.add(shape);
      const lab::Closest closest = timed.compared(call);
      ladder.judge(check, "both ends of every rank's result against double", closest);
      apart_ = apart_ || timed.apart();
      if (!closest.ok() || !timed.apart()) continue;
      const double ms = lab::spread_of(timed.times(call, 6)).median;
      if (best && ms >= least) continue;
      best = {call, some};
      least = ms;
    }
    return best;
  }
  struct Row {
    std::string name;
    int blocks = 0;
    std::function<std::vector<double>(int samples)> times;
    std::vector<double> ms = {};
  };
  /// Where it is, and can be timed as our kernels are.
  void add_nccl(std::vector<Row>& rows, Timed& timed, Op op) {
    if (!timed.has_nccl() || nccl_.left_out) return;
    try {
      timed.nccl_times(op, 2);
      rows.push_back(
          {"NCCL", 0, [&timed, op](int samples) { return timed.nccl_times(op, samples); }});
    } catch (const Error& error) {
      why_no_nccl_ = error.what();
      nccl_.left_out = true;
    }
  }
  /// Rows and NCCL in turn.
  void time(std::vector<Row>& rows) {
    for (int round = 0; round < kRounds; ++round) {
      for (Row& row : rows) {
        progress.check();
        lab::append(row.ms, row.times(sizes_.samples / kRounds));
      }
    }
  }
  /// `carried`: bytes that a link carried by definition.
  void add(lab::Table& table, const std::vector<Row>& rows, std::int64_t bytes, double carried) {
    double peer = 0;
    for (const Row& row : rows) {
      if (row.name == "NCCL") peer = lab::spread_of(row.ms).median;
    }
    for (const Row& row : rows) {
      const lab::Spread ms = lab::spread_of(row.ms);
      const lab::Spread rate = lab::rate_of(ms, carried);
      lab::Cell times;
      if (peer > 0 && row.name != "NCCL") times = peer / ms.median;
      table.rows.push_back({row.name, bytes, ms.median * 1e3, ms.p10 * 1e3, ms.p90 * 1e3,
                            rate.median, times, row.blocks});
      if (bytes == kHeadline) {
        report.add(lab::measured(table.id + "_bandwidth", row.name, rate, "GB/s",
                                 fmt::format("256 MB, {} GPUs, bytes of a link", ranks_)));
      }
      if (&table == &reduced_ && row.name == "ring" && bytes <= kHeadline) {
        link_ = rate;
        blocks_ = row.blocks;
      }
    }
  }

  void reduce(std::int64_t bytes) {
    Timed timed(device, ranks_, bytes, nccl_);
    std::vector<Row> rows;
    for (const Algorithm algorithm : all_of<Algorithm>()) {
      const bool is_small = bytes <= sizes_.small;
      if (algorithm != Algorithm::ring && !is_small) continue;
      CallShape shape{.op = Op::all_reduce, .algorithm = algorithm, .ranks = ranks_};
      shape.units = static_cast<int>(timed.bytes() / (4 * kPack));
      const auto chosen =
          choose(timed, shape, "all_reduce", is_small ? sizes_.few_blocks : sizes_.many_blocks);
      if (!chosen) continue;
      rows.push_back(
          {std::string(name_of(algorithm)), chosen->blocks,
           [&timed, call = chosen->call](int samples) { return timed.times(call, samples); }});
    }
    if (!timed.apart()) return;
    add_nccl(rows, timed, Op::all_reduce);
    time(rows);
    add(reduced_, rows, bytes, 2.0 * (ranks_ - 1) / ranks_ * static_cast<double>(timed.bytes()));
  }

  /// All but an all-reduce: a link carries all parts but one.
  void move(lab::Table& table, Op op, std::int64_t bytes) {
    Timed timed(device, ranks_, bytes, nccl_);
    CallShape shape{.op = op, .ranks = ranks_};
    shape.units = static_cast<int>(timed.bytes() / (4 * kPack));
    if (op == Op::all_to_all) {
      shape.slot = shape.units / ranks_;
      shape.units = 0;
      for (int from = 0; from < ranks_; ++from) {
        for (int to = 0; to < ranks_; ++to) shape.counts[at(from)][at(to)] = shape.slot;
      }
    }
    std::vector<Row> rows;
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::one_shot}) {
      if (algorithm != Algorithm::ring && op != Op::all_gather) continue;
      shape.algorithm = algorithm;
      const auto chosen = choose(timed, shape, table.id,
                                 bytes <= sizes_.small ? sizes_.few_blocks : sizes_.many_blocks);
      if (!chosen) continue;
      rows.push_back(
          {op == Op::all_gather ? std::string(name_of(algorithm)) : "ours", chosen->blocks,
           [&timed, call = chosen->call](int samples) { return timed.times(call, samples); }});
    }
    if (rows.empty()) return;
    add_nccl(rows, timed, op);
    time(rows);
    add(table, rows, bytes,
        static_cast<double>(ranks_ - 1) / ranks_ * static_cast<double>(timed.bytes()));
  }

  // ---- a product and the gather that it needs -----------------------------------------------------------

  void overlap(const OverlapShape& shape, bool in_one_kernel = true) {
    using Way = Overlap::Way;
    Overlap both(device, ranks_, shape, sizes_, nccl_, in_one_kernel);
    both.warm();
    const Way* now = nullptr;
    try {
      std::vector<Way*> all = {&both.product()};
      for (Way& way : both.gathers()) all.push_back(&way);
      for (Way& way : both.ways()) {
        now = &way;
        ladder.judge("overlap", "some of each rank's product and chunk against double",
                     both.compared(way));
        all.push_back(&way);
      }
      apart_ = apart_ || both.apart();
      for (int round = 0; round < kRounds && both.apart(); ++round) {
        for (Way* way : all) {
          now = way;
          progress.check();
          lab::append(way->ms, both.times(*way, sizes_.samples / kRounds));
        }
      }
    } catch (const Cancelled&) {
      throw;
    } catch (const Error& error) {
      if (now == nullptr || !(now->as_they_come || now->enqueue_all)) throw;
      if (now->enqueue_all) {
        why_no_nccl_ = error.what();
        nccl_.left_out = true;
        return overlap(shape, in_one_kernel);
      }
      why_not_in_one_ = fmt::format(" A product in one kernel was left out: {}.", error.what());
      return overlap(shape, false);
    }
    if (!both.apart()) return;
    const auto median = [](const Way& way) { return lab::spread_of(way.ms).median; };
    double in_turn = 0;
    for (const Way& way : both.ways()) {
      if (way.in_turn && (in_turn == 0 || median(way) < in_turn)) in_turn = median(way);
    }
    const double product = median(both.product());
    for (const Way& way : both.ways()) {
      const lab::Spread ms = lab::spread_of(way.ms);
      const double wire = median(both.gathers()[at(way.wire)]);
      lab::Cell best;
      if (!way.in_turn) {
        best = (wire + product) / std::max(wire, product);
        best_beside_ = std::max(best_beside_, in_turn / ms.median);
      }
      overlapped_.rows.push_back({way.name, both.shape().tokens, both.shape().width, both.columns(),
                                  way.chunks, ms.median * 1e3, ms.p10 * 1e3, ms.p90 * 1e3,
                                  wire * 1e3, product * 1e3, in_turn / ms.median, best});
    }
  }

  // ---- steps of cut models ------------------------------------------------------------------------------

  ModelShape model_of(Cut cut, bool is_small) const {
    ModelShape model = large_model(cut, ranks_, sizes_.tokens);
    model.layers = (sizes_.layers + ranks_ - 1) / ranks_ * ranks_;  // as many in each stage
    model.sequences = std::max(1, 8 / ranks_) * ranks_;
    if (!is_small) return model;
    model.length = 8;
    model.heads = 8;
    model.dim = sizes_.checked_dim;
    model.inner = 16 * model.dim;
    if (cut != Cut::pipeline) model.layers = 2;
    return model;
  }
  void steps() {
    Step::How how{.blocks = 2, .threads = sizes_.threads, .microbatches = 4, .numbers = true};
    how.blocks = blocks_ > 0 ? std::min(blocks_, 4) : sizes_.many_blocks.front();
    std::vector<Cut> right;
    for (const Cut cut : sizes_.cuts) {
      progress.check();
      const ModelShape model = model_of(cut, true);
      if (!Step::has(cut, model, ranks_, how.microbatches)) continue;
      const auto step = Step::make(device, cut, model, ranks_, how);
      step->warm();
      const lab::Closest closest = step->compared();
      ladder.judge("step", "outputs and gradients of a small model in BF16 against double",
                   closest);
      if (closest.ok() && step->apart()) right.push_back(cut);
    }
    if (right.empty() || link_.samples == 0) return;
    how.blocks = blocks_;
    how.microbatches = sizes_.microbatches;
    how.numbers = false;
    struct Timed {
      Cut cut;
      ModelShape model;
      std::unique_ptr<Step> step;
      std::vector<double> ms = {};
    };
    std::vector<Timed> all;
    for (const Cut cut : right) {
      const ModelShape model = model_of(cut, !sizes_.large_steps);
      if (!Step::has(cut, model, ranks_, how.microbatches)) continue;
      all.push_back({cut, model, Step::make(device, cut, model, ranks_, how)});
      all.back().step->warm();
    }
    if (all.empty()) return;
    std::vector<double> product_ms;
    for (int round = 0; round < kRounds; ++round) {
      for (Timed& one : all) {
        progress.check();
        lab::append(one.ms, one.step->times(sizes_.samples / kRounds));
      }
      // Right after steps, when clocks are what they are in steps.
      lab::append(product_ms, all.front().step->product_times(sizes_.samples / kRounds));
    }
    const lab::Spread rate =
        lab::rate_of(lab::spread_of(product_ms), all.front().step->product_flops() / 1e3);
    report.add(lab::measured("product_rate", "", rate, "TFLOP/s",
                             "an MLP's first product of one rank, " + product_by()));
    report.add(lab::measured("link_rate", "ring", link_, "GB/s",
                             "bus bandwidth of an all-reduce, as planned with"));
    for (const Timed& one : all) {
      const PlannedStep plan =
          planned_with(one.cut, one.model, ranks_, Schedule::one_f_one_b, how.microbatches,
                       rate.median * 1e12, link_.median * 1e9);
      const lab::Spread ms = lab::spread_of(one.ms);
      planned_.rows.push_back({one.cut, ranks_, static_cast<int>(one.model.tokens()),
                               one.model.layers, plan.compute * 1e3, plan.wire * 1e3,
                               plan.idle * 1e3, plan.seconds() * 1e3, ms.median, ms.p10, ms.p90,
                               ms.median / (plan.seconds() * 1e3)});
    }
  }
  std::string product_by() const {
    const simt::LibraryStatus library = kernels_of(device).library();
    return library.available ? library.name : "a thread for each number";
  }

  static std::vector<lab::Column> columns() {
    return {"rung",
            whole("bytes", "", "B"),
            real("time", "", "µs", 2),
            real("p10", "", "µs", 2),
            real("p90", "", "µs", 2),
            real("bandwidth", "bus bandwidth", "GB/s", 1),
            real("times", "times as fast as NCCL", "", 3),
            whole("blocks")};
  }

  const BenchSizes sizes_;
  const int ranks_;
  bool apart_ = false;
  NcclRanks nccl_;
  std::string why_no_nccl_ = simt::Nccl::loaded().reason();  ///< empty: it was timed
  std::string why_not_in_one_;
  double best_beside_ = 0;  ///< against in turn
  lab::Spread link_;  ///< bus bandwidth of the ring, at the largest message up to the headline's
  int blocks_ = 0;    ///< with which it was fastest
  lab::Table reduced_{"all_reduce", "All-reduces between GPUs, FP32", columns()};
  lab::Table gathered_{"all_gather", "All-gathers between GPUs", columns()};
  lab::Table scattered_{"reduce_scatter", "Reduce-scatters between GPUs, FP32", columns()};
  lab::Table exchanged_{"all_to_all", "All-to-all between GPUs", columns()};
  lab::Table overlapped_{
      "overlap",
      "An all-gather of tokens, and the product that needs them, BF16",
      {"way", whole("tokens"), whole("width"), whole("columns", "columns of a rank"),
       whole("chunks"), real("time", "", "µs", 1), real("p10", "", "µs", 1),
       real("p90", "", "µs", 1), real("wire", "gather alone", "µs", 1),
       real("product", "product alone", "µs", 1), real("times", "times as fast as in turn", "", 3),
       real("best", "if all were hidden", "", 3)}};
  lab::Table planned_{
      "planned",
      "Products and collectives of a step beside the plan, BF16",
      {"cut", whole("ranks"), whole("tokens"), whole("layers"), real("compute", "", "ms", 3),
       real("wire", "", "ms", 3), real("idle", "", "ms", 3), real("predicted", "", "ms", 3),
       real("measured", "", "ms", 3), real("p10", "", "ms", 3), real("p90", "", "ms", 3),
       real("ratio", "measured over predicted", "", 3)}};
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  return lab::run_bench<Bench>(device, progress, sizes);
}

}  // namespace tilestep::parallelism
