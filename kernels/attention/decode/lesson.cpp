#include "kernels/attention/decode/lesson.hpp"

#include "kernels/attention/decode/bench/bench.hpp"
#include "kernels/attention/decode/run/run.hpp"
#include "kernels/base/lab/replay.hpp"
#include "kernels/base/simt/launch.hpp"

namespace tilestep::decode {
namespace {

/// Requests long enough for clocks to be meaningful, and few enough to be drawn.
constexpr int kLongContext = 256, kLongBatch = 8, kLongSeed = 4;

/// The lowest compute capability that the kernels are compiled for.
constexpr int kLeastCapability = 80;

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  simt::require_capability(device.info(), "decode", kLeastCapability);
  return report_of(run_of(params, device, progress));
}

/// The parts of a run that depend on its GPU.
const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay{
      .of_machine = {{"trace.clock_unit", "its clock"},
                     {"trace.items.begin", "its clock"},
                     {"trace.items.end", "its clock"},
                     {"tables.items.begin", "its clock"},
                     {"tables.items.end", "its clock"},
                     {"trace.result", "how many are past a tolerance is a matter of the last bit"}},
      .rounding = 0x1p-7,
      .rounding_why =
          "Tensor cores cut off what the emulation rounds: a number of O may then be the next one "
          "of BF16, 2^-7 away."};
  return kReplay;
}

}  // namespace

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(
          kLesson, "A new token reads the cache of all tokens before it: the fewest bytes win.",
          knob_table(), run, bench_report, "steps")
          .with_telling(
              {{"mha",
                "Each query head has its own keys and values: four times the bytes, and no tile is "
                "reused.",
                {.scheme = Scheme::mha}},
               {"one-split",
                "A block per request and K/V head: eight blocks, and the longest request ends "
                "last.",
                {.splits = 1}},
               {"balanced",
                "The keys of all requests in one line, cut into equal pieces: all blocks end "
                "together.",
                {.splits = 0}},
               {"long-one-split",
                "Eight longer requests, a block per request and K/V head: sixteen blocks, and most "
                "multiprocessors have none.",
                {.context = kLongContext, .batch = kLongBatch, .splits = 1, .seed = kLongSeed}},
               {"long-balanced",
                "The same requests in equal pieces: five times as many blocks, which end together.",
                {.context = kLongContext, .batch = kLongBatch, .splits = 0, .seed = kLongSeed}},
               {"int4",
                "A quarter of the bytes; with scales by channel, K's outliers affect no others.",
                {.kv_dtype = KvType::int4, .scales = Scales::channel}}})
          .with_trials({{},
                        {.scheme = Scheme::mha, .heads = 4, .context = 50, .splits = 3},
                        {.scheme = Scheme::mqa, .heads = 64, .context = 100, .splits = 0},
                        {.scheme = Scheme::mla, .heads = 4, .context = 45, .splits = 3},
                        {.kv_dtype = KvType::int4, .scales = Scales::channel},
                        {.context = 50, .kv_dtype = KvType::fp8}})
          .with_small_bench([](simt::Device& device, lab::Progress& progress) {
            return bench_report(device, progress, BenchSizes::tiny());
          })
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::decode
