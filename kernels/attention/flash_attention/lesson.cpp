#include "kernels/attention/flash_attention/lesson.hpp"

#include "kernels/attention/flash_attention/bench/bench.hpp"
#include "kernels/attention/flash_attention/run/run.hpp"
#include "kernels/attention/shared/knobs.hpp"
#include "kernels/base/simt/launch.hpp"

namespace tilestep::flash_attention {
namespace {

lab::Report run(const Choices& choices, simt::Device& device, lab::Progress& progress) {
  simt::require_capability(device.info(), "flash-attention", kLeastCapability);
  return report_of(run_of(choices.params(), device, progress));
}

const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay = replay_with({});
  return kReplay;
}

}  // namespace

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Choices>(
          kLesson,
          "No score needs storing: a tile of them, a maximum and a sum per row are enough.",
          knob_table(), run, bench_report, "steps")
          .with_telling(
              {{"naive",
                "All scores are written, read, written as weights and read again: the ledger has "
                "four times the matrix, and the mask saves nothing.",
                {.variant = Variant::naive}},
               {"flash-1",
                "Keys in the outer loop: O, its maximum and its sum are read and written at every "
                "visit.",
                {.variant = Variant::flash_1}},
               {"window",
                "In a long sequence each query sees the last keys and the first few: most tiles "
                "are never fetched.",
                {.seq = 512, .heads = 1, .mask = Sees::sliding_window, .sinks = 4}},
               {"no-rescale",
                "The maximum rises, but O and the sum keep their old scale: weights that should "
                "have shrunk count in full.",
                {.broken = Break::skip_rescale}}})
          .with_trials({{.variant = Variant::naive, .seq = 50},
                        {.variant = Variant::naive, .seq = 75, .mask = Sees::prefix},
                        {.variant = Variant::flash_1, .seq = 50, .heads = 4},
                        {.variant = Variant::flash_1,
                         .seq = 150,
                         .heads = 1,
                         .mask = Sees::sliding_window,
                         .tile = tile_of(Edge::t64, Edge::t16)},
                        {.seq = 75, .heads = 4, .head_dim = HeadDim::d80, .mask = Sees::alibi},
                        {.seq = 150,
                         .heads = 1,
                         .mask = Sees::sliding_window,
                         .sinks = 3,
                         .tile = tile_of(Edge::t64, Edge::t16)},
                        {.seq = 50, .mask = Sees::softcap},
                        {.seq = 50, .mask = Sees::none},
                        {.seq = 100, .mask = Sees::document},
                        {.seq = 75, .head_dim = HeadDim::d64, .dtype = ScoreFormat::fp8},
                        {.seq = 75,
                         .head_dim = HeadDim::d64,
                         .mask = Sees::none,
                         .dtype = ScoreFormat::int8_with_mean}})
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::flash_attention
