// The accumulator picture's sentences, and its number formats.
#include <fmt/format.h>

#include <cmath>

#include "scenes/numbers/accumulator_precision/scene.hpp"

namespace tilestep::scenes {

using accumulator_precision::Direction, accumulator_precision::Method, accumulator_precision::Step,
    accumulator_precision::StepView;
using words::counted, words::significant;

std::string spacing_text(double spacing) {
  const bool short_enough = spacing >= 0x1p-8;
  return short_enough ? significant(spacing, 9)
                      : "2" + words::raised(static_cast<int>(std::log2(spacing)));
}

std::string RunningSum::say(double value) const {
  const int mantissa = a.format.mantissa_bits;
  return significant(value, mantissa <= 3 ? 4 : mantissa <= 10 ? 6 : 9);
}

std::string RunningSum::start_sentence() const {
  const bool alone = trace.accumulators.size() == 1;
  return fmt::format("Nothing is added yet: {} {}, {} in all. How far does {} get?",
                     counted(trace.terms, "term"), words::verb(trace.terms, "wait"),
                     significant(trace.exact_sum, 4), alone ? a.label : "each sum");
}

std::string RunningSum::add_sentence(int point) const {
  const Step& s = step(point);
  const StepView v = view(point);
  const std::string term = fmt::format("t[{}]", trace.points[point]);
  if (!v.single_addition) {
    return fmt::format("{} joins the blocks of terms waiting for one of equal size.", term);
  }
  const char* meets = a.method == Method::kahan      ? ", corrected, is added to"
                      : a.method == Method::promoted ? " joins partial sum"
                                                     : " is added to";
  std::string text = fmt::format("{} = {}{} {}: ", term, say(s.added), meets, say(s.before));
  if (v.past_end) {
    return text + fmt::format("{} is past the largest number.", say(v.unrounded));
  }
  if (v.below == v.unrounded || v.above == v.unrounded) {
    return text + fmt::format("the format has {} exactly.", say(v.unrounded));
  }
  return text +
         fmt::format("{} lies between {} and {}.", say(v.unrounded), say(v.below), say(v.above));
}

std::string RunningSum::round_sentence(int point) const {
  const Step& s = step(point);
  const StepView v = view(point);
  const int index = trace.points[point];
  const std::string after = say(s.after);
  if (!v.single_addition) {
    return fmt::format("{} gives {} after {}.", a.label, after, counted(index + 1, "term"));
  }
  if (!std::isfinite(s.after)) {
    return fmt::format("{} overflows: {} is past its largest number.", a.label, say(v.unrounded));
  }
  if (v.promotes) {
    return fmt::format("The partial sum, {}, joins the FP32 total, now {}, and restarts at 0.",
                       after, significant(s.extra, 6));
  }
  if (v.past_end) return fmt::format("{} stays at {}, its largest number.", a.label, after);
  if (v.misplaced()) {
    return fmt::format("{} stores {}, although {} lies between {} and {}: no rounding gives that.",
                       a.label, after, say(v.unrounded), say(v.below), say(v.above));
  }
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

std::string RunningSum::last_sentence() const {
  if (!std::isfinite(a.error_percent)) {
    return fmt::format("After {}, {} holds {}; the exact sum is {}.", counted(trace.terms, "term"),
                       a.label, significant(a.final_sum, 6), significant(trace.exact_sum, 6));
  }
  return fmt::format("After {}, {} holds {}; the exact sum is {}: off by {} %.",
                     counted(trace.terms, "term"), a.label, significant(a.final_sum, 6),
                     significant(trace.exact_sum, 6),
                     a.error_percent < 0.05 ? significant(a.error_percent, 2)
                                            : fmt::format("{:.1f}", a.error_percent));
}

/// The note beside the term.
RunningSum::Note RunningSum::term_note(int point) const {
  const StepView v = view(point);
  if (!v.single_addition) return {"a tree of additions, not just one", "a tree adds"};
  if (!std::isfinite(v.spacing)) return {};
  const std::string spacing = spacing_text(v.spacing);
  std::string full = fmt::format("spacing here: {}", spacing);
  if (a.method == Method::kahan) {
    const auto term = static_cast<double>(trace.term[point]);
    full = fmt::format("the term {}, corrected; {}", say(term), full);
  }
  return {full, spacing + " apart"};
}

/// The note beside the accumulator's new value.
RunningSum::Note RunningSum::fate_note(int point) const {
  const Step& s = step(point);
  const StepView v = view(point);
  if (!v.single_addition) return {"the result so far", "so far"};
  const std::string off = significant(std::abs(v.rounding_error), 3);
  Note note{fmt::format("rounded {} by {}", name_of(v.direction), off),
            fmt::format("{} {}", name_of(v.direction), off)};
  if (v.direction == Direction::exact) note = {"exact", "exact"};
  if (v.misplaced()) note = {fmt::format("not {} rounded", say(v.unrounded)), "not rounded"};
  if (v.lost) note = {"the term is lost", "lost"};
  const Method method = a.method;
  if (v.promotes) {
    note.full += fmt::format("; FP32 total {}", significant(s.extra, 6));
  } else if (method == Method::promoted) {
    note.full += fmt::format("; with the FP32 total {}", significant(s.sum, 6));
  } else if (method == Method::kahan && s.extra != 0) {
    note.full +=
        fmt::format("; remembers {} too {}", significant(std::abs(static_cast<double>(s.extra)), 4),
                    s.extra > 0 ? "much" : "little");
  }
  return note;
}

std::string RunningSum::sentence(const AccumulatorMoment& now) const {
  if (now.point < 0) return start_sentence();
  if (!now.rounded) return add_sentence(now.point);
  const int last = static_cast<int>(trace.points.size()) - 1;
  return now.point == last ? last_sentence() : round_sentence(now.point);
}

}  // namespace tilestep::scenes
