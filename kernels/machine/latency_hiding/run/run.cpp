// Runs the kernel that the knobs select, with probes and without, and assembles the probes' records.

#include "kernels/machine/latency_hiding/run/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/machine/latency_hiding/run/counts.hpp"
#include "kernels/machine/latency_hiding/run/node_ring.hpp"

namespace tilestep::latency_hiding {
namespace {

constexpr int kMultiprocessors = 132;  // of an H200
constexpr int kSegments = 32;  // of chains, rounds of the spilling kernel: the second half is shown
constexpr int kSteps = 64;     // of a segment
constexpr int kTailSteps = 16384, kTailStepsEmulated = 16;
constexpr std::int64_t kNodes = std::int64_t{1} << 21,
                       kNodesEmulated = 1 << 12;  // 256 MiB: many times any L2

/// A lane's arm is its number mod `ways`.
std::uint32_t lanes_of(int arm, int ways) {
  std::uint32_t lanes = 0;
  for (int lane = arm; lane < kLanes; lane += ways) lanes |= 1u << lane;
  return lanes;
}

/// A run under way: launches its kernel, compares what it wrote and keeps the probes' records.
struct Work {
  const Params& params;
  simt::Device& device;
  lab::Progress& progress;
  const Kernels& kernels;
  Grid grid;
  bool emulated;
  Run run = {};
  Records records = {};

