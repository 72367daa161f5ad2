// What the accumulator lesson asks before an addition; every answer is read off the trace.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/numbers/accumulator_precision/layout.hpp"

namespace tilestep::scenes {

using accumulator_parts::number;
using accumulator_parts::spacing_text;
using accumulator_precision::Direction;
using accumulator_precision::Method;
using accumulator_precision::Rounding;
using accumulator_precision::Step;
using accumulator_precision::StepView;

namespace {

/// `answer` among up to three of `others`, in order of size, as `say` writes them.
template <class Say>
Question ask(std::string text, double answer, const std::vector<double>& others, const Say& say) {
  std::vector<double> values = {answer};
  std::vector<std::string> names = {say(answer)};
  for (const double other : others) {
    std::string name = say(other);
    if (values.size() == 4 || std::find(names.begin(), names.end(), name) != names.end()) continue;
    values.push_back(other);
    names.push_back(std::move(name));
  }
  std::sort(values.begin(), values.end());
  Question question;
  question.text = std::move(text);
  for (std::size_t i = 0; i < values.size(); ++i) {
    question.choices.push_back(say(values[i]));
    if (values[i] == answer) question.answer = static_cast<int>(i);
  }
  return question;
}

}  // namespace

/// Where does the sum land?
Question AccumulatorPrecisionScene::landing_question(int point) const {
  const Step& s = step(point);
  const StepView v = view(point);
  const auto say = [&](double value) { return number(value, digits()); };
  const auto before = static_cast<double>(s.before);
  const auto after = static_cast<double>(s.after);
  Question question =
      ask(fmt::format("{} has {}, and {} comes on top. What will it have then?", focused().label,
                      say(before), say(static_cast<double>(s.added))),
          after, {v.unrounded, before, v.below, v.above, v.above + v.spacing}, say);
  question.because =
      v.direction == Direction::exact
          ? fmt::format("{} is a number of the format: nothing is rounded.", say(after))
          : fmt::format(
                "The exact sum is {}, between {} and {}, which stand {} apart; it becomes "
                "{}.",
                say(v.unrounded), say(v.below), say(v.above), spacing_text(v.spacing), say(after));
  return question;
}

/// How far apart do the numbers stand past the next power of two?
Question AccumulatorPrecisionScene::spacing_question(int point) const {
  const StepView v = view(point);
  const int mantissa = focused().format.mantissa_bits;
  Question question =
      ask(fmt::format("The exact sum reaches {}. How far apart do the numbers of {} stand there?",
                      number(v.unrounded, digits()), focused().label),
          v.spacing, {v.spacing * 2, v.spacing / 2, v.spacing * 4}, spacing_text);
  question.because = fmt::format("{} mantissa bits cut the way from {} to {} into {} steps of {}.",
                                 mantissa, number(v.spacing * std::exp2(mantissa), 8),
                                 number(v.spacing * std::exp2(mantissa + 1), 8),
                                 std::exp2(mantissa), spacing_text(v.spacing));
  return question;
}

/// The sum is about to rest for good: what would still move it?
Question AccumulatorPrecisionScene::freeze_question() const {
  const AccumulatorTrace& a = focused();
  const double spacing = a.frozen_spacing;
  const bool nearest = trace_.rounding == Rounding::nearest;
  const double answer = nearest ? spacing / 2 : spacing;
  Question question = ask(
      fmt::format("{} stands at {}, and every term from here on is lost. From which size on would "
                  "one count?",
                  a.label, number(static_cast<double>(a.final_sum), digits())),
      answer, {spacing / 4, spacing / 2, spacing, spacing * 2}, spacing_text);
  question.because =
      nearest ? fmt::format(
                    "Numbers stand {} apart there. Below half of that rounding to nearest "
                    "goes back, at exactly half to the even neighbour.",
                    spacing_text(spacing))
              : fmt::format("Numbers stand {} apart there, and what lies between is cut off.",
                            spacing_text(spacing));
  return question;
}

std::optional<Question> AccumulatorPrecisionScene::question(Cursor cursor) const {
  const int next = cursor.tile;
  if (next >= points() || cursor.phase != 1) return std::nullopt;
  const AccumulatorTrace& a = focused();
  const StepView v = view(next);
  if (!v.single_addition || v.past_end || !std::isfinite(step(next).after)) return std::nullopt;
  const bool plain = a.method <= Method::fp32;  // remedies lose terms in more places than one
  if (plain && trace_.points[static_cast<std::size_t>(next)] == a.frozen_at) {
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
