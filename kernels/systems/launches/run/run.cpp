// Runs the decode steps and the shape's product, and makes a trace of what was submitted and done.

#include "kernels/systems/launches/run/run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/random.hpp"

namespace tilestep::launches {
namespace {

const Kernels& kernels_on(const simt::Device& device) {
  return static_cast<const Kernels&>(device.kernels(kLessonId));
}

// ---- the trace ----------------------------------------------------------------------------------------

/// The places of operations by their labels.
std::map<std::string, int> places_of(int layers) {
  std::map<std::string, int> places;
  for (int place = 0; place < launches_of(layers); ++place) places[label_at(place)] = place;
  return places;
}

std::string numbered(const char* what, int object) {
  return std::string(what) + " " + std::to_string(object + 1);
}
std::string object_text(const simt::StreamLog::Call& call) {
  switch (call.kind) {
    case simt::CallKind::record:
    case simt::CallKind::wait:
      return numbered("event", call.object);
    case simt::CallKind::begin_capture:
    case simt::CallKind::end_capture:
    case simt::CallKind::instantiate:
    case simt::CallKind::update:
    case simt::CallKind::replay:
      return numbered("graph", call.object);
    case simt::CallKind::synchronize:
      return numbered("stream", call.stream);
    default:
      return call.label;
  }
}

std::string uses_text(const simt::StreamLog& log, const std::vector<simt::MemoryUse>& uses,
                      int call) {
  std::string reads, writes;
  for (const simt::MemoryUse& use : uses) {
    const std::string name = memory_name(log, use, call);
    if (name == "memory") continue;  // weights, which nothing writes
    std::string& to = use.written ? writes : reads;
    to += (to.empty() ? "" : ", ") + name;
  }
  if (reads.empty()) return "writes " + writes;
  return "reads " + reads + (writes.empty() ? "" : "; writes " + writes);
}

/// Ticks at which something happened, numbered from 1: beats.
class BeatsOf {
 public:
  explicit BeatsOf(const simt::StreamLog& log) {
    for (const auto& call : log.calls) ticks_.push_back(call.tick);
    for (const auto& work : log.works) ticks_.push_back(work.tick);
    std::sort(ticks_.begin(), ticks_.end());
    ticks_.erase(std::unique(ticks_.begin(), ticks_.end()), ticks_.end());
  }
  int count() const { return static_cast<int>(ticks_.size()); }
  int operator()(int tick) const {
    return static_cast<int>(std::lower_bound(ticks_.begin(), ticks_.end(), tick) - ticks_.begin()) +
           1;
  }

