#include "kernels/attention/paged_kv/lesson.hpp"

#include "kernels/attention/paged_kv/bench/bench.hpp"
#include "kernels/attention/paged_kv/run/run.hpp"
#include "kernels/base/lab/replay.hpp"
#include "kernels/base/simt/launch.hpp"

namespace tilestep::paged_kv {
namespace {

/// The lowest compute capability that the kernels are compiled for.
constexpr int kLeastCapability = 80;

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  simt::require_capability(device.info(), "paged-kv", kLeastCapability);
  return report_of(run_of(params, device, progress));
}

lab::KnobTable<Params> made_table() {
  lab::KnobTable<Params> table;
  table
      .integer(&Params::context, {"context", "Context", "tokens", "Average tokens per request."}, 1,
               kMostContext, true)
      .integer(&Params::batch, {"batch", "Batch", "requests", "Most requests that run together."},
               1, kMostBatch, true)
      .integer(&Params::requests, {"requests", "Requests", "", "Requests that arrive, one by one."},
               1, kMostRequests, true)
      .choice(&Params::page_size, {"page_size", "Page size", "tokens", "Tokens per page."})
      .integer(&Params::prefix,
               {"prefix", "Shared prefix", "tokens",
                "First tokens that all requests share: stored once."},
               0, kMostContext, true)
      .choice(&Params::kv_dtype,
              {"kv_dtype", "Cache format", "", "Number format of K and V in the cache."})
      .choice(&Params::broken,
              {"break", "Break it", "", "Leaves something out and runs it for real."})
      .seed("Seed of numbers, lengths and page owners.");
  return table;
}

/// The parts of a run that depend on its GPU.
const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay{
      .of_machine = {
          {"trace.result", "how many are past a tolerance is a matter of the last bit"}}};
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
                            "Answer lengths are unknown: hand out the cache in pages, and more "
                            "requests run together.",
                            knob_table(), run, bench_report, "steps")
          .with_telling(
              {{"single-tokens",
                "Pages of one token: no slot is empty, and each key has its own look-up.",
                {.page_size = PageSize::p1}},
               {"shared-prefix",
                "The first 48 tokens are in all tables, but stored once and read once for all.",
                {.prefix = 48}},
               {"stale-page",
                "A block table names a page that is now another request's.",
                {.broken = Break::stale_page}}})
          .with_trials({{},
                        {.context = 7, .requests = 4, .page_size = PageSize::p4},
                        {.context = 45, .requests = 3, .page_size = PageSize::p1},
                        {.prefix = 48},
                        {.kv_dtype = KvType::int4},
                        {.context = 50, .prefix = 20, .kv_dtype = KvType::fp8}})
          .with_small_bench([](simt::Device& device, lab::Progress& progress) {
            return bench_report(device, progress, BenchSizes::tiny());
          })
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::paged_kv
