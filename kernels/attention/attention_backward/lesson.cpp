#include "kernels/attention/attention_backward/lesson.hpp"

#include "kernels/attention/attention_backward/bench/bench.hpp"
#include "kernels/attention/attention_backward/run/run.hpp"
#include "kernels/attention/shared/knobs.hpp"
#include "kernels/base/simt/launch.hpp"

namespace tilestep::attention_backward {
namespace {

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  simt::require_capability(device.info(), "attention-backward", kLeastCapability);
  return report_of(run_of(params, device, progress));
}

const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay =
      replay_with({{"trace.wrong_dk", kLastBit}, {"trace.wrong_dv", kLastBit}});
  return kReplay;
}

}  // namespace

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(kLesson,
                            "A weight is recomputed from its score and one number per query: "
                            "nothing quadratic is kept.",
                            knob_table(), run, bench_report, "steps")
          .with_telling(
              {{"full",
                "Without a mask every block adds to every tile of dQ, in any order.",
                {.mask = Mask::none}},
               {"shared-keys",
                "Four query heads share a head of K and V: dK and dV add up in registers, one head "
                "after another.",
                {.seq = 128, .heads = 4}},
               {"no-rescale",
                "The forward pass left a wrong log-sum-exp, and weights made from it do not sum to "
                "1.",
                {.omits = Omission::skip_rescale}}})
          .with_trials({{.seq = 75, .heads = 4, .kv_heads = 2},
                        {.seq = 100, .mask = Mask::sliding_window},
                        {.seq = 50, .head_dim = HeadDim::d80, .mask = Mask::none}})
          .with_small_bench([](simt::Device& device, lab::Progress& progress) {
            return bench_report(device, progress, BenchSizes::tiny());
          })
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::attention_backward
