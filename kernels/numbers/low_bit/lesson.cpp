#include "kernels/numbers/low_bit/lesson.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/replay.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/base/lab/timing.hpp"
#include "kernels/base/simt/mma.hpp"
#include "kernels/numbers/low_bit/bench/bench.hpp"
#include "kernels/numbers/low_bit/recipe/recipe.hpp"
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
  std::vector<GroupNote> notes = {};
  std::vector<std::uint8_t> bytes = {};
  std::vector<Factors> factors = {};  ///< of eight weights each
  std::vector<float> values = {};     ///< by which x was multiplied
  std::vector<float> product = {};
  Way way = {};
  std::int64_t scale_loads = 0;  ///< by all threads
  std::int64_t bytes_due = 0;    ///< of what W is stored in
};

/// How many bytes of an array have been accessed.
int distinct_bytes(const simt::Trace::Log& log, Site site, simt::AccessKind kind) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> stretches;
  for (const simt::TraceRecord& one : log.records) {
    if (one.site != site || one.kind != kind) continue;
    stretches.emplace_back(one.byte_offset, one.byte_offset + one.bytes);
  }
  std::sort(stretches.begin(), stretches.end());
  std::uint64_t bytes = 0, end = 0;
  for (const auto& [from, to] : stretches) {
    bytes += std::max(to, end) - std::max(from, end);
    end = std::max(to, end);
  }
  return static_cast<int>(bytes);
}

/// A tape for a kernel that multiplies: its accesses and its Factors.
class Recorder {
 public:
  explicit Recorder(simt::Device& device)
      : trace_(device, kChunks * (kAccesses + simt::kNoteEntries<Factors>)) {}

  /// The same tape, blank.
  Watch watch(Break broken) {
    trace_.clear();
    return {trace_.tape(), broken};
  }
  void read(Stored& to) {
    const simt::Trace::Log log = trace_.download();
    to.way.codes += distinct_bytes(log, kCodesSite, simt::AccessKind::load);
    for (const Site site : {kScalesSite, kZerosSite, kRangesSite}) {
      to.way.scales += distinct_bytes(log, site, simt::AccessKind::load);
    }
    to.way.written += distinct_bytes(log, kNumbersSite, simt::AccessKind::store);
    to.way.read_back += distinct_bytes(log, kNumbersSite, simt::AccessKind::load);
    to.scale_loads += std::count_if(log.records.begin(), log.records.end(),
                                    [](const auto& one) { return one.site == kScalesSite; });
  }
  /// Of a kernel that multiplies.
  void read_factors(Stored& to) {
    to.factors = trace_.download().all_notes<Factors>(kFactorsSite, kChunks, "the numbers");
    to.values.clear();
    for (const Factors& eight : to.factors) {
      for (const float w : eight.w) to.values.push_back(w * eight.after);
      to.way.numbers += static_cast<int>(sizeof(eight.w));
      to.way.fmas += static_cast<int>(std::size(eight.w));
    }
  }

 private:
  /// For eight weights; ours takes 5, one that reads a scale for each weight up to 25.
  static constexpr std::size_t kAccesses = 32;
  static constexpr std::size_t kChunks = kCount / std::extent_v<decltype(Factors::w)>;
  simt::Trace trace_;
};

Stored store(Format format, Group chosen, Layer& layer, simt::Device& device, Break broken) {
  Stored stored{format, group_of(format, chosen)};
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
  stored.bytes_due = static_cast<std::int64_t>(codes.count() + scales.count() + zeros.count() +
                                               (format == Format::nvfp4 ? sizeof(Range) : 0));
  simt::Trace tape(device, groups * simt::kNoteEntries<GroupNote>);
  kernels.quantize(device, kMatrix, layer.on_device.span(), w, {tape.tape(), broken});
  stored.notes = tape.download().all_notes<GroupNote>(kGroupSite, groups, "the groups");
  stored.bytes = codes.download();
  if (broken == Break::none) {
    const std::vector<std::uint8_t> timed = lab::result_of(
        device, codes, [&] { kernels.quantize(device, kMatrix, layer.on_device.span(), w); });
    if (timed != stored.bytes)
      stored.bytes.clear();  // a recording of another kernel: no code is right
  }
  Recorder recorder(device);
  simt::Buffer<float> y(device, static_cast<std::size_t>(kMatrix.rows));
  if (broken == Break::unfused) {
    auto numbers = lab::unwritten<float>(device, kCount);
    kernels.dequantize(device, kMatrix, w, numbers.span(), recorder.watch(broken));
    recorder.read(stored);
    stored.product = lab::result_of(device, y, [&] {
      kernels.product_of_numbers(device, kMatrix, numbers.span(), layer.x_on_device.span(),
                                 y.span(), recorder.watch(broken));
    });
  } else {
    stored.product = lab::result_of(device, y, [&] {
      kernels.product(device, kMatrix, w, layer.x_on_device.span(), y.span(),
                      recorder.watch(broken));
    });
  }
  recorder.read(stored);
  recorder.read_factors(stored);
  return stored;
}

