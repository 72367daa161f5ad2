// The Measured tab of the lesson on diagnosis, and its questions. Where a bench lacks a table or column, its question is
// omitted.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/systems/triage/scene.hpp"

namespace tilestep::scenes {
namespace {

std::optional<Question> norm_question(const lab::Report& bench) {
  const auto gain =
      number_with(bench, "cases", {{"case", "case-1"}, {"fix", "faster-norm"}}, "gain");
  if (!gain) return std::nullopt;
  return about_view("Fixes", "norm-gain",
                    ask_ratio("The norm's kernel is made faster, in a step that is short of "
                              "something else. How many times as fast is the step?",
                              *gain, {1.2, 1.5, 2.0},
                              fmt::format("norms are a small part of a step ({}).",
                                          measured::where_measured(bench))));
}

std::optional<Question> worst_question(const lab::Report& bench) {
  const lab::Table* const cases = bench.table("loop");
  const auto sound = number_with(bench, "loop", {{"case", "sound"}}, "mean");
  if (cases == nullptr || !sound || *sound <= 0) return std::nullopt;
  double worst = 0;
  for (int i = 1; i <= triage::kCases; ++i) {
    const auto mean = number_with(bench, "loop", {{"case", fmt::format("case-{}", i)}}, "mean");
    worst = std::max(worst, mean.value_or(0));
  }
  if (worst <= 0) return std::nullopt;
  return about_view(
      "Cases", "worst-case",
      ask_ratio("Twelve loops hide a fault each, and all compute the same numbers. How "
                "many times as long does the slowest take as the sound one?",
                worst / *sound, {1.1, 20.0, 1.5},
                fmt::format("{:.0f} µs beside {:.0f} ({}).", worst, *sound,
                            measured::where_measured(bench))));
}

}  // namespace

std::vector<Question> TriageScene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench, {worst_question(bench), norm_question(bench)});
}

measured::Spec TriageScene::measured_spec() const {
  using namespace measured;
  return {"loop",
          {{.name = "Cases",
            .how = "a step of each loop before any fix, mean of four",
            .plots = {Bars{.id = "case_times",
                           .unit = "µs",
                           .rows = {.table = "loop"},
                           .label = "case",
                           .value = "mean",
                           .fraction = "",
                           .note = "{launches} kernels, {idle} µs between them"}}},
           {.name = "Fixes",
            .how = "times as fast after each fix",
            .filters = {{"fixed_case", "case", "{}", "case-1", ""}},
            .plots = {Bars{.id = "fix_gains",
                           .unit = "×",
                           .rows = {.table = "cases"},
                           .label = "fix",
                           .value = "gain",
                           .low = "",
                           .high = "",
                           .fraction = "",
                           .note = "{step} µs"}},
            .needs = "cases"},
           {.name = "Kernels",
            .how = "the kernels of a step",
            .filters = {{"kernels_case", "case", "{}", "sound", ""},
                        {"kernels_step", "step", "step {}", "2", ""}},
            .plots = {Bars{.id = "kernel_times",
                           .unit = "µs",
                           .rows = {.table = "kernels"},
                           .label = "{op}: {kernel}",
                           .value = "us",
                           .low = "",
                           .high = "",
                           .fraction = "",
                           .note = "{launches} launches, {bandwidth} GB/s"}},
            .needs = "kernels"}}};
}

}  // namespace tilestep::scenes
