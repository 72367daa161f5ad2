// The accumulator lesson's questions before an addition, the events of its trace, and its questions about
// measurements; every answer comes from the trace or the bench.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/numbers/accumulator_precision/scene.hpp"
#include "scenes/shared/compared.hpp"
#include "scenes/shared/measured.hpp"
#include "scenes/shared/rows.hpp"

namespace tilestep::scenes {

using accumulator_precision::Direction, accumulator_precision::Method,
    accumulator_precision::Rounding, accumulator_precision::Step, accumulator_precision::StepView;
using words::significant;

/// Where does the sum land?
Question RunningSum::landing_question(int point) const {
  const Step& s = step(point);
  const StepView v = view(point);
  const auto before = static_cast<double>(s.before);
  const auto after = static_cast<double>(s.after);
  return about(
      {"neighbours"}, "value",
      ask_number(
          fmt::format("{} holds {}, and {} is added. What will it hold then?", a.label, say(before),
                      say(static_cast<double>(s.added))),
          after, {v.unrounded, before, v.below, v.above, v.above + v.spacing},
          [this](double value) { return say(value); },
          v.direction == Direction::exact
              ? fmt::format("{} exists in the format, so nothing is rounded.", say(after))
              : fmt::format("the unrounded sum is {}, between {} and {}, which are {} apart.",
                            say(v.unrounded), say(v.below), say(v.above),
                            spacing_text(v.spacing))));
}

/// How far apart are the numbers past the next power of two?
Question RunningSum::spacing_question(int point) const {
  const StepView v = view(point);
  const int mantissa = a.format.mantissa_bits;
  return about(
      {"neighbours"},
      ask_number(
          fmt::format("Before rounding the sum reaches {}. How far apart are {} numbers there?",
                      say(v.unrounded), a.label),
          v.spacing, {v.spacing * 2, v.spacing / 2, v.spacing * 4}, spacing_text,
          fmt::format("{} mantissa bits cut the range from {} to {} into {} steps of {}.", mantissa,
                      significant(v.spacing * std::exp2(mantissa), 8),
                      significant(v.spacing * std::exp2(mantissa + 1), 8), std::exp2(mantissa),
                      spacing_text(v.spacing))));
}

/// The sum is about to freeze for good: which terms would still move it?
Question RunningSum::freeze_question() const {
  const double spacing = a.frozen_spacing;
  const auto sum = static_cast<double>(a.final_sum);
  const std::string rest = say(sum);
  const bool nearest = trace.rounding == Rounding::nearest;
  const bool even = std::fmod(sum / spacing, 2) == 0;
  return about(
      {"neighbours"},
      ask_number(
          fmt::format("{} holds {}, and every term from here on is lost. Where is the border below "
                      "which terms are lost?",
                      a.label, rest),
          nearest ? spacing / 2 : spacing, {spacing / 4, spacing / 2, spacing, spacing * 2},
          spacing_text,
          nearest
              ? fmt::format("numbers are {} apart there: less than half of that, {}, rounds back, "
                            "and exactly half is a tie that goes to the even neighbour, {}.",
                            spacing_text(spacing), spacing_text(spacing / 2),
                            even ? "which is " + rest + " itself" : "upward")
              : fmt::format("numbers are {} apart there, and anything in between is cut off.",
                            spacing_text(spacing))));
}

std::optional<Question> AccumulatorPrecisionScene::question(const View& view) const {
  if (view.cursor.tile >= points() || view.cursor.phase != 1) return std::nullopt;
  auto asked = followed(view).question(view.cursor.tile);
  if (asked) asked = shuffled(std::move(*asked), report_);
  return asked;
}

std::optional<Question> RunningSum::question(int next) const {
  const StepView v = view(next);
  if (!v.single_addition || v.past_end || !std::isfinite(step(next).after)) return std::nullopt;
  const bool plain = a.method <= Method::fp32;  // remedies lose terms in several places
  if (plain && trace.points[next] == a.frozen_at) {
    return of_kind("border", freeze_question());
  }
  const auto seen = [&](auto&& property) {
    for (int point = 0; point < next; ++point) {
      if (property(view(point))) return true;
    }
    return false;
  };
  const auto lost = [](const StepView& each) { return each.lost; };
  const auto up = [](const StepView& each) { return each.direction == Direction::up; };
  const bool coarse = a.format.mantissa_bits <= 3;
  if ((v.lost && !seen(lost)) || (coarse && up(v) && !seen(up))) {
    return of_kind("landing", landing_question(next));
  }
  const auto as_wide = [&](const StepView& each) { return each.spacing >= v.spacing; };
  const bool large = v.spacing >= 0.01 || std::abs(v.unrounded) >= 16;
  const bool doubled = next > 0 && large && v.spacing > view(next - 1).spacing;
  if (doubled && !seen(as_wide)) return of_kind("spacing", spacing_question(next));
  return std::nullopt;
}

// ---- events ---------------------------------------------------------------------------------------

/// For each plain accumulator: its first lost term and its end. Remedies lose terms all the time, on purpose.
void AccumulatorPrecisionScene::find_events() {
  for (const AccumulatorTrace& a : trace_.accumulators) {
    const RunningSum sum{trace_, a};
    const bool plain = a.method <= Method::fp32;
    bool lost = false, past = false, frozen = false;
    for (int point = 0; point < points(); ++point) {
      const Cursor at{point + 1, 1};
      const auto say = [&](const char* what) { events_.push_back({at, a.label + what}); };
      if (!past && !std::isfinite(a.steps[point].sum)) {
        say(" overflows");
        past = true;
      } else if (!frozen && sum.frozen(point)) {
        events_.push_back({at, fmt::format("{} freezes at {}", a.label, sum.say(a.final_sum))});
        frozen = lost = true;
      } else if (plain && !lost && sum.view(point).lost) {
        say(" loses its first term");
        lost = true;
      }
    }
  }
  std::stable_sort(events_.begin(), events_.end(),
                   [](const Event& one, const Event& other) { return one.at < other.at; });
}

// ---- about measurements ---------------------------------------------------------------------------

namespace {

std::optional<double> with_data(const lab::Report& bench, const char* variant, const char* data,
                                const char* column) {
  return number_with(bench, "rate_and_error", {{"variant", variant}, {"data", data}}, column);
}

std::optional<double> rate_of(const lab::Report& bench, const char* variant) {
  return number_with(bench, "tensor_core_rate", {{"variant", variant}}, "rate");
}

/// Uniform data makes the FP8 path look bad, normal data does not.
std::optional<Question> normal_question(const lab::Report& bench) {
  const auto fp8 = with_data(bench, "wgmma-fp8", "normal", "error"),
             fp16 = with_data(bench, "mma-fp16-acc16", "normal", "error");
  if (!fp8 || !fp16) return std::nullopt;
  return about_view(
      {"Error", "By data"}, "normal-data",
      ask_larger(
          "Products of normally distributed numbers, of both signs: which is less accurate, an "
          "FP16 accumulator or the tensor core's own in Hopper's FP8 path?",
          *fp16, *fp8, 1.1, {"The FP16 accumulator", "Hopper's FP8 path", "The same, within 10 %"},
          fmt::format("sums of both signs stay small, so cut-off bits do not add up as they do "
                      "when all terms are positive ({} % against {} %, {}).",
                      words::significant(*fp16, 3), words::significant(*fp8, 3),
                      measured::where_measured(bench))));
}

/// The price of an exact sum.
std::optional<Question> price_question(const lab::Report& bench) {
  const auto straight = rate_of(bench, "wgmma-fp8"),
             promoted = rate_of(bench, "wgmma-fp8-promoted");
  if (!straight || !promoted || *straight <= 0) return std::nullopt;
  return about_view(
      {"Price", "By data"}, "promotion-price",
      ask_loss("Every 128 products the FP8 sum is promoted: added to an FP32 register and "
               "reset. What share of the throughput does that cost?",
               *promoted, *straight, {50, 5, 75, 20, 1},
               fmt::format("the FP32 additions on CUDA cores are only partly hidden behind the "
                           "tensor cores ({:.0f} against {:.0f} TFLOP/s, {}).",
                           *promoted, *straight, measured::where_measured(bench))));
}

/// Half the bits, and how much faster?
std::optional<Question> rate_question(const lab::Report& bench) {
  const auto narrow = rate_of(bench, "mma-fp16-acc16"), wide = rate_of(bench, "mma-fp16-acc32");
  return ask_faster(
      bench, {"Price", "By data"}, "narrow-accumulator", {narrow, wide, "TFLOP/s"},
      "mma.sync on FP16 numbers, with an FP16 or an FP32 accumulator: how many times as "
      "fast is FP16?",
      {2, 1.5, 4},
      "the tensor core adds in either at the same rate; only registers and their traffic are "
      "saved");
}

}  // namespace

std::vector<Question> AccumulatorPrecisionScene::measured_questions(
    const lab::Report& bench) const {
  return asked_of(bench, {normal_question(bench), price_question(bench), rate_question(bench)});
}

std::vector<std::string> AccumulatorPrecisionScene::stage_knobs() const {
  return {"distribution", "accumulators", "rounding"};
}

}  // namespace tilestep::scenes
