// Runs the explained kernel and builds the trace from its clocks.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/emulator/async_event.hpp"
#include "kernels/base/simt/emulator/emulated_like.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/matmul/hopper_gemm/run/report.hpp"

namespace tilestep::hopper_gemm {

const simt::KernelSet& kernels_emulated();

using numeric::index_of, numeric::elements_of;

namespace {

using Log = std::vector<simt::AsyncEvent>;

constexpr const char* kEmulatedClock = "words";
constexpr std::int64_t kSeed = 1;

void fill_plan(Trace& trace, const Plan& plan, bool emulated) {
  static_cast<Plan&>(trace) = plan;
  trace.k_pitch_bytes = pitch_bytes(plan.k, element_bytes(plan.dtype));
  // Neither the first nor the last of several, and the first of its cluster.
  trace.block = plan.blocks / 2 / plan.cluster * plan.cluster;
  trace.clock_unit = emulated ? kEmulatedClock : "cycles";
  trace.lines = step_lines(plan.variant);
  const TileOrder order = tiles_of(plan, plan.rows * plan.cluster, plan.columns, plan.raster);
  for (int number = trace.block / plan.cluster; number < order.count();
       number += plan.blocks / plan.cluster) {
    const TilePlace place = order.place(number);
    trace.tiles.push_back({number, place.row * plan.cluster, place.column});
  }
}

// ---- events ---------------------------------------------------------------------------------------

void add_clocks(Trace& trace, const std::vector<long long>& clocks, int numbers, Break fault) {
  const int announced = fault == Break::wrong_bytes ? trace.rows * 128 : trace.stage_bytes;
  for (int site = 0; site < kSites; ++site) {
    const auto what = static_cast<What>(site % kWhats);
    const int lane = what == What::flips ? -1 : site / kWhats;
    for (int number = 0; number < numbers; ++number) {
      const long long clock = clocks[index_of(site, number, numbers)];
      if (clock < 0) continue;
      Event event{what, lane, number, 0, 0, clock, 0, 0};
      if (what < What::stores) {
        event.stage = number % trace.stages;
        event.parity = number / trace.stages % 2;
        // Before its first round the ring is empty: that phase of "empty" counts as ended.
        if (what == What::waits_empty) event.parity ^= 1;
      }
      if (what == What::expects) event.bytes = announced;
      trace.events.push_back(event);
    }
  }
}

/// The landings, operand by operand: without a swizzle a tile is copied in eight boxes.
void add_landings(Trace& trace, const Log& log) {
  std::map<unsigned, unsigned> stage_address;  // by the number of the stage's barrier
  for (const simt::AsyncEvent& event : log) {
    if (event.kind != simt::AsyncEvent::Kind::landed || event.barrier != "full") continue;
    const auto key = static_cast<unsigned>(event.number);
    const auto found = stage_address.emplace(key, event.address).first;
    found->second = std::min(found->second, event.address);
  }
  // The k-tile of the bytes follows from the copies' order, not from the phase that counts them: a barrier
  // that was told too few bytes is already in the next phase.
  std::map<std::pair<int, bool>, std::int64_t> landed;  // of a stage's operand
  std::map<std::pair<int, bool>, Event> landings;
  for (const simt::AsyncEvent& event : log) {
    if (event.kind != simt::AsyncEvent::Kind::landed || event.barrier != "full") continue;
    if (event.block != static_cast<std::uint64_t>(trace.block)) continue;
    const unsigned offset = event.address - stage_address[static_cast<unsigned>(event.number)];
    const bool of_b = offset >= static_cast<unsigned>(trace.rows * 128);
    std::int64_t& before = landed[{event.number, of_b}];
    const int whole = (of_b ? trace.columns : trace.rows) * 128;
    const int number = static_cast<int>(before / whole) * trace.stages + event.number;
    before += event.bytes;
    Event& landing = landings[{number, of_b}];
    landing.what = What::lands;
    landing.lane = -1;
    landing.number = number;
    landing.stage = event.number;
    landing.parity = number / trace.stages % 2;
    landing.clock = std::max<std::int64_t>(landing.clock, event.depth);
    landing.bytes += event.bytes;
    landing.pending = static_cast<int>(event.pending_bytes);
  }
  for (const auto& [key, landing] : landings) trace.events.push_back(landing);
}

/// Without a watching thread, the end of a phase comes from the emulator.
void add_flips(Trace& trace, const Log& log) {
  if (has_producer(trace.variant)) return;
  for (const simt::AsyncEvent& event : log) {
    if (event.kind != simt::AsyncEvent::Kind::phase_ended || event.barrier != "full" ||
        event.block != static_cast<std::uint64_t>(trace.block)) {
      continue;
    }
    const int number = static_cast<int>(event.phase) * trace.stages + event.number;
    trace.events.push_back({What::flips, -1, number, event.number,
                            static_cast<int>(event.phase % 2), event.depth, 0, 0});
  }
}

void sort_events(Trace& trace) {
  // Within one clock: k-tile after k-tile, since a stage is released before it is refilled; a tile is stored
  // after its last k-tile.
  const auto turn = [&trace](const Event& event) {
    return event.what < What::stores ? 2 * event.number
                                     : 2 * (event.number + 1) * trace.k_tiles() - 1;
  };
  std::stable_sort(trace.events.begin(), trace.events.end(),
                   [&turn](const Event& a, const Event& b) {
                     if (a.clock != b.clock) return a.clock < b.clock;
                     if (turn(a) != turn(b)) return turn(a) < turn(b);
                     return a.what != b.what ? a.what < b.what : a.lane < b.lane;
                   });
  const std::int64_t first = trace.events.empty() ? 0 : trace.events.front().clock;
  for (Event& event : trace.events) event.clock -= first;
}

// ---- running --------------------------------------------------------------------------------------

Explanation explanation_of(const Outcome& outcome, Fault fault) {
  const Trace& trace = outcome.trace;
  const int k_tiles = static_cast<int>(trace.tiles.size()) * trace.k_tiles();
  return {trace, fault, trace.block, std::max(kSites, k_tiles)};
}

/// Which elements of C are wrong; NaN counts as wrong.
std::vector<bool> wrong_elements(const Outcome& outcome, const std::vector<float>& c) {
  std::vector<bool> wrong(c.size());
  for (std::size_t i = 0; i < c.size(); ++i) {
    const double off = std::abs(static_cast<double>(c[i]) - outcome.reference.value[i]);
    wrong[i] = !(off <= outcome.reference.bound[i]);
  }
  return wrong;
}

void judge(Outcome& outcome, const std::vector<float>& c) {
  Trace& trace = outcome.trace;
  const std::vector<bool> wrong = wrong_elements(outcome, c);
  const BlockTile& tile = trace.tiles.front();
  trace.wrong.assign(elements_of(trace.rows / 8, trace.columns / 8), 0);
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    if (!wrong[i]) continue;
    const int row = static_cast<int>(i) / trace.n;
    const int column = static_cast<int>(i) % trace.n;
    if (trace.broken.wrong++ == 0) {
      trace.broken.row = row;
      trace.broken.column = column;
      trace.broken.got = static_cast<double>(c[i]);
      trace.broken.want = outcome.reference.value[i];
    }
    const int down = row - tile.row * trace.rows;
    const int across = column - tile.column * trace.columns;
    if (down < 0 || down >= trace.rows || across < 0 || across >= trace.columns) continue;
    ++trace.wrong[index_of(down / 8, across / 8, trace.columns / 8)];
  }
  trace.broken.outcome = trace.broken.wrong > 0 ? "wrong numbers" : "right";
}

/// Whether a wait was abandoned, and which.
void judge_waits(Outcome& outcome, const std::vector<long long>& clocks, int numbers) {
  Broken& broken = outcome.trace.broken;
  for (int site = 0; site < kSites; ++site) {
    const long long number = clocks[index_of(kSites, site, numbers)];
    if (number < 0) continue;
    const bool full = site % kWhats == static_cast<int>(What::waits_full);
    broken.outcome = "hang";
    if (broken.report.empty()) {
      broken.report = fmt::format(
          "The wait for the {} barrier of stage {} (k-tile {}) never ends; it was given up.",
          full ? "full" : "empty", number % outcome.trace.stages, number);
    }
    return;
  }
}

/// Throws Error if an edited kernel did not record all steps that its source marks: their events would be missing
/// from the picture without notice.
void require_recorded(const Trace& trace) {
  for (const What what : all_of<What>()) {
    const bool marked = trace.lines[static_cast<std::size_t>(what)] > 0 || what == What::stored;
    if (what == What::lands || !marked) continue;
    std::map<int, int> recorded;  // by lane
    for (const Event& event : trace.events) recorded[event.lane] += event.what == what ? 1 : 0;
    const int each = what < What::stores ? trace.k_tiles() : 1;
    const int first = what < What::lands ? 0 : what == What::flips ? -1 : 1;
    const int last = what < What::waits_full ? first : trace.consumers;
    for (int lane = first; lane <= last; ++lane) {
      int due = 0;
      for (int tile = 0; tile < static_cast<int>(trace.tiles.size()); ++tile) {
        due += lane < 1 || trace.computes(lane - 1, tile) ? each : 0;
      }
      if (recorded[lane] >= due) continue;
      simt::refuse_unrecorded(fmt::format("the steps '{}'", name_of(what)).c_str(),
                              static_cast<std::size_t>(recorded[lane]),
                              static_cast<std::size_t>(due));
    }
  }
}

void fill_events(Outcome& outcome, const std::vector<long long>& clocks, int numbers,
                 const Log& log) {
  Trace& trace = outcome.trace;
  trace.events.clear();
  add_clocks(trace, clocks, numbers, outcome.params.broken);
  if (has_tma(trace.variant)) {
    add_landings(trace, log);
    add_flips(trace, log);
  }
  sort_events(trace);
}

/// Possible orders of asynchronous completions and of threads.
struct Attempt {
  simt::Completion completion;
  simt::ThreadOrder threads;
  const char* where;
};
constexpr Attempt kAttempts[] = {
    {simt::Completion::latest, simt::ThreadOrder::ascending,
     "emulated, copies and products at the latest moment"},
    {simt::Completion::early_copies, simt::ThreadOrder::descending,
     "emulated, copies at the earliest moment, products at the latest"},
    {simt::Completion::earliest, simt::ThreadOrder::descending,
     "emulated, copies and products at the earliest moment"}};

/// With the kernels of `device`; the built-in ones if that is a GPU.
std::unique_ptr<simt::Device> emulated_device(const simt::Device& device, const Attempt& attempt,
                                              bool report, Log* log) {
  static const simt::KernelEntry kTable[] = {{"hopper_gemm", kernels_emulated}};
  return simt::make_emulated_like(device, kTable,
                                  {.order = attempt.threads,
                                   .os_threads = 1,
                                   .completion = attempt.completion,
                                   .report_unsafe = report,
                                   .log = log});
}

/// The broken kernel in one order, without checking.
void try_attempt(Outcome& outcome, const simt::Device& device, const Attempt& attempt,
                 const Explanation& what, std::vector<long long>& clocks) {
  Log log;
  Broken& broken = outcome.trace.broken;
  broken.where = attempt.where;
  broken.wrong = 0;
  try {
    judge(outcome, run_explained(*emulated_device(device, attempt, false, &log), what,
                                 outcome.matrices, clocks));
    judge_waits(outcome, clocks, what.numbers);
  } catch (const Cancelled&) {
    throw;
  } catch (const Error& error) {
    broken.outcome = "hang";
    if (broken.report.empty()) broken.report = error.what();
  }
  fill_events(outcome, clocks, what.numbers, log);
}

/// Tries one order of copies and products after the other, until the numbers are wrong; a checking run reports
/// what is unsafe.
void run_broken_emulated(Outcome& outcome, const simt::Device& device) {
  const Explanation what = explanation_of(outcome, fault_of(outcome.params.broken));
  std::vector<long long> clocks;
  Broken& broken = outcome.trace.broken;
  for (const Attempt& attempt : kAttempts) {
    if (!broken.report.empty()) break;
    try {
      run_explained(*emulated_device(device, attempt, true, nullptr), what, outcome.matrices,
                    clocks);
    } catch (const Cancelled&) {
      throw;
    } catch (const Error& error) {
      broken.report = error.what();
    }
  }
  // Wrong numbers say more than a hang.
  for (const bool takes_hang : {false, true}) {
    for (const Attempt& attempt : kAttempts) {
      try_attempt(outcome, device, attempt, what, clocks);
      if (broken.outcome == "wrong numbers" || (takes_hang && broken.outcome == "hang")) return;
    }
  }
}

void run_emulated(Outcome& outcome, const simt::Device& asked, lab::Progress& progress) {
  Log log;
  const Explanation what = explanation_of(outcome, Fault::none);
  std::vector<long long> clocks;
  const auto device = emulated_device(asked, kAttempts[0], true, &log);
  device->stop_when([&progress] { return progress.cancelled(); });
  outcome.c = run_explained(*device, what, outcome.matrices, clocks);
  progress.check();
  if (outcome.params.broken == Break::none) {
    fill_events(outcome, clocks, what.numbers, log);
    require_recorded(outcome.trace);
  } else {
    progress.report(0.7, "running the broken kernel");
    run_broken_emulated(outcome, asked);
  }
}

/// The GPU ended the kernel and there are no clocks: the picture is of the emulation.
void show_lost(Outcome& outcome, const simt::Device& device, const DeviceLost& error) {
  run_broken_emulated(outcome, device);
  outcome.device_lost = true;
  outcome.trace.clock_unit = kEmulatedClock;
  Broken& broken = outcome.trace.broken;
  broken.report = fmt::format("{} The picture is of the emulation, where it came to: {}. {}",
                              error.what(), broken.outcome, broken.report);
  broken.outcome = "ended by the GPU";
  broken.where = "on the GPU";
}

/// Runs on the GPU, with whatever order it takes.
void run_on_gpu(Outcome& outcome, simt::Device& device) {
  std::vector<long long> clocks;
  Explanation what = explanation_of(outcome, Fault::none);
  outcome.c = run_explained(device, what, outcome.matrices, clocks);
  if (outcome.params.broken == Break::none) return fill_events(outcome, clocks, what.numbers, {});
  what.fault = fault_of(outcome.params.broken);
  try {
    judge(outcome, run_explained(device, what, outcome.matrices, clocks));
  } catch (const DeviceLost& error) {
    return show_lost(outcome, device, error);
  }
  fill_events(outcome, clocks, what.numbers, {});
  Broken& broken = outcome.trace.broken;
  broken.where = "on the GPU, as it happened to run";
  judge_waits(outcome, clocks, what.numbers);
}

}  // namespace

