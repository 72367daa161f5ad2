// Runs the kernel that the knobs select, with probes and without, and assembles the probes' records.

#include "kernels/machine/latency_hiding/run/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/machine/latency_hiding/reference.hpp"
#include "kernels/machine/latency_hiding/run/counts.hpp"

namespace tilestep::latency_hiding {
namespace {

constexpr int kMultiprocessors = 132;  // of an H200
constexpr int kSegments = 32;  // of chains, rounds of the spilling kernel: the second half is shown
constexpr int kSteps = 64;     // of a segment
constexpr int kTailSteps = 16384, kTailStepsEmulated = 16;
constexpr std::int64_t kNodes = std::int64_t{1} << 21,
                       kNodesEmulated = 1 << 12;  // 256 MiB: many times any L2

bool is_emulated(const simt::Device& device) {
  return device.info().compute_capability == 0;
}

/// The working set of a run.
struct Work {
  const Params& params;
  simt::Device& device;
  const Kernels& kernels;
  Grid grid;
  bool emulated;
};

/// A launch with probes, or without; both must produce the same output. Before the probed one none of its data is in
/// L2.
template <class T>
struct Twice {
  std::vector<T> plain, probed;
};

class Probes {
 public:
  Probes(const Work& work, int first)
      : work_(work),
        warps_(work.device, static_cast<std::size_t>(work.grid.warps())),
        kept_(work.device, static_cast<std::size_t>(work.grid.warps()) * kMostProbes),
        first_(first) {
    warps_.fill(0xFF);
    kept_.fill(0xFF);
  }
  Probing probing() { return {warps_.span(), kept_.span(), first_}; }
  Records records() const { return {warps_.download(), kept_.download()}; }

  /// Runs `launch(probing)` both ways.
  template <class T, class Launch>
  Twice<T> run(simt::Buffer<T>& output, const Launch& launch) {
    Twice<T> both;
    both.plain = lab::result_of(work_.device, output, [&] { launch(Probing{}); });
    if (!work_.emulated) {
      simt::Buffer<unsigned char> other(work_.device, 2 * work_.device.info().l2_bytes);
      other.fill(0);
      work_.device.synchronize();
    }
    output.fill(0xFF);
    launch(probing());
    work_.device.synchronize();
    both.probed = output.download();
    return both;
  }

 private:
  const Work& work_;
  simt::Buffer<WarpRecord> warps_;
  simt::Buffer<ProbeRecord> kept_;
  int first_;
};

template <class T>
void compare_bits(Run& run, const Twice<T>& both) {
  for (std::size_t i = 0; i < both.plain.size(); ++i) {
    run.differing +=
        std::bit_cast<std::uint32_t>(both.plain[i]) != std::bit_cast<std::uint32_t>(both.probed[i])
            ? 1
            : 0;
  }
}

void compare(Run& run, const std::vector<float>& got, const std::vector<double>& want,
             double bound) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    run.result.add(got[i], want[i], bound, [&] { return fmt::format("thread {}", i); });
  }
}

std::vector<float> numbers(const Work& work, std::int64_t count) {
  std::mt19937 random = lab::generator_of(work.params.seed);
  return lab::uniform_floats(random, static_cast<std::size_t>(count));
}

/// The launch of the plain kernel once more, for the counters.
using Again = std::function<void()>;
using Counts = std::function<void(const Again&)>;

// ---- one kernel each --------------------------------------------------------------------------------

CopyShape copy_shape(const Work& work) {
  const Params& params = work.params;
  return {work.grid, bytes_of(params.bytes_per_load), count_of(params.loads_in_flight),
          order_of(broken_of(params)), count_of(params.divergence)};
}

