// The trace as JSON.

#include <nlohmann/json.hpp>

#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/source.hpp"
#include "kernels/systems/fusion/lesson.hpp"

namespace tilestep::fusion {
namespace {

lab::Fields<Move> move_fields() {
  return lab::Fields<Move>()
      .whole("step", &Move::step, 0, kChain - 1)
      .name("tensor", &Move::tensor)
      .flag("stored", &Move::stored)
      .whole("bytes", &Move::bytes, 0, std::int64_t{1} << 40);
}

/// When a move of the chain is known: reads before writes.
lab::When when_moved(const Move& move) {
  return {move.step + 1, static_cast<int>(move.stored ? Phase::write : Phase::read)};
}

lab::When after(Step step, Phase phase) {
  return {static_cast<int>(step) + 1, static_cast<int>(phase)};
}

lab::Fields<RowStats> stats_fields() {
  return lab::Fields<RowStats>().real(TILESTEP_MEMBERS(RowStats, squares, inverse, largest, scale));
}

lab::Fields<Lane> lane_fields(const Trace& trace) {
  const int shown = trace.shown();
  const auto since = [](Step step) {
    return [step](const Lane&, std::size_t) { return after(step, Phase::compute); };
  };
  return lab::Fields<Lane>()
      .wholes("launch", &Lane::launch, kChain, 0, kChain - 1)
      .list("moves", &Lane::moves, move_fields())
      .known_each([](const Lane& lane, std::size_t i) { return when_moved(lane.moves[i]); })
      .reals("held", &Lane::held, shown)
      .known_each(since(Step::add))
      .reals("normed", &Lane::normed, shown)
      .known_each(since(Step::norm))
      .reals("codes", &Lane::codes, shown)
      .known_each(since(Step::quantize))
      .object("stats", &Lane::stats, stats_fields())
      .known([](const Lane&) { return after(Step::quantize, Phase::compute); },
             [](const Lane&, const lab::Change&) {
               return stats_fields().to_json(RowStats{3, 0.25f, 7, 0.5f});
             });
}

lab::Fields<Traffic> traffic_fields() {
  return lab::Fields<Traffic>()
      .text("tensor", &Traffic::tensor)
      .real("bytes", &Traffic::bytes)
      .flag("stored", &Traffic::stored)
      .flag("saved", &Traffic::saved);
}
lab::Fields<OpTrace> op_fields() {
  return lab::Fields<OpTrace>()
      .whole("kernel", &OpTrace::kernel, 0, kOps - 1)
      .from(lab::kAhead)
      .list("traffic", &OpTrace::traffic, traffic_fields());
}
lab::Fields<SeamTrace> seam_fields() {
  return lab::Fields<SeamTrace>()
      .flag("fused", &SeamTrace::fused)
      .text("refused", &SeamTrace::refused);
}
lab::Fields<Score> score_fields() {
  return lab::Fields<Score>()
      .whole("launches", &Score::launches, 1, kOps)
      .real("bytes", &Score::bytes);
}
lab::Fields<BrokenResult> result_fields() {
  return lab::Fields<BrokenResult>()
      .text("outcome", &BrokenResult::outcome)
      .whole(TILESTEP_MEMBERS(BrokenResult, wrong, elements), 0, lab::kMostCount);
}

lab::When at_end(const Trace& trace) {
  return {trace.length(), kPhases - 1};
}

lab::Fields<Trace> trace_fields() {
  return lab::Fields<Trace>()
      .whole("width", &Trace::width, 1, kMostWidth)
      .whole(TILESTEP_MEMBERS(Trace, rows, batch), 1, lab::kMostCount)
      .name("dtype", &Trace::dtype)
      .name("broken", &Trace::broken)
      .whole("threads", &Trace::threads, 32, kMostThreads)
      .whole("cluster", &Trace::cluster, 1, kMostCluster)
      .flag("in_shared", &Trace::in_shared)
      .constant("source", kSourcePath)
      .lines("lines", &Trace::lines, [](const Trace&) { return step_lines(); })
      .reals(TILESTEP_MEMBERS(Trace, x, residual), &Trace::shown)
      .object("unfused", &Trace::unfused, lane_fields)
      .object("fused", &Trace::fused, lane_fields)
      .list("seams", &Trace::seams, seam_fields(), kSeams)
      .list("ops", &Trace::ops, op_fields(), kOps)
      .known_each([](const Trace& trace, std::size_t op) {
        return lab::When{kChain + trace.ops[op].kernel + 1, 0};
      })
      .object("none", &Trace::none, score_fields())
      .object("own", &Trace::own, score_fields())
      .object("best", &Trace::best, score_fields())
      .known(at_end,
             [](const Trace&, const lab::Change&) {
               return score_fields().to_json(Score{2, 9.5});
             })
      .wholes("best_list", &Trace::best_list, lab::kAnyCount, 1, kSeams)
      .known(at_end)
      .object("result", &Trace::result, result_fields())
      .known([](const Trace&) { return after(Step::quantize, Phase::write); },
             [](const Trace&, const lab::Change&) {
               return result_fields().to_json(BrokenResult{"something else", 1, 2});
             });
}

}  // namespace

std::array<int, kChain> step_lines() {
  return lab::source_marks(kSourcePath).lines({"add", "norm", "quantize"});
}

std::int64_t Lane::bytes() const {
  std::int64_t sum = 0;
  for (const Move& one : moves) sum += is_counted(one.tensor) ? one.bytes : 0;
  return sum;
}

bool Trace::operator==(const Trace& other) const {
  return to_json(*this) == to_json(other);
}

TILESTEP_TRACE_JSON("fusion trace", trace_fields())

}  // namespace tilestep::fusion
