// The trace as JSON, and what follows from it.

#include "kernels/attention/flash_attention/lesson.hpp"
#include "kernels/attention/shared/matrix_fields.hpp"

namespace tilestep::flash_attention {
namespace {

lab::Fields<QuantizedRow> quantized_fields(const Trace& trace) {
  const lab::When end = at_end(trace);
  const auto at_the_end = [end](const QuantizedRow&) { return end; };
  return lab::Fields<QuantizedRow>(lab::Digits::all)
      .name("format", &QuantizedRow::format)
      .flag("smooth_k", &QuantizedRow::smooth_k)
      .real("score_rms", &QuantizedRow::score_rms)
      .known(at_the_end)
      .real("o_rms", &QuantizedRow::o_rms)
      .known(at_the_end)
      .real("o_largest", &QuantizedRow::o_largest)
      .known(at_the_end);
}

std::int64_t length_or_none(const Trace& trace, bool there) {
  return there ? trace.shape.length : 0;
}
bool has_scores(const Trace& trace) {
  return trace.runs == Variant::naive || trace.broken == Break::materialize;
}

lab::Fields<Trace> trace_fields() {
  lab::Fields<Trace> fields = matrix_fields<Trace>();
  fields.name(TILESTEP_MEMBERS(Trace, asked, runs))
      .text("instead", &Trace::instead)
      .name("dtype", &Trace::dtype)
      .flag("smooth_k", &Trace::smooth_k)
      .name(TILESTEP_MEMBERS(Trace, data, score_mod))
      .columns(
          "steps", &Trace::steps,
          [](const Trace& t) { return softmax_fields<Step>(t).real("o", &Step::o); },
          lab::kAnyCount)
      .known_each(lab::kOneAStep)
      .flag("o_recorded", &Trace::o_recorded)
      .reals("scores", &Trace::scores,
             [](const Trace& t) { return length_or_none(t, has_scores(t)); })
      .reals("weights", &Trace::weights,
             [](const Trace& t) {
               return length_or_none(t, has_scores(t) && t.runs == Variant::naive);
             })
      .object("answer", &Trace::answer,
              [](const Trace& t) {
                return attention::answer_fields<Answer>(t, at_end(t))
                    .reals("o_after", &Answer::o_after, t.steps.size())
                    .known_each(lab::kOneAStep);
              })
      .list("quantized", &Trace::quantized, quantized_fields)
      .check([](const Trace& t) -> std::string {
        const std::size_t due = is_quantized(t.dtype) ? kQuantizedRows : 0;
        return t.quantized.size() == due ? "" : "there are not the formats that there should be";
      })
      .lines("lines", &Trace::lines, [](const Trace& t) { return mark_lines(t.runs, t.dtype); });
  return std::move(with_visits(fields));
}

}  // namespace

std::string name_of_row(const QuantizedRow& row) {
  return std::string(name_of(row.format)) + (row.smooth_k ? ", smoothed K" : "");
}

std::array<int, kMarks> mark_lines(Variant variant, DataType dtype) {
  return lines_of<Mark, kMarks>(source_path(variant, dtype));
}

TILESTEP_TRACE_JSON("flash-attention trace", trace_fields())

}  // namespace tilestep::flash_attention