 private:
  std::vector<int> ticks_;
};

void fill_calls(Trace& trace, const StepsDone& done, const BeatsOf& beat) {
  const simt::StreamLog& log = done.log;
  int graph = -1;
  std::size_t node = 0;
  const auto places = places_of(trace.layers);
  for (std::size_t i = 0; i < log.calls.size(); ++i) {
    const auto& call = log.calls[i];
    trace.calls.push_back({.kind = call.kind,
                           .beat = beat(call.tick),
                           .stream = std::max(call.stream, 0),
                           .what = object_text(call),
                           .captured = call.captured});
    if (call.kind == simt::CallKind::begin_capture) {
      graph = call.object;
      node = 0;
    }
    if (call.kind != simt::CallKind::launch || !call.captured) continue;
    const auto& its = log.graphs[static_cast<std::size_t>(graph)][node++];
    trace.nodes.push_back({beat(call.tick), graph, places.at(its.label), its.stream, its.label,
                           uses_text(log, its.uses, static_cast<int>(i))});
  }
}

void fill_works(Trace& trace, const StepsDone& done, const BeatsOf& beat) {
  const simt::StreamLog& log = done.log;
  const auto places = places_of(trace.layers);
  for (const auto& work : log.works) {
    const auto place = places.find(work.label);
    trace.works.push_back({.call = work.call,
                           .beat = beat(work.tick),
                           .stream = work.stream,
                           .place = place == places.end() ? -1 : place->second,
                           .what = work.label,
                           .kernel = work.kernel,
                           .after = work.after});
  }
  for (const simt::StreamFinding& each : findings_of(log)) {
    FindingTrace found{1, text_of(each, log)};
    for (const int number : {each.work, each.other}) {
      if (number < 0) continue;
      WorkTrace& work = trace.works[static_cast<std::size_t>(number)];
      work.wrong = true;
      found.beat = std::max(found.beat, work.beat);
    }
    trace.findings.push_back(std::move(found));
  }
}

/// Numbers of h that the reference does not explain.
int wrong_in(const std::vector<float>& h, const std::vector<double>& exact, double bound) {
  int wrong = 0;
  for (std::size_t i = 0; i < h.size(); ++i) {
    wrong += std::abs(static_cast<double>(h[i]) - exact[i]) <= bound ? 0 : 1;
  }
  return wrong;
}

void fill_steps(Run& run) {
  Trace& trace = run.trace;
  const StepsDone& done = run.shown;
  trace.steps = done.steps;
  for (std::size_t s = 0; s < trace.steps.size(); ++s) {
    StepTrace& step = trace.steps[s];
    const auto first = static_cast<std::size_t>(done.first_calls[s]);
    const bool last = s + 1 == trace.steps.size();
    const auto end = last ? trace.calls.size() : static_cast<std::size_t>(done.first_calls[s + 1]);
    step.first_beat = trace.calls[first].beat;
    step.last_beat = last ? trace.beats : trace.calls[end].beat - 1;
    step.calls = static_cast<int>(end - first);
    for (const WorkTrace& work : trace.works) {
      const auto call = static_cast<std::size_t>(work.call);
      const bool launched = work.kernel != "copy" && work.kernel != "fill";
      step.kernels += call >= first && call < end && launched ? 1 : 0;
    }
    step.wrong = wrong_in(done.h[s], run.exact[s], run.bound);
  }
}

// ---- times, on a GPU ------------------------------------------------------------------------------------

double host_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::nano>(now).count();
}

/// The device's clock less the host's, and how far off that may be: of many stamps between two looks at the host's
/// clock, the one with the nearest looks.
struct ClockOffset {
  double ns = 0, within_ns = 0;
};
ClockOffset clock_offset(simt::Device& device) {
  simt::Buffer<unsigned long long> begin(device, 1), end(device, 1);
  ClockOffset best{0, 1e18};
  for (int round = 0; round < 20; ++round) {
    begin.fill(0xFF);
    end.fill(0);
    device.synchronize();
    const double before = host_ns();
    kernels_on(device).nothing(device, {begin.span(), end.span(), 0});
    device.synchronize();
    const double after = host_ns();
    if ((after - before) / 2 >= best.within_ns) continue;
    best = {static_cast<double>(begin.download().front()) - (before + after) / 2,
            (after - before) / 2};
  }
  return best;
}

void fill_times(Run& run, const ClockOffset& offset) {
  Trace& trace = run.trace;
  const simt::StreamLog& log = run.shown.log;
  trace.timed = true;
  trace.clocks_us = offset.within_ns * 1e-3;
  for (std::size_t i = 0; i < trace.calls.size(); ++i) {
    const auto step = static_cast<std::size_t>(trace.step_of(trace.calls[i].beat));
    const double start = log.calls[static_cast<std::size_t>(run.shown.first_calls[step])].begin_ms;
    trace.calls[i].begin_us = 1e3 * (log.calls[i].begin_ms - start);
    trace.calls[i].end_us = 1e3 * (log.calls[i].end_ms - start);
  }
  for (WorkTrace& work : trace.works) {
    const auto step = static_cast<std::size_t>(
        trace.step_of(trace.calls[static_cast<std::size_t>(work.call)].beat));
    const auto& stamps = run.shown.stamps[step];
    // A copy leaves no stamps; the whole step's are those of its phases.
    const std::size_t slot = work.place < 0 ? 0 : static_cast<std::size_t>(work.place);
    const bool whole = work.kernel == "persistent";
    if (stamps.empty() || (work.place < 0 && !whole)) continue;
    const std::size_t last = whole ? static_cast<std::size_t>(kPhases * trace.layers - 1) : slot;
    const double start_ns =
        1e6 *
        (log.start_ms + log.calls[static_cast<std::size_t>(run.shown.first_calls[step])].begin_ms);
    work.begin_us = 1e-3 * (stamps[slot].first - offset.ns - start_ns);
    work.end_us = 1e-3 * (stamps[last].second - offset.ns - start_ns);
  }
  double most = 1;
  for (const CallTrace& call : trace.calls) most = std::max(most, call.end_us);
  for (const WorkTrace& work : trace.works) most = std::max(most, work.end_us);
  const double unit = std::pow(10.0, std::floor(std::log10(most)));
  trace.span_us = unit * std::ceil(most / unit);
}

// ---- the runs -------------------------------------------------------------------------------------------

StepsPlan plan_of(const Params& params) {
  StepsPlan plan;
  plan.model = {.width = kWidth, .inner = kInner, .batch = 1, .layers = params.layers};
  plan.mode = params.mode;
  plan.fallback = params.fallback;
  plan.buckets = list_of(params.buckets);
  std::mt19937 generator = lab::generator_of(params.seed);
  for (const int batch : list_of(params.batches)) {
    std::vector<int> tokens;
    for (int i = 0; i < batch; ++i) {
      tokens.push_back(static_cast<int>(generator() % static_cast<unsigned>(kTokens - 1)) + 1);
    }
    plan.tokens.push_back(std::move(tokens));
  }
  plan.order.seed = static_cast<std::uint64_t>(params.seed);
  return plan;
}

/// The same calls in other orders that they allow must give the same bits.
int differ_in_other_orders(StepsPlan plan, const Weights& weights, simt::Device& device,
                           const StepsDone& first, lab::Progress& progress) {
  int differ = 0;
  for (const simt::WorkOrder order : {simt::WorkOrder::latest, simt::WorkOrder::shuffled}) {
    progress.check();
    plan.order.order = order;
    const StepsDone other = steps_done(plan, weights, device);
    for (std::size_t step = 0; step < other.h.size(); ++step) {
      for (std::size_t i = 0; i < other.h[step].size(); ++i) {
        differ += lab::same_bits(other.h[step][i], first.h[step][i]) ? 0 : 1;
      }
    }
  }
  return differ;
}

/// The persistent kernel once more with a tape, on the last step's tokens: its notes, and whether it agrees.
void note_phases(Run& run, const StepsPlan& plan, const Weights& weights, simt::Device& device) {
  StepShape shape = plan.model;
  shape.batch = static_cast<int>(plan.tokens.back().size());
  std::vector<int> tokens = plan.tokens.back();
  tokens.resize(kMostBatch);
  simt::Buffer<int> its_tokens(device, tokens);
  simt::Buffer<float> table(device, weights.table), gains(device, weights.gains);
  simt::Buffer<std::uint16_t> gate(device, weights.gate), up(device, weights.up),
      down(device, weights.down);
  simt::Buffer<float> h(device, static_cast<std::size_t>(kMostBatch * shape.width)),
      a(device, static_cast<std::size_t>(kMostBatch * shape.inner));
  simt::Buffer<unsigned> arrived(device, std::vector<unsigned>(1));
  const auto phases = static_cast<std::size_t>(kPhases * shape.layers);
  simt::Trace tape(device, phases * simt::kNoteEntries<float>);
  kernels_on(device).persistent_noted(device, shape,
                                      {its_tokens.span(), table.span(), gains.span(), gate.span(),
                                       up.span(), down.span(), h.span(), a.span(), arrived.span()},
                                      run.params.broken != Break::missing_dependency, tape.tape());
  run.trace.phases = tape.download().all_notes<float>(kPhaseSite, phases, "phases");
  if (run.params.broken == Break::missing_dependency) return;
  const std::vector<float> noted = h.download(run.sound.h.back().size());
  for (std::size_t i = 0; i < noted.size(); ++i) {
    run.phases_differ += lab::same_bits(noted[i], run.sound.h.back()[i]) ? 0 : 1;
  }
}

/// A part of the product of the shape's knobs, by the loads that its alignment allows.
void run_product(Run& run, simt::Device& device) {
  const Params& params = run.params;
  const Choice choice = chosen_for({.m = params.m, .n = params.n, .k = params.k});
  run.trace.shape = {params.m, params.n, params.k, choice.kernel, choice.why};
  const ProductShape shape{std::min(params.n, 16), params.k, std::min(params.m, kMostBatch)};
  std::mt19937 generator = lab::generator_of(params.seed);
  const auto numbers = [&](int rows) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(shape.k);
  };
  const std::vector<std::uint16_t> w = lab::uniform_bf16(generator, numbers(shape.rows));
  const std::vector<float> x = lab::uniform_floats(generator, numbers(shape.batch));
  simt::Buffer<std::uint16_t> its_w(device, w);
  simt::Buffer<float> its_x(device, x);
  simt::Buffer<float> y(
      device, static_cast<std::size_t>(shape.rows) * static_cast<std::size_t>(shape.batch));
  y.fill(0xFF);
  kernels_on(device).product(device, "product",
                             choice.kernel == Kernel::single ? Loads::single : Loads::vectors,
                             shape, {its_w.span(), its_x.span(), y.span()}, {});
  const std::vector<float> got = y.download();
  const std::vector<double> exact = reference_product(shape, w, x);
  for (std::size_t i = 0; i < got.size(); ++i) {
    run.product.add(got[i], exact[i], product_bound(shape.k));
  }
}

}  // namespace

