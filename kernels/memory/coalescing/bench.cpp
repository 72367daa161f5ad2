#include "kernels/memory/coalescing/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/base/lab/timing.hpp"
#include "kernels/memory/coalescing/report.hpp"

// What is timed: copies and transposes of random 32-bit words in arrays many times any L2, so that
// every launch finds its input in memory. Useful work is one read and one write of each word.

namespace tilestep::coalescing {
namespace {

using lab::derived;
using lab::measured;
using lab::rate_of;
using lab::Spread;
using lab::spread_of;

constexpr unsigned kSeed = 7;
constexpr int kChoosingSamples = 20;
constexpr int kRounds = 3;  // of timing rung and peer in turn, so that both meet the same clocks
constexpr int kRoundSamples = 20;

std::vector<double> time_ms(const Bench& bench, const std::function<void()>& work, int samples) {
  simt::TimingPlan plan;
  plan.samples = samples;
  return bench.device.time_ms(work, plan);
}

/// Two arrays of words as floats, the first random.
struct Words {
  Words(const Bench& bench, std::size_t count)
      : in(bench.device, count), out(bench.device, count), wrong(bench.device, 1) {
    bench.kernels.fill_random(bench.device, in.span(), kSeed);
  }
  simt::Span<const float> from() const {
    return {reinterpret_cast<const float*>(in.span().data), in.count()};
  }
  simt::Span<float> to() { return {reinterpret_cast<float*>(out.span().data), out.count()}; }

  simt::Buffer<unsigned> in, out;
  simt::Buffer<unsigned long long> wrong;
};

/// Runs `work` once and counts the words of the output that are not the transpose of the input
/// [rows × columns].
double wrong_words(const Bench& bench, Words& words, std::int64_t rows, std::int64_t columns,
                   const std::function<void()>& work) {
  words.out.fill(0xFF);
  words.wrong.fill(0);
  work();
  bench.kernels.count_wrong(bench.device, rows, columns, kSeed, words.out.span(),
                            words.wrong.span());
  return static_cast<double>(words.wrong.download().front());
}

// ---- copies -------------------------------------------------------------------------------------

struct CopyChoice {
  CopyRung rung;
  CopyConfig config;
};

std::string text_of(const CopyChoice& choice) {
  if (choice.rung != CopyRung::vectorized) {
    return fmt::format("{} threads a block", choice.config.threads);
  }
  return fmt::format(
      "{} threads a block, {} x 16 bytes a thread, {}{}", choice.config.threads,
      choice.config.packs, choice.config.streaming ? "streaming" : "cached",
      choice.config.blocks > 0 ? fmt::format(", {} blocks", choice.config.blocks) : "");
}

std::vector<CopyChoice> copy_choices(CopyRung rung, int multiprocessors) {
  constexpr int kThreadsOfMultiprocessor = 2048;
  std::vector<CopyChoice> choices;
  for (const int threads : {128, 256, 512, 1024}) {
    if (rung != CopyRung::vectorized) {
      choices.push_back({rung, {threads, 1, false, 0}});
      continue;
    }
    for (const int packs : {1, 2, 4, 8}) {
      for (const bool streaming : {false, true}) {
        choices.push_back({rung, {threads, packs, streaming, 0}});
        if (packs < 4) continue;
        const int resident = multiprocessors * (kThreadsOfMultiprocessor / threads);
        choices.push_back({rung, {threads, packs, streaming, resident}});
      }
    }
  }
  return choices;
}

class CopyBench {
 public:
  explicit CopyBench(const Bench& bench)
      : bench_(bench),
        words_(bench, bench.sizes.copy_floats),
        bytes_(8.0 * static_cast<double>(bench.sizes.copy_floats)) {}