  /// Calls `launch(tape, counted)` without a tape, with one, and once more for the counters. Both outputs must be the
  /// same; returns one. Before the probed launch none of its data is in L2.
  template <class T, class Launch>
  std::vector<T> launched(simt::Buffer<T>& output, const Launch& launch) {
    const std::vector<T> plain = lab::result_of(device, output, [&] { launch({}, false); });
    if (!emulated) {
      simt::Buffer<unsigned char> other(device, 2 * device.info().l2_bytes);
      other.fill(0);
      device.synchronize();
    }
    ProbeRoom room(device, grid);
    const std::vector<T> probed =
        lab::result_of(device, output, [&] { launch(room.tape(), false); });
    for (std::size_t i = 0; i < plain.size(); ++i) {
      run.differing += std::memcmp(&plain[i], &probed[i], sizeof(T)) != 0 ? 1 : 0;
    }
    records = room.records();
    progress.check();
    if (emulated) return probed;
    progress.report(0.6, "counting in hardware");
    count_stalls(
        device, [&] { launch({}, true); }, is_copy(params.kernel) || params.kernel == Kernel::chase,
        run.trace.machine);
    return probed;
  }
};

// ---- one kernel each --------------------------------------------------------------------------------

void run_copy(Work& work) {
  const Params& params = work.params;
  const auto floats = static_cast<std::size_t>(work.grid.all_threads() * kLoads *
                                               bytes_of(params.bytes_per_load) / 4);
  simt::Buffer<unsigned> in(work.device, floats);
  simt::Buffer<float> out(work.device, floats);
  work.kernels.fill_words(work.device, in.span(), static_cast<unsigned>(params.seed));
  const simt::Span<const float> from{reinterpret_cast<const float*>(in.span().data), in.count()};
  const std::vector<float> got = work.launched(out, [&](const simt::Tape& tape, bool) {
    if (params.kernel == Kernel::bulk_copy) {
      work.kernels.bulk_copy(work.device, work.grid, bulk_shape(params), from, out.span(), tape);
    } else {
      work.kernels.copy(work.device, copy_shape(params, work.grid), from, out.span(), tape);
    }
  });
  const std::vector<unsigned> words = in.download();
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < words.size(); ++i)
    wrong += std::bit_cast<unsigned>(got[i]) != words[i] ? 1 : 0;
  work.run.result.add(wrong, 0, 0);
}

void run_chase(Work& work) {
  const NodeRing ring(work.device, work.emulated ? kNodesEmulated : kNodes, work.params.seed);
  // Warps and levels start where no other one comes: kHops and one more apart, around the ring.
  const std::int64_t warps = work.grid.warps();
  std::vector<unsigned> starts, start_nodes;
  for (std::int64_t i = 0; i < 3 * warps; ++i) {
    const std::int64_t place = (1 + i * (kHops + 1)) % ring.count();
    starts.push_back(static_cast<unsigned>(place));
    start_nodes.push_back(ring.node_at(place));
  }
  const simt::Buffer<unsigned> from(work.device, start_nodes);
  simt::Buffer<unsigned long long> visited(work.device, static_cast<std::size_t>(warps * kProbes));
  const auto got = work.launched(visited, [&](const simt::Tape& tape, bool) {
    work.kernels.chase(work.device, work.grid, ring.nodes(), from.span(), visited.span(), tape);
  });
  work.run.result.add(lab::differing(ring.numbers(got), chase_reference(ring.order(), starts)), 0,
                      0);
}

void run_compute(Work& work) {
  Compute what = compute_of(work.params, work.grid);
  std::int64_t threads = work.grid.all_threads();
  what.rounds = kSegments;
  what.steps = kSteps;
  if (what.kernel == Kernel::diverge) {
    what.rounds = 1 + std::max(1, kProbes / what.ways);  // the first warms up
  } else if (what.kernel == Kernel::tail) {
    threads = kTailThreads;
    what.rounds = 1;
    what.steps = work.emulated ? kTailStepsEmulated : kTailSteps;
  }
  const bool spills = what.kernel == Kernel::spill;
  std::mt19937 random = lab::generator_of(work.params.seed);
  const std::vector<float> numbers =
      lab::uniform_floats(random, static_cast<std::size_t>(threads * (spills ? what.rounds : 1)));
  const simt::Buffer<float> in(work.device, numbers);
  simt::Buffer<float> out(work.device, static_cast<std::size_t>(threads));
  simt::Buffer<unsigned> voted(work.device, static_cast<std::size_t>(what.ways));
  what.voted = voted.span();
  const std::vector<float> got = work.launched(out, [&](const simt::Tape& tape, bool counted) {
    Compute one = what;
    // Chains are counted for longer than it takes to begin.
    if (counted && what.kernel == Kernel::fma) one.steps *= 16;
    work.kernels.compute(work.device, one, in.span(), out.span(), tape);
  });
  const std::vector<double> want = compute_reference(what, numbers);
  for (std::size_t i = 0; i < want.size(); ++i) {
    work.run.result.add(got[i], want[i], compute_bound(what),
                        [&] { return fmt::format("thread {}", i); });
  }
  if (what.kernel != Kernel::diverge) return;
  for (const unsigned votes : voted.download()) {
    work.run.trace.arms.push_back({static_cast<int>(work.run.trace.arms.size()), votes});
  }
}

// ---- the trace -----------------------------------------------------------------------------------------

Trace program_of(const Params& params, int multiprocessors) {
  Trace trace;
  trace.kernel = params.kernel;
  trace.broken = broken_of(params);
  trace.warps_per_sm = params.warps_per_sm;
  trace.block = threads_of(params.block);
  trace.bytes_per_load = bytes_of(params.bytes_per_load);
  trace.loads_in_flight = count_of(params.loads_in_flight);
  trace.ilp = params.ilp;
  trace.max_registers = count_of(params.max_registers);
  trace.divergence = count_of(params.divergence);
  trace.blocks_per_sm = blocks_per_sm(params);
  trace.dynamic_shared_bytes = dynamic_shared_bytes(params);
  if (params.kernel == Kernel::bulk_copy) trace.stage_bytes = stage_bytes(params);
  if (params.kernel == Kernel::tail) trace.blocks = tail_blocks(params);
  trace.multiprocessors = multiprocessors;
  trace.lines = step_lines(params.kernel);
  // The lanes that take each arm of a broken copy, by the kernel's own rule; those of diverge it has voted.
  if (trace.broken == Break::divergent_branch) {
    for (int arm = 0; arm < trace.divergence; ++arm)
      trace.arms.push_back({arm, lanes_of(arm, trace.divergence)});
  }
  return trace;
}

/// Lanes of arms that voted, or by a GPU's probes were active, where they should not be.
std::int64_t wrong_lanes(const Work& work) {
  const Trace& trace = work.run.trace;
  std::int64_t wrong = 0;
  for (const Arm& arm : trace.arms)
    wrong += std::popcount(arm.voted ^ lanes_of(arm.number, trace.divergence));
  if (work.emulated || trace.kernel != Kernel::diverge) return wrong;
  for (std::size_t i = 0; i < work.records.kept.size(); ++i) {
    const ProbeRecord& probe = work.records.kept[i];
    const int arm = static_cast<int>(i % kMostProbes) % trace.divergence;
    if (probe.written()) wrong += std::popcount(probe.active ^ lanes_of(arm, trace.divergence));
  }
  return wrong;
}

double mean_latency_of(const Records& records, double cost) {
  double sum = 0, probes = 0;
  for (const WarpRecord& warp : records.warps) {
    if (warp.sm == kUnwritten) continue;
    sum += warp.latency;
    probes += warp.probes;
  }
  return probes > 0 ? sum / probes - cost : 0;
}

void fill_machine(Work& work) {
  Machine& machine = work.run.trace.machine;
  const bool tail = work.params.kernel == Kernel::tail;
  machine.unit = work.emulated ? "turns" : tail ? "ns" : "cycles";
  if (tail) {
    fill_blocks(machine, work.records, work.grid);
  } else {
    fill_rows(machine, work.records, work.grid, work.run.trace.probes());
  }
  if (work.emulated) return;
  machine.device = work.device.info().name;
  work.run.mean_latency = mean_latency_of(work.records, machine.probe_cost);
  const simt::Resources r = work.kernels.resources(work.device, work.params, work.grid);
  machine.compiled = {r.registers, static_cast<int>(r.static_shared_bytes),
                      static_cast<int>(r.local_bytes), r.blocks_per_multiprocessor};
}

/// Which multiprocessor ran a block depends on timing: it may end before another begins. That all ran does not.
std::int64_t unreported(const Work& work) {
  if (work.params.kernel == Kernel::tail) return 0;
  const bool bulk = work.params.kernel == Kernel::bulk_copy;  // a block's one thread records
  const std::int64_t rows = bulk ? work.grid.blocks : work.grid.warps();
  const auto& all = work.records.warps;
  const bool probed =
      std::any_of(all.begin(), all.end(), [](const WarpRecord& warp) { return warp.probes > 0; });
  if (!probed) return rows;
  return rows - std::count_if(all.begin(), all.end(),
                              [](const WarpRecord& warp) { return warp.sm != kUnwritten; });
}

}  // namespace

