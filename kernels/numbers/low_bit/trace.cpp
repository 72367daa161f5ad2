#include <nlohmann/json.hpp>

#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/source.hpp"
#include "kernels/numbers/low_bit/lesson.hpp"

namespace tilestep::low_bit {
namespace {

lab::Fields<GroupTrace> group_fields() {
  return lab::Fields<GroupTrace>()
      .real(TILESTEP_MEMBERS(GroupTrace, low, high))
      .from_here({0, 1})
      .real(TILESTEP_MEMBERS(GroupTrace, wanted, step, offset))
      .whole("zero", &GroupTrace::zero, 0, 15)
      .from_here({0, 2})
      .real(TILESTEP_MEMBERS(GroupTrace, worst, rms))
      .whole(TILESTEP_MEMBERS(GroupTrace, nothing, cut), 0, kWeightCount);
}

lab::Fields<Ledger> ledger_fields() {
  return lab::Fields<Ledger>()
      .from_here(lab::kAhead)
      .name("format", &Ledger::format)
      .name("group", &Ledger::group)
      .real("bits", &Ledger::bits)
      .from_here({0, 0})
      .real(TILESTEP_MEMBERS(Ledger, weight_error, product_error, divergence));
}

lab::Fields<Way> way_fields() {
  return lab::Fields<Way>().whole(
      TILESTEP_MEMBERS(Way, codes, scales, written, read_back, numbers, fmas), 0, lab::kMostCount);
}

lab::Fields<Wronged> wronged_fields() {
  return lab::Fields<Wronged>()
      .from_here({0, 1})
      .real("own_step", &Wronged::own_step)
      .from_here({0, 2})
      .real(TILESTEP_MEMBERS(Wronged, own_rms, step, offset));
}

lab::Fields<RecipeStep> recipe_fields() {
  return lab::Fields<RecipeStep>()
      .real(TILESTEP_MEMBERS(RecipeStep, at, error, plain))
      .reals(TILESTEP_MEMBERS(RecipeStep, first, second), kRecipeInputs);
}
std::string recipe_fault(const Trace& trace) {
  const bool none = trace.recipe == Recipe::none;
  return none == trace.recipe_steps.empty() ? "" : "has a recipe without its steps";
}

constexpr auto kRows = [](const Trace& trace) { return trace.has_product() ? kMatrix.rows : 0; };
constexpr auto kWrongRows = [](const Trace& trace) { return trace.is_wrong() ? kRows(trace) : 0; };
constexpr auto kWrongGroups = [](const Trace& trace) { return trace.is_wrong() ? trace.steps : 0; };

/// The step after the groups, if there is one: first W's way, then y.
lab::When with_y(const Trace& trace) {
  return trace.has_product() ? lab::When{trace.steps + 1, 1} : lab::When{trace.steps, 2};
}
constexpr auto kEachWithY = [](const Trace& trace, std::size_t) { return with_y(trace); };

std::string ways_fault(const Trace& trace) {
  const std::size_t want = trace.broken == Break::unfused ? 2 : 1;
  const bool none = trace.broken == Break::none && trace.ways.empty();
  return none || trace.ways.size() == want ? "" : "has another number of ways than its kernels";
}
std::string rows_fault(const Trace& trace) {
  const bool all = std::ssize(trace.exact) == kRows(trace) && std::ssize(trace.y) == kRows(trace) &&
                   std::ssize(trace.sound_y) == kWrongRows(trace);
  return all ? "" : "lacks rows of its product";
}
/// `wronged` of a run that is right.
nlohmann::json nothing_wronged() {
  nlohmann::json columns = nlohmann::json::object();
  for (const char* name : {"own_step", "own_rms", "step", "offset"}) {
    columns[name] = nlohmann::json::array();
  }
  return columns;
}
std::string wronged_fault(const Trace& trace) {
  return std::ssize(trace.wronged) == kWrongGroups(trace) ? "" : "lacks what was broken";
}

lab::When with_its_group(const Trace& trace, std::size_t weight) {
  return {trace.group_at(static_cast<int>(weight)) + 1, 2};
}

}  // namespace

std::array<int, 3> phase_lines(Format format) {
  const lab::SourceMarks& marks = lab::source_marks(kSourcePath);
  return format == Format::q4_k ? marks.lines({"range_q4_k", "scale_q4_k", "codes_q4_k"})
                                : marks.lines({"range", "scale", "codes"});
}

std::array<int, 2> product_lines(bool fused) {
  const lab::SourceMarks& marks = lab::source_marks(kProductPath);
  return fused ? marks.lines({"numbers", "multiply"})
               : marks.lines({"read_numbers", "multiply_numbers"});
}

TILESTEP_TRACE_JSON("low-bit trace",
                    lab::Fields<Trace>()
                        .name("format", &Trace::format)
                        .name("group", &Trace::group)
                        .whole("steps", &Trace::steps, 1, kWeightCount / 16)
                        .constant("source", kSourcePath)
                        .lines("lines", &Trace::lines,
                               [](const Trace& trace) { return phase_lines(trace.format); })
                        .reals("weights", &Trace::weights, kWeightCount)
                        .wholes("codes", &Trace::codes, kWeightCount, 0, 255)
                        .known_each(with_its_group)
                        .reals("values", &Trace::values, kWeightCount)
                        .known_each(with_its_group)
                        .columns("groups", &Trace::groups, group_fields(), &Trace::steps)
                        .known_each(lab::kOneAStep)
                        .columns("formats", &Trace::formats, ledger_fields(), kFormats)
                        .known_each(kEachWithY)
                        .name("broken", &Trace::broken)
                        .left_out_for("none")
                        .list("ways", &Trace::ways, way_fields())
                        .left_out_for(nlohmann::json::array())
                        .known_each([](const Trace& trace, std::size_t) {
                          return lab::When{trace.steps + 1, 0};
                        })
                        .check(ways_fault)
                        .columns("wronged", &Trace::wronged, wronged_fields(), kWrongGroups)
                        .left_out_for(nothing_wronged())
                        .known_each(lab::kOneAStep)
                        .check(wronged_fault)
                        .reals("exact", &Trace::exact, kRows)
                        .left_out_for(nlohmann::json::array())
                        .known_each(kEachWithY)
                        .reals("y", &Trace::y, kRows)
                        .left_out_for(nlohmann::json::array())
                        .known_each(kEachWithY)
                        .reals("sound_y", &Trace::sound_y, kWrongRows)
                        .left_out_for(nlohmann::json::array())
                        .known_each(kEachWithY)
                        .check(rows_fault)
                        .name("recipe", &Trace::recipe)
                        .left_out_for("none")
                        .list("recipe_steps", &Trace::recipe_steps, recipe_fields())
                        .left_out_for(nlohmann::json::array())
                        .known_each(lab::kOneAStep)
                        .check(recipe_fault))

}  // namespace tilestep::low_bit
