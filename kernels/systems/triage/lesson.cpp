#include "kernels/systems/triage/lesson.hpp"

#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/lab/replay.hpp"
#include "kernels/systems/triage/bench/bench.hpp"
#include "kernels/systems/triage/run/run.hpp"

namespace tilestep::triage {
namespace {

bool are_probes(std::string_view text) {
  return probes_of(text).has_value();
}

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  return report_of(run_of(params, device, progress));
}

lab::KnobTable<Params> made_table() {
  lab::KnobTable<Params> table;
  table.group("run")
      .choice(&Params::which,
              {"case", "Case", "", "A decode loop that is slower than it should be."})
      .integer(&Params::seed, {"seed", "Chooses the two faults of a mixed case."}, 0, 2147483647)
      .with("case", {"mixed"})
      .group("look")
      .text(&Params::probes,
            {"probes", "Probes", "",
             "What is looked at, one after another; name:4 looks at step 4 of the loop."},
            "up to eight of timeline, kernels, shapes, counters, roofline, sectors, gaps and queue "
            "with commas between, each at a step from 1 to 4 once, such as queue,kernels:4",
            are_probes)
      .choice(&Params::bottleneck, {"bottleneck", "Bottleneck", "",
                                    "What limits the step: bytes of memory, too few loads in "
                                    "flight, the host, or work without a use."})
      .choice(&Params::suspect, {"operator", "Operator", "", "Where the time goes."})
      .choice(&Params::cause, {"cause", "Cause", "", "What is wrong there."})
      .choice(&Params::fix, {"fix", "Fix", "", "What is changed; the loop is run again with it."})
      .choice(&Params::second, {"second", "Second fix", "", "The other change of a mixed case."})
      .with("case", {"mixed"})
      .group("model")
      .integer(&Params::layers, {"layers", "Layers", "", "Layers of the model."}, 1, kMostLayers)
      .integer(&Params::batch, {"batch", "Batch", "rows", "Users that a step decodes for."}, 1,
               kMostBatch);
  return table;
}

/// The parts of a run that depend on its GPU.
const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay{
      .of_machine = {{"trace.times_from", "where the times are from"},
                     {"trace.copy_gb_per_s", "a clock"},
                     {"trace.span", "a clock"},
                     {"trace.most_us", "a clock"},
                     {"trace.most_launches", "sized as what is timed"},
                     {"trace.most_calls", "sized as what is timed"},
                     {"trace.most_intensity", "sized as what is timed"},
                     {"trace.rows", "sorted by time, and sized as what is timed"},
                     {"trace.suspect_share", "a clock"},
                     {"trace.verdict", "a clock"},
                     {"tables.readings", "sorted by time, and sized as what is timed"},
                     {"tables.verdict", "a clock"},
                     {"measurements.case_points", "a clock"},
                     {"checks.before", "sums in another order"},
                     {"checks.after", "sums in another order"}},
      .rounding = 1e-5,
      .rounding_why = "FP32 sums of products, and the device's own exponential"};
  return kReplay;
}

}  // namespace

const lab::KnobTable<Params>& knob_table() {
  static const lab::KnobTable<Params> table = made_table();
  return table;
}

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(kLesson,
                            "Look before you change anything: what limits the step, and how much "
                            "can its worst kernel give back?",
                            knob_table(), run, bench_report, "readings")
          .with_telling(
              {{"wrong-fix",
                "A faster norm, in a step that is not short of norms.",
                {.probes = "queue,kernels", .suspect = Suspect::norm, .fix = Fix::faster_norm}},
               {"rare",
                "A kernel that a window of one step does not see.",
                {.which = Case::five, .probes = "queue,kernels,kernels:4"}},
               {"mixed",
                "Two faults in one step.",
                {.which = Case::mixed, .probes = "timeline,gaps,sectors"}}})
          .with_trials({{},
                        {.which = Case::four, .probes = "sectors"},
                        {.which = Case::eight, .probes = "sectors", .batch = 1},
                        {.which = Case::ten, .probes = "shapes", .batch = 3},
                        {.which = Case::six, .probes = "counters", .layers = 1},
                        {.which = Case::two, .probes = "queue"},
                        {.which = Case::nine, .probes = "queue", .batch = 2},
                        {.which = Case::eleven, .probes = "gaps", .layers = 1},
                        {.which = Case::five, .probes = "kernels:4", .layers = 1}})
          .with_small_bench([](simt::Device& device, lab::Progress& progress) {
            return bench_report(device, progress, BenchSizes::tiny());
          })
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::triage