int Trace::step_of(int beat) const {
  for (std::size_t step = 0; step < steps.size(); ++step) {
    if (beat <= steps[step].last_beat) return static_cast<int>(step);
  }
  return static_cast<int>(steps.size()) - 1;
}

Run run_of(const Params& params, simt::Device& device, lab::Progress& progress) {
  Run run;
  run.params = params;
  progress.report(0.05, "making a model");
  StepsPlan plan = plan_of(params);
  const Weights weights = make_weights(plan.model, params.seed);
  double largest = 1;
  for (const std::vector<int>& tokens : plan.tokens) {
    run.exact.push_back(reference_step(plan.model, weights, tokens));
    for (const double one : run.exact.back()) largest = std::max(largest, std::abs(one));
    progress.check();
  }
  run.bound = bound_of(plan.model, largest);

  progress.report(0.2, "running the steps");
  run.sound = steps_done(plan, weights, device);
  progress.check();
  run.orders_differ = differ_in_other_orders(plan, weights, device, run.sound, progress);
  run.shown = run.sound;
  if (params.broken != Break::none) {
    plan.broken = params.broken;
    // The order that shows it: what nothing waits for comes late.
    if (params.broken == Break::missing_dependency) plan.order.order = simt::WorkOrder::latest;
    progress.check();
    run.shown = steps_done(plan, weights, device);
  }
  progress.report(0.8, "running the shape's product");
  run_product(run, device);
  progress.check();

  Trace& trace = run.trace;
  trace.mode = params.mode;
  trace.broken = params.broken;
  trace.layers = params.layers;
  trace.fallback = params.fallback;
  const BeatsOf beat(run.shown.log);
  trace.beats = beat.count();
  fill_calls(trace, run.shown, beat);
  fill_works(trace, run.shown, beat);
  fill_steps(run);
  if (params.mode == Mode::persistent) note_phases(run, plan, weights, device);
  if (device.can_time()) fill_times(run, clock_offset(device));
  return run;
}

}  // namespace tilestep::launches
