#include "kernels/attention/flash_attention/lesson.hpp"

#include "kernels/attention/flash_attention/bench/bench.hpp"
#include "kernels/attention/flash_attention/run/run.hpp"
#include "kernels/base/lab/replay.hpp"
#include "kernels/base/simt/launch.hpp"

namespace tilestep::flash_attention {
namespace {

/// What the kernels are compiled for at least.
constexpr int kLeastCapability = 80;

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  simt::require_capability(device.info(), "flash-attention", kLeastCapability);
  return report_of(run_of(params, device, progress));
}

/// What of a run is of the GPU that it ran on.
const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay{
      .of_machine = {{"trace.clock_unit", "its clock"},
                     {"trace.visits.begin", "its clock"},
                     {"trace.visits.end", "its clock"},
                     {"trace.blocks.begin", "its clock"},
                     {"trace.blocks.end", "its clock"},
                     {"trace.events", "its clock, and the order that it gives"},
                     {"tables.blocks.begin", "its clock"},
                     {"tables.blocks.end", "its clock"},
                     {"tables.lanes", "its clock"},
                     {"tables.exponentials", "older recordings have it, runs no longer"},
                     {"tables.ladder", "older recordings have it, runs no longer"},
                     {"trace.wrong", "how many are past a tolerance is a matter of the last bit"},
                     {"trace.result", "how many are past a tolerance is a matter of the last bit"},
                     {"tables.broken",
                      "how many are past a tolerance is a matter of the last bit"}},
      .rounding = 0x1p-7,
      .rounding_why =
          "Tensor cores cut off what the emulation rounds: a number of O may then be "
          "the next one of BF16, 2^-7 away."};
  return kReplay;
}

}  // namespace

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(
          kLesson,
          "No score needs to be stored: a tile of them, a maximum and a sum a row are enough.",
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
               {"ping-pong",
                "Two warpgroups take turns: while one multiplies, the other makes exponentials.",
                {.variant = Variant::flash_3_ping_pong,
                 .seq = 512,
                 .heads = 1,
                 .head_dim = HeadDim::d128,
                 .mask = Mask::none}},
               {"flash-3",
                "A block takes two tiles of queries, and the softmax of a tile of keys runs under "
                "the products of the next.",
                {.variant = Variant::flash_3, .seq = 512, .heads = 1, .head_dim = HeadDim::d128}},
               {"window",
                "Of a long sequence each query sees the last keys and the first few: most tiles "
                "are never fetched.",
                {.seq = 512, .heads = 1, .mask = Mask::sliding_window, .sinks = 4}},
               {"backward",
                "Each weight is made again from its score and the log-sum-exp: five products for "
                "four, and no matrix in memory.",
                {.pass = Pass::backward_recompute}},
               {"no-rescale",
                "The maximum rises, but O and the sum keep their old scale: weights that should "
                "have shrunk count in full.",
                {.broken = Break::skip_rescale}}})
          .with_trials(
              {{.variant = Variant::naive, .seq = 50},
               {.variant = Variant::naive, .seq = 75, .mask = Mask::prefix, .window = 20},
               {.variant = Variant::flash_1, .seq = 50, .heads = 4, .kv_heads = 2},
               {.variant = Variant::flash_1,
                .seq = 75,
                .mask = Mask::sliding_window,
                .window = 9,
                .block_q = Edge::t64,
                .block_k = Edge::t16},
               {.seq = 75,
                .heads = 4,
                .kv_heads = 2,
                .head_dim = HeadDim::d80,
                .score_mod = ScoreMod::alibi},
               {.seq = 75,
                .mask = Mask::sliding_window,
                .window = 9,
                .sinks = 3,
                .block_q = Edge::t64,
                .block_k = Edge::t16},
               {.seq = 50, .mask = Mask::none, .score_mod = ScoreMod::softcap},
               {.seq = 100, .mask = Mask::document},
               {.variant = Variant::flash_3_tma, .seq = 100, .heads = 1, .head_dim = HeadDim::d64},
               {.variant = Variant::flash_3_ping_pong,
                .seq = 200,
                .heads = 1,
                .head_dim = HeadDim::d64,
                .mask = Mask::sliding_window,
                .window = 30},
               {.variant = Variant::flash_3,
                .seq = 200,
                .head_dim = HeadDim::d128,
                .mask = Mask::none},
               {.pass = Pass::backward_recompute, .seq = 75, .heads = 4, .kv_heads = 2},
               {.pass = Pass::backward_recompute,
                .seq = 50,
                .mask = Mask::sliding_window,
                .window = 9},
               {.seq = 75,
                .head_dim = HeadDim::d64,
                .dtype = DataType::fp8,
                .data = Data::outliers},
               {.seq = 75,
                .head_dim = HeadDim::d64,
                .mask = Mask::none,
                .dtype = DataType::int8,
                .smooth_k = false}})
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::flash_attention
