// The Measured tab of the lesson on launches, and its questions. Where a bench lacks a table or column, its question is
// omitted.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/systems/launches/scene.hpp"

namespace tilestep::scenes {
namespace {

std::optional<double> step_time(const lab::Report& bench, const char* rung) {
  return number_with(bench, "decode", {{"rung", rung}, {"batch", "1"}}, "each");
}

std::optional<Question> launch_question(const lab::Report& bench) {
  const auto alone = number_with(bench, "costs", {{"what", "one by one"}}, "time");
  const auto graph = number_with(bench, "costs", {{"what", "in a graph"}}, "time");
  if (!alone || !graph || *graph <= 0) return std::nullopt;
  return about_view(
      "Launches", "graph-cost",
      ask_ratio(fmt::format("Empty kernels one by one take {:.2f} µs each. How many "
                            "times as fast are they in a graph?",
                            *alone),
                *alone / *graph, {1.0, 20.0, 1.4},
                fmt::format("the driver is called once for all, and the next kernel is "
                            "ready when one ends: {:.2f} µs each ({}).",
                            *graph, measured::where_measured(bench))));
}

std::optional<Question> step_question_of(const lab::Report& bench) {
  const auto eager = step_time(bench, "eager"), one = step_time(bench, "persistent");
  if (!eager || !one || *one <= 0) return std::nullopt;
  return about_view(
      "Decode step", "persistent-step",
      ask_ratio(fmt::format("Kernel by kernel, a step of one token takes {:.0f} µs. How "
                            "many times as fast is one persistent kernel?",
                            *eager),
                *eager / *one, {1.0, 1.2, 10.0},
                fmt::format("no launch lies between the layers, and weights are on "
                            "their way across the barriers: {:.0f} µs ({}).",
                            *one, measured::where_measured(bench))));
}

std::optional<Question> loads_question(const lab::Report& bench) {
  const auto slower = number_with(bench, "loads", {{"rung", "single"}}, "slower");
  if (!slower) return std::nullopt;
  return about_view(
      "Loads", "single-loads",
      ask_ratio("W begins at an odd number, so each load has 2 bytes, not 16. How many "
                "times as long does the product take?",
                *slower, {8.0, 1.0, 16.0},
                fmt::format("the bytes are the same, the loads 8 times as many: {:.2f} "
                            "times ({}).",
                            *slower, measured::where_measured(bench))));
}

}  // namespace

std::vector<Question> LaunchesScene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench, {launch_question(bench), step_question_of(bench), loads_question(bench)});
}

measured::Spec LaunchesScene::measured_spec() const {
  using namespace measured;
  return {"costs",
          {{.name = "Launches",
            .how = "empty kernels in a row, by events; and by the host's clock",
            .plots = {Bars{.id = "launch_costs",
                           .unit = "µs",
                           .rows = {.table = "costs"},
                           .label = "what",
                           .value = "time",
                           .fraction = ""}}},
           {.name = "Decode step",
            .how = "all weights read once, as a share of a copy's rate",
            .filters = {{"step_batch", "batch", "{}", "1", "tokens"}},
            .plots = {Bars{.id = "decode_steps",
                           .unit = "GB/s",
                           .rows = {.table = "decode"},
                           .label = "rung",
                           .value = "bandwidth",
                           .of = "copy"}},
            .needs = "decode"},
           {.name = "Staircase",
            .how = "a product round the edges of its tiles; dashed: predicted from waves and tiles",
            .plots = {Lines{
                .id = "shape_staircase",
                .x_label = "m",
                .y_label = "µs",
                .rows = {.table = "staircase"},
                .x = "m",
                .series = {},
                .y = {},
                .curves = {{"time", "measured"}, {"predicted", "predicted", Role::orange, true}},
                .marked_x = static_cast<double>(trace_.shape.m)}},
            .needs = "staircase"},
           {.name = "Compilers",
            .how = "the same step by PyTorch, one token",
            .plots = {Bars{.id = "step_compilers",
                           .unit = "µs",
                           .rows = {.table = "compilers"},
                           .label = "rung",
                           .value = "each",
                           .low = "",
                           .high = "",
                           .fraction = "",
                           .note = "first after {first_s} s"}},
            .needs = "compilers"},
           {.name = "Head dimension",
            .how = "causal attention by PyTorch: 4096 tokens, 32 heads",
            .plots = {Bars{.id = "head_dimensions",
                           .unit = "µs",
                           .rows = {.table = "head_dims"},
                           .label = "dim",
                           .value = "each",
                           .low = "",
                           .high = "",
                           .fraction = ""}},
            .needs = "head_dims"},
           {.name = "Loads",
            .how = "the same product by loads of 16 bytes, and of one number",
            .plots = {Bars{.id = "load_rates",
                           .unit = "GB/s",
                           .rows = {.table = "loads"},
                           .label = "rung",
                           .value = "bandwidth",
                           .fraction = "",
                           .note = "{slower} times as long"}},
            .needs = "loads"}}};
}

}  // namespace tilestep::scenes
