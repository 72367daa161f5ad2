#include "kernels/attention/online_softmax/lesson.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/attention/online_softmax/report.hpp"
#include "kernels/base/lab/replay.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::online_softmax {
namespace {

/// Runs the kernels: the timed one for all queries, the recording one for the chosen query.
void run_kernels(Outcome& outcome, const Inputs& inputs, simt::Device& device,
                 lab::Progress& progress) {
  const Params& params = outcome.params;
  Trace& trace = outcome.trace;
  const auto& kernels = kernels_of(device);
  const AttentionShape shape{params.queries, params.keys, params.tile_width, params.head_dim,
                             params.skip_rescale};
  const simt::Buffer<float> scores(device, inputs.scores), values(device, inputs.values);
  simt::Buffer<float> output(device, numeric::elements_of(params.queries, params.head_dim));
  const auto attention = [&](const simt::Tape& tape) {
    return lab::result_of(device, output, [&] {
      kernels.attention(device, shape, params.accumulator, scores.span(), values.span(),
                        output.span(), tape, tape ? params.query : 0);
    });
  };
  progress.report(0.15, "running the kernel");
  outcome.output = attention({});
  progress.check();

  progress.report(0.5, "recording the chosen query");
  const auto tiles = static_cast<std::size_t>(params.tiles());
  simt::Trace recording(device, tiles * simt::kNoteEntries<StepRecord> + trace.scores.size());
  outcome.recorded = attention(recording.tape());
  const simt::Buffer<float> row(device, trace.scores), column(device, trace.values);
  simt::Buffer<float> sums(device, 2);
  const std::vector<float> naive = lab::result_of(
      device, sums, [&] { kernels.naive_sums(device, row.span(), column.span(), sums.span()); });
  trace.naive_numerator = naive[0];
  trace.naive_denominator = naive[1];
  const simt::Trace::Log log = recording.download();
  trace.steps = log.all_notes<StepRecord>(kStepSite, tiles, "the steps");
  trace.weights =
      log.notes(kWeightSite, trace.scores.size(), std::numeric_limits<float>::quiet_NaN());
}

/// Softmax, and the algorithm as it ran, in double.
void run_reference(Outcome& outcome, const Inputs& inputs, lab::Progress& progress) {
  Trace& trace = outcome.trace;
  Params sound = outcome.params;
  sound.skip_rescale = false;
  const auto exact = reference_prefixes(sound, trace.scores, trace.values);
  outcome.expected = reference_prefixes(outcome.params, trace.scores, trace.values);
  outcome.reference = reference_output(outcome.params, inputs, progress);
  for (const PrefixState& state : exact) trace.exact_outputs.push_back(state.output);
  trace.exact_max = exact.back().m;
  trace.exact_l = exact.back().l;
  trace.exact_output = exact.back().output;
  if (!trace.skip_rescale) return;
  // An error that is NaN is wrong too.
  const auto right = [](const StepRecord& step, const PrefixState& state) {
    return std::abs(static_cast<double>(step.output) - state.output) <= state.output_bound;
  };
  const auto wrong = std::mismatch(trace.steps.begin(), trace.steps.end(), exact.begin(), right);
  if (wrong.first == trace.steps.end()) return;
  trace.first_wrong_tile = static_cast<int>(wrong.first - trace.steps.begin());
}

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  progress.report(0, "making scores and values");
  const Inputs inputs = make_inputs(params, progress);
  Outcome outcome;
  outcome.params = params;
  Trace& trace = outcome.trace;
  trace.keys = params.keys;
  trace.tile_width = params.tile_width;
  trace.query = params.query;
  trace.skip_rescale = params.skip_rescale;
  const auto row = inputs.scores.begin() + std::ptrdiff_t{params.query} * params.keys;
  trace.scores.assign(row, row + params.keys);
  for (std::size_t i = 0; i < inputs.values.size();
       i += static_cast<std::size_t>(params.head_dim)) {
    trace.values.push_back(inputs.values[i]);
  }
  run_kernels(outcome, inputs, device, progress);
  progress.report(0.7, "comparing with the reference");
  run_reference(outcome, inputs, progress);
  return report_of(outcome);
}