  CopyRates run() {
    ladder_ = {"copy_ladder",
               fmt::format("Copies of {} bytes, counted as read and written", bytes_ / 2),
               {{"rung", "copy", "", -1},
                {"configuration", "best configuration", "", -1},
                {"bandwidth", "bandwidth", "GB/s", 0},
                {"p10", "p10", "GB/s", 0},
                {"p90", "p90", "GB/s", 0},
                {"fraction", "of the device's copy", "", 3}},
               {}};
    all_ = ladder_;
    all_.id = "copy_configurations";
    all_.title = "The same for every configuration (fewer samples)";
    all_.columns[1].label = "configuration";
    all_.columns.pop_back();
    for (const CopyRung rung : kCopyRungs) measure(rung);
    ladder_.rows.push_back({std::string("device"), std::string("cudaMemcpyAsync"), peer_.median,
                            peer_.p10, peer_.p90, 1.0});
    bench_.report.measurements.push_back(
        measured("copy_bandwidth", "device", peer_, "GB/s",
                 fmt::format("cudaMemcpyAsync, device to device, {:.0f} bytes", bytes_ / 2)));
    bench_.report.tables.push_back(ladder_);
    bench_.report.tables.push_back(all_);
    bench_.report.checks.push_back(
        {"copies_correct", wrong_ == 0, wrong_, 0,
         "Words that some configuration copied wrong; copying is exact."});
    return {peer_.median, best_};
  }

 private:
  void launch(const CopyChoice& choice) {
    bench_.kernels.copy(bench_.device, choice.rung, choice.config, words_.from(), words_.to());
  }

  /// Finds the best configuration, then measures it anew beside the device's copy: the samples
  /// that chose it do not count.
  void measure(CopyRung rung) {
    CopyChoice best{};
    double best_ms = INFINITY;
    for (const CopyChoice& choice : copy_choices(rung, bench_.device.info().multiprocessors)) {
      bench_.progress.check();
      const auto work = [&] { launch(choice); };
      wrong_ += wrong_words(bench_, words_, 1, static_cast<std::int64_t>(words_.in.count()), work);
      const Spread time = spread_of(time_ms(bench_, work, kChoosingSamples));
      const Spread rate = rate_of(time, bytes_);
      all_.rows.push_back(
          {std::string(to_text(rung)), text_of(choice), rate.median, rate.p10, rate.p90});
      if (time.median < best_ms) {
        best_ms = time.median;
        best = choice;
      }
    }
    beside_peer(best);
  }

  void beside_peer(const CopyChoice& choice) {
    std::vector<double> ours;
    std::vector<double> theirs;
    const auto append = [](std::vector<double>& to, const std::vector<double>& more) {
      to.insert(to.end(), more.begin(), more.end());
    };
    for (int round = 0; round < kRounds; ++round) {
      append(theirs, time_ms(
                         bench_,
                         [&] {
                           bench_.device.copy_on_device(words_.out.span().data,
                                                        words_.in.span().data, words_.in.bytes());
                         },
                         kRoundSamples));
      append(ours, time_ms(
                       bench_, [&] { launch(choice); }, kRoundSamples));
    }
    const Spread rate = rate_of(spread_of(ours), bytes_);
    peer_ = rate_of(spread_of(theirs), bytes_);
    best_ = std::max(best_, rate.median);
    const std::string_view name = to_text(choice.rung);
    ladder_.rows.push_back({std::string(name), text_of(choice), rate.median, rate.p10, rate.p90,
                            rate.median / peer_.median});
    auto& m = bench_.report.measurements;
    m.push_back(measured("copy_bandwidth", name, rate, "GB/s", text_of(choice)));
    m.push_back(derived("fraction_of_device_copy", name, rate.median / peer_.median, "",
                        "copy_bandwidth / cudaMemcpyAsync, timed in turn"));
  }

