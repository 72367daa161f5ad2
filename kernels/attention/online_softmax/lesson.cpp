#include "kernels/attention/online_softmax/lesson.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <span>
#include <string>

#include "kernels/attention/online_softmax/kernels.hpp"
#include "kernels/attention/online_softmax/report.hpp"

namespace tilestep::online_softmax {
namespace {

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names = {
      "worked-example", "random", "rising", "falling", "equal", "outlier", "masked", "all-masked"};
  return names;
}
const std::vector<std::string>& accumulator_names() {
  static const std::vector<std::string> names = {"fp32", "fp16", "bf16"};
  return names;
}

static_assert(static_cast<int>(Accumulator::fp32) == static_cast<int>(KernelFormat::fp32) &&
              static_cast<int>(Accumulator::fp16) == static_cast<int>(KernelFormat::fp16) &&
              static_cast<int>(Accumulator::bf16) == static_cast<int>(KernelFormat::bf16));

/// Lets the device ask whether the run was given up, for as long as the run lasts.
class StopWhenCancelled {
 public:
  StopWhenCancelled(simt::Device& device, const lab::Progress& progress) : device_(device) {
    device_.stop_when([&progress] { return progress.cancelled(); });
  }
  ~StopWhenCancelled() { device_.stop_when({}); }
  StopWhenCancelled(const StopWhenCancelled&) = delete;
  StopWhenCancelled& operator=(const StopWhenCancelled&) = delete;

 private:
  simt::Device& device_;
};

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
  const auto& kernels = static_cast<const Kernels&>(device.kernels(kLessonId));
  const AttentionShape shape{params.queries, params.keys, params.tile_width, params.head_dim,
                             params.skip_rescale};
  const auto format = static_cast<KernelFormat>(params.accumulator);

  progress.report(0.15, "running the kernel");
  const simt::Buffer<float> scores(device, std::span<const float>(inputs.scores));
  const simt::Buffer<float> values(device, std::span<const float>(inputs.values));
  simt::Buffer<float> output(
      device, static_cast<std::size_t>(params.queries) * static_cast<std::size_t>(params.head_dim));
  output.fill(0xFF);
  kernels.attention(device, shape, format, scores.span(), values.span(), output.span());
  device.synchronize();
  outcome.output = output.download();
  progress.check();

  progress.report(0.5, "recording the chosen query");
  const auto tiles = static_cast<std::size_t>(params.tiles());
  const auto keys = static_cast<std::size_t>(params.keys);
  simt::Trace recording(device, tiles * simt::kNoteEntries<StepRecord> + keys);
  output.fill(0xFF);
  kernels.attention_recorded(device, shape, format, scores.span(), values.span(), output.span(),
                             params.query, recording.tape(params.component));
  const simt::Buffer<float> column(device, std::span<const float>(trace.values));
  const simt::Buffer<float> row(device, std::span<const float>(trace.scores));
  simt::Buffer<float> sums(device, 2);
  kernels.naive_sums(device, row.span(), column.span(), sums.span());
  device.synchronize();

  const std::vector<float> rows = output.download();
  const auto first = rows.begin() + static_cast<std::ptrdiff_t>(params.query) * params.head_dim;
  outcome.recorded_row.assign(first, first + params.head_dim);
  const simt::Trace::Log log = recording.download();
  for (const StepRecord& r : log.notes<StepRecord>(kStepSite, tiles)) {
    trace.steps.push_back(
        {r.tile_max, r.m_old, r.m, r.rescale, r.tile_sum, r.l_old, r.l, r.o_old, r.o, r.output});
  }
  trace.weights = log.notes<float>(kWeightSite, keys, std::numeric_limits<float>::quiet_NaN());
  const std::vector<float> naive = sums.download();
  trace.naive_numerator = naive[0];
  trace.naive_denominator = naive[1];
}

/// Softmax and the algorithm as it ran, in double.
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

