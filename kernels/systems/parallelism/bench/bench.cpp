// What the lesson times: all-reduces and exchanges between the GPUs of a host, by our kernels and by NCCL in turn.

#include "kernels/systems/parallelism/bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "kernels/base/lab/quick.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/simt/nccl.hpp"
#include "kernels/systems/parallelism/lesson.hpp"
#include "kernels/systems/parallelism/run/team.hpp"

namespace tilestep::parallelism {
namespace {

using lab::real, lab::whole;

constexpr std::size_t kRepeated = 1000003;  // a prime: chunks and ranks differ
constexpr int kRounds = 3;
constexpr std::int64_t kHeadline = 1 << 28;

/// Ranks with a message each, and calls on it.
class Timed {
 public:
  Timed(simt::Device& device, int ranks, std::int64_t bytes, const BenchSizes& sizes)
      : team_(device, ranks), sizes_(sizes), bytes_(bytes) {
    const auto numbers = at(bytes / 4);
    std::mt19937 generator = lab::generator_of(bytes % 1000);
    for (int rank = 0; rank < ranks; ++rank) {
      period_.push_back(lab::uniform_floats(generator, std::min(kRepeated, numbers)));
      in_.push_back(team_.unwritten<float>(rank, numbers));
      out_.push_back(team_.unwritten<float>(rank, numbers));
      fill(rank, in_.back());
    }
  }
  ~Timed() {
    if (!nccl_.empty()) simt::Nccl::loaded().destroy(nccl_);
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

  int ranks() const { return team_.count(); }
  bool apart() { return team_.ranks().apart(); }
  int add(const CallShape& shape) {
    const int call = team_.add(shape);
    for (int rank = 0; rank < ranks(); ++rank)
      team_.join(call, rank, in_[at(rank)], out_[at(rank)]);
    return call;
  }
  /// Runs a call once, on outputs that hold no numbers, and compares both ends of every rank's.
  lab::Closest compared(int call) {
    for (int rank = 0; rank < ranks(); ++rank) {
      simt::Device& device = team_.ranks().at(rank);
      device.fill(out_[at(rank)].data, 0xFF, out_[at(rank)].count * sizeof(float));
    }
    team_.ranks().run([&](int rank) { team_.make(call, rank); });
    lab::Closest closest;
    const CallShape& shape = team_.shape(call);
    const std::size_t numbers = in_[0].count, some = std::min<std::size_t>(numbers, 4096);
    for (int rank = 0; rank < ranks(); ++rank) {
      for (const std::size_t first : {std::size_t{0}, numbers - some}) {
        const std::vector<float> got =
            team_.download(simt::Span<float>{out_[at(rank)].data + first, some});
        for (std::size_t i = 0; i < some; ++i) {
          double want = 0, bound = 0;
          if (shape.op == Op::all_reduce) {
            for (int from = 0; from < ranks(); ++from) {
              const double one = number(from, first + i);
              want += one;
              bound += std::abs(one) * (ranks() - 1) * 0x1p-24;
            }
          } else {
            const std::size_t block = numbers / at(ranks()), from = (first + i) / block;
            want = number(static_cast<int>(from), at(rank) * block + (first + i) % block);
          }
          closest.add(got[i], want, bound);
        }
      }
    }
    return closest;
  }
  /// Milliseconds per call.
  std::vector<double> times(int call, int samples) {
    return team_.ranks().time_ms(
        [&] {
          for (int rank = 0; rank < ranks(); ++rank) team_.make(call, rank);
        },
        calls(), samples);
  }
  std::vector<double> nccl_times(Op op, int samples) {
    const simt::Nccl& nccl = simt::Nccl::loaded();
    const auto enqueue = [&] {
      nccl.begin();
      for (int rank = 0; rank < ranks(); ++rank) {
        const std::size_t place = at(rank), numbers = in_[place].count;
        void* stream = team_.ranks().stream(rank);
        if (op == Op::all_reduce) {
          nccl.all_reduce(in_[place].data, out_[place].data, numbers, nccl_[place], stream);
        } else {
          nccl.all_to_all(in_[place].data, out_[place].data, numbers / at(ranks()), ranks(),
                          nccl_[place], stream);
        }
      }
      nccl.end();
    };
    if (nccl_.empty()) {
      std::vector<int> gpus;
      for (int rank = 0; rank < ranks(); ++rank) gpus.push_back(team_.ranks().gpu(rank));
      nccl_ = nccl.make(gpus);
      enqueue();  // its first call connects the ranks, which no graph can hold
      team_.ranks().run([](int) {});
    }
    return team_.ranks().time_ms(enqueue, calls(), samples);
  }
  bool has_nccl() { return simt::Nccl::loaded().available() && team_.ranks().stream(0) != nullptr; }

 private:
  int calls() const { return bytes_ <= 1 << 20 ? 32 : bytes_ <= 1 << 26 ? 8 : 3; }
  double number(int rank, std::size_t i) const {
    const std::vector<float>& period = period_[at(rank)];
    return static_cast<double>(period[i % period.size()]);
  }
  void fill(int rank, simt::Span<float> to) {
    simt::Device& device = team_.ranks().at(rank);
    const std::vector<float>& period = period_[at(rank)];
    device.copy_in(to.data, period.data(), period.size() * sizeof(float));
    for (std::size_t done = period.size(); done < to.count; done *= 2)
      device.copy_on_device(to.data + done, to.data,
                            std::min(done, to.count - done) * sizeof(float));
    device.synchronize();
  }

  Team team_;
  const BenchSizes& sizes_;
  const std::int64_t bytes_;
  std::vector<std::vector<float>> period_;
  std::vector<simt::Span<float>> in_, out_;
  std::vector<void*> nccl_;
};

class Bench : public lab::Bench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes)
      : lab::Bench(start),
        sizes_(sizes),
        ranks_(std::clamp(kernels_of(device).gpus(), 2, kMostRanks)) {}