Records run_copy(const Work& work, Run& run, const Counts& counts) {
  const bool bulk = work.params.kernel == Kernel::bulk_copy;
  const std::int64_t floats =
      work.grid.all_threads() * kLoads * bytes_of(work.params.bytes_per_load) / 4;
  simt::Buffer<unsigned> in(work.device, static_cast<std::size_t>(floats));
  simt::Buffer<float> out(work.device, static_cast<std::size_t>(floats));
  work.kernels.fill_words(work.device, in.span(), static_cast<unsigned>(work.params.seed));
  const simt::Span<const float> from{reinterpret_cast<const float*>(in.span().data), in.count()};
  const BulkShape stages = bulk_shape(bytes_of(work.params.bytes_per_load), work.grid.threads,
                                      count_of(work.params.loads_in_flight));
  const auto launch = [&](const Probing& probing) {
    if (bulk) {
      work.kernels.bulk_copy(work.device, work.grid, stages, from, out.span(), probing);
    } else {
      work.kernels.copy(work.device, copy_shape(work), from, out.span(), probing);
    }
  };
  Probes probes(work, kFirstProbed);
  const Twice<float> both = probes.run(out, launch);
  compare_bits(run, both);
  const std::vector<unsigned> words = in.download();
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < words.size(); ++i)
    wrong += std::bit_cast<unsigned>(both.probed[i]) != words[i] ? 1 : 0;
  run.result.add(wrong, 0, 0);
  counts([&] { launch({}); });
  return probes.records();
}

/// Nodes by their addresses; the first kHops of each warp are places in shared memory already.
std::vector<unsigned> nodes_of(const std::vector<unsigned long long>& visited,
                               simt::Span<Node> ring) {
  std::vector<unsigned> nodes;
  const auto origin = reinterpret_cast<std::uintptr_t>(ring.data);
  for (std::size_t i = 0; i < visited.size(); ++i) {
    const bool shared = i % kProbes < kHops;
    nodes.push_back(
        static_cast<unsigned>(shared ? visited[i] : (visited[i] - origin) / sizeof(Node)));
  }
  return nodes;
}

Records run_chase(const Work& work, Run& run, const Counts& counts) {
  const std::int64_t nodes = work.emulated ? kNodesEmulated : kNodes;
  const std::vector<unsigned> order = random_ring(nodes, work.params.seed);
  simt::Buffer<Node> ring(work.device, order.size());
  const simt::Buffer<unsigned> ways(work.device, order);
  work.kernels.link(work.device, ring.span(), ways.span());
  // Warps and levels start where no other one comes: kHops and one more apart, around the ring.
  const std::int64_t warps = work.grid.warps();
  std::vector<unsigned> starts, start_nodes;
  for (std::int64_t i = 0; i < 3 * warps; ++i) {
    const std::int64_t place = (1 + i * (kHops + 1)) % nodes;
    starts.push_back(static_cast<unsigned>(place));
    start_nodes.push_back(order[static_cast<std::size_t>(place)]);
  }
  const simt::Buffer<unsigned> from(work.device, start_nodes);
  simt::Buffer<unsigned long long> visited(work.device, static_cast<std::size_t>(warps * kProbes));
  const auto launch = [&](const Probing& probing) {
    work.kernels.chase(work.device, work.grid, ring.span(), from.span(), visited.span(), probing);
  };
  Probes probes(work, 0);
  const Twice<unsigned long long> both = probes.run(visited, launch);
  run.differing += lab::differing(both.plain, both.probed);
  run.result.add(lab::differing(nodes_of(both.probed, ring.span()), chase_reference(order, starts)),
                 0, 0);
  counts([&] { launch({}); });
  return probes.records();
}

Records run_fma(const Work& work, Run& run, const Counts& counts) {
  const std::vector<float> numbers_in = numbers(work, work.grid.all_threads());
  const simt::Buffer<float> in(work.device, numbers_in);
  simt::Buffer<float> out(work.device, numbers_in.size());
  const auto launch = [&](const Probing& probing, int steps = kSteps) {
    work.kernels.fma(work.device, work.grid, work.params.ilp, kSegments, steps, 0xFFFFFFFFu,
                     in.span(), out.span(), probing);
  };
  Probes probes(work, kSegments - kProbes);
  const Twice<float> both = probes.run(out, launch);
  compare_bits(run, both);
  compare(run, both.probed, fma_reference(numbers_in, work.params.ilp, kSegments * kSteps),
          fma_bound(work.params.ilp));
  counts([&] { launch({}, 16 * kSteps); });  // longer than it takes to begin
  return probes.records();
}

