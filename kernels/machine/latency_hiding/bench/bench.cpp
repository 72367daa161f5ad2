// What is timed: the ladder of copies; the other parts have files of their own.

#include "kernels/machine/latency_hiding/bench/bench.hpp"

#include <fmt/format.h>

#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/quick.hpp"
#include "kernels/machine/latency_hiding/bench/parts.hpp"

namespace tilestep::latency_hiding {
namespace {

using lab::column;

constexpr unsigned kSeed = 7;
constexpr int kQuarter = 16;  // warps: 25 % occupancy

Params rung_params(Rung rung) {
  Params params;
  params.warps_per_sm = kQuarter;
  params.kernel = rung == Rung::bulk_copy ? Kernel::bulk_copy : Kernel::copy;
  params.bytes_per_load = rung == Rung::one_load ? LoadBytes::b4 : LoadBytes::b16;
  params.loads_in_flight = Loads::l1;
  return params;
}

/// A way to launch a rung: with as few blocks as are resident at a time, or with a block for each few chunks (stages of
/// a bulk copy), which the hardware starts in order.
struct Way {
  Params params;
  int chunks_of_block = 0;  ///< 0: as few blocks as are resident
};

std::vector<Way> ways_of(Rung rung) {
  std::vector<Block> blocks = {Block::b128, Block::b256};
  std::vector<Loads> loads = {Loads::l1};
  std::vector<int> chunks = {0};
  if (rung == Rung::copy) {
    blocks = {Block::b32, Block::b64, Block::b128, Block::b256};
    loads = {Loads::l4};
    chunks = {0, 1, 2, 4};
  } else if (rung == Rung::bulk_copy) {
    blocks = {Block::b64, Block::b128, Block::b256};
    loads = {Loads::l4, Loads::l8};
    chunks = {0, 16, 32};
  }
  std::vector<Way> all;
  Params params = rung_params(rung);
  for (const Loads in_flight : loads) {
    params.loads_in_flight = in_flight;
    for (const Block block : blocks) {
      params.block = block;
      for (const int of_block : chunks) all.push_back({params, of_block});
    }
  }
  return all;
}

std::string text_of(const Way& way) {
  const Params& params = way.params;
  const bool copy = params.kernel == Kernel::copy;
  return fmt::format("{} warps, {} threads a block, {} x {} bytes{}", params.warps_per_sm,
                     threads_of(params.block), count_of(params.loads_in_flight),
                     copy ? bytes_of(params.bytes_per_load) : stage_bytes(params),
                     way.chunks_of_block > 0
                         ? fmt::format(", a block for {}",
                                       lab::plural(way.chunks_of_block, copy ? "chunk" : "stage"))
                         : "");
}

lab::Rung rung_of(Words& words, Rung rung) {
  lab::Rung made = lab::rung_of(rung, "copies_correct",
                                "Words that some configuration copied wrong; copying is exact.");
  for (const Way& way : ways_of(rung)) {
    made.configurations.push_back({.name = text_of(way), .make = [&words, way] {
                                     return words.runnable(way.params, way.chunks_of_block);
                                   }});
  }
  return made;
}

void climb_copies(Parts& parts) {
  Words words(parts, parts.sizes.copy_bytes);
  lab::LadderPlan plan;
  plan.work = {.bytes_read = words.bytes(), .bytes_written = words.bytes()};
  plan.peers = {lab::device_copy(parts.device, "device", words.to().data, words.from().data,
                                 static_cast<std::size_t>(words.bytes()))};
  plan.peers[0].rate_id = "copy_bandwidth";
  plan.rate_id = "copy_bandwidth";
  plan.fraction_id = "fraction_of_copy";
  plan.note = fmt::format("at most {} of {} warps", kQuarter, kMostWarps);
  plan.rounds = parts.sizes.rounds;
  plan.turn.settle_ms = parts.sizes.settle_ms;
  for (const Rung rung : all_of<Rung>()) plan.rungs.push_back(rung_of(words, rung));
  const lab::Climb climb = parts.climb(plan, 0, 0.35);
  std::vector<lab::Timed> rows = climb.rungs;
  lab::append(rows, climb.peers);
  parts.add_table(
      "ladder",
      fmt::format("Copies of {} bytes with a quarter of the warps, counted as read and written",
                  static_cast<std::int64_t>(words.bytes())),
      {"rung", column("configuration", "best configuration"), "bandwidth", "p10", "p90",
       column("fraction", "of the device's copy"), column("why", "what changed")},
      rows);
  parts.add_table("ladder_configurations", "The same for every configuration (fewer samples)",
                  {"rung", "configuration", "bandwidth", "p10", "p90"}, climb.configurations);
}

}  // namespace

lab::Spread Parts::time(const std::function<void()>& launch) const {
  const lab::Pace pace{sizes.point_settle_ms, 20, 20, 60};
  return lab::spread_of(lab::settled_times(device, progress, launch, pace, false));
}

Params with_warps(Params params, int warps) {
  params.warps_per_sm = warps;
  params.block = warps >= 4 ? Block::b128 : warps == 2 ? Block::b64 : Block::b32;
  return params;
}

Words::Words(Parts& parts, std::size_t bytes)
    : parts_(parts),
      in_(parts.device, bytes / 4),
      out_(parts.device, bytes / 4),
      wrong_(parts.device, 1) {
  parts.kernels.fill_words(parts.device, in_.span(), kSeed);
}

void Words::copy(const Params& params, const simt::Tape& tape, int chunks_of_block) {
  Grid grid = parts_.grid(params);
  const bool bulk = params.kernel == Kernel::bulk_copy;
  BulkShape stages = bulk_shape(params);
  if (chunks_of_block > 0) {
    const int chunk = stages.stage_bytes() * (bulk ? 1 : count_of(params.loads_in_flight));
    grid.blocks = simt::blocks_for(static_cast<std::int64_t>(in_.bytes()), chunk * chunks_of_block);
  }
  if (bulk) {
    stages.of_block = chunks_of_block;
    parts_.kernels.bulk_copy(parts_.device, grid, stages, from(), to(), tape);
  } else {
    parts_.kernels.copy(parts_.device, copy_shape(params, grid), from(), to(), tape);
  }
}

lab::Runnable Words::runnable(const Params& params, int chunks_of_block) {
  return lab::judged(
      parts_.device, out_, [this, params, chunks_of_block] { copy(params, {}, chunks_of_block); },
      [this] {
        wrong_.fill(0);
        parts_.kernels.count_wrong(parts_.device, out_.span(), kSeed, wrong_.span());
        lab::Closest closest;
        closest.add(wrong_.download().front(), 0, 0);
        return closest;
      });
}

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  lab::require_timing(device, "latency-hiding");
  const BenchSizes asked = lab::sizes_asked(sizes);
  Parts parts(device, progress, asked);
  if (asked.quick) {
    lab::leave_out(parts.report, {"bytes in flight", "stalls", "latencies", "multiply-adds",
                                  "registers", "branches", "tails", "occupancy"});
  }
  climb_copies(parts);
  lab::append(parts.report.checks, parts.ladder.checks());
  struct Part {
    double at;
    const char* note;
    void (*bench)(Parts&);
  };
  constexpr Part kParts[] = {
      {0.35, "timing copies by what is in flight", bench_bytes_in_flight},
      {0.6, "counting what loads waited for", bench_stalls},
      {0.65, "chasing pointers", bench_latency},
      {0.8, "timing chains of multiply-adds", bench_flops},
      {0.85, "timing eight register limits", bench_registers},
      {0.9, "timing branches", bench_divergence},
      {0.92, "timing tails", bench_tail},
      {0.94, "pairing warps", bench_sub_partitions},
      {0.95, "asking for the occupancy", bench_occupancy},
  };
  for (const Part& part : kParts) {
    if (asked.quick) break;
    progress.check();
    progress.report(part.at, part.note);
    part.bench(parts);
  }
  parts.report.summary = fmt::format(
      "On {} a copy with a quarter of the warps moves {}, the device's own {}; with one load of 4 "
      "bytes a thread it "
      "moves {}.",
      device.info().name, parts.headline("copy_bandwidth", name_of(Rung::copy), 0),
      parts.headline("copy_bandwidth", "device", 0),
      parts.headline("copy_bandwidth", name_of(Rung::one_load), 0));
  return parts.report;
}

}  // namespace tilestep::latency_hiding