void check_query(const Params& params) {
  if (params.query < params.queries) return;
  lab::refuse_with("query", params.query, fmt::format("queries = {}", params.queries),
                   fmt::format("0–{}", params.queries - 1), std::int64_t{0});
}

}  // namespace

const lab::KnobTable<Params>& knob_table() {
  static const auto table =
      lab::KnobTable<Params>()
          .choice(&Params::preset, {"preset",
                                    "Scores and values; the worked example's 16 keys repeat beyond "
                                    "16, shifted by one key per query and by 1 per component."})
          .integer(&Params::keys, {"keys", "Keys per query."}, 1, 65536, true)
          .group("kernel")
          .integer(&Params::tile_width, {"tile_width", "Tile width", "keys", "Keys per tile."}, 1,
                   1024, true)
          .group("model")
          .integer(&Params::head_dim, {"head_dim", "Head dimension", "", "Components of a value."},
                   1, 128)
          .group("kernel")
          .choice(&Params::accumulator,
                  {"accumulator", "Format that ℓ and O are rounded to after every operation."})
          .group("run")
          .seed()
          .with("preset", {"random"})
          .group("kernel")
          .toggle(&Params::skip_rescale,
                  {"skip_rescale", "Skip the rescale", "",
                   "Breaks the algorithm: ℓ and O keep their old scale when m rises."})
          .group("model")
          .integer(&Params::queries,
                   {"queries", "Queries that the kernel computes, one block each."}, 1, 1024, true)
          .group("look")
          .integer(&Params::query, {"query", "Which query to trace (0 to queries − 1)."}, 0, 1023)
          .group("run")
          .text(&Params::scores,
                {"scores",
                 "Scores of the preset custom, repeated if there are more keys; if empty, the "
                 "worked example's."},
                "up to 64 numbers from -200 to 200, or -inf for a masked key, with commas between, "
                "such as 1,2.5,3, or nothing",
                is_list_of_scores)
          .with("preset", {"custom"})
          .retired_knob("component", std::int64_t{0}, "component 0 of the output is followed")
          .require(check_query);
  return table;
}

static const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay{
      .of_machine = {{"measurements.difference", "rounding error"}},
      .rounding = 0x1p-20,
      .rounding_why =
          "16 times 2^-24, the FP32 rounding unit: exp within 2 ulp, and a multiplication and an "
          "addition for each tile that a GPU rounds once, together."};
  return kReplay;
}

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(
          kLesson,
          "Softmax in one pass: when a larger score arrives, rescale what is already summed.",
          knob_table(), run, bench_report)
          .with_telling(
              {{"rising",
                "Every tile has a larger score than the last, so each rescales ℓ and O.",
                {.preset = Preset::rising}},
               {"no-rescale",
                "Without the rescale the output is wrong from the first tile with a larger score "
                "on.",
                {.skip_rescale = true}},
               {"bf16-stops",
                "A BF16 sum of equal weights stops at 256: 256 + 1 rounds to 256.",
                {.preset = Preset::equal,
                 .keys = 400,
                 .tile_width = 1,
                 .accumulator = Accumulator::bf16}}})
          .with_trials({{},
                        {.preset = Preset::all_masked},
                        {.preset = Preset::masked, .keys = 19, .tile_width = 8, .head_dim = 5},
                        {.preset = Preset::rising,
                         .keys = 40,
                         .tile_width = 7,
                         .accumulator = Accumulator::bf16},
                        {.preset = Preset::outlier, .keys = 33, .tile_width = 33},
                        {.preset = Preset::random,
                         .keys = 100,
                         .head_dim = 40,
                         .accumulator = Accumulator::fp16,
                         .queries = 3,
                         .query = 2}})
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::online_softmax