Records run_spill(const Work& work, Run& run, const Counts& counts) {
  const std::int64_t threads = work.grid.all_threads();
  const std::vector<float> numbers_in = numbers(work, threads * kSegments);
  const simt::Buffer<float> in(work.device, numbers_in);
  simt::Buffer<float> out(work.device, static_cast<std::size_t>(threads));
  const auto launch = [&](const Probing& probing) {
    work.kernels.spill(work.device, work.grid, count_of(work.params.max_registers), kSegments,
                       in.span(), out.span(), probing);
  };
  Probes probes(work, kSegments - kProbes);
  const Twice<float> both = probes.run(out, launch);
  compare_bits(run, both);
  compare(run, both.probed, spill_reference(numbers_in, threads, kSegments),
          spill_bound(kSegments));
  counts([&] { launch({}); });
  return probes.records();
}

Records run_diverge(const Work& work, Run& run, const Counts& counts) {
  const int ways = count_of(work.params.divergence);
  const int rounds = 1 + std::max(1, kProbes / ways);  // the first warms up
  const std::vector<float> numbers_in = numbers(work, work.grid.all_threads());
  const simt::Buffer<float> in(work.device, numbers_in);
  simt::Buffer<float> out(work.device, numbers_in.size());
  simt::Buffer<unsigned> voted(work.device, static_cast<std::size_t>(ways));
  const auto launch = [&](const Probing& probing) {
    work.kernels.diverge(work.device, work.grid, ways, rounds, kSteps, in.span(), out.span(),
                         voted.span(), probing);
  };
  Probes probes(work, ways);
  const Twice<float> both = probes.run(out, launch);
  compare_bits(run, both);
  compare(run, both.probed, diverge_reference(numbers_in, ways, std::int64_t{rounds} * kSteps),
          diverge_bound(ways));
  const std::vector<unsigned> votes = voted.download();
  for (int arm = 0; arm < ways; ++arm) {
    run.trace.arms.push_back({arm, votes[static_cast<std::size_t>(arm)]});
  }
  counts([&] { launch({}); });
  return probes.records();
}

Records run_tail(const Work& work, Run& run, const Counts& counts) {
  const std::vector<float> numbers_in = numbers(work, kTailThreads);
  const simt::Buffer<float> in(work.device, numbers_in);
  simt::Buffer<float> out(work.device, numbers_in.size());
  const int steps = work.emulated ? kTailStepsEmulated : kTailSteps;
  const auto launch = [&](const Probing& probing) {
    work.kernels.tail(work.device, work.grid, steps, in.span(), out.span(), probing);
  };
  Probes probes(work, 0);
  const Twice<float> both = probes.run(out, launch);
  compare_bits(run, both);
  std::vector<double> want;
  for (const float add : numbers_in)
    want.push_back(chain_after(0, kScale, static_cast<double>(add), steps));
  compare(run, both.probed, want, chain_bound(0, kScale, 1));
  counts([&] { launch({}); });
  return probes.records();
}

Records run_kernel(const Work& work, Run& run, const Counts& counts) {
  switch (work.params.kernel) {
    case Kernel::copy:
    case Kernel::bulk_copy:
      return run_copy(work, run, counts);
    case Kernel::chase:
      return run_chase(work, run, counts);
    case Kernel::fma:
      return run_fma(work, run, counts);
    case Kernel::spill:
      return run_spill(work, run, counts);
    case Kernel::diverge:
      return run_diverge(work, run, counts);
    case Kernel::tail:
      return run_tail(work, run, counts);
  }
  return {};
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
  return trace;
}

