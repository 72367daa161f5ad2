// The Measured tab of the lesson on positions, and its questions. Where a bench lacks a table, its question is omitted.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include "scenes/attention/positions/scene.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"

namespace tilestep::scenes {
namespace {

std::optional<Question> prefill_question(const lab::Report& bench) {
  const auto of = [&](const char* what) {
    return number_with(bench, "fusion", {{"tokens", "8192"}}, what);
  };
  const auto times = of("times"), bytes = of("byte_ratio");
  if (!times || !bytes) return std::nullopt;
  return about_view("Fusion", "prefill",
                    ask_ratio("Apart, four launches move twice the bytes. How many times as fast "
                              "are 8192 tokens in one launch?",
                              *times, {4.0, 1.0, 3.0},
                              fmt::format("memory is the limit, and the bytes are {:.2f} times as "
                                          "many ({}).",
                                          *bytes, measured::where_measured(bench))));
}

std::optional<Question> token_question(const lab::Report& bench) {
  const auto each = [&](const char* rung) {
    return number_with(bench, "launches", {{"rung", rung}, {"way", "one by one"}}, "each");
  };
  const auto empty = each("empty"), together = each("together");
  if (!empty || !together) return std::nullopt;
  return about_view(
      "One token", "one-token",
      ask_ratio("One token, launched one by one: how many times as long as an empty kernel does "
                "the fused one take?",
                *together / *empty, {4.0, 2.0, 10.0},
                fmt::format("a launch is nearly all of it: {:.2f} µs against {:.2f} µs ({}).",
                            *together, *empty, measured::where_measured(bench))));
}

}  // namespace

std::vector<Question> PositionsScene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench, {prefill_question(bench), token_question(bench)});
}

measured::Spec PositionsScene::measured_spec() const {
  using namespace measured;
  return {"fusion",
          {{.name = "Fusion",
            .how = "40 heads and 8 of values, 128 numbers each, L2 cold: times as fast in one "
                   "launch; dashed: the ratio of bytes",
            .plots = {Bars{.id = "positions_fusion",
                           .unit = "×",
                           .rows = {.table = "fusion"},
                           .label = "{tokens|token}",
                           .value = "times",
                           .low = "",
                           .high = "",
                           .fraction = "",
                           .expected = "byte_ratio",
                           .note = "{together} µs"}}},
           {.name = "Bandwidth",
            .how = "one launch, L2 cold, as a share of a copy's rate",
            .plots = {Bars{.id = "positions_bandwidth",
                           .unit = "GB/s",
                           .rows = {.table = "fusion"},
                           .label = "{tokens|token}",
                           .value = "bandwidth",
                           .of = "copy"}}},
           {.name = "One token",
            .how = "256 launches of one token, L2 warm",
            .filters = {{"positions_way", "way", "{}", "one by one", "launched"}},
            .plots = {Bars{.id = "positions_launches",
                           .unit = "µs",
                           .rows = {.table = "launches"},
                           .label = "rung",
                           .value = "each",
                           .low = "",
                           .high = "",
                           .fraction = "",
                           .note = "{times}× an empty kernel"}},
            .needs = "launches"}}};
}

}  // namespace tilestep::scenes
