// What the accumulator picture says in words, and how it writes numbers.
#include <fmt/format.h>

#include <cmath>

#include "scenes/numbers/accumulator_precision/layout.hpp"

namespace tilestep::scenes {

using accumulator_parts::spacing_text;
using accumulator_precision::Direction, accumulator_precision::Method, accumulator_precision::Step,
    accumulator_precision::StepView;
using words::counted, words::significant;

namespace accumulator_parts {

std::string spacing_text(double spacing) {
  const bool short_enough = spacing >= 0x1p-8;
  return short_enough ? significant(spacing, 9)
                      : "2" + words::raised(static_cast<int>(std::log2(spacing)));
}

}  // namespace accumulator_parts

int AccumulatorPrecisionScene::digits() const {
  const int mantissa = focused().format.mantissa_bits;
  return mantissa <= 3 ? 4 : mantissa <= 10 ? 6 : 9;
}

std::string AccumulatorPrecisionScene::start_sentence() const {
  const bool alone = trace_.accumulators.size() == 1;
  return fmt::format("Nothing is added yet: {} {}, {} in all. How far does {} get?",
                     counted(trace_.terms, "term"), words::verb(trace_.terms, "wait"),
                     significant(trace_.exact_sum, 4), alone ? focused().label : "each sum");
}

std::string AccumulatorPrecisionScene::add_sentence(int point) const {
  const AccumulatorTrace& a = focused();
  const Step& s = step(point);
  const StepView v = view(point);
  const std::string term = fmt::format("t[{}]", trace_.points[static_cast<std::size_t>(point)]);
  if (!v.single_addition) {
    return fmt::format("{} joins the blocks of terms that wait for another of their size.", term);
  }
  const auto say = [&](double value) { return significant(value, digits()); };
  const char* meets = a.method == Method::kahan      ? ", corrected, is added to"
                      : a.method == Method::promoted ? " is added to the part,"
                                                     : " is added to";
  std::string text = fmt::format("{} = {}{} {}: ", term, say(static_cast<double>(s.added)), meets,
                                 say(static_cast<double>(s.before)));
  if (v.past_end) {
    return text + fmt::format("{} is past the largest number.", say(v.unrounded));
  }
  if (v.below == v.unrounded || v.above == v.unrounded) {
    return text + fmt::format("the format has {} exactly.", say(v.unrounded));
  }
  return text +
         fmt::format("{} lies between {} and {}.", say(v.unrounded), say(v.below), say(v.above));
}

std::string AccumulatorPrecisionScene::round_sentence(int point) const {
  const AccumulatorTrace& a = focused();
  const Step& s = step(point);
  const StepView v = view(point);
  const int index = trace_.points[static_cast<std::size_t>(point)];
  const auto say = [&](double value) { return significant(value, digits()); };
  const std::string after = say(static_cast<double>(s.after));
  if (!v.single_addition) {
    return fmt::format("{} gives {} after {}.", a.label, after, counted(index + 1, "term"));
  }
  if (!std::isfinite(s.after)) {
    return fmt::format("{} overflows: {} is past its largest number.", a.label, say(v.unrounded));
  }
  if (v.promotes) {
    return fmt::format("The part, {}, goes into the FP32 total, now {}, and starts again at 0.",
                       after, significant(static_cast<double>(s.extra), 6));
  }
  if (v.past_end) return fmt::format("{} stays at {}, its largest number.", a.label, after);
  if (v.lost) {
    const bool for_good = a.frozen_at >= 0 && index >= a.frozen_at;
    return fmt::format("{} {} t[{}]: {} falls back to {}, where numbers are {} apart.", a.label,
                       for_good ? "is frozen and drops" : "drops", index, say(v.unrounded), after,
                       spacing_text(v.spacing));
  }
  if (v.direction == Direction::exact) {
    return fmt::format("{} holds {} exactly: nothing is lost.", a.label, after);
  }
  const double off = std::abs(v.rounding_error);
  const bool grows = (v.rounding_error > 0) == (v.unrounded > 0);
  if (a.method == Method::kahan && s.extra != 0) {
    return fmt::format("{} rounds {} {} to {}, and remembers {} too {}.", a.label, say(v.unrounded),
                       name_of(v.direction), after,
                       significant(std::abs(static_cast<double>(s.extra)), 3),
                       s.extra > 0 ? "much" : "little");
  }
  return fmt::format("{} rounds {} {} to {}: {} {}.", a.label, say(v.unrounded),
                     name_of(v.direction), after, significant(off, 3),
                     grows ? "too much" : "too little");
}

std::string AccumulatorPrecisionScene::last_sentence() const {
  const AccumulatorTrace& a = focused();
  if (!std::isfinite(a.error_percent)) {
    return fmt::format("After {}, {} holds {}; the exact sum is {}.", counted(trace_.terms, "term"),
                       a.label, significant(static_cast<double>(a.final_sum), 6),
                       significant(trace_.exact_sum, 6));
  }
  return fmt::format(
      "After {}, {} holds {}; the exact sum is {}: off by {} %.", counted(trace_.terms, "term"),
      a.label, significant(static_cast<double>(a.final_sum), 6), significant(trace_.exact_sum, 6),
      a.error_percent < 0.05 ? significant(a.error_percent, 2)
                             : fmt::format("{:.1f}", a.error_percent));
}

std::string AccumulatorPrecisionScene::sentence(Cursor cursor) const {
  const AccumulatorMoment now = moment(cursor);
  if (now.point < 0) return start_sentence();
  if (!now.rounded) return add_sentence(now.point);
  return now.point == points() - 1 ? last_sentence() : round_sentence(now.point);
}

}  // namespace tilestep::scenes
