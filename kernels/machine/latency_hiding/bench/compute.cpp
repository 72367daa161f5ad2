// Chains of multiply-adds, register limits, branches and tails.

#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/simt/counters.hpp"
#include "kernels/machine/latency_hiding/bench/parts.hpp"
#include "kernels/machine/latency_hiding/reference.hpp"

namespace tilestep::latency_hiding {
namespace {

using lab::column, lab::real, lab::whole;

constexpr int kChainSteps = 4096, kBranchRounds = 64, kTailChain = 16384;  // at longer = 1
constexpr int kBranchSteps = 256;
constexpr int kTailThreadsOfBlock = 256, kTailBlocksOfSm = 2;
constexpr int kPairSteps = 4096, kPairChains = 8;
constexpr double kShared = 1.8, kApart = 1.2;  // of a lone warp's time

/// A kernel's arrays: `count` random numbers in, `threads` out.
struct Arrays {
  Arrays(const Parts& of, std::int64_t count, std::int64_t threads)
      : parts(of), out(of.device, static_cast<std::size_t>(threads)) {
    std::mt19937 random = lab::generator_of(3);
    host = lab::uniform_floats(random, static_cast<std::size_t>(count));
    in.emplace(parts.device, host);
  }
  Arrays(const Parts& of, std::int64_t threads) : Arrays(of, threads, threads) {}
  void launch(const Compute& what, const simt::Tape& tape = {}) {
    parts.kernels.compute(parts.device, what, in->span(), out.span(), tape);
  }

