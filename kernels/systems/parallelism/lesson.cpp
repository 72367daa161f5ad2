#include "kernels/systems/parallelism/lesson.hpp"

#include "kernels/base/lab/knob.hpp"
#include "kernels/base/lab/replay.hpp"
#include "kernels/systems/parallelism/bench/bench.hpp"
#include "kernels/systems/parallelism/run/run.hpp"

namespace tilestep::parallelism {
namespace {

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  return report_of(run_of(params, device, progress));
}

/// The parts of a run that depend on its GPU.
const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay{
      .of_machine = {{"trace.cut_equal", "a GPU's exp differs in its last bits"},
                     {"trace.outcome", "what is found too early depends on who comes first"},
                     {"trace.waits", "the order in which ranks give up"}},
      .rounding = 0x1p-6,
      .rounding_why = "A GPU's exp and square root differ in their last bits."};
  return kReplay;
}

}  // namespace

const lab::KnobTable<Params>& knob_table() {
  static const auto table =
      lab::KnobTable<Params>()
          .group("run")
          .choice(&Params::algorithm, {"algorithm", "Algorithm", "",
                                       "Which rank sends what to which in an all-reduce."})
          .integer(&Params::ranks, {"ranks", "Ranks", "", "GPUs that work together."}, 2,
                   kMostRanks)
          .integer(&Params::message,
                   {"message", "Message", "B", "Bytes that each rank has to add, in FP32."}, 128,
                   16384, true)
          .choice(&Params::broken,
                  {"break", "Break it", "", "Makes a mistake and runs it for real."})
          .group("model")
          .choice(&Params::cut, {"cut", "Cut", "", "What is divided among the ranks."})
          .choice(&Params::schedule,
                  {"schedule", "Schedule", "", "In which order a stage does its microbatches."})
          .integer(&Params::microbatches,
                   {"microbatches", "Microbatches", "", "Parts of a batch that follow each other."},
                   1, 8)
          .choice(&Params::link,
                  {"link", "Link", "", "What joins the planned ranks, by its datasheet."})
          .integer(&Params::tokens, {"tokens", "Tokens", "", "Tokens of the planned step."}, 1024,
                   1 << 20, true)
          .seed();
  return table;
}

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(kLesson,
                            "A sum over GPUs costs each of them twice its message, and how a model "
                            "is cut decides what has to be summed.",
                            knob_table(), run, bench_report, "sent")
          .with_telling({{"tree",
                          "Half as many beats, and all of the message each time.",
                          {.algorithm = Algorithm::tree}},
                         {"one-shot",
                          "One beat, and each rank sends its message to all others.",
                          {.algorithm = Algorithm::one_shot}},
                         {"fsdp",
                          "Weights are gathered when they are needed: memory falls with the ranks.",
                          {.cut = Cut::fsdp}},
                         {"pipeline",
                          "Layers are divided: little is sent, and ranks wait for each other.",
                          {.cut = Cut::pipeline}},
                         {"context",
                          "Keys and values go round: each rank has a part of every sequence.",
                          {.cut = Cut::context}}})
          .with_trials({{},
                        {.algorithm = Algorithm::tree, .ranks = 3},
                        {.algorithm = Algorithm::one_shot, .cut = Cut::expert},
                        {.ranks = 2, .cut = Cut::fsdp},
                        {.cut = Cut::context}})
          .with_small_bench([](simt::Device& device, lab::Progress& progress) {
            return bench_report(device, progress, BenchSizes::tiny());
          })
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::parallelism
