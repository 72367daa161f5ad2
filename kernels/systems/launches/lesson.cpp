#include "kernels/systems/launches/lesson.hpp"

#include <algorithm>
#include <charconv>

#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/lab/replay.hpp"
#include "kernels/systems/launches/bench/bench.hpp"
#include "kernels/systems/launches/run/run.hpp"

namespace tilestep::launches {
namespace {

bool fits(std::string_view text, int most, bool rising) {
  const std::vector<int> all = list_of(text);
  return !all.empty() && static_cast<int>(all.size()) <= most &&
         std::all_of(all.begin(), all.end(),
                     [](int one) { return one >= 1 && one <= kMostBatch; }) &&
         (!rising ||
          std::adjacent_find(all.begin(), all.end(), std::greater_equal<>()) == all.end());
}
bool are_batches(std::string_view text) {
  return fits(text, kMostSteps, false);
}
bool are_buckets(std::string_view text) {
  return fits(text, kMostBuckets, true);
}

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  return report_of(run_of(params, device, progress));
}

lab::KnobTable<Params> made_table() {
  lab::KnobTable<Params> table;
  table.group("run")
      .choice(&Params::mode, {"mode", "Submitted as", "", "How the host has a decode step done."})
      .group("model")
      .integer(&Params::layers, {"layers", "Layers", "", "Layers of the model that is run."}, 1,
               kMostLayers)
      .text(&Params::batches,
            {"batches", "Batches", "", "Tokens of the decode steps, one step after another."},
            "one to six numbers from 1 to 8 with commas between, such as 3,2,3", are_batches)
      .group("run")
      .text(&Params::buckets,
            {"buckets", "Buckets", "", "Batch sizes that have a graph of their own."},
            "one to four rising numbers from 1 to 8 with commas between, such as 1,2,4",
            are_buckets)
      .with("mode", {"bucketed"})
      .integer(&Params::fallback,
               {"fallback", "Fallen back", "layers",
                "Layers, from the last, whose gate matrix begins at an address that is no multiple "
                "of 16 bytes."},
               0, kMostLayers)
      .with("mode", {"eager", "graph", "bucketed"})
      .choice(&Params::broken, {"break", "Break it", "", "Makes a mistake and runs it for real."})
      .group("kernel")
      .integer(&Params::m, {"m", "m", "rows", "Rows of X of a product on its own."}, 1, kMostSide,
               true)
      .integer(&Params::n, {"n", "n", "columns", "Columns of that product: rows of W."}, 1,
               kMostSide, true)
      .integer(&Params::k, {"k", "k", "numbers", "Numbers of a row of X and of W."}, 1, kMostSide,
               true)
      .group("run")
      .seed()
      .require([](const Params& params) {
        if (params.fallback > params.layers) {
          lab::refuse_with("fallback", std::int64_t{params.fallback},
                           "layers = " + std::to_string(params.layers),
                           "0–" + std::to_string(params.layers), std::int64_t{params.layers});
        }
      });
  return table;
}

/// The parts of a run that depend on its GPU.
const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay{
      .of_machine = {{"trace.timed", "the emulation has no times"},
                     {"trace.clocks_us", "a clock"},
                     {"trace.span_us", "a clock"},
                     {"trace.calls.begin_us", "a clock"},
                     {"trace.calls.end_us", "a clock"},
                     {"trace.works.begin_us", "a clock"},
                     {"trace.works.end_us", "a clock"},
                     {"trace.steps.wrong", "what is not ordered may come out right"},
                     {"tables.steps.wrong", "what is not ordered may come out right"},
                     {"checks.steps", "sums in another order"},
                     {"checks.product", "sums in another order"}},
      .rounding = 1e-5,
      .rounding_why = "FP32 sums of products, layer after layer, and the device's own exponential"};
  return kReplay;
}

}  // namespace

std::vector<int> list_of(std::string_view text) {
  std::vector<int> all;
  while (true) {
    int one = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), one);
    if (error != std::errc() || end == text.data()) return {};
    all.push_back(one);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return all;
    if (text.front() != ',') return {};
    text.remove_prefix(1);
  }
}

const lab::KnobTable<Params>& knob_table() {
  static const lab::KnobTable<Params> table = made_table();
  return table;
}

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(kLesson,
                            "Between kernels a GPU waits for its host: submit less, and submit it "
                            "early.",
                            knob_table(), run, bench_report, "steps")
          .with_telling(
              {{"graph",
                "Captured once, then one call per step, until the batch changes.",
                {.mode = Mode::graph}},
               {"bucketed",
                "A graph per bucket of batch sizes, with rows of padding.",
                {.mode = Mode::bucketed}},
               {"persistent",
                "One kernel walks through all layers, and its blocks meet at a barrier.",
                {.mode = Mode::persistent}},
               {"stale-pointer",
                "A graph reads tokens where they were when it was captured.",
                {.mode = Mode::graph, .batches = "3,3,3", .broken = Break::stale_pointer}},
               {"missing-dependency",
                "act does not wait for up, which is in another stream.",
                {.broken = Break::missing_dependency}}})
          .with_trials({{},
                        {.mode = Mode::graph, .layers = 1, .batches = "2,2", .fallback = 1},
                        {.mode = Mode::bucketed, .batches = "5,1,8", .buckets = "2,8"},
                        {.mode = Mode::persistent, .batches = "3"},
                        {.layers = 1, .batches = "1", .m = 3, .n = 5, .k = 13}})
          .with_small_bench([](simt::Device& device, lab::Progress& progress) {
            return bench_report(device, progress, BenchSizes::tiny());
          })
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::launches