  const Parts& parts;
  std::vector<float> host;
  std::optional<simt::Buffer<float>> in;
  simt::Buffer<float> out;
};

/// TFLOP/s: all multiply-adds of a launch, two FLOPs each, over all of its time.
lab::Spread tflops(const lab::Spread& time, double multiply_adds) {
  return lab::rate_of(time, 2e-3 * multiply_adds);
}

// ---- register limits ----------------------------------------------------------------------------------

/// The spilling kernel with as many warps as its registers allow.
Params spill_params(Registers registers) {
  Params params;
  params.kernel = Kernel::spill;
  params.max_registers = registers;
  params.warps_per_sm =
      occupancy_of({.threads = threads_of(params.block), .registers = count_of(registers)}).warps;
  return params;
}

void check_spill(Parts& parts) {
  lab::Closest closest;
  constexpr int kRounds = 9;
  for (const Registers registers : all_of<Registers>()) {
    const Compute what{.kernel = Kernel::spill,
                       .grid = {2, 128, 0},
                       .registers = count_of(registers),
                       .rounds = kRounds};
    Arrays arrays(parts, what.grid.all_threads() * kRounds, what.grid.all_threads());
    arrays.launch(what);
    const std::vector<float> got = arrays.out.download();
    const std::vector<double> want = compute_reference(what, arrays.host);
    for (std::size_t i = 0; i < got.size(); ++i) closest.add(got[i], want[i], compute_bound(what));
  }
  parts.report.add(
      closest.check("spill_correct", "The fragment with each register limit, against double."));
}

}  // namespace

void bench_flops(Parts& parts) {
  struct Point {
    int ilp, warps;
    lab::Spread rate;
  };
  std::vector<Point> points;
  double most = 0;
  Arrays arrays(parts, std::int64_t{parts.multiprocessors} * kMostWarps * kLanes);
  for (const int ilp : {1, 2, 3, 4, 6, 8}) {
    for (const int warps : parts.sizes.warps) {
      parts.progress.check();
      const Params params = with_warps({.kernel = Kernel::fma, .ilp = ilp}, warps);
      Compute what = compute_of(params, parts.grid(params));
      what.steps = parts.sizes.longer * kChainSteps;
      const lab::Spread time = parts.time([&] { arrays.launch(what); });
      const double all = static_cast<double>(what.grid.all_threads()) * ilp * what.steps;
      points.push_back({ilp, warps, tflops(time, all)});
      most = std::max(most, points.back().rate.median);
    }
  }
  lab::Table table{"flops",
                   "Multiply-adds by chains of a thread and warps of a multiprocessor",
                   {whole("ilp", "chains"), whole("warps_per_sm", "warps"),
                    real("tflops", "rate", "TFLOP/s", 2), real("p10", "p10", "TFLOP/s", 2),
                    real("p90", "p90", "TFLOP/s", 2), real("fraction", "of the most", "", 3)}};
  for (const Point& point : points) {
    table.add({point.ilp, point.warps, point.rate.median, point.rate.p10, point.rate.p90,
               point.rate.median / most});
  }
  parts.report.add(std::move(table));
}

void bench_registers(Parts& parts) {
  check_spill(parts);
  const std::vector<Variant> variants = parts.kernels.variants(parts.device);
  const auto threads = std::int64_t{parts.multiprocessors} * kMostWarps * kLanes;
  const std::int64_t thread_rounds = threads * 120;  // what all limits divide about evenly
  Arrays arrays(parts, thread_rounds, threads);
  lab::Table table{"registers",
                   "The spilling fragment, compiled for eight register limits: the same work",
                   {whole("max_registers", "limit"), whole("registers", "compiled"),
                    whole("local_bytes", "local memory", "bytes"),
                    real("local_loads", "local loads a round", "", 1),
                    real("local_stores", "local stores a round", "", 1),
                    whole("warps_per_sm", "warps"), real("occupancy", "occupancy", "%", 0),
                    real("time", "time", "ms", 3), real("p10", "p10", "ms", 3),
                    real("p90", "p90", "ms", 3), real("tflops", "rate", "TFLOP/s", 2)}};
  for (const Registers registers : all_of<Registers>()) {
    parts.progress.check();
    const Params params = spill_params(registers);
    Compute what = compute_of(params, parts.grid(params));
    what.rounds = static_cast<int>(thread_rounds / what.grid.all_threads());
    const auto launch = [&] { arrays.launch(what); };
    const lab::Spread time = parts.time(launch);
    double loads = 0, stores = 0;  // of a thread, a round
    if (parts.device.counters().available) {
      constexpr const char* kLoad = "smsp__inst_executed_op_local_ld.sum";
      constexpr const char* kStore = "smsp__inst_executed_op_local_st.sum";
      const auto counted = simt::count(parts.device, {kLoad, kStore}, launch);
      const double warp_rounds = static_cast<double>(what.grid.warps()) * what.rounds;
      loads = counted.at(kLoad) / warp_rounds;
      stores = counted.at(kStore) / warp_rounds;
    }
    const double multiply_adds = static_cast<double>(what.grid.all_threads()) * what.rounds * kLive;
    const std::string name = "spill " + std::string(name_of(registers));
    const auto variant = std::find_if(variants.begin(), variants.end(),
                                      [&](const Variant& one) { return one.name == name; });
    table.add({count_of(registers), variant->registers, variant->local_bytes, loads, stores,
               params.warps_per_sm, 100.0 * params.warps_per_sm / kMostWarps, time.median, time.p10,
               time.p90, tflops(time, multiply_adds).median});
  }
  parts.report.add(std::move(table));
}

void bench_divergence(Parts& parts) {
  lab::Table table{"divergence",
                   "A branch that the lanes of each warp take so many ways",
                   {whole("ways", "ways"), real("time", "time", "ms", 3),
                    real("threads_per_instruction", "active lanes an instruction", "", 2),
                    real("slowdown", "of the time with one way", "", 2)}};
  simt::Buffer<unsigned> voted(parts.device, kLanes);
  Compute what{.kernel = Kernel::diverge,
               .grid = parts.grid({.kernel = Kernel::diverge}),
               .rounds = parts.sizes.longer * kBranchRounds,
               .steps = kBranchSteps,
               .voted = voted.span()};
  Arrays arrays(parts, what.grid.all_threads());
  double one_way = 0;
  for (const Ways ways : all_of<Ways>()) {
    what.ways = count_of(ways);
    const auto launch = [&] { arrays.launch(what); };
    const double ms = parts.time(launch).median;
    if (ways == Ways::w1) one_way = ms;
    lab::Cell lanes;
    if (parts.device.counters().available) {
      constexpr const char* kLanesActive =
          "smsp__average_thread_inst_executed_per_inst_executed.ratio";
      lanes = simt::count(parts.device, {kLanesActive}, launch).at(kLanesActive);
    }
    table.add({count_of(ways), ms, lanes, ms / one_way});
  }
  parts.report.add(std::move(table));
}

void bench_tail(Parts& parts) {
  lab::Table table{"tail",
                   "Blocks of the same work, two at a time on a multiprocessor",
                   {whole("blocks"), real("waves", "waves", "", 3), real("time", "time", "ms", 4),
                    real("efficiency", "of the rate of whole waves", "%", 1)}};
  const int at_once = parts.multiprocessors * kTailBlocksOfSm;
  Params params;
  params.block = Block::b256;
  params.warps_per_sm = kTailBlocksOfSm * kTailThreadsOfBlock / kLanes;
  Arrays arrays(parts, std::int64_t{4} * at_once * kTailThreadsOfBlock);
  std::vector<std::pair<int, double>> times;
  for (const int blocks : {at_once / 2, at_once, at_once + 1, at_once * 3 / 2, 2 * at_once,
                           2 * at_once + 1, 3 * at_once, 3 * at_once + 1, 4 * at_once}) {
    const Compute what{.kernel = Kernel::tail,
                       .grid = {blocks, kTailThreadsOfBlock, dynamic_shared_bytes(params)},
                       .steps = parts.sizes.longer * kTailChain};
    times.emplace_back(blocks, parts.time([&] { arrays.launch(what); }).median);
  }
  const double block_ms = times.back().second / times.back().first;  // of whole waves
  for (const auto& [blocks, ms] : times) {
    table.add({blocks, static_cast<double>(blocks) / at_once, ms, 100 * blocks * block_ms / ms});
  }
  parts.report.add(std::move(table));
}

void bench_sub_partitions(Parts& parts) {
  lab::Table table{"subpartitions",
                   "Eight chains in each of two warps of a block: whether they share a scheduler",
                   {whole("distance", "slots apart"), whole("cycles", "cycles"),
                    real("slowdown", "of the time of one warp", "", 3)}};
  Compute what{.grid = {1, 1024, 0}, .chains = kPairChains, .steps = kPairSteps};
  Arrays arrays(parts, what.grid.all_threads());
  const auto cycles = [&](unsigned active) {
    ProbeRoom room(parts.device, what.grid);
    what.active = active;
    // The first launch finds nothing in the instruction cache.
    for (int i = 0; i < 2; ++i) arrays.launch(what, room.tape());
    const WarpRecord first = room.records().warps.front();
    return static_cast<double>(first.end - first.begin);
  };
  const double alone = cycles(1);
  std::int64_t wrong = 0;
  for (const int distance : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16}) {
    const double together = cycles(1u | 1u << distance);
    const double slowdown = together / alone;
    wrong += distance % kSubPartitions == 0 ? slowdown < kShared : slowdown > kApart;
    table.add({distance, together, slowdown});
  }
  parts.report.add(std::move(table));
  parts.report.add(lab::none_wrong(
      "sub_partitions", wrong,
      "Pairs of warps that share a scheduler though their slots differ by no multiple of "
      "four, or do not though they do."));
}

}  // namespace tilestep::latency_hiding
