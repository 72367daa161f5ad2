#pragma once

/// \file
/// The JSON of what the traces of all lessons on attention have.

#include "kernels/attention/shared/matrix.hpp"
#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/source.hpp"

namespace tilestep::attention {

inline constexpr std::int64_t kMostClock = std::int64_t{1} << 50;
inline constexpr int kMostColumns = 256;

lab::Fields<Shape> shape_fields();
lab::Fields<Dispatch> plan_fields(const Shape& shape);
lab::Fields<TileVisit> visit_fields();
lab::Fields<BlockLane> block_fields();
lab::Fields<ChosenPlace> chosen_fields(const Matrix& trace);
lab::Fields<LedgerRow> ledger_fields();
lab::Fields<BrokenResult> result_fields(lab::When known);

/// Which tile comes when follows from the mask, and is known from the start.
template <class Step>
lab::Fields<Step> tile_fields(const Matrix& trace) {
  return lab::Fields<Step>()
      .whole("k_tile", &Step::k_tile, 0, trace.plan.k_tiles - 1)
      .from(lab::kAhead)
      .whole("order", &Step::order, 0, lab::kMostCount)
      .from(lab::kAhead)
      .name("kind", &Step::kind)
      .from(lab::kAhead);
}
template <class Step>
lab::Fields<Step> softmax_fields(const Matrix& trace) {
  return tile_fields<Step>(trace).real(
      TILESTEP_MEMBERS(Step, tile_max, m_before, m_after, rescale, tile_sum, l));
}
template <class Answer>
lab::Fields<Answer> answer_fields(const Matrix& trace, lab::When end) {
  const auto at_the_end = [end](const Answer&) { return end; };
  return lab::Fields<Answer>()
      .reals("o", &Answer::o, trace.shape.head_dim)
      .known(at_the_end)
      .reals("exact", &Answer::exact, trace.shape.head_dim)
      .known(at_the_end)
      .real("lse", &Answer::lse)
      .known(at_the_end)
      .real("exact_lse", &Answer::exact_lse)
      .known(at_the_end);
}

/// The lines of the source at `path` that have each of the marks; 0: it has no such mark.
template <class Mark, std::size_t kMarks>
std::array<int, kMarks> lines_of(std::string_view path) {
  const auto marks = lab::source_marks(path).all();
  const auto names = names_of(Mark{});
  static_assert(names_of(Mark{}).size() == kMarks);
  std::array<int, kMarks> lines{};
  for (std::size_t i = 0; i < kMarks; ++i) {
    if (const auto found = marks.find(names[i]); found != marks.end()) lines[i] = found->second;
  }
  return lines;
}

/// When the last step of a trace is through.
template <class Trace>
lab::When at_end(const Trace& trace) {
  return {static_cast<int>(trace.steps.size()), 0};
}

/// What is known before the steps are read: `Trace` is a Matrix with steps.
template <class Trace>
lab::Fields<Trace> matrix_fields() {
  return lab::Fields<Trace>()
      .object("shape", &Trace::shape, shape_fields())
      .object("plan", &Trace::plan, [](const Trace& t) { return plan_fields(t.shape); })
      .name("mask", &Trace::mask)
      .whole(TILESTEP_MEMBERS(Trace, window, sinks), 0,
             [](const Trace& t) { return t.shape.asked_length; })
      .wholes("documents", &Trace::documents, lab::kAnyCount, 1, kMostLength)
      .check([](const Trace& t) -> std::string {
        std::int64_t sum = 0;
        for (const int length : t.documents) sum += length;
        const int due = t.mask == Mask::document ? t.shape.asked_length : 0;
        return sum == due ? "" : "the documents do not fill the length";
      })
      .name("broken", &Trace::broken)
      .text("clock_unit", &Trace::clock_unit)
      .object("chosen", &Trace::chosen, [](const Trace& t) { return chosen_fields(t); });
}

/// What is known by them.
template <class Trace>
lab::Fields<Trace>& with_visits(lab::Fields<Trace>& fields) {
  return fields
      .columns("visits", &Trace::visits, visit_fields(),
               [](const Trace& t) { return std::int64_t{t.plan.q_tiles} * t.plan.k_tiles; })
      .known_each([](const Trace& t, std::size_t place) {
        return lab::When{step_of(t.steps, t.visits[place]), 0};
      })
      .columns("blocks", &Trace::blocks, block_fields(), lab::kAnyCount)
      .wholes(
          "wrong", &Trace::wrong, [](const Trace& t) { return t.plan.q_tiles; }, 0, lab::kMostCount)
      .known(at_end<Trace>)
      .list("ledger", &Trace::ledger, ledger_fields())
      .object("result", &Trace::result, [](const Trace& t) { return result_fields(at_end(t)); });
}

}  // namespace tilestep::attention
