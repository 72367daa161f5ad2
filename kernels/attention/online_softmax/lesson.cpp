#include "kernels/attention/online_softmax/lesson.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <span>

#include "kernels/attention/online_softmax/bench.hpp"
#include "kernels/attention/online_softmax/kernels.hpp"
#include "kernels/attention/online_softmax/report.hpp"
#include "kernels/base/lab/replay.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::online_softmax {
namespace {

/// The chosen query's scores, and the chosen component of every value.
void fill_inputs(Trace& trace, const Params& params, const Inputs& inputs) {
  const auto keys = static_cast<std::size_t>(params.keys);
  const auto head_dim = static_cast<std::size_t>(params.head_dim);
  const auto row = std::span(inputs.scores).subspan(static_cast<std::size_t>(params.query) * keys);
  trace.scores.assign(row.begin(), row.begin() + params.keys);
  for (std::size_t j = 0; j < keys; ++j) {
    trace.values.push_back(
        inputs.values[j * head_dim + static_cast<std::size_t>(params.component)]);
  }
}

/// Runs the kernels: the timed one for all queries, the recording one for the chosen query.
void run_kernels(Outcome& outcome, const Inputs& inputs, simt::Device& device,
                 lab::Progress& progress) {
  const Params& params = outcome.params;
  Trace& trace = outcome.trace;
  const auto& kernels = kernels_of(device);
  const AttentionShape shape{params.queries, params.keys, params.tile_width, params.head_dim,
                             params.skip_rescale};
  const Accumulator format = params.accumulator;

  progress.report(0.15, "running the kernel");
  const simt::Buffer<float> scores(device, inputs.scores);
  const simt::Buffer<float> values(device, inputs.values);
  simt::Buffer<float> output(device, numeric::elements_of(params.queries, params.head_dim));
  outcome.output = lab::result_of(device, output, [&] {
    kernels.attention(device, shape, format, scores.span(), values.span(), output.span());
  });
  progress.check();

  progress.report(0.5, "recording the chosen query");
  const auto tiles = static_cast<std::size_t>(params.tiles());
  const auto keys = static_cast<std::size_t>(params.keys);
  simt::Trace recording(device, tiles * simt::kNoteEntries<StepRecord> + keys);
  const std::vector<float> rows = lab::result_of(device, output, [&] {
    kernels.attention(device, shape, format, scores.span(), values.span(), output.span(),
                      recording.tape(params.component), params.query);
  });
  const simt::Buffer<float> column(device, trace.values);
  const simt::Buffer<float> row(device, trace.scores);
  simt::Buffer<float> sums(device, 2);
  const std::vector<float> naive = lab::result_of(
      device, sums, [&] { kernels.naive_sums(device, row.span(), column.span(), sums.span()); });
  const auto first = rows.begin() + static_cast<std::ptrdiff_t>(params.query) * params.head_dim;
  outcome.recorded_row.assign(first, first + params.head_dim);
  const simt::Trace::Log log = recording.download();
  for (const StepRecord& r : log.all_notes<StepRecord>(kStepSite, tiles, "the steps")) {
    trace.steps.push_back(
        {r.tile_max, r.m_old, r.m, r.rescale, r.tile_sum, r.l_old, r.l, r.o_old, r.o, r.output});
  }
  trace.weights = log.notes<float>(kWeightSite, keys, std::numeric_limits<float>::quiet_NaN());
  trace.naive_numerator = naive[0];
  trace.naive_denominator = naive[1];
}

/// Softmax, and the algorithm as it ran, in double.
void run_reference(Outcome& outcome, const Inputs& inputs, lab::Progress& progress) {
  Trace& trace = outcome.trace;
  outcome.expected = reference_prefixes(outcome.params, trace.scores, trace.values);
  outcome.exact = outcome.expected;
  if (outcome.params.skip_rescale) {
    Params sound = outcome.params;
    sound.skip_rescale = false;
    outcome.exact = reference_prefixes(sound, trace.scores, trace.values);
  }
  outcome.reference = reference_output(outcome.params, inputs, progress);

  for (const PrefixState& state : outcome.exact) trace.exact_outputs.push_back(state.output);
  trace.exact_max = outcome.exact.back().m;
  trace.exact_l = outcome.exact.back().l;
  trace.exact_output = outcome.exact.back().output;
  for (std::size_t t = 0; trace.skip_rescale && t < trace.steps.size(); ++t) {
    const double error =
        std::abs(static_cast<double>(trace.steps[t].output) - outcome.exact[t].output);
    // Also when the error is NaN.
    if (!(error <= outcome.exact[t].output_bound)) {
      trace.first_wrong_tile = static_cast<int>(t);
      break;
    }
  }
}

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  Outcome outcome;
  outcome.params = params;
  progress.report(0, "making scores and values");
  const Inputs inputs = make_inputs(params, progress);
  Trace& trace = outcome.trace;
  trace.keys = params.keys;
  trace.tile_width = params.tile_width;
  trace.query = params.query;
  trace.component = params.component;
  trace.skip_rescale = params.skip_rescale;
  fill_inputs(trace, params, inputs);
  run_kernels(outcome, inputs, device, progress);
  progress.report(0.7, "comparing with the reference");
  run_reference(outcome, inputs, progress);
  return report_of(outcome);
}

void check_places(const Params& params) {
  const auto below = [](const char* id, int value, const char* limit_id, int limit) {
    if (value < limit) return;
    lab::refuse_with(id, value, fmt::format("{} = {}", limit_id, limit),
                     fmt::format("0–{}", limit - 1), std::int64_t{0});  // works with any other too
  };
  below("component", params.component, "head_dim", params.head_dim);
  below("query", params.query, "queries", params.queries);
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
          .group("look")
          .integer(
              &Params::component,
              {"component", "Which component of the output to trace (0 to head dimension − 1)."}, 0,
              127)
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
          .require(check_places);
  return table;
}

/// The parts of a run that depend on its GPU.
static const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay{
      .of_machine = {{"measurements.difference", "rounding error"}},
      .rounding = 0x1p-20,
      .rounding_why =
          "16 times 2^-24, the FP32 rounding unit: exp within 2 ulp, and a multiplication and an "
          "addition for "
          "each tile that a GPU rounds once, together."};
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
