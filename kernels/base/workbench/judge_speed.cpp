#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/base/lab/race.hpp"
#include "kernels/base/workbench/judge.hpp"

namespace tilestep::lab {
namespace {

/// The student's rate and the one that it is held against; null: it was not timed.
struct Rates {
  const Measurement* got;
  const Measurement* want;
};

std::string said_of(const ExerciseSpeed& speed, const Rates& rates, const Report& report) {
  const bool steady = rates.got->stable() && rates.want->stable();
  return fmt::format(
      "{} of {} is {:.3g} {}, {:.3g} times that of the built-in {} ({:.3g} {}){}; {}", speed.id,
      speed.variant, rates.got->value, rates.got->unit, rates.got->value / rates.want->value,
      speed.rung, rates.want->value, rates.want->unit,
      steady ? "" : ", though the times vary by more than 10 %", report.summary);
}

/// The verdict on a kernel that is right but for this.
ExerciseVerdict failed_for(const Exercise& exercise, ExerciseVerdict verdict,
                           ExerciseFailure failure) {
  verdict.ok = false;
  verdict.sentence = fmt::format("Not yet: {}.", failure.what);
  const auto hint =
      std::find_if(exercise.hints.begin(), exercise.hints.end(), [&](const Hint& each) {
        const bool of_speed = each.key == HintKey::speed && failure.kind == HintKey::speed;
        return of_speed || each.key == HintKey::otherwise;
      });
  verdict.hint = hint->text;
  verdict.failed = std::move(failure);
  return verdict;
}

}  // namespace

ExerciseVerdict judge_speed(const Exercise& exercise, ExerciseVerdict verdict,
                            const RunRace& race) {
  if (!verdict.ok) return verdict;
  for (const ExerciseSpeed& speed : exercise.speeds) {
    const Report report = race(speed);
    const Rates rates{report.measurement(speed.id, speed.variant),
                      report.measurement(speed.id, kBuiltIn + speed.rung)};
    if (rates.want == nullptr || rates.want->value <= 0) {
      throw Error(fmt::format("the bench of {} says nothing on '{}'", exercise.lesson, speed.text),
                  ExitCode::unavailable);
    }
    ExerciseFailure failure;
    if (rates.got == nullptr) {  // only what is right is timed
      failure.kind = HintKey::check;
      failure.what = fmt::format(
          "the results are right in the cases, but on {} wrong at the size that is timed",
          report.device.name);
      return failed_for(exercise, std::move(verdict), std::move(failure));
    }
    const double ratio = rates.got->value / rates.want->value;
    const bool ok = ratio >= speed.factor;
    verdict.goals.push_back({speed.text, ratio, ok});
    const std::string said = said_of(speed, rates, report);
    if (ok) {
      verdict.sentence += fmt::format(" On {} its {}; the goal is at least {:.3g} times.",
                                      report.device.name, said, speed.factor);
      continue;
    }
    failure.kind = HintKey::speed;
    failure.value = ratio;
    failure.bound = speed.factor;
    failure.what =
        fmt::format("the results are right, but on {} its {}; the goal is at least {:.3g} times",
                    report.device.name, said, speed.factor);
    return failed_for(exercise, std::move(verdict), std::move(failure));
  }
  return verdict;
}

ExerciseVerdict leave_speed(const Exercise& exercise, ExerciseVerdict verdict) {
  for (const ExerciseSpeed& speed : exercise.speeds) {
    verdict.goals.push_back({speed.text, std::nullopt, false, false});
  }
  if (verdict.ok && !exercise.speeds.empty()) {
    verdict.sentence +=
        " Its speed was not judged: that takes a GPU (tilestep exercise check --backend cuda "
        "--trust).";
  }
  return verdict;
}

}  // namespace tilestep::lab