class OnlineSoftmaxLesson final : public lab::Lesson {
 public:
  const lab::LessonInfo& info() const override {
    static const lab::LessonInfo info{
        std::string(kLessonId), "Online softmax", "Attention",
        "Softmax in one pass: when a larger score comes, shrink what is already summed."};
    return info;
  }

  const lab::Knobs& knobs() const override {
    static const lab::Knobs knobs = knob_table().knobs();
    return knobs;
  }

  lab::Report run(const lab::Settings& settings, simt::Device& device,
                  lab::Progress& progress) const override {
    Outcome outcome;
    outcome.params = params_from(settings);
    const Params& params = outcome.params;
    const StopWhenCancelled stop(device, progress);
    progress.report(0, "making scores and values");
    const Inputs inputs = make_inputs(params, progress);
    outcome.trace.keys = params.keys;
    outcome.trace.tile_width = params.tile_width;
    outcome.trace.query = params.query;
    outcome.trace.component = params.component;
    outcome.trace.skip_rescale = params.skip_rescale;
    fill_inputs(outcome.trace, params, inputs);
    run_kernels(outcome, inputs, device, progress);
    progress.report(0.7, "comparing with the reference");
    run_reference(outcome, inputs, progress);
    lab::Report report = make_report(outcome, device.info());
    progress.report(1, "done");
    return report;
  }

  lab::Report bench(simt::Device& device, lab::Progress& progress) const override {
    const StopWhenCancelled stop(device, progress);
    return bench_report(device, progress);
  }
};

}  // namespace

std::string_view to_text(Preset preset) {
  return preset_names().at(static_cast<std::size_t>(preset));
}
std::string_view to_text(Accumulator accumulator) {
  return accumulator_names().at(static_cast<std::size_t>(accumulator));
}

const lab::KnobTable<Params>& knob_table() {
  static const lab::KnobTable<Params> table = [] {
    lab::KnobTable<Params> t;
    t.choice(&Params::preset,
             {"preset", "Preset", "",
              "Which scores and values the kernel gets; the worked example's 16 keys repeat when "
              "there are more, shifted by one key for each query and by 1 for each component."},
             preset_names())
        .integer(&Params::keys, {"keys", "Keys", "", "How many keys the query looks at."}, 1, 65536,
                 true)
        .integer(&Params::tile_width,
                 {"tile_width", "Tile width", "keys", "How many keys come at once."}, 1, 1024, true)
        .integer(&Params::head_dim,
                 {"head_dim", "Head dimension", "", "How many components a value has."}, 1, 128)
        .choice(&Params::accumulator,
                {"accumulator", "Accumulator", "",
                 "The number format that l and O are rounded to after every operation."},
                accumulator_names())
        .integer(&Params::seed, {"seed", "Seed", "", "Chooses the random numbers."}, 0, 2147483647)
        .toggle(&Params::skip_rescale,
                {"skip_rescale", "Skip the rescale", "",
                 "Breaks the algorithm on purpose: l and O keep their old scale when m rises."})
        .integer(&Params::component,
                 {"component", "Component", "",
                  "Which component of the output is shown; below the head dimension."},
                 0, 127)
        .integer(&Params::queries,
                 {"queries", "Queries", "", "How many queries the kernel computes, a block each."},
                 1, 1024, true)
        .integer(&Params::query,
                 {"query", "Query", "", "Which query is recorded; below the number of queries."}, 0,
                 1023);
    return t;
  }();
  return table;
}

Params params_from(const lab::Settings& settings) {
  const Params params = knob_table().params(settings);
  const auto below = [](const char* id, int value, const char* limit_id, int limit) {
    if (value < limit) return;
    throw Error(fmt::format("{} is {}, but with {} = {} the allowed values are 0–{}", id, value,
                            limit_id, limit, limit - 1));
  };
  below("component", params.component, "head_dim", params.head_dim);
  below("query", params.query, "queries", params.queries);
  return params;
}

const lab::Lesson& lesson() {
  static const OnlineSoftmaxLesson lesson;
  return lesson;
}

}  // namespace tilestep::online_softmax
