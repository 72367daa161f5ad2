#include "kernels/memory/coalescing/bench/bench.hpp"

#include <fmt/format.h>

#include <string>

#include "kernels/base/lab/quick.hpp"
#include "kernels/base/simt/counters.hpp"
#include "kernels/memory/coalescing/report.hpp"

// What is timed: copies and transposes of random 32-bit words in arrays many times any L2, so that
// every launch finds its input in memory. Useful work is one read and one write of each word.

namespace tilestep::coalescing {
namespace {

using lab::column, lab::real;

constexpr unsigned kSeed = 7;

/// Random words as floats, and room for what a kernel makes of them.
class Words {
 public:
  Words(const Bench& bench, std::size_t count)
      : in(bench.device, count), out(bench.device, count), bench_(bench), wrong_(bench.device, 1) {
    bench.kernels.fill_random(bench.device, in.span(), kSeed);
  }
  simt::Span<const float> from() const {
    return {reinterpret_cast<const float*>(in.span().data), in.count()};
  }
  simt::Span<float> to() { return {reinterpret_cast<float*>(out.span().data), out.count()}; }
  lab::Work work() const {
    const auto bytes = static_cast<double>(in.bytes());
    return {.bytes_read = bytes, .bytes_written = bytes};
  }

  /// `launch`, and how many words of the output are then not the transpose of the input
  /// [rows × columns]; a copy is a matrix of one row.
  lab::Runnable runnable(std::function<void()> launch, std::int64_t rows, std::int64_t columns) {
    return lab::judged(bench_.device, out, std::move(launch), [this, rows, columns] {
      wrong_.fill(0);
      bench_.kernels.count_wrong(bench_.device, rows, columns, kSeed, out.span(), wrong_.span());
      lab::Closest closest;
      closest.add(wrong_.download().front(), 0, 0);
      return closest;
    });
  }

  simt::Buffer<unsigned> in, out;