  void run() {
    if (sizes_.quick) lab::leave_out(report, {"other sizes", "other numbers of blocks"});
    const std::size_t all = sizes_.reduced.size() + sizes_.exchanged.size();
    std::size_t so_far = 0;
    const auto next = [&] {
      progress.check();
      progress.report(static_cast<double>(so_far++) / static_cast<double>(all), "sending");
    };
    for (const std::int64_t bytes : sizes_.reduced) {
      next();
      reduce(bytes);
    }
    for (const std::int64_t bytes : sizes_.exchanged) {
      next();
      exchange(bytes);
    }
    if (!apart_) {
      report.summary =
          "All-reduces and exchanges are right; links are timed between GPUs, one for each rank, "
          "and "
          "this machine has no second one with peer access.";
      return;
    }
    report.add(reduced_);
    report.add(exchanged_);
    report.summary = fmt::format(
        "An all-reduce of 256 MB between {} GPUs runs at {} of bus bandwidth by our ring; {}.",
        ranks_, headline("all_reduce_bandwidth", "ring", 0),
        why_no_nccl_.empty() ? "NCCL at " + headline("all_reduce_bandwidth", "NCCL", 0)
                             : why_no_nccl_);
  }

 private:
  /// The number of blocks with which a call is fastest; nothing where it is wrong, or cannot be timed.
  struct Chosen {
    int call = 0, blocks = 0;
  };
  std::optional<Chosen> choose(Timed& timed, CallShape shape, const char* check,
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
    if (!timed.has_nccl()) return;
    try {
      timed.nccl_times(op, 2);
      rows.push_back(
          {"NCCL", 0, [&timed, op](int samples) { return timed.nccl_times(op, samples); }});
    } catch (const Error& error) {
      why_no_nccl_ = error.what();
    }
  }
  /// Rows and NCCL in turn.
  void time(std::vector<Row>& rows) {
    for (int round = 0; round < kRounds; ++round) {
      for (Row& row : rows) {
        progress.check();
        const std::vector<double> some = row.times(sizes_.samples / kRounds);
        row.ms.insert(row.ms.end(), some.begin(), some.end());
      }
    }
  }
  /// `carried`: bytes that a link carried by definition.
  void add(lab::Table& table, const char* id, const std::vector<Row>& rows, std::int64_t bytes,
           double carried) {
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
        report.add(lab::measured(id, row.name, rate, "GB/s",
                                 fmt::format("256 MB per rank, {} GPUs, bytes of a link", ranks_)));
      }
    }
  }

  void reduce(std::int64_t bytes) {
    Timed timed(device, ranks_, bytes, sizes_);
    std::vector<Row> rows;
    for (const Algorithm algorithm : all_of<Algorithm>()) {
      const bool is_small = bytes <= sizes_.small;
      if (algorithm != Algorithm::ring && !is_small) continue;
      CallShape shape{.op = Op::all_reduce, .algorithm = algorithm, .ranks = ranks_};
      shape.units = static_cast<int>(bytes / (4 * kPack));
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
    add(reduced_, "all_reduce_bandwidth", rows, bytes,
        2.0 * (ranks_ - 1) / ranks_ * static_cast<double>(bytes));
  }

  void exchange(std::int64_t bytes) {
    Timed timed(device, ranks_, bytes, sizes_);
    CallShape shape{.op = Op::all_to_all, .ranks = ranks_};
    shape.slot = static_cast<int>(bytes / (4 * kPack) / ranks_);
    for (int from = 0; from < ranks_; ++from) {
      for (int to = 0; to < ranks_; ++to) shape.counts[at(from)][at(to)] = shape.slot;
    }
    const auto chosen = choose(timed, shape, "all_to_all", sizes_.many_blocks);
    if (!chosen) return;
    std::vector<Row> rows = {
        {"ours", chosen->blocks, [&](int samples) { return timed.times(chosen->call, samples); }}};
    add_nccl(rows, timed, Op::all_to_all);
    time(rows);
    add(exchanged_, "all_to_all_bandwidth", rows, bytes,
        static_cast<double>(ranks_ - 1) / ranks_ * static_cast<double>(bytes));
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
  std::string why_no_nccl_ = simt::Nccl::loaded().reason();  ///< empty: it was timed
  lab::Table reduced_{"all_reduce", "All-reduces between GPUs, FP32", columns()};
  lab::Table exchanged_{"all_to_all", "All-to-all between GPUs", columns()};
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  return lab::run_bench<Bench>(device, progress, sizes);
}

}  // namespace tilestep::parallelism
