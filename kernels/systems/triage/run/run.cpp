// Runs the loop of a case before and after its fixes, and looks at it through the instruments that were asked for.

#include "kernels/systems/triage/run/run.hpp"

#include <algorithm>
#include <cmath>

namespace tilestep::triage {
namespace {

void compare(lab::Closest& closest, const std::vector<float>& got, std::size_t first,
             const std::vector<double>& exact, const Shape& shape, const std::string& what) {
  double largest = 1;
  for (const double one : exact) largest = std::max(largest, std::abs(one));
  for (std::size_t i = 0; i < exact.size(); ++i) {
    closest.add(got[first + i], exact[i], bound_of(shape, largest),
                [&] { return what + " " + std::to_string(i); });
  }
}

/// Both kinds of step of a plan's loop, row by row against double.
lab::Closest compared(Program& program, int& sampled_wrong) {
  Arrays& arrays = program.arrays();
  const Shape& shape = arrays.shape();
  lab::Closest closest;
  for (const int step : {kUsualStep, kLoop}) {
    if (step == kLoop && !program.plan().has(Fault::rare)) continue;  // all steps are alike
    arrays.h.fill(0xFF);
    arrays.logits.fill(0xFF);
    program.run(step);
    arrays.device().synchronize();
    const Result got = result_of(program);
    for (int row = 0; row < shape.rows; ++row) {
      const auto at = static_cast<std::size_t>(row);
      const ReferenceRow exact =
          reference_row(shape, arrays.numbers(), row, Arrays::tokens_of()[at]);
      compare(closest, got.h, at * exact.h.size(), exact.h, shape, "h");
      compare(closest, got.logits, at * exact.logits.size(), exact.logits, shape, "logit");
      const auto* const logits = got.logits.data() + at * exact.logits.size();
      const auto most = std::max_element(logits, logits + exact.logits.size()) - logits;
      sampled_wrong += most == got.sampled[at] ? 0 : 1;
    }
  }
  return closest;
}

/// The suspect's share of the kernels' time in a loop; 0: not known.
double share_of(const Params& params, const Plan& plan, Times& times) {
  if (params.suspect == Suspect::open || params.suspect == Suspect::step) return 0;
  double all = 0, its = 0;
  for (int step = 1; step <= kLoop; ++step) {
    const auto kernels = times.kernels(plan, step);
    if (!kernels) return 0;
    for (const KernelReading& kernel : *kernels) {
      all += kernel.us;
      if (covers(params.suspect, kernel.op)) its += kernel.us;
    }
  }
  return all > 0 ? its / all : 0;
}

/// What a loop of four steps asks of memory, and launches.
void add_loop(const Program& program, double& mb, double& launches) {
  for (int step = 1; step <= kLoop; ++step) {
    for (const KernelReading& kernel : counted(program, step, std::size_t{1} << 17).kernels) {
      mb += kernel.bytes * 1e-6;
      launches += kernel.launches;
    }
  }
}

std::vector<Fault> faults_of(const Plan& plan) {
  std::vector<Fault> all;
  for (const Fault fault : all_of<Fault>()) {
    if (plan.has(fault)) all.push_back(fault);
  }
  return all;
}

/// To the next round number.
double rounded_up(double x) {
  const double unit = std::pow(10.0, std::floor(std::log10(x)));
  for (const double step : {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0}) {
    if (x <= step * unit) return step * unit;
  }
  return 10 * unit;
}

int points_of(const Verdict& verdict, int probes_left) {
  const double fixed = static_cast<double>(verdict.fixed) / verdict.faults;
  const double points = 10 * verdict.right_bottleneck + 15 * verdict.right_operator +
                        25 * verdict.right_cause +
                        40 * (verdict.best_us > 0 && verdict.fixed > 0 ? verdict.share() : fixed) +
                        (verdict.fixed == verdict.faults ? 10.0 * probes_left / kProbes : 0.0);
  return static_cast<int>(std::lround(points));
}

}  // namespace

double Verdict::share() const {
  if (best_us <= 0 || before_us <= best_us) return 0;
  return std::clamp((before_us - after_us) / (before_us - best_us), 0.0, 1.0);
}

Shape shape_of(const Params& params) {
  Shape shape;
  shape.layers = params.layers;
  shape.rows = params.batch;
  return shape;
}

Plan fixed_plan(const Params& params) {
  const Plan once = fixed(plan_of(params.which, params.seed), params.fix);
  return params.which == Case::mixed ? fixed(once, params.second) : once;
}

Verdict verdict_of(const Params& params, Times& times) {
  const Plan before = plan_of(params.which, params.seed), after = fixed_plan(params);
  Verdict made;
  const bool second = params.which == Case::mixed && params.second != Fix::none;
  made.applied = params.fix != Fix::none || second;
  if (!made.applied) return made;
  const std::vector<Fault> faults = faults_of(before);
  made.faults = static_cast<int>(faults.size());
  made.fixed = made.faults - static_cast<int>(faults_of(after).size());
  for (const Fault fault : faults) {
    made.right_bottleneck = made.right_bottleneck || params.bottleneck == bottleneck_of(fault);
    made.right_operator = made.right_operator || names_operator(fault, params.suspect);
    made.right_cause =
        made.right_cause || static_cast<int>(params.cause) == 1 + static_cast<int>(fault);
  }
  const auto mean = [&times](const Plan& plan) {
    const std::optional<StepTimes> found = times.steps(plan);
    return found ? found->mean.median : 0;
  };
  made.before_us = mean(before);
  // What is the same program is not timed twice: noise is no gain.
  made.after_us = after == before ? made.before_us : mean(after);
  made.best_us = mean(Plan{});
  if (made.after_us <= 0 || made.best_us <= 0) made.before_us = made.after_us = made.best_us = 0;
  made.points = points_of(
      made,
      kProbes - static_cast<int>(probes_of(params.probes).value_or(std::vector<Probe>()).size()));
  return made;
}

Run run_of(const Params& params, simt::Device& device, lab::Progress& progress) {
  Run run;
  Trace& trace = run.trace;
  trace.which = params.which;
  trace.looks = *probes_of(params.probes);
  trace.bottleneck = params.bottleneck;
  trace.suspect = params.suspect;
  trace.cause = params.cause;
  trace.fix = params.fix;
  trace.second = params.which == Case::mixed ? params.second : Fix::none;

  const Shape shape = shape_of(params);
  Arrays arrays(device, shape, make_numbers(shape, 1, std::size_t{1} << 24));
  const Plan plan = plan_of(params.which, params.seed);
  Program program(arrays, plan);
  run.before = compared(program, run.sampled_wrong);
  progress.check();
  Program after(arrays, fixed_plan(params));
  run.after = after.plan() == plan ? run.before : compared(after, run.sampled_wrong);
  progress.check();

  const std::unique_ptr<Times> times = times_for(device, progress, params.layers, params.batch);
  trace.times_from = times->from();
  bool looked_at_kernels = false;
  for (std::size_t i = 0; i < trace.looks.size(); ++i) {
    progress.report(0.3 + 0.5 * static_cast<double>(i) / static_cast<double>(trace.looks.size()),
                    name_of(trace.looks[i].instrument));
    const std::vector<Row> rows =
        rows_of(trace.looks[i], static_cast<int>(i), program, *times, progress);
    trace.rows.insert(trace.rows.end(), rows.begin(), rows.end());
    const Instrument its = trace.looks[i].instrument;
    looked_at_kernels =
        looked_at_kernels || its == Instrument::kernels || its == Instrument::timeline;
    if (its == Instrument::roofline) trace.copy_gb_per_s = times->copy_gb_per_s();
  }
  for (const Row& row : trace.rows) {
    const Instrument its = trace.looks[static_cast<std::size_t>(row.look)].instrument;
    if (its == Instrument::timeline) {
      trace.span = std::max(trace.span, row.second);
    } else if (its == Instrument::kernels) {
      trace.most_us = std::max(trace.most_us, row.value);
    }
    double& most = its == Instrument::kernels ? trace.most_launches
                   : its == Instrument::gaps  ? trace.most_calls
                                              : trace.most_intensity;
    if (its == Instrument::kernels || its == Instrument::gaps) most = std::max(most, row.count);
    if (its == Instrument::roofline) most = std::max(most, row.value);
  }
  for (double* most : {&trace.span, &trace.most_us, &trace.most_launches, &trace.most_calls,
                       &trace.most_intensity}) {
    *most = rounded_up(*most);
  }
  if (looked_at_kernels) trace.suspect_share = share_of(params, plan, *times);
  trace.verdict = verdict_of(params, *times);
  if (trace.verdict.applied) {
    const bool mixed = params.which == Case::mixed;
    run.tried = std::string(name_of(params.which)) +
                (mixed ? " " + std::to_string(params.seed) : "") + ": " +
                std::string(name_of(params.fix)) +
                (mixed ? " + " + std::string(name_of(params.second)) : "");
    add_loop(program, trace.verdict.before_mb, trace.verdict.before_launches);
    add_loop(after, trace.verdict.after_mb, trace.verdict.after_launches);
  }
  return run;
}

}  // namespace tilestep::triage
