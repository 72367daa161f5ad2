// What the accumulator lesson asks before an addition; every answer is read off the trace.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <cmath>

#include "scenes/numbers/accumulator_precision/scene.hpp"

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
      {"number_line"}, "value",
      ask_number(
          fmt::format("{} holds {}, and {} is added. What will it hold then?", a.label, say(before),
                      say(static_cast<double>(s.added))),
          after, {v.unrounded, before, v.below, v.above, v.above + v.spacing},
          [this](double value) { return say(value); },
          v.direction == Direction::exact
              ? fmt::format("{} is a number of the format: nothing is rounded.", say(after))
              : fmt::format(
                    "The exact sum is {}, between {} and {}, which are {} apart; it becomes {}.",
                    say(v.unrounded), say(v.below), say(v.above), spacing_text(v.spacing),
                    say(after))));
}

/// How far apart do the numbers stand past the next power of two?
Question RunningSum::spacing_question(int point) const {
  const StepView v = view(point);
  const int mantissa = a.format.mantissa_bits;
  return about(
      {"number_line"},
      ask_number(fmt::format("The exact sum reaches {}. How far apart are the numbers of {} there?",
                             say(v.unrounded), a.label),
                 v.spacing, {v.spacing * 2, v.spacing / 2, v.spacing * 4}, spacing_text,
                 fmt::format("{} mantissa bits cut the range from {} to {} into {} steps of {}.",
                             mantissa, significant(v.spacing * std::exp2(mantissa), 8),
                             significant(v.spacing * std::exp2(mantissa + 1), 8),
                             std::exp2(mantissa), spacing_text(v.spacing))));
}

/// The sum is about to rest for good: what would still move it?
Question RunningSum::freeze_question() const {
  const double spacing = a.frozen_spacing;
  const auto sum = static_cast<double>(a.final_sum);
  const std::string rest = say(sum);
  const bool nearest = trace.rounding == Rounding::nearest;
  const bool even = std::fmod(sum / spacing, 2) == 0;
  return about(
      {"number_line"},
      ask_number(
          fmt::format("{} stands at {}, and every term from here on is lost. Where is the border: "
                      "smaller terms are lost, larger ones count?",
                      a.label, rest),
          nearest ? spacing / 2 : spacing, {spacing / 4, spacing / 2, spacing, spacing * 2},
          spacing_text,
          nearest
              ? fmt::format("Numbers are {} apart there. Less than half of that rounds back; "
                            "exactly half is a tie and goes to the even neighbour, {}.",
                            spacing_text(spacing), even ? "which is " + rest + " itself" : "upward")
              : fmt::format("Numbers are {} apart there, and what lies between is cut off.",
                            spacing_text(spacing))));
}

std::optional<Question> AccumulatorPrecisionScene::question(const View& view) const {
  if (view.cursor.tile >= points() || view.cursor.phase != 1) return std::nullopt;
  return followed(view).question(view.cursor.tile);
}

std::optional<Question> RunningSum::question(int next) const {
  const StepView v = view(next);
  if (!v.single_addition || v.past_end || !std::isfinite(step(next).after)) return std::nullopt;
  const bool plain = a.method <= Method::fp32;  // remedies lose terms in more places than one
  if (plain && trace.points[static_cast<std::size_t>(next)] == a.frozen_at) {
    return freeze_question();
  }
  const auto seen = [&](auto&& property) {
    for (int point = 0; point < next; ++point) {
      if (property(fate(point))) return true;
    }
    return false;
  };
  const auto lost = [](const Fate& each) { return each.lost; };
  const auto up = [](const Fate& each) { return each.direction == Direction::up; };
  const bool coarse = a.format.mantissa_bits <= 3;
  const Fate now = fate(next);
  if (next == 0 || (now.lost && !seen(lost)) || (coarse && up(now) && !seen(up))) {
    return landing_question(next);
  }
  const auto as_wide = [&](const Fate& each) { return each.spacing >= now.spacing; };
  const bool large = now.spacing >= 0.01 || std::abs(v.unrounded) >= 16;
  const bool doubled = large && now.spacing > fate(next - 1).spacing;
  if (doubled && !seen(as_wide)) return spacing_question(next);
  return std::nullopt;
}

}  // namespace tilestep::scenes
