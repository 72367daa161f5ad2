#include "kernels/numbers/low_bit/lesson.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/replay.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/base/simt/mma.hpp"
#include "kernels/numbers/low_bit/bench/bench.hpp"
#include "kernels/numbers/low_bit/reference.hpp"

namespace tilestep::low_bit {
namespace {

constexpr auto kCount = static_cast<std::size_t>(kWeightCount);

std::vector<double> doubles(const std::vector<std::uint16_t>& bf16) {
  std::vector<double> numbers;
  for (const std::uint16_t bits : bf16) {
    numbers.push_back(numeric::decode(numeric::kBf16, bits));
  }
  return numbers;
}

/// The weights and x on the device, and their exact product.
struct Layer {
  std::vector<double> weights, x, product;
  simt::Buffer<std::uint16_t> on_device, x_on_device;
  simt::Buffer<Range> ranges;

  Layer(const Params& params, simt::Device& device)
      : weights(doubles(weights_of(params))),
        x(doubles(input_of(params))),
        product(multiplied(weights)),
        on_device(device, weights_of(params)),
        x_on_device(device, input_of(params)),
        ranges(lab::unwritten<Range>(device, static_cast<std::size_t>(kMatrix.rows) + 1)) {
    kernels_of(device).ranges(device, kMatrix, on_device.span(), ranges.span());
  }

  /// By any W.
  std::vector<double> multiplied(const std::vector<double>& w) const {
    std::vector<double> y(static_cast<std::size_t>(kMatrix.rows));
    for (std::size_t i = 0; i < w.size(); ++i) y[i / x.size()] += w[i] * x[i % x.size()];
    return y;
  }
};

/// One format's codes, and what comes of them.
struct Stored {
  Format format;
  Group group;
  std::vector<GroupNote> notes;
  std::vector<std::uint8_t> bytes;
  std::vector<float> values, product;
};

Stored store(Format format, Group chosen, Layer& layer, simt::Device& device) {
  Stored stored{format, group_of(format, chosen), {}, {}, {}, {}};
  const auto& kernels = kernels_of(device);
  const auto groups =
      kCount / static_cast<std::size_t>(group_size(stored.group, kMatrix.rows, kMatrix.columns));
  auto codes =
      lab::unwritten<std::uint8_t>(device, code_bytes(format, kMatrix.rows, kMatrix.columns));
  auto scales =
      lab::unwritten<std::uint8_t>(device, groups * static_cast<std::size_t>(scale_bytes(format)));
  auto zeros = lab::unwritten<std::uint8_t>(device, format == Format::int4_zero ? groups : 0);
  const Quantized w{format,        stored.group, codes.span(),
                    scales.span(), zeros.span(), layer.ranges.span()};
  simt::Trace tape(device, groups * simt::kNoteEntries<GroupNote>);
  kernels.quantize(device, kMatrix, layer.on_device.span(), w, tape.tape());
  stored.notes = tape.download().all_notes<GroupNote>(kGroupSite, groups, "the groups");
  const std::vector<std::uint8_t> traced = codes.download();
  stored.bytes = lab::result_of(
      device, codes, [&] { kernels.quantize(device, kMatrix, layer.on_device.span(), w); });
  if (traced != stored.bytes)
    stored.bytes.clear();  // a recording of another kernel: no code is right
  simt::Buffer<float> values(device, kCount);
  stored.values = lab::result_of(device, values,
                                 [&] { kernels.dequantize(device, kMatrix, w, values.span()); });
  simt::Buffer<float> y(device, static_cast<std::size_t>(kMatrix.rows));
  stored.product = lab::result_of(
      device, y, [&] { kernels.product(device, kMatrix, w, layer.x_on_device.span(), y.span()); });
  return stored;
}

// ---- errors -------------------------------------------------------------------------------------

/// Root mean square of got − want, in % of want's.
template <class Got>
double error_percent(const std::vector<Got>& got, const std::vector<double>& want) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    error += std::pow(static_cast<double>(got[i]) - want[i], 2);
    size += want[i] * want[i];
  }
  return size > 0 ? 100 * std::sqrt(error / size) : 0;
}

std::vector<double> softmax(const std::vector<double>& y) {
  const double most = *std::max_element(y.begin(), y.end());
  std::vector<double> p;
  double sum = 0;
  for (const double each : y) sum += p.emplace_back(std::exp(each - most));
  for (double& each : p) each /= sum;
  return p;
}

/// Kullback-Leibler: how many nats are lost on what the exact product says, if the other one is believed.
double divergence(const std::vector<double>& exact, const std::vector<float>& got) {
  const std::vector<double> p = softmax(exact), q = softmax({got.begin(), got.end()});
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] * std::log(p[i] / q[i]);
  return std::max(sum, 0.0);
}