  const Bench& bench_;
  Words words_;
  double bytes_;
  lab::Table ladder_, all_;
  Spread peer_;
  double best_ = 0;
  double wrong_ = 0;
};

// ---- transposes ---------------------------------------------------------------------------------

std::string text_of(const TransposeShape& shape) {
  return fmt::format("tile {0} x {0}, {1} thread rows, blocks {2}", shape.tile, shape.thread_rows,
                     shape.down_columns ? "down columns" : "along rows");
}

class TransposeBench {
 public:
  TransposeBench(const Bench& bench, double copy)
      : bench_(bench),
        copy_(copy),
        edge_(bench.sizes.transpose_edge),
        words_(bench, static_cast<std::size_t>(edge_) * static_cast<std::size_t>(edge_)),
        bytes_(8.0 * static_cast<double>(words_.in.count())) {}

  void run() {
    ladder_ = {"transpose_ladder",
               fmt::format("Transposes of {0} x {0} FP32, counted as read and written", edge_),
               {{"rung", "transpose", "", -1},
                {"configuration", "best configuration", "", -1},
                {"bandwidth", "bandwidth", "GB/s", 0},
                {"p10", "p10", "GB/s", 0},
                {"p90", "p90", "GB/s", 0},
                {"fraction", "of our copy", "", 3},
                {"store_ways", "store ways (traced)", "", 0},
                {"load_ways", "load ways (traced)", "", 0},
                {"conflicts", "conflicts per request (counted)", "", 2}},
               {}};
    all_ = ladder_;
    all_.id = "transpose_configurations";
    all_.title = "The same for every configuration (fewer samples)";
    all_.columns[1].label = "configuration";
    all_.columns.resize(5);
    std::int64_t wrong_traced = 0;
    tiles_ = traced_tiles(bench_.device, wrong_traced);
    wrong_ += static_cast<double>(wrong_traced);
    for (const TransposeRung rung : kTransposeRungs) measure(rung);
    bench_.report.tables.push_back(ladder_);
    bench_.report.tables.push_back(all_);
    bench_.report.checks.push_back(
        {"transposes_correct", wrong_ == 0, wrong_, 0,
         "Words that some configuration put in the wrong place; moving is exact."});
  }

 private:
  void launch(TransposeRung rung, const TransposeShape& shape) {
    bench_.kernels.transpose(bench_.device, rung, shape, words_.from(), words_.to());
  }

  void measure(TransposeRung rung) {
    TransposeShape best;
    double best_ms = INFINITY;
    for (const int tile : {32, 64}) {
      for (const int thread_rows : {4, 8, 16}) {
        for (const bool down : {false, true}) {
          bench_.progress.check();
          const TransposeShape shape{edge_, edge_, tile, thread_rows, down};
          const auto work = [&] { launch(rung, shape); };
          wrong_ += wrong_words(bench_, words_, edge_, edge_, work);
          const Spread time = spread_of(time_ms(bench_, work, kChoosingSamples));
          const Spread rate = rate_of(time, bytes_);
          all_.rows.push_back(
              {std::string(to_text(rung)), text_of(shape), rate.median, rate.p10, rate.p90});
          if (time.median >= best_ms) continue;
          best_ms = time.median;
          best = shape;
        }
      }
    }
    add(rung, best);
  }

  lab::Cell ways(TransposeRung rung, Access kind) const {
    for (const TileRequest& request : tiles_) {
      if (request.rung == to_text(rung) && request.kind == kind) {
        return static_cast<double>(request.ways);
      }
    }
    return {};
  }

  /// Each word goes once into and once out of shared memory, 32 with a request.
  lab::Cell counted_conflicts(TransposeRung rung, const TransposeShape& shape) {
    if (rung == TransposeRung::naive || !bench_.device.counters().available) return {};
    const auto counted = simt::count(bench_.device, {simt::metric::kSharedBankConflicts},
                                     [&] { launch(rung, shape); });
    const double requests = 2.0 * static_cast<double>(words_.in.count()) / kLanes;
    return counted.at(simt::metric::kSharedBankConflicts) / requests;
  }