Grid grid_of(const Params& params, int multiprocessors) {
  Grid grid;
  grid.threads = threads_of(params.block);
  grid.shared_bytes = dynamic_shared_bytes(params);
  grid.blocks = params.kernel == Kernel::tail
                    ? tail_blocks(params)
                    : std::int64_t{multiprocessors} * blocks_per_sm(params);
  return grid;
}

Run run_of(const Params& params, simt::Device& device, lab::Progress& progress) {
  progress.report(0.05, "running the kernel with its probes");
  progress.check();
  const bool emulated = device.info().compute_capability == 0;
  const int multiprocessors = emulated ? 1 : device.info().multiprocessors;
  Work work{params,  device, progress, kernels_of(device), grid_of(params, multiprocessors),
            emulated};
  Run& run = work.run;
  run.params = params;
  run.trace = program_of(params, emulated ? kMultiprocessors : multiprocessors);
  if (is_copy(params.kernel)) {
    run_copy(work);
  } else if (params.kernel == Kernel::chase) {
    run_chase(work);
  } else {
    run_compute(work);
  }
  progress.check();
  run.wrong_lanes = wrong_lanes(work);
  run.unreported = unreported(work);
  fill_machine(work);
  if (emulated) {
    progress.check();
    // A GPU's recording is of the built-in kernel, not of an edited one.
    const bool own = &device.kernels(kLessonId) == &kernels_emulated();
    if (auto known = own ? known_machine(params) : std::nullopt) {
      run.trace.machine = std::move(*known);
    }
  }
  return std::move(run);
}

}  // namespace tilestep::latency_hiding
