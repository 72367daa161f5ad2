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

lab::When with_its_group(const Trace& trace, std::size_t weight) {
  return {trace.group_at(static_cast<int>(weight)) + 1, 2};
}

}  // namespace

std::array<int, 3> phase_lines(Format format) {
  const lab::SourceMarks& marks = lab::source_marks(kSourcePath);
  return format == Format::q4_k ? marks.lines({"range_q4_k", "scale_q4_k", "codes_q4_k"})
                                : marks.lines({"range", "scale", "codes"});
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
                        .known_each([](const Trace& trace, std::size_t) {
                          return lab::When{trace.steps, 2};
                        }))

}  // namespace tilestep::low_bit