  void add(TransposeRung rung, const TransposeShape& shape) {
    const auto work = [&] { launch(rung, shape); };
    const Spread rate = rate_of(spread_of(time_ms(bench_, work, kRounds * kRoundSamples)), bytes_);
    const std::string_view name = to_text(rung);
    const lab::Cell conflicts = counted_conflicts(rung, shape);
    ladder_.rows.push_back({std::string(name), text_of(shape), rate.median, rate.p10, rate.p90,
                            rate.median / copy_, ways(rung, Access::store),
                            ways(rung, Access::load), conflicts});
    auto& m = bench_.report.measurements;
    m.push_back(measured("transpose_bandwidth", name, rate, "GB/s",
                         fmt::format("{0} x {0} FP32, {1}", edge_, text_of(shape))));
    m.push_back(derived("fraction_of_copy", name, rate.median / copy_, "",
                        "transpose_bandwidth / the best of our copies in the same run"));
    if (const double* value = std::get_if<double>(&conflicts)) {
      m.push_back(derived("bank_conflicts_per_request", name, *value, "",
                          "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum / (2 x words / 32)"));
      m.back().provenance = lab::Provenance::counted;
    }
  }

  const Bench& bench_;
  double copy_;
  int edge_;
  Words words_;
  double bytes_;
  lab::Table ladder_, all_;
  std::vector<TileRequest> tiles_;
  double wrong_ = 0;
};

}  // namespace

BenchSizes bench_sizes(std::size_t memory_bytes) {
  const auto largest = [](std::size_t most, auto fits) {
    std::size_t size = most;
    while (size > 64 && !fits(size)) size /= 2;
    return size;
  };
  BenchSizes sizes;
  // In and out.
  sizes.copy_floats =
      largest(std::size_t{1} << 29, [&](std::size_t n) { return 8 * n <= memory_bytes / 4; });
  sizes.transpose_edge = static_cast<int>(
      largest(16384, [&](std::size_t edge) { return 8 * edge * edge <= memory_bytes / 4; }));
  // The largest stride spreads 4 bytes over 256.
  sizes.access_elements = static_cast<std::int64_t>(
      largest(std::size_t{1} << 27, [&](std::size_t n) { return 260 * n <= memory_bytes / 2; }));
  return sizes;
}

CopyRates bench_copies(const Bench& bench) {
  return CopyBench(bench).run();
}

void bench_transposes(const Bench& bench, double copy) {
  TransposeBench(bench, copy).run();
}

lab::Report bench_report(simt::Device& device, lab::Progress& progress) {
  if (!device.can_time()) {
    throw Error("bandwidth can only be timed on a GPU, and " + device.info().name +
                    " runs the kernels under emulation, whose times say nothing about a GPU",
                ExitCode::unavailable);
  }
  lab::Report report;
  report.lesson = kLessonId;
  report.params = knob_table().settings(Params{});
  report.device = device.info();
  const auto& kernels = static_cast<const Kernels&>(device.kernels(kLessonId));
  const Bench bench{device, kernels, progress, report, bench_sizes(device.info().memory_bytes)};
  progress.report(0, "timing copies");
  const CopyRates copy = bench_copies(bench);
  progress.report(0.2, "timing transposes");
  bench_transposes(bench, copy.best);
  progress.report(0.35, "timing the patterns");
  bench_patterns(bench, copy.device);
  progress.report(0.85, "counting in hardware");
  count_sweep(bench);

  const lab::Measurement& strided = *report.measurement("useful_bandwidth", "strided");
  report.summary = fmt::format(
      "On {} the best copy moves {:.0f} GB/s, {:.3f} of the device's own; the padded transpose "
      "reaches {:.2f} of it, and loads with stride {} deliver {:.0f} useful GB/s.",
      report.device.name, copy.best, copy.best / copy.device,
      report.measurement("fraction_of_copy", to_text(TransposeRung::shared_tile_padded))->value,
      Params{}.stride, strided.value);
  progress.report(1, "done");
  return report;
}

}  // namespace tilestep::coalescing
