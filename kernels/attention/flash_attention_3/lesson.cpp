#include "kernels/attention/flash_attention_3/lesson.hpp"

#include "kernels/attention/flash_attention_3/bench/bench.hpp"
#include "kernels/attention/flash_attention_3/run/run.hpp"
#include "kernels/attention/shared/knobs.hpp"

namespace tilestep::flash_attention_3 {
namespace {

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  return report_of(run_of(params, device, progress));
}

const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay = replay_with(
      {{"trace.events", "its clock, and the order that it gives"}, {"tables.lanes", "its clock"}});
  return kReplay;
}

}  // namespace

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(kLesson,
                            "Copies, products and exponentials have separate units: a kernel is "
                            "fast when all three are busy at once.",
                            knob_table(), run, bench_report, "steps")
          .with_telling(
              {{"tma",
                "A warp copies ahead, but each warpgroup alternates products and softmax.",
                {.variant = Rung::tma}},
               {"flash-3",
                "A block takes two tiles of queries, and the softmax of a tile of keys "
                "runs under the products of the next.",
                {.variant = Rung::pipelined}},
               {"half",
                "At head dimension 64 the exponentials take as long as the products.",
                {.variant = Rung::pipelined, .head_dim = Columns::d64}},
               {"no-rescale",
                "Overlap changes no result: without the rescale O is wrong in the "
                "same rows as flash-2's.",
                {.omits = Omission::skip_rescale}}})
          .with_trials({{.variant = Rung::tma, .seq = 100, .head_dim = Columns::d64},
                        {.seq = 200,
                         .head_dim = Columns::d64,
                         .mask = HopperMask::sliding_window,
                         .window = 30},
                        {.variant = Rung::pipelined, .seq = 200, .heads = 2}})
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::flash_attention_3
