// The trace as JSON.

#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/source.hpp"
#include "kernels/systems/parallelism/lesson.hpp"

namespace tilestep::parallelism {
namespace {

constexpr int kSend = static_cast<int>(Phase::send), kArrive = static_cast<int>(Phase::arrive);
constexpr int kMostCalls = 8;

lab::Fields<Sent> sent_fields() {
  return lab::Fields<Sent>()
      .whole("beat", &Sent::beat, 0, 64)
      .whole(TILESTEP_MEMBERS(Sent, from, to), 0, kMostRanks - 1)
      .whole("chunk", &Sent::chunk, -1, kMostRanks - 1);
}
lab::Fields<Waits> waits_fields() {
  return lab::Fields<Waits>()
      .whole(TILESTEP_MEMBERS(Waits, rank, from), 0, kMostRanks - 1)
      .whole("call", &Waits::call, 0, kMostCalls)
      .whole("other_call", &Waits::other_call, -1, kMostCalls);
}
lab::Fields<Outcome> outcome_fields() {
  return lab::Fields<Outcome>()
      .text("text", &Outcome::text)
      .whole(TILESTEP_MEMBERS(Outcome, wrong, elements), 0, lab::kMostCount);
}
lab::Fields<CutCall> call_fields() {
  return lab::Fields<CutCall>()
      .text("name", &CutCall::name)
      .name("op", &CutCall::op)
      .flag("backward", &CutCall::backward)
      .reals("bytes", &CutCall::bytes, lab::kAnyCount);
}
lab::Fields<Slot> slot_fields() {
  return lab::Fields<Slot>()
      .whole("rank", &Slot::rank, 0, kMostRanks - 1)
      .whole(TILESTEP_MEMBERS(Slot, stage, microbatch), 0, 64)
      .flag("backward", &Slot::backward)
      .whole(TILESTEP_MEMBERS(Slot, begin, end), 0, lab::kMostCount);
}

lab::When when_summed(const Trace& trace) {
  return {trace.beats(), kArrive};
}
lab::When when_held(const Trace& trace, std::size_t at) {
  const auto beat = static_cast<int>(at) / (trace.ranks * trace.ranks);
  return beat == 0 ? lab::When{} : lab::When{beat, kArrive};
}
lab::When when_cut(const Trace& trace) {
  return {trace.cut_step(), kSend};
}
int of_held(const Trace& trace) {
  return (trace.beats() + 1) * trace.ranks * trace.ranks;
}
int of_pairs(const Trace& trace) {
  return trace.ranks * trace.ranks;
}
int of_memory(const Trace& trace) {
  return kKinds * trace.ranks;
}

/// Ranks, chunks and microbatches that there are not.
std::string beyond(const Trace& trace) {
  const auto is_rank = [&](int rank) { return rank < trace.ranks; };
  bool good = true;
  for (const Sent& one : trace.sent)
    good = good && is_rank(one.from) && is_rank(one.to) && is_rank(one.chunk);
  for (const Waits& one : trace.waits) good = good && is_rank(one.rank) && is_rank(one.from);
  for (const CutCall& one : trace.calls) good = good && std::ssize(one.bytes) == trace.ranks;
  for (const Slot& one : trace.slots)
    good = good && is_rank(one.rank) && one.microbatch < trace.microbatches && one.begin < one.end;
  return good ? "" : "names a rank, chunk or microbatch that there is not";
}

lab::Fields<Trace> trace_fields() {
  return lab::Fields<Trace>()
      .name(TILESTEP_MEMBERS(Trace, algorithm, broken, cut, schedule, link))
      .whole("ranks", &Trace::ranks, 2, kMostRanks)
      .whole("message", &Trace::message, 16, lab::kMostCount)
      .whole("microbatches", &Trace::microbatches, 1, 8)
      .whole("tokens", &Trace::tokens, 1, lab::kMostCount)
      .list("sent", &Trace::sent, sent_fields(), lab::kAnyCount)
      .known_each([](const Trace& trace, std::size_t at) {
        return lab::When{trace.sent[at].beat + 1, kSend};
      })
      .wholes("held", &Trace::held, of_held, -1, (1 << 24) - 1)
      .known_each(when_held)
      .wholes("used", &Trace::used, of_pairs, -1, (1 << 24) - 1)
      .known_each([](const Trace& trace, std::size_t) { return when_summed(trace); })
      .reals("links", &Trace::links, of_pairs)
      .known_each([](const Trace& trace, std::size_t) { return when_summed(trace); })
      .list("waits", &Trace::waits, waits_fields(), lab::kAnyCount)
      .known_each([](const Trace& trace, std::size_t) { return when_summed(trace); })
      .object("outcome", &Trace::outcome, outcome_fields())
      .known(when_summed,
             [](const Trace&, const lab::Change&) {
               return outcome_fields().to_json(Outcome{"something else", 1, 2});
             })
      .reals("memory", &Trace::memory, of_memory)
      .known_each([](const Trace& trace, std::size_t) { return when_cut(trace); })
      .list("calls", &Trace::calls, call_fields(), lab::kAnyCount)
      .known_each([](const Trace& trace, std::size_t at) {
        return lab::When{trace.cut_step(), trace.calls[at].backward ? kArrive : kSend};
      })
      .real("cut_error", &Trace::cut_error)
      .known([](const Trace& trace) {
        return lab::When{trace.cut_step(), kArrive};
      })
      .whole(TILESTEP_MEMBERS(Trace, cut_equal, cut_numbers), 0, lab::kMostCount)
      .known([](const Trace& trace) {
        return lab::When{trace.cut_step(), kArrive};
      })
      .list("slots", &Trace::slots, slot_fields(), lab::kAnyCount)
      .known_each([](const Trace& trace, std::size_t) {
        return lab::When{trace.pipeline_step(), kSend};
      })
      .check(beyond);
}

}  // namespace

bool Trace::operator==(const Trace& other) const {
  return to_json(*this) == to_json(other);
}

std::array<int, 3> step_lines() {
  return lab::source_marks(kSourcePath).lines({"send", "add", "gather"});
}

TILESTEP_TRACE_JSON("parallelism trace", trace_fields())

}  // namespace tilestep::parallelism
