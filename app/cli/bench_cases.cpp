#include <algorithm>
#include <cmath>
#include <memory>

#include "app/cli/bench_parts.hpp"
#include "app/keep/capsule.hpp"
#include "kernels/answer.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

/// Where the lesson refuses a knob beside the others, that one stands at its default.
lab::Report largest(const lab::Lesson& lesson) {
  lab::Request request;
  request.lesson = lesson.info().id;
  request.backend = "emulated";
  for (const lab::Knob& knob : lesson.knobs()) {
    if (knob.kind == lab::KnobKind::integer) {
      request.params[knob.id] = static_cast<std::int64_t>(std::llround(knob.max));
    }
  }
  lab::NoProgress progress;
  while (true) {
    try {
      return answer(request, progress);
    } catch (const Error& error) {
      // A refusal begins with the knob that does not go with another.
      const std::string sentence = error.what();
      const auto named =
          std::find_if(request.params.begin(), request.params.end(),
                       [&](const auto& each) { return sentence.starts_with(each.first); });
      if (named == request.params.end()) {
        if (request.params.empty()) throw;
        request.params.clear();
      } else {
        request.params.erase(named);
      }
    }
  }
}

}  // namespace

double middle(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

BenchCases bench_cases() {
  BenchCases cases;
  for (const lab::Lesson* lesson : lessons()) {
    lab::NoProgress progress;
    lab::Request request;
    request.lesson = lesson->info().id;
    request.backend = "emulated";
    cases[request.lesson] = {{"default", answer(request, progress)}, {"largest", largest(*lesson)}};
  }
  return cases;
}

ShellOptions shell_at(const BenchCase& one, int step) {
  auto capsule = std::make_shared<Capsule>(capsule_of(one.report));
  capsule->step = step;
  ShellOptions options;
  options.capsule = std::move(capsule);
  return options;
}

}  // namespace tilestep::app