std::vector<float> run_explained(simt::Device& device, const Explanation& what,
                                 const Matrices& matrices, std::vector<long long>& clocks) {
  const simt::Buffer<std::uint16_t> a(device, matrices.a_words);
  const simt::Buffer<std::uint16_t> b(device, matrices.b_words);
  const int pitch = pitch_of<float>(what.n);
  simt::Buffer<float> c(device, elements_of(what.m, pitch));
  simt::Buffer<long long> times(device, elements_of(kSites + 1, what.numbers));
  c.fill(0xFF);
  times.fill(0xFF);
  const auto download = [&] { clocks = times.download(); };
  try {
    kernels_of(device).explain(device, what, {a.span(), b.span()}, c.span(), times.span());
    device.synchronize();
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error&) {
    download();  // earlier events are known all the same
    throw;
  }
  download();
  const std::vector<float> padded = c.download();
  std::vector<float> values;
  values.reserve(elements_of(what.m, what.n));
  for (int row = 0; row < what.m; ++row) {
    const auto first = padded.begin() + static_cast<std::ptrdiff_t>(row) * pitch;
    values.insert(values.end(), first, first + what.n);
  }
  return values;
}

Outcome gather(const Params& params, simt::Device& device, lab::Progress& progress) {
  Outcome outcome;
  outcome.params = params;
  const bool emulated = device.info().backend == "emulated";
  const Plan plan = plan_of(params);
  fill_plan(outcome.trace, plan, emulated);
  progress.report(0.05, "making the matrices");
  outcome.matrices = make_matrices(plan, params.dtype, kSeed);
  progress.check();
  progress.report(0.1, "multiplying in double");
  outcome.reference = reference_product(plan, outcome.matrices, params.dtype);
  progress.check();
  if (!can_break(params.variant, params.broken)) {
    outcome.params.broken = Break::none;
    outcome.trace.broken.outcome = "nothing to break";
  }
  outcome.trace.wrong.assign(elements_of(outcome.trace.rows / 8, outcome.trace.columns / 8), 0);
  progress.report(0.4, "running the kernel");
  if (emulated) {
    run_emulated(outcome, device, progress);
  } else {
    run_on_gpu(outcome, device);
  }
  return outcome;
}

}  // namespace tilestep::hopper_gemm
