#include "kernels/attention/linear_attention/lesson.hpp"

#include "kernels/attention/linear_attention/bench/bench.hpp"
#include "kernels/attention/linear_attention/run/run.hpp"
#include "kernels/base/lab/knob.hpp"
#include "kernels/base/lab/replay.hpp"
#include "kernels/base/simt/launch.hpp"

namespace tilestep::linear_attention {
namespace {

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  simt::require_capability(device.info(), "linear-attention", 80);
  return report_of(run_of(params, device, progress));
}

/// The parts of a run that depend on its GPU.
const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay{
      .of_machine = {{"trace.result", "how many are past a tolerance is a matter of the last bit"},
                     {"trace.wrong", "likewise"},
                     {"tables.chunks.wrong", "likewise"}},
      .rounding = 0x1p-6,
      .rounding_why =
          "Exponentials differ in their last bits, and a number between two of BF16 is "
          "then rounded to the other."};
  return kReplay;
}

}  // namespace

const lab::KnobTable<Params>& knob_table() {
  static const auto table =
      lab::KnobTable<Params>()
          .group("model")
          .choice(&Params::feature,
                  {"feature", "Feature map", "", "φ: what stands for softmax's exponential."})
          .choice(&Params::rule,
                  {"rule", "Rule", "", "What a token does to the state with its key and value."})
          .real(&Params::gate,
                {"gate", "Gate", "per token",
                 "The part of the state that a token keeps, on average."},
                0.5, 1)
          .with("rule", {"gate", "gated-delta"})
          .real(&Params::beta,
                {"beta", "Write strength", "", "The part of a value's correction that is written."},
                0.1, 1)
          .with("rule", {"delta", "gated-delta"})
          .choice(&Params::dim_choice,
                  {"dim", "Head", "numbers", "Numbers of a key and of a value: the state's sides."},
                  {"16", "32", "64"})
          .integer(&Params::context, {"context", "Tokens", "", "Tokens of the sequence."},
                   kLeastContext, kMostContext)
          .integer(&Params::repeat,
                   {"repeat", "Different keys", "", "So many keys come in turn, with new values."},
                   1, kMostProbes)
          .group("run")
          .choice(&Params::chunk_choice,
                  {"chunk", "Chunk", "tokens", "Tokens that are processed at once."},
                  {"16", "32", "64"})
          .choice(&Params::broken,
                  {"break", "Break it", "", "Makes a mistake in the chunks and runs it for real."})
          .seed();
  return table;
}

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(kLesson,
                            "All keys and values so far add up in one matrix, whose size no text "
                            "changes.",
                            knob_table(), run, bench_report, "tokens")
          .with_telling(
              {{"elu",
                "Features of elu hardly tell the sought keys from the others.",
                {.feature = Feature::elu}},
               {"delta",
                "The delta rule overwrites: each key holds its newest value, exactly.",
                {.rule = Rule::delta}},
               {"gate",
                "A gate lets old values fade, and new ones too as they age.",
                {.rule = Rule::gate}},
               {"gated-delta",
                "Overwrites what comes again, and lets fade what does not.",
                {.rule = Rule::gated_delta, .repeat = 8}},
               {"random-features",
                "Random features come near softmax's weights, with noise.",
                {.feature = Feature::random, .dim_choice = 2}},
               {"stale-state",
                "A chunk begins with the state before the last: its first tokens are wrong too.",
                {.broken = Break::stale_state}},
               {"unmasked-chunk",
                "Tokens see later ones of their chunk, the last of a chunk does not.",
                {.broken = Break::unmasked_chunk}}})
          .with_trials({{},
                        {.feature = Feature::random, .rule = Rule::gate, .chunk_choice = 1},
                        {.feature = Feature::elu, .rule = Rule::delta, .beta = 0.5, .context = 49},
                        {.feature = Feature::relu,
                         .rule = Rule::gated_delta,
                         .chunk_choice = 2,
                         .gate = 0.7,
                         .dim_choice = 1,
                         .context = 70},
                        {.rule = Rule::gate, .dim_choice = 2}})
          .with_small_bench([](simt::Device& device, lab::Progress& progress) {
            return bench_report(device, progress, BenchSizes::tiny());
          })
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::linear_attention