GroupTrace group_trace(const Trace& trace, int group, const GroupNote& note) {
  GroupTrace traced{note.range.low,  note.range.high,   note.scale.wanted,
                    note.scale.step, note.scale.offset, note.scale.zero};
  const std::vector<double> numbers = numbers_of(trace.format);
  double largest = 0;
  for (const double number : numbers) largest = std::fmax(largest, number);
  double squares = 0;
  const auto first = static_cast<std::size_t>(group * trace.size());
  for (std::size_t i = first; i < first + static_cast<std::size_t>(trace.size()); ++i) {
    const double weight = static_cast<double>(trace.weights[i]);
    const double error = static_cast<double>(trace.values[i]) - weight;
    traced.worst = std::max(traced.worst, std::abs(error));
    squares += error * error;
    traced.nothing += trace.values[i] == 0 && weight != 0 ? 1 : 0;
    const bool at_end = std::abs(numbers[static_cast<std::size_t>(trace.codes[i])]) == largest;
    const double spacing = static_cast<double>(traced.step);
    traced.cut += at_end && std::abs(error) > spacing ? 1 : 0;
  }
  traced.rms = std::sqrt(squares / trace.size());
  return traced;
}

// ---- checks -------------------------------------------------------------------------------------

/// The recorded scale, which the codes are checked with.
ExpectedScale recorded(const GroupNote& note) {
  return {static_cast<double>(note.scale.wanted), static_cast<double>(note.scale.step),
          static_cast<double>(note.scale.offset), note.scale.zero};
}

struct Wrong {
  std::int64_t scales = 0, codes = 0, values = 0;
  lab::Closest product;
};

void compare(const Stored& stored, const Layer& layer, Wrong& wrong) {
  const auto expected = expected_scales(stored.format, stored.group, kMatrix, layer.weights);
  for (std::size_t group = 0; group < expected.size(); ++group) {
    const ExpectedScale want = expected[group], got = recorded(stored.notes[group]);
    // A mean of magnitudes is a sum in FP32; every other scale is exact.
    const double near = stored.format == Format::ternary ? 1e-5 * want.step : 0;
    const bool same = std::abs(got.step - want.step) <= near && got.zero == want.zero &&
                      std::abs(got.offset - want.offset) <= 1e-6 * std::abs(want.offset);
    wrong.scales += same ? 0 : 1;
  }
  const std::vector<int> codes = unpacked(stored.format, stored.bytes);
  if (codes.size() != kCount) {
    wrong.codes += kWeightCount;
    return;
  }
  std::vector<double> sums(stored.product.size()), bounds(sums.size());
  for (std::size_t i = 0; i < kCount; ++i) {
    const ExpectedScale scale = recorded(stored.notes[i / (kCount / stored.notes.size())]);
    const std::vector<int> nearest = nearest_codes(stored.format, scale, layer.weights[i]);
    wrong.codes += std::count(nearest.begin(), nearest.end(), codes[i]) == 0 ? 1 : 0;
    const double value = value_of(stored.format, scale, codes[i]);
    // Q4_K subtracts a minimum from a product, in FP32.
    const double rounding = stored.format == Format::q4_k ? 1e-6 * std::abs(scale.offset) : 0;
    const double off = std::abs(static_cast<double>(stored.values[i]) - value);
    wrong.values += off <= std::max(rounding, 6e-8 * std::abs(value)) ? 0 : 1;
    const std::size_t row = i / layer.x.size();
    sums[row] += static_cast<double>(stored.values[i]) * layer.x[i % layer.x.size()];
    bounds[row] += std::abs(value * layer.x[i % layer.x.size()]) * 2e-6;
  }
  wrong.product.add(lab::compared(stored.product, sums, bounds));
}

std::vector<lab::Check> checks_of(const std::vector<Stored>& all, const Layer& layer) {
  Wrong wrong;
  for (const Stored& stored : all) compare(stored, layer, wrong);
  return {lab::none_wrong("scales", wrong.scales,
                          "Each group's scale, of all formats, as it follows from its weights in "
                          "double and is rounded to the scale's format."),
          lab::none_wrong("codes", wrong.codes,
                          "Each weight's code, of all formats, is the nearest of all codes, the "
                          "even one of a tie."),
          lab::none_wrong("values", wrong.values, "Each code's number times its group's scale."),
          wrong.product.check("product",
                              "W · x from the codes in double; the bound is that of 256 "
                              "additions in FP32.")};
}

// ---- the run ------------------------------------------------------------------------------------

Ledger ledger_of(const Stored& stored, const Layer& layer) {
  return {stored.format,
          stored.group,
          bits_per_weight(stored.format, stored.group, kMatrix.rows, kMatrix.columns),
          error_percent(stored.values, layer.weights),
          error_percent(stored.product, layer.product),
          divergence(layer.product, stored.product)};
}