/// The lanes that take each arm of a broken copy, by the kernel's own rule; those of diverge it has voted.
void add_copy_arms(Trace& trace) {
  if (trace.broken != Break::divergent_branch) return;
  for (int arm = 0; arm < trace.divergence; ++arm) {
    Arm one{arm, 0};
    for (int lane = 0; lane < kLanes; ++lane) {
      if (lane % trace.divergence == arm) one.voted |= 1u << lane;
    }
    trace.arms.push_back(one);
  }
}

/// Lanes of arms that voted, or by a GPU's probes were active, where they should not be.
std::int64_t wrong_lanes(const Trace& trace, const Records& records, bool emulated) {
  std::int64_t wrong = 0;
  const auto lanes_of = [&](int arm) {
    std::uint32_t lanes = 0;
    for (int lane = arm; lane < kLanes; lane += trace.divergence) lanes |= 1u << lane;
    return lanes;
  };
  for (const Arm& arm : trace.arms) wrong += std::popcount(arm.voted ^ lanes_of(arm.number));
  if (emulated || trace.kernel != Kernel::diverge) return wrong;
  for (std::size_t i = 0; i < records.kept.size(); ++i) {
    const ProbeRecord& probe = records.kept[i];
    if (!probe.written()) continue;
    const int arm = static_cast<int>(i % kMostProbes) % trace.divergence;
    wrong += std::popcount(probe.active ^ lanes_of(arm));
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

void fill_machine(const Work& work, Run& run, const Records& records) {
  Machine& machine = run.trace.machine;
  machine.unit = work.emulated ? "turns" : work.params.kernel == Kernel::tail ? "ns" : "cycles";
  if (work.params.kernel == Kernel::tail) {
    fill_blocks(machine, records, work.grid);
  } else {
    fill_rows(machine, records, work.grid, run.trace.probes());
  }
  if (work.emulated) return;
  machine.device = work.device.info().name;
  run.mean_latency = mean_latency_of(records, machine.probe_cost);
  const simt::Resources r = work.kernels.resources(work.device, run.trace, work.grid);
  machine.compiled = {r.registers, static_cast<int>(r.static_shared_bytes),
                      static_cast<int>(r.local_bytes), r.blocks_per_multiprocessor};
}

/// Which multiprocessor ran a block depends on timing: it may end before another begins. That all ran does not.
std::int64_t unreported(const Work& work, const Records& records) {
  if (work.params.kernel == Kernel::tail) return 0;
  const bool bulk = work.params.kernel == Kernel::bulk_copy;  // a block's one thread records
  const std::int64_t rows = bulk ? work.grid.blocks : work.grid.warps();
  const auto& all = records.warps;
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
  const bool emulated = is_emulated(device);
  const int multiprocessors = emulated ? 1 : device.info().multiprocessors;
  const Work work{params, device, kernels_of(device), grid_of(params, multiprocessors), emulated};
  Run run;
  run.params = params;
  run.trace = program_of(params, emulated ? kMultiprocessors : multiprocessors);
  add_copy_arms(run.trace);
  const auto count = [&](const Again& again) {
    progress.check();
    if (emulated) return;
    progress.report(0.6, "counting in hardware");
    count_stalls(device, again, is_copy(params.kernel) || params.kernel == Kernel::chase,
                 run.trace.machine);
  };
  const Records records = run_kernel(work, run, count);
  progress.check();
  run.wrong_lanes = wrong_lanes(run.trace, records, emulated);
  run.unreported = unreported(work, records);
  fill_machine(work, run, records);
  if (emulated) {
    progress.check();
    // A GPU's recording is of the built-in kernel, not of an edited one.
    const bool own = &device.kernels(kLessonId) == &kernels_emulated();
    if (auto known = own ? known_machine(params) : std::nullopt) {
      run.trace.machine = std::move(*known);
    }
  }
  return run;
}

}  // namespace tilestep::latency_hiding
