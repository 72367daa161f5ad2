// The trace as JSON.

#include <nlohmann/json.hpp>

#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/source.hpp"
#include "kernels/systems/triage/lesson.hpp"

namespace tilestep::triage {
namespace {

lab::Fields<Probe> probe_fields() {
  return lab::Fields<Probe>()
      .name("instrument", &Probe::instrument)
      .whole("step", &Probe::step, 1, kLoop);
}
lab::Fields<Row> row_fields(const Trace& trace) {
  return lab::Fields<Row>()
      .whole("look", &Row::look, 0, static_cast<int>(trace.looks.size()) - 1)
      .from(lab::kAhead)
      .text(TILESTEP_MEMBERS(Row, what, note))
      .whole("op", &Row::op, -1, kOps - 1)
      .whole("lane", &Row::lane, 0, 1)
      .real(TILESTEP_MEMBERS(Row, count, value, second));
}
lab::Fields<Verdict> verdict_fields() {
  return lab::Fields<Verdict>()
      .flag("applied", &Verdict::applied)
      .from(lab::kAhead)
      .real(TILESTEP_MEMBERS(Verdict, before_us, after_us, best_us, before_mb, after_mb,
                             before_launches, after_launches))
      .flag(TILESTEP_MEMBERS(Verdict, right_bottleneck, right_operator, right_cause))
      .whole("faults", &Verdict::faults, 1, 2)
      .from(lab::kAhead)
      .whole("fixed", &Verdict::fixed, 0, 2)
      .whole("points", &Verdict::points, 0, 100);
}

lab::Fields<Trace> trace_fields() {
  return lab::Fields<Trace>()
      .name("case", &Trace::which)
      .list("looks", &Trace::looks, probe_fields())
      .text("times_from", &Trace::times_from)
      .real(TILESTEP_MEMBERS(Trace, copy_gb_per_s, span, most_us, most_launches, most_calls,
                             most_intensity))
      .list("rows", &Trace::rows, row_fields)
      .known_each([](const Trace& trace, std::size_t i) {
        return lab::When{trace.rows[i].look + 1, 0};
      })
      .name("bottleneck", &Trace::bottleneck)
      .name("suspect", &Trace::suspect)
      .name("cause", &Trace::cause)
      .name("fix", &Trace::fix)
      .name("second", &Trace::second)
      .real("suspect_share", &Trace::suspect_share)
      .known([](const Trace& trace) {
        return lab::When{trace.diagnosis_step(), 0};
      })
      .object("verdict", &Trace::verdict, verdict_fields())
      .known([](const Trace& trace) {
        return lab::When{trace.verdict_step(), 0};
      })
      .lines("lines", &Trace::lines, [](const Trace&) { return op_lines(); });
}

}  // namespace

std::string_view source_of(Op op) {
  switch (op) {
    case Op::qkv:
    case Op::out:
    case Op::dequant:
    case Op::head:
      return kProductSource;
    case Op::store:
    case Op::attend:
    case Op::merge:
      return kAttendSource;
    default:
      return kBlockSource;
  }
}

std::array<int, kOps> op_lines() {
  const auto products = lab::source_marks(kProductSource),
             attend = lab::source_marks(kAttendSource), block = lab::source_marks(kBlockSource);
  std::array<int, kOps> lines{};
  const auto set = [&lines](Op op, int line) { lines[static_cast<std::size_t>(op)] = line; };
  set(Op::qkv, products.line("packs"));
  set(Op::out, products.line("packs"));
  set(Op::head, products.line("bytes"));
  set(Op::dequant, products.line("dequant"));
  set(Op::attend, attend.line("keys"));
  set(Op::embed, block.line("embed"));
  set(Op::norm, block.line("norm"));
  set(Op::route, block.line("route"));
  set(Op::up, block.line("expert"));
  set(Op::combine, block.line("add"));
  set(Op::move, block.line("move"));
  return lines;
}

TILESTEP_TRACE_JSON("triage trace", trace_fields())

}  // namespace tilestep::triage