// ---- errors -------------------------------------------------------------------------------------

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
  std::int64_t scales = 0, codes = 0, values = 0, ways = 0;
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
  const bool once = stored.way.moved() == stored.bytes_due && stored.way.fmas == kWeightCount;
  wrong.ways += once ? 0 : 1;
}

/// Whether a weight was multiplied as another number than its code and the recorded scale say.
bool is_off(const Stored& stored, std::size_t weight, const std::vector<int>& codes) {
  const ExpectedScale scale = recorded(stored.notes[weight / (kCount / stored.notes.size())]);
  const double want = value_of(stored.format, scale, codes[weight]);
  const double rounding = stored.format == Format::q4_k ? 1e-6 * std::abs(scale.offset) : 0;
  return std::abs(static_cast<double>(stored.values[weight]) - want) >
         std::max(rounding, 1e-6 * std::abs(want));
}

/// What was broken on purpose has to be found, in those groups alone that it changes.
lab::Check found(const Params& params, const Stored& shown, const Stored& sound,
                 const Layer& layer) {
  const auto id = [](std::string text) {
    std::replace(text.begin(), text.end(), '-', '_');
    return text;
  };
  if (params.broken == Break::unfused) {
    return lab::equal("unfused_bytes", shown.way.moved() - sound.way.moved(),
                      2 * static_cast<int>(sizeof(float)) * kWeightCount,
                      "Bytes of device memory beyond the fused kernel's: each FP32 number is "
                      "written once and read once.");
  }
  const std::size_t size = kCount / shown.notes.size();
  const auto expected = expected_scales(shown.format, shown.group, kMatrix, layer.weights);
  const std::vector<int> codes = unpacked(shown.format, shown.bytes);
  std::int64_t missed = 0;
  for (std::size_t group = 0; group < shown.notes.size(); ++group) {
    const Scale &scale = shown.notes[group].scale, &own = sound.notes[group].scale;
    const Factors& factors = shown.factors[group * size / std::size(Factors().w)];
    bool is_found = false, is_there = false;
    if (params.broken == Break::one_scale) {
      is_found = static_cast<double>(scale.step) != expected[group].step ||
                 std::abs(static_cast<double>(scale.offset) - expected[group].offset) >
                     1e-6 * std::abs(expected[group].offset);
      is_there = scale.step != own.step || scale.offset != own.offset;
    } else {
      for (std::size_t i = group * size; i < (group + 1) * size; ++i) {
        is_found = is_found || is_off(shown, i, codes);
      }
      is_there = factors.step * factors.after != scale.step ||
                 factors.offset * factors.after != scale.offset;
    }
    missed += is_found == is_there ? 0 : 1;
  }
  return lab::none_wrong(id(fmt::format("{}_found", name_of(params.broken))), missed,
                         "Groups where the comparison with the reference and the kernel's own "
                         "record do not agree on whether something is wrong.");
}

/// Of the sound kernels.
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
                              "additions in FP32."),
          lab::none_wrong("bytes", wrong.ways,
                          "Formats whose product does not read all that W is stored in, and "
                          "multiply each weight.")};
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

/// What the groups of a broken run would be, and what their codes were multiplied by.
std::vector<Wronged> wronged_of(const Trace& trace, const Stored& shown, const Stored& sound) {
  std::vector<Wronged> all;
  const auto size = static_cast<std::size_t>(trace.size());
  for (std::size_t group = 0; group < shown.notes.size(); ++group) {
    double squares = 0;
    for (std::size_t i = group * size; i < (group + 1) * size; ++i) {
      squares += std::pow(static_cast<double>(sound.values[i]) - double(trace.weights[i]), 2);
    }
    const Factors& factors = shown.factors[group * size / std::size(Factors().w)];
    all.push_back({sound.notes[group].scale.step, std::sqrt(squares / trace.size()),
                   factors.step * factors.after, factors.offset * factors.after});
  }
  return all;
}

/// `shown`: the run's own kernels, which may be broken on purpose; `all`: the sound ones, of all formats.
Trace trace_of(const Params& params, const Stored& shown, const std::vector<Stored>& all,
               const Layer& layer) {
  const Stored& sound = all[static_cast<std::size_t>(params.format)];
  Trace trace;
  trace.format = shown.format;
  trace.group = shown.group;
  trace.lines = phase_lines(shown.format);
  trace.steps = static_cast<int>(shown.notes.size());
  trace.weights.assign(layer.weights.begin(), layer.weights.end());
  trace.codes = unpacked(shown.format, shown.bytes);
  trace.codes.resize(kCount);
  trace.values = shown.values;
  for (int group = 0; group < trace.steps; ++group) {
    trace.groups.push_back(group_trace(trace, group, shown.notes[static_cast<std::size_t>(group)]));
  }
  for (const Stored& stored : all) trace.formats.push_back(ledger_of(stored, layer));
  trace.broken = params.broken;
  trace.ways = {shown.way};
  if (params.broken == Break::unfused) trace.ways.push_back(sound.way);
  trace.exact = layer.product;
  trace.y = shown.product;
  if (!trace.is_wrong()) return trace;
  trace.wronged = wronged_of(trace, shown, sound);
  trace.sound_y = sound.product;
  return trace;
}