Trace trace_of(const Params& params, const std::vector<Stored>& all, const Layer& layer) {
  const Stored& chosen = all[static_cast<std::size_t>(params.format)];
  Trace trace;
  trace.format = chosen.format;
  trace.group = chosen.group;
  trace.lines = phase_lines(chosen.format);
  trace.steps = static_cast<int>(chosen.notes.size());
  trace.weights.assign(layer.weights.begin(), layer.weights.end());
  trace.codes = unpacked(chosen.format, chosen.bytes);
  trace.codes.resize(kCount);
  trace.values = chosen.values;
  for (int group = 0; group < trace.steps; ++group) {
    trace.groups.push_back(
        group_trace(trace, group, chosen.notes[static_cast<std::size_t>(group)]));
  }
  for (const Stored& stored : all) trace.formats.push_back(ledger_of(stored, layer));
  return trace;
}

std::string summary(const Trace& trace) {
  const Ledger& own = trace.formats[static_cast<std::size_t>(trace.format)];
  return fmt::format(
      "{} takes {:.4g} bits a weight, in {}: weights are off by {:.3g} % and W · x by {:.3g} %.",
      label_of(trace.format), own.bits, lab::plural(trace.steps, "group"), own.weight_error,
      own.product_error);
}

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  progress.report(0, "making weights");
  Layer layer(params, device);
  std::vector<Stored> all;
  for (const Format format : all_of<Format>()) {
    progress.report(0.1 + 0.8 * static_cast<double>(all.size()) / kFormats,
                    fmt::format("quantizing: {}", label_of(format)));
    progress.check();
    all.push_back(store(format, params.group, layer, device));
  }
  const Trace trace = trace_of(params, all, layer);
  lab::Report report;
  report.summary = summary(trace);
  report.tables = tables_of(trace);
  report.checks = checks_of(all, layer);
  report.trace = to_json(trace);
  return report;
}

/// W · x alone depends on the GPU.
const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay{
      .rounding = 0x1p-19,
      .rounding_why =
          "32 times 2^-24, what FP32 rounds by: of the 256 products of a row of W · x a GPU adds "
          "up "
          "eight in each of 32 lanes by fused multiply-adds, which round once, not twice."};
  return kReplay;
}

}  // namespace

std::string_view label_of(Format format) {
  static constexpr std::string_view kLabels[] = {
      "INT8", "INT4", "INT4 with zero point", "E4M3", "E5M2", "MXFP4", "NVFP4", "ternary", "Q4_K"};
  return kLabels[static_cast<std::size_t>(format)];
}

std::vector<lab::Table> tables_of(const Trace& trace) {
  using lab::real, lab::whole;
  lab::Table groups{"groups",
                    fmt::format("Groups of {} weights", trace.size()),
                    {whole("group"), whole("row"), real("low", "lowest", "", 4),
                     real("high", "highest", "", 4), real("step", "scale", "", 6),
                     real("rms", "RMS error", "", 6), whole("nothing", "became 0")}};
  for (int i = 0; i < trace.steps; ++i) {
    const GroupTrace& group = trace.groups[static_cast<std::size_t>(i)];
    groups.add({i + 1, i * trace.size() / kMatrix.columns + 1, group.low, group.high, group.step,
                group.rms, group.nothing});
  }
  lab::Table formats{"formats",
                     "All formats on these weights",
                     {"format", "group", real("bits", "bits a weight", "", 3),
                      real("weight_error", "weights' error", "%", 2),
                      real("product_error", "error of W · x", "%", 2),
                      real("divergence", "KL of softmax", "nats", 6)}};
  for (const Ledger& row : trace.formats) {
    formats.add({label_of(row.format),
                 row.format == Format::q4_k ? "32 of 256" : name_of(row.group), row.bits,
                 row.weight_error, row.product_error, row.divergence});
  }
  return {std::move(groups), std::move(formats)};
}

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(
          kLesson,
          "A small format is a few codes and a scale: one outlier takes the codes "
          "from all that share its scale.",
          knob_table(), run, bench_report)
          .with_small_bench([](simt::Device& device, lab::Progress& progress) {
            return bench_report(device, progress, {{16, 256}, false, {{128, 512}}, 2, {1, 9}});
          })
          .with_telling(
              {{"tensor-scale",
                "One scale for all weights: the outlier leaves the others two codes.",
                {.group = Group::tensor}},
               {"no-outlier",
                "On normal weights INT8 beats FP8, and groups of 32 beat one scale by little.",
                {.outlier = 0}},
               {"positive",
                "Weights on one side of zero: a zero point halves the error.",
                {.format = Format::int4_zero, .data = Data::positive, .outlier = 0}},
               {"nvfp4",
                "Sixteen weights and a scale in E4M3: finer than MXFP4 for a quarter of a bit.",
                {.format = Format::nvfp4}},
               {"q4-k", "Scales of 6 bits and minima, in super-blocks.", {.format = Format::q4_k}}})
          .with_trials({{.format = Format::int8, .group = Group::row},
                        {.format = Format::int4_zero, .data = Data::positive},
                        {.format = Format::fp8_e5m2, .group = Group::g128},
                        {.format = Format::mxfp4, .data = Data::heavy_tailed},
                        {.format = Format::ternary, .data = Data::outlier_rows},
                        {.format = Format::q4_k, .outlier = 0}})
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::low_bit
