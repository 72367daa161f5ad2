#include "kernels/attention/positions/lesson.hpp"

#include "kernels/attention/positions/bench/bench.hpp"
#include "kernels/attention/positions/run/run.hpp"
#include "kernels/base/lab/knob.hpp"
#include "kernels/base/lab/replay.hpp"
#include "kernels/base/simt/launch.hpp"

namespace tilestep::positions {
namespace {

constexpr int kLeastCapability = 80;

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  simt::require_capability(device.info(), "positions", kLeastCapability);
  return report_of(run_of(params, device, progress));
}

/// The parts of a run that depend on its GPU.
const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay{
      .of_machine = {{"trace.result", "how many are past a tolerance is a matter of the last bit"}},
      .rounding = 0x1p-6,
      .rounding_why =
          "Sine and cosine differ in their last bits, and a number between two of BF16 "
          "is then rounded to the other."};
  return kReplay;
}

}  // namespace

const lab::KnobTable<Params>& knob_table() {
  static const auto table =
      lab::KnobTable<Params>()
          .group("model")
          .choice(&Params::method,
                  {"method", "Method", "", "How attention is told where a token stands."})
          .choice(&Params::pairs,
                  {"pairs", "Pairs", "", "Which two numbers of a head turn together."})
          .real(
              &Params::base,
              {"base", "Base", "", "The slowest pair is about so many times as slow as the first."},
              100, 1e7, true)
          .real(&Params::scale,
                {"scale", "Scale", "×",
                 "How many times as far as in training positions shall reach."},
                1, 16, true)
          .with("method", {"linear", "ntk", "yarn"})
          .integer(
              &Params::trained_length,
              {"trained_length", "Trained length", "tokens", "Tokens of a sequence in training."},
              256, 65536, true)
          .choice(&Params::dim_choice, {"dim", "Head", "numbers", "Numbers of a head."},
                  {"16", "32", "64", "128"})
          .group("run")
          .integer(
              &Params::shift,
              {"shift", "First position", "", "Where the first token stands: moves all of them."},
              0, kMostShift, true)
          .toggle(&Params::fused,
                  {"fused", "Fused", "", "One launch norms, turns and stores; otherwise four."})
          .choice(&Params::broken,
                  {"break", "Break it", "", "Makes a mistake and runs it for real."})
          .seed();
  return table;
}

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(kLesson,
                            "Queries and keys turn with their position, so that a score knows the "
                            "distance and nothing else.",
                            knob_table(), run, bench_report, "frequencies")
          .with_telling(
              {{"far-away",
                "A million tokens further on: every hand elsewhere, every score the same.",
                {.shift = kMostShift}},
               {"yarn",
                "Slow pairs are stretched to four times the trained length, fast ones are not.",
                {.method = Method::yarn}},
               {"alibi",
                "Nothing turns: each score loses with distance.",
                {.method = Method::alibi}},
               {"nope",
                "Nothing turns and nothing is lost: all scores are equal.",
                {.method = Method::nope}},
               {"swapped-pairs",
                "Keys are turned in the other layout: the score depends on where both stand.",
                {.broken = Break::swapped_pairs}},
               {"fp16-angles",
                "FP16 cannot tell position 8200 from 8204: the fast pairs are lost.",
                {.shift = 8192, .broken = Break::fp16_angles}}})
          .with_trials({{},
                        {.pairs = Pairs::interleaved, .dim_choice = 1},
                        {.method = Method::yarn, .shift = 100000, .dim_choice = 2, .fused = false},
                        {.method = Method::alibi},
                        {.dim_choice = 3}})
          .with_small_bench([](simt::Device& device, lab::Progress& progress) {
            return bench_report(device, progress, BenchSizes::tiny());
          })
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::positions