 private:
  const Bench& bench_;
  simt::Buffer<unsigned long long> wrong_;
};

// ---- copies -------------------------------------------------------------------------------------

std::vector<CopyConfig> copy_configs(CopyRung rung, int multiprocessors) {
  constexpr int kThreadsOfMultiprocessor = 2048;
  std::vector<CopyConfig> configs;
  for (const int threads : {128, 256, 512, 1024}) {
    if (rung != CopyRung::vectorized) {
      configs.push_back({threads, 1, false, 0});
      continue;
    }
    for (const int packs : {1, 2, 4, 8}) {
      for (const bool streaming : {false, true}) {
        configs.push_back({threads, packs, streaming, 0});
        if (packs < 4) continue;
        const int resident = multiprocessors * (kThreadsOfMultiprocessor / threads);
        configs.push_back({threads, packs, streaming, resident});
      }
    }
  }
  return configs;
}

std::string text_of(CopyRung rung, const CopyConfig& config) {
  const std::string threads = fmt::format("{} threads a block", config.threads);
  if (rung != CopyRung::vectorized) return threads;
  return fmt::format("{}, {} x 16 bytes a thread, {}{}", threads, config.packs,
                     config.streaming ? "streaming" : "cached",
                     config.blocks > 0 ? fmt::format(", {} blocks", config.blocks) : "");
}

lab::Rung copy_rung(const Bench& bench, Words& words, CopyRung rung) {
  lab::Rung copies = lab::rung_of(rung, "copies_correct",
                                  "Words that some configuration copied wrong; copying is exact.");
  for (const CopyConfig& config : copy_configs(rung, bench.device.info().multiprocessors)) {
    const auto launch = [&bench, &words, rung, config] {
      bench.kernels.copy(bench.device, rung, config, words.from(), words.to());
    };
    const auto count = static_cast<std::int64_t>(words.in.count());
    copies.configurations.push_back(
        {.name = text_of(rung, config),
         .make = [&words, launch, count] { return words.runnable(launch, 1, count); }});
  }
  return copies;
}

std::vector<lab::Column> columns(const char* rung, const char* of) {
  return {column("rung", rung),
          column("configuration", "best configuration"),
          "bandwidth",
          "p10",
          "p90",
          column("fraction", of)};
}

void add_configurations(Bench& bench, const char* id, const lab::Climb& climb) {
  bench.add_table(id, "The same for every configuration (fewer samples)",
                  {"rung", "configuration", "bandwidth", "p10", "p90"}, climb.configurations);
}

lab::Climb climb_copies(Bench& bench) {
  Words words(bench, bench.sizes.copy_floats);
  lab::LadderPlan plan;
  plan.work = words.work();
  plan.peers = {lab::device_copy(bench.device, "device", words.to().data, words.from().data,
                                 words.in.bytes())};
  plan.peers[0].rate_id = "copy_bandwidth";
  plan.rate_id = "copy_bandwidth";
  plan.fraction_id = "fraction_of_device_copy";
  for (const CopyRung rung : kCopyRungs) plan.rungs.push_back(copy_rung(bench, words, rung));
  lab::Climb climb = bench.climb(plan, 0, 0.2);
  std::vector<lab::Timed> rows = climb.rungs;
  lab::append(rows, climb.peers);
  std::vector<lab::Column> shown = columns("copy", "of the device's copy");
  shown.push_back({"why", "what changed"});
  bench.add_table("copy_ladder",
                  fmt::format("Copies of {} bytes, counted as read and written", words.in.bytes()),
                  shown, rows);
  add_configurations(bench, "copy_configurations", climb);
  return climb;
}

// ---- transposes ---------------------------------------------------------------------------------

std::string text_of(const TransposeShape& shape) {
  return fmt::format("tile {0} x {0}, {1} thread rows, blocks {2}", shape.tile, shape.thread_rows,
                     shape.down_columns ? "down columns" : "along rows");
}

lab::Rung transpose_rung(const Bench& bench, Words& words, TransposeRung rung,
                         const std::vector<TileRequest>& traced) {
  const int edge = bench.sizes.transpose_edge;
  lab::Rung transposes =
      lab::rung_of(rung, "transposes_correct",
                   "Words that some configuration put in the wrong place; moving is exact.");
  transposes.counted = rung != TransposeRung::naive;
  for (const TileRequest& request : traced) {
    if (request.rung != transposes.name) continue;
    transposes.cells[request.kind == Access::store ? "store_ways" : "load_ways"] = request.ways;
  }
  for (const int tile : {32, 64}) {
    for (const int thread_rows : {4, 8, 16}) {
      for (const bool down : {false, true}) {
        const TransposeShape shape{edge, edge, tile, thread_rows, down};
        const auto launch = [&bench, &words, rung, shape] {
          bench.kernels.transpose(bench.device, rung, shape, words.from(), words.to());
        };
        transposes.configurations.push_back(
            {.name = text_of(shape),
             .make = [&words, launch, edge] { return words.runnable(launch, edge, edge); }});
      }
    }
  }
  return transposes;
}

/// Beside the best of our copies, which moves the same words in the same turns.
void climb_transposes(Bench& bench, const lab::Climb& copies) {
  const int edge = bench.sizes.transpose_edge;
  Words words(bench, static_cast<std::size_t>(edge) * static_cast<std::size_t>(edge));
  lab::LadderPlan plan;
  plan.work = words.work();
  plan.shape = fmt::format("{0} x {0} FP32", edge);
  plan.rate_id = "transpose_bandwidth";
  plan.fraction_id = "fraction_of_copy";
  // Each word goes once into and once out of shared memory, kLanes with a request.
  plan.counters = {{"bank_conflicts_per_request",
                    "",
                    {{simt::metric::kSharedBankConflicts}},
                    kLanes / (2.0 * static_cast<double>(words.in.count()))}};
  const lab::Timed& best = copies.rungs.back();
  lab::Rung& peer = plan.peers.emplace_back(copy_rung(bench, words, CopyRung::vectorized));
  if (best.chosen >= 0) {
    peer.configurations = {peer.configurations[best.chosen]};
  }
  std::int64_t wrong_traced = 0;
  const std::vector<TileRequest> traced = traced_tiles(bench.device, wrong_traced);
  for (const TransposeRung rung : kTransposeRungs) {
    plan.rungs.push_back(transpose_rung(bench, words, rung, traced));
  }
  lab::Closest moved;
  moved.add(wrong_traced, 0, 0);
  bench.ladder.judge(plan.rungs.front().check, plan.rungs.front().check_detail, moved);
  lab::Climb climb = bench.climb(plan, 0.2, 0.35);
  for (lab::Timed& timed : climb.rungs) {
    timed.cells["conflicts"] = timed.number("bank_conflicts_per_request");
  }
  std::vector<lab::Column> shown = columns("transpose", "of our copy");
  lab::append(
      shown,
      {column("store_ways", "store ways (traced)"), column("load_ways", "load ways (traced)"),
       real("conflicts", "conflicts per request (counted)", "", 2), column("why", "what changed")});
  bench.add_table("transpose_ladder",
                  fmt::format("Transposes of {0} x {0} FP32, counted as read and written", edge),
                  shown, climb.rungs);
  add_configurations(bench, "transpose_configurations", climb);
}

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

double bench_ladders(Bench& bench) {
  const lab::Climb copies = climb_copies(bench);
  climb_transposes(bench, copies);
  return copies.peers.front().rate.median;
}

lab::Report bench_report(simt::Device& device, lab::Progress& progress) {
  const bool quick = lab::QuickBench::asked();
  Bench bench{{device, progress}};
  if (quick) {
    lab::leave_out(bench.report,
                   {"strides", "offsets", "patterns", "element sizes", "hardware counters"});
  }
  const double copy = bench_ladders(bench);
  lab::append(bench.report.checks, bench.ladder.checks());
  if (!quick) {
    bench_patterns(bench, copy);
    progress.report(0.85, "counting in hardware");
    count_sweep(bench);
  }

  bench.report.summary = fmt::format(
      "On {} the best copy moves {}, the device's own {}; the padded transpose reaches {}",
      device.info().name, bench.headline("copy_bandwidth", name_of(CopyRung::vectorized), 0),
      bench.headline("copy_bandwidth", "device", 0),
      bench.headline("transpose_bandwidth", name_of(TransposeRung::shared_tile_padded), 0));
  bench.report.summary +=
      quick ? "."
            : fmt::format(", and loads with stride {} deliver {} of useful bytes.", Params{}.stride,
                          bench.headline("useful_bandwidth", "strided", 0));
  return bench.report;
}

}  // namespace tilestep::coalescing