/// The sum of the squares of D X's elements is the trace of D Xᵀ X Dᵀ: the same error by the other way.
double error_by_hessian(const SmallLayer& layer, const std::vector<double>& got) {
  const auto n = static_cast<std::size_t>(layer.inputs);
  std::vector<double> square(n * n);
  for (std::size_t i = 0; i < layer.x.size(); ++i) {
    for (std::size_t k = 0; k < n; ++k)
      square[i % n * n + k] += layer.x[i] * layer.x[i / n * n + k];
  }
  const auto form = [&](const auto& of) {
    double sum = 0;
    for (std::size_t row = 0; row < layer.w.size(); row += n) {
      for (std::size_t i = 0; i < n * n; ++i) sum += of(row + i / n) * square[i] * of(row + i % n);
    }
    return sum;
  };
  const double error = form([&](std::size_t i) { return got[i] - layer.w[i]; });
  return 100 * std::sqrt(error / form([&](std::size_t i) { return layer.w[i]; }));
}

/// A recipe beside the sound kernels, whose codes it starts from.
lab::Report recipe_report(const Params& params, const std::vector<Stored>& all,
                          const Layer& layer) {
  const Stored& sound = all[static_cast<std::size_t>(params.format)];
  Params right = params;
  right.broken = Break::none;
  Trace trace = trace_of(right, sound, all, layer);
  const SmallLayer small = small_layer(params);
  trace.recipe = params.recipe;
  trace.recipe_steps = recipe_steps(params.recipe, small);
  lab::Report report;
  report.summary = summary_of(trace);
  report.tables = tables_of(trace);
  report.checks = checks_of(all, layer);
  const std::vector<double> plain = rounded_rows(small.w, small.inputs, 7);
  report.add(lab::within(
      "recipe_error", std::abs(product_error(small, plain) - error_by_hessian(small, plain)), 1e-9,
      "The small layer's error when it is rounded to nearest, once from the "
      "products and once from the inputs' Hessian, in %."));
  report.trace = to_json(trace);
  return report;
}

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  progress.report(0, "making weights");
  Layer layer(params, device);
  std::vector<Stored> all;
  for (const Format format : all_of<Format>()) {
    progress.report(0.1 + 0.8 * static_cast<double>(all.size()) / kFormats,
                    fmt::format("quantizing: {}", label_of(format)));
    progress.check();
    all.push_back(store(format, params.group, layer, device, Break::none));
  }
  if (params.recipe != Recipe::none) return recipe_report(params, all, layer);
  const Stored& sound = all[static_cast<std::size_t>(params.format)];
  std::optional<Stored> broken;
  if (params.broken != Break::none) {
    broken = store(params.format, params.group, layer, device, params.broken);
  }
  const Stored& shown = broken ? *broken : sound;
  const Trace trace = trace_of(params, shown, all, layer);
  lab::Report report;
  report.summary = summary_of(trace);
  report.tables = tables_of(trace);
  report.checks = checks_of(all, layer);
  if (broken) report.checks.push_back(found(params, shown, sound, layer));
  if (params.broken == Break::unfused) {
    report.add(lab::none_wrong("unfused_same", lab::differing(shown.product, sound.product),
                               "Rows of W · x that differ from the fused kernel's in any bit."));
  }
  if (sound.scale_loads > 0) {
    report.add(lab::traced("scale_loads", "", static_cast<double>(sound.scale_loads) * 8 / kCount,
                           "loads", "of scales by the fused product, for 8 weights of a thread"));
  }
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

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(
          kLesson,
          "A small format is a few codes and a scale: one outlier takes the codes "
          "from all that share its scale.",
          knob_table(), run, bench_report)
          .with_small_bench([](simt::Device& device, lab::Progress& progress) {
            return bench_report(device, progress,
                                {{16, 256}, false, {{128, 512}}, 2, {1, 9}, 256, {1, 9}});
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
               {"q4-k", "Scales of 6 bits and minima, in super-blocks.", {.format = Format::q4_k}},
               {"unfused",
                "Numbers written to memory and read back: the same y for many times the bytes.",
                {.broken = Break::unfused}}})
          .with_trials({{.format = Format::int8, .group = Group::row},
                        {.format = Format::int4_zero, .data = Data::positive},
                        {.format = Format::fp8_e5m2, .group = Group::g128},
                        {.format = Format::mxfp4, .data = Data::heavy_tailed},
                        {.format = Format::ternary, .data = Data::outlier_rows},
                        {.format = Format::q4_k, .outlier = 0},
                        {.broken = Break::unfused},
                        {.format = Format::int4_zero, .broken = Break::wrong_zero_point}})
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::low_bit
