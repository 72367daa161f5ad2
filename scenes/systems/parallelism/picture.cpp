// The picture of the lesson on many GPUs: ranks and their chunks; memory and calls of a cut; a pipeline; a planned step.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"
#include "scenes/systems/parallelism/scene.hpp"

namespace tilestep::scenes {

using namespace picture;
using parallelism::Cut, parallelism::CutCall, parallelism::Kind, parallelism::kKinds,
    parallelism::kMostRanks, parallelism::PlannedStep, parallelism::Sent, parallelism::Slot,
    parallelism::times_in;
using words::percent, words::significant;

namespace {

constexpr Name kRankNames[] = {"r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"};
constexpr std::uint8_t kKindTones[] = {1, 3, 10, 5, 11};
constexpr int kCuts = 7;
constexpr int kMostMicrobatches = 8;

/// A call's name without its place: "attention", "microbatch".
std::string group_of(const CutCall& call) {
  if (call.name.starts_with("microbatch")) return "microbatches";
  if (call.name.starts_with("gradient ")) return "their gradients";
  return call.name.substr(0, call.name.find(", layer"));
}

/// Many ranks stand in two rows, where they fill them.
int ranks_of_row(int ranks) {
  return ranks > 5 && ranks % 2 == 0 ? ranks / 2 : ranks;
}

Box page_gap() {
  return box({"gap"}, {}, {}, {.weight = 0, .least_height = 0.5f});
}

std::vector<std::string> rank_names(int ranks) {
  std::vector<std::string> names;
  for (int rank = 0; rank < ranks; ++rank) names.push_back(fmt::format("rank {}", rank));
  return names;
}
std::vector<std::string> cut_names() {
  std::vector<std::string> names;
  for (const Cut cut : all_of<Cut>()) names.emplace_back(name_of(cut));
  return names;
}

}  // namespace

/// What one rank would hold of the model that is cut.
parallelism::CutPlan ParallelismScene::alone() const {
  const auto model = parallelism::small_model(trace_.cut, trace_.ranks, trace_.schedule);
  return parallelism::plan_of(Cut::data, model, 1, trace_.schedule, trace_.microbatches, {});
}

Extent ParallelismScene::extent() const {
  const int n = trace_.ranks;
  double most = 0, step = 0, held = 0;
  for (const Cut cut : all_of<Cut>()) {
    const PlannedStep planned = parallelism::planned(cut, n, trace_.tokens, trace_.schedule,
                                                     trace_.microbatches, trace_.link);
    most = std::max(most, planned.memory() * 1e-9);
    step = std::max(step, planned.seconds() * 1e3);
  }
  for (const double bytes : alone().memory) held += bytes;
  std::vector<std::string> microbatches, chunks;
  for (int chunk = 0; chunk < n; ++chunk) chunks.push_back(std::to_string(chunk));
  for (int m = 1; m <= kMostMicrobatches; ++m) microbatches.push_back(std::to_string(m));
  const int backs = 6 * trace_.microbatches + 6 * n;
  return {
      {{.name = "whose", .kind = Axis::band, .count = n, .least_slot = 6},
       {.name = "chunk", .kind = Axis::band, .count = n, .ticks = true, .least_slot = 8},
       {.name = "rank", .kind = Axis::band, .count = n, .names = rank_names(n), .least_slot = 14},
       {.name = "sent",
        .high = rounded(0, std::max(2.0, n - 1.0) * trace_.message).second,
        .title = text("bytes sent"),
        .ticks = true},
       {.name = "memory_bytes",
        .high = rounded(0, 1.05 * held).second,
        .title = text("bytes"),
        .ticks = true},
       {.name = "time", .high = static_cast<double>(backs), .title = text("time"), .ticks = true},
       {.name = "microbatches",
        .kind = Axis::band,
        .count = kMostMicrobatches,
        .title = text("microbatches"),
        .ticks = true,
        .names = std::move(microbatches)},
       {.name = "idle", .high = 100, .fixed = true, .title = text("% of the time"), .ticks = true},
       {.name = "cut", .kind = Axis::band, .count = kCuts, .names = cut_names(), .least_slot = 14},
       {.name = "gb",
        .high = rounded(0, 1.1 * most).second,
        .title = text("GB per rank"),
        .ticks = true},
       {.name = "ms",
        .high = rounded(0, 1.1 * step).second,
        .title = text("ms per step"),
        .ticks = true}}};
}

Picture ParallelismScene::picture(const Extent& extent, const View& view) const {
  const Cursor cursor = view.cursor;
  Picture made{text(sentence(cursor)), extent.axes};
  const auto boxes = [&](int part, std::vector<Box> all) {
    all.insert(all.begin(), page_gap());
    made.root = column({"parallelism", part}, std::move(all));
  };
  if (in_beats(cursor)) {
    boxes(0, {ranks(cursor), bytes(cursor)});
    made.subject = {"ranks"};
  } else if (cursor.tile == trace_.cut_step()) {
    boxes(1, {memory(cursor), calls(cursor)});
    made.subject = {"memory", "calls"};
  } else if (cursor.tile == trace_.pipeline_step()) {
    boxes(2, {slots(cursor), bubbles(cursor)});
    made.subject = {"slots"};
  } else {
    boxes(3, {row({"plans"}, {planned_memory(), planned_time(cursor)})});
    made.subject = {"planned_memory", "planned_time"};
  }
  return made;
}

// ---- an all-reduce --------------------------------------------------------------------------------------

/// From the chunk that is sent to where it goes; in a deadlock, from who waits to whom for.
void ParallelismScene::add_arrows(Cursor cursor, std::vector<Mark>& marks) const {
  const int n = trace_.ranks, each = ranks_of_row(n);
  const bool ended = done(cursor) == trace_.beats();
  Links arrows{items("arrow", 0), {}, {}};
  arrows.items.glyph.all = 1;
  const int inset = ended && n > 2 ? 1 : 0;  // a wait begins and ends where it is seen
  const auto add = [&](int from, int to, int chunk) {
    // From the last cell of a row to the first one there.
    const auto place = [&](int rank) { return rank < each ? rank : 2 * each - 1 - rank; };
    const bool on = place(to) > place(from), across = place(to) == place(from);
    arrows.from.push_back({{kRankNames[from], chunk, across ? n / 2 : on ? n - 1 - inset : inset}});
    arrows.to.push_back({{kRankNames[to], chunk, across ? n / 2 : on ? inset : n - 1 - inset}});
    arrows.items.ids.push_back(from * kMostRanks + to);
    ++arrows.items.count;
  };
  arrows.items.state.all = ended ? State::wrong : State::current;
  if (ended) {
    for (const parallelism::Waits& one : trace_.waits) add(one.rank, one.from, one.call);
  }
  for (const Sent& one : trace_.sent) {
    if (!arrived(cursor) && one.beat + 1 == cursor.tile)
      add(one.from, one.to, std::max(one.chunk, 0));
  }
  if (arrows.items.count > 0) marks.emplace_back(std::move(arrows));
}

/// Chunks of a rank, a row each: a cell for each rank whose numbers are in the sum.
Box ParallelismScene::rank_box(Cursor cursor, int rank) const {
  const int n = trace_.ranks;
  Cells cells{items(kRankNames[rank], n * n)};
  cells.x = "whose";
  cells.y = "chunk";
  cells.columns = n;
  cells.items.per_row = n;
  const bool ended = done(cursor) == trace_.beats();
  std::vector<int> chunks;
  for (int chunk = 0; chunk < n; ++chunk) {
    const int marks = marks_at(cursor, rank, chunk);
    const int before =
        done(cursor) > 0 ? trace_.held_at(done(cursor) - 1, rank, chunk) : 1 << (3 * rank);
    const bool moves = !arrived(cursor) &&
                       std::any_of(trace_.sent.begin(), trace_.sent.end(), [&](const Sent& one) {
                         return one.beat + 1 == cursor.tile && one.from == rank &&
                                (one.chunk < 0 || one.chunk == chunk);
                       });
    for (int whose = 0; whose < n; ++whose) {
      const int count = times_in(marks, whose);
      const bool is_new = arrived(cursor) && count != times_in(before, whose);
      const bool wrong = (ended && trace_.waits.empty() && count != 1) || count > 1;
      cells.items.glyph.each.push_back(count > 0 ? kSolid : marks < 0 ? kStriped : kHollow);
      chunks.push_back(chunk);
      cells.items.tone.each.push_back(category_tone(chunk, n));
      cells.items.state.each.push_back(wrong             ? State::wrong
                                       : count == 0      ? State::to_come
                                       : is_new || moves ? State::current
                                                         : State::done);
      cells.items.names.push_back(count > 1                    ? fmt::format("{}×", count)
                                  : marks < 0                  ? std::string("–")
                                  : whose == rank && count > 0 ? std::to_string(chunk)
                                                               : std::string());
    }
  }
  cells.items.about = {{"chunk", {-1, std::move(chunks)}}};
  std::vector<Mark> marks_here = {std::move(cells)};
  if (rank == 0) add_arrows(cursor, marks_here);
  return labelled({"rank_box", rank},
                  box({"rank_cells", rank}, std::move(marks_here), {}, {.least_height = 4}),
                  text(fmt::format("rank {}", rank)),
                  {.least_width = 5, .least_height = 5, .place = Place::device_memory});
}

Box ParallelismScene::ranks(Cursor cursor) const {
  const int n = trace_.ranks, each = ranks_of_row(n);
  std::vector<Box> rows;
  for (int first = 0; first < n; first += each) {
    std::vector<Box> some;
    for (int rank = first; rank < std::min(first + each, n); ++rank)
      some.push_back(rank_box(cursor, rank));
    if (first > 0) std::reverse(some.begin(), some.end());  // a ring is seen as one
    rows.push_back(row({"rank_row", first}, std::move(some), {.even = true}));
  }
  Box made =
      column({"ranks"}, std::move(rows), {.weight = 3, .least_width = 14, .least_height = 6});
  made.label = text("whose numbers are in each chunk: a row per chunk, a column per rank",
                    "chunks of each rank", "chunks");
  return made;
}

Box ParallelismScene::bytes(Cursor cursor) const {
  Bars bars{items("sent_bytes", trace_.ranks), {}, "rank"};
  bars.x = "sent";
  for (int rank = 0; rank < trace_.ranks; ++rank) {
    const double bytes = sent_by(rank, cursor);
    bars.items.value.each.push_back(static_cast<float>(bytes));
    bars.items.names.push_back(significant(bytes, 5));
  }
  Rule message{{"message"},
               "sent",
               static_cast<double>(trace_.message),
               State::plain,
               text("the message", "message")};
  Rule twice{
      {"twice"}, "sent", 2.0 * trace_.message, State::plain, text("twice the message", "twice")};
  return labelled({"bytes"},
                  box({"byte_bars"}, {std::move(bars), std::move(message), std::move(twice)}, {},
                      {.least_height = 3, .left = 3.6f, .right = 3}),
                  text("bytes that each rank has sent", "sent"),
                  {.rank = 1, .weight = 1.2f, .least_width = 12, .least_height = 4});
}

// ---- a cut ----------------------------------------------------------------------------------------------

Box ParallelismScene::memory(Cursor) const {
  SpanList list("memory_span", "memory_bytes", "rank", "kind");
  Box bars =
      box({"memory_bars"}, {}, {}, {.weight = 3, .least_height = 3, .left = 3.6f, .right = 4});
  for (int rank = 0; rank < trace_.ranks; ++rank) {
    double at = 0;
    for (int kind = 0; kind < kKinds; ++kind) {
      const double bytes = memory_of(static_cast<Kind>(kind), rank);
      if (bytes <= 0) continue;
      list.add({rank, at, at + bytes, State::done, kKindTones[kind],
                std::string(name_of(static_cast<Kind>(kind))), kind, rank * kKinds + kind, 1});
      at += bytes;
    }
    bars.marks.emplace_back(lane_end({"memory_end", rank}, "memory_bytes", "rank", at,
                                     text(significant(at, 6) + " B")));
  }
  const parallelism::CutPlan one = alone();
  double all = 0;
  for (const double bytes : one.memory) all += bytes;
  bars.marks.insert(bars.marks.begin(), list.made(all));
  bars.marks.emplace_back(
      Rule{{"alone"}, "memory_bytes", all, State::plain, text("on one rank", "one rank")});
  Ledger table{
      items("kind_bytes", 2 * kKinds), {}, {text("rank 0"), text("one rank alone", "alone")}};
  table.items.per_row = 2;
  std::vector<int> kinds;
  for (int kind = 0; kind < kKinds; ++kind) {
    const auto its = static_cast<Kind>(kind);
    table.rows.push_back(text(std::string(name_of(its))));
    table.items.names.push_back(significant(memory_of(its, 0), 6));
    table.items.names.push_back(significant(one.memory_at(its, 1, 0), 6));
    for (int column = 0; column < 2; ++column) {
      table.items.tone.each.push_back(kKindTones[kind]);
      kinds.push_back(kind);
    }
  }
  table.items.about = {{"kind", {-1, std::move(kinds)}}};
  return labelled(
      {"memory"},
      {std::move(bars), box({"kind_table"}, {std::move(table)}, {},
                            {.rank = 1, .least_width = 14, .least_height = 5})},
      text(fmt::format("memory of each rank in bytes, cut by {}", name_of(trace_.cut)), "memory"),
      {.flow = Layout::row, .weight = 2.2f, .least_width = 14, .least_height = 4.2f});
}

Box ParallelismScene::calls(Cursor cursor) const {
  // Calls of one kind and pass are a row.
  struct Group {
    const CutCall* first = nullptr;
    std::vector<std::string> of = {};
    int count = 0;
    std::vector<double> bytes = {};  ///< by rank
  };
  std::vector<Group> groups;
  for (const CutCall& call : trace_.calls) {
    if (call.backward && !arrived(cursor)) continue;
    auto found = std::find_if(groups.begin(), groups.end(), [&](const Group& one) {
      return one.first->op == call.op && one.first->backward == call.backward;
    });
    if (found == groups.end()) found = groups.insert(groups.end(), {&call});
    const std::string name = group_of(call);
    if (std::find(found->of.begin(), found->of.end(), name) == found->of.end())
      found->of.push_back(name);
    ++found->count;
    found->bytes.resize(call.bytes.size());
    for (std::size_t rank = 0; rank < call.bytes.size(); ++rank)
      found->bytes[rank] += call.bytes[rank];
  }
  Ledger table{items("call", 0), {}, {text("pass"), text("times"), text("bytes")}};
  for (const Group& group : groups) {
    const std::string op(name_of(group.first->op));
    table.rows.push_back(text(op + ": " + words::joined(group.of), op));
    table.items.names.emplace_back(group.first->backward ? "backward" : "forward");
    table.items.names.push_back(std::to_string(group.count));
    table.items.names.push_back(
        significant(*std::max_element(group.bytes.begin(), group.bytes.end()), 6));
  }
  if (groups.empty()) {
    table.rows.push_back(text("none"));
    for (int i = 0; i < 3; ++i) table.items.names.emplace_back("–");
  }
  table.items.count = static_cast<int>(table.items.names.size());
  table.items.per_row = 3;
  return labelled({"calls"}, box({"call_table"}, {std::move(table)}, {}, {.least_height = 5}),
                  text("what the ranks do together, and the most bytes that one sends", "calls"),
                  {.weight = 1, .least_width = 14, .least_height = 6});
}

// ---- a pipeline -----------------------------------------------------------------------------------------

Box ParallelismScene::slots(Cursor cursor) const {
  SpanList list("slot", "time", "rank", "microbatch");
  double end = 0;
  for (std::size_t i = 0; i < trace_.slots.size(); ++i) {
    const Slot& slot = trace_.slots[i];
    if (slot.backward && !arrived(cursor)) continue;
    end = std::max(end, static_cast<double>(slot.end));
    list.add({slot.rank, static_cast<double>(slot.begin), static_cast<double>(slot.end),
              slot.backward ? State::done : State::plain, category_tone(slot.microbatch),
              fmt::format("{}{}", slot.backward ? "b" : "f", slot.microbatch + 1), slot.microbatch,
              static_cast<int>(i), 1});
  }
  return labelled(
      {"slots"}, box({"slot_lanes"}, {list.made(end)}, {}, {.least_height = 4, .left = 3.6f}),
      text("f: forward, b: backward, with the microbatch's number", "f and b by microbatch"),
      {.weight = 2, .least_width = 14, .least_height = 5});
}

Box ParallelismScene::bubbles(Cursor cursor) const {
  Bars bars{items("bubble", kMostMicrobatches), "microbatches", "idle"};
  for (int m = 1; m <= kMostMicrobatches; ++m) {
    const bool own = m == trace_.microbatches;
    const bool known = arrived(cursor);
    const double idle =
        100 * parallelism::bubble_of(
                  own ? trace_.slots : parallelism::pipeline_of(trace_.schedule, trace_.ranks, m),
                  trace_.ranks);
    bars.items.value.each.push_back(known ? static_cast<float>(idle) : 0.0f);
    bars.items.state.each.push_back(!known ? State::to_come : own ? State::current : State::done);
    bars.items.names.push_back(known ? significant(idle, 3) : "");
  }
  return labelled({"bubbles"},
                  box({"bubble_bars"}, {std::move(bars)}, {}, {.least_height = 4, .left = 3}),
                  text("idle, by the number of microbatches (derived)", "idle"),
                  {.rank = 1, .weight = 1, .least_width = 14, .least_height = 5});
}

// ---- a plan ---------------------------------------------------------------------------------------------

Box ParallelismScene::planned_memory() const {
  SpanList list("planned_span", "gb", "cut", "kind");
  std::vector<int> cuts;  // of each span
  Box bars = box({"planned_bars"}, {}, {}, {.least_height = 6, .left = 4.4f, .right = 4});
  double most = 0;
  for (const Cut cut : all_of<Cut>()) {
    const PlannedStep step = parallelism::planned(cut, trace_.ranks, trace_.tokens, trace_.schedule,
                                                  trace_.microbatches, trace_.link);
    const int lane = static_cast<int>(cut);
    double at = 0;
    for (int kind = 0; kind < kKinds; ++kind) {
      const double gb = step.bytes[static_cast<std::size_t>(kind)] * 1e-9;
      if (gb <= 0) continue;
      list.add({lane, at, at + gb, cut == trace_.cut ? State::plain : State::done, kKindTones[kind],
                std::string(name_of(static_cast<Kind>(kind))), kind, lane * kKinds + kind, 1});
      cuts.push_back(lane);
      at += gb;
    }
    most = std::max(most, at);
    bars.marks.emplace_back(
        lane_end({"planned_end", lane}, "gb", "cut", at, text(significant(at, 3) + " GB")));
  }
  Spans spans = list.made(most);
  spans.items.about.push_back({"cut", {-1, std::move(cuts)}});
  bars.marks.insert(bars.marks.begin(), std::move(spans));
  return labelled({"planned_memory"}, std::move(bars), text("memory of a rank (derived)", "memory"),
                  {.weight = 1, .least_width = 12, .least_height = 8});
}

Box ParallelismScene::planned_time(Cursor cursor) const {
  SpanList list("time_span", "ms", "cut", "what");
  std::vector<int> cuts;  // of each span
  Box bars = box({"time_bars"}, {}, {}, {.least_height = 6, .left = 4.4f, .right = 4});
  constexpr std::uint8_t kTones[] = {1, 9, 0};
  constexpr const char* kNames[] = {"compute", "wire", "idle"};
  double most = 0;
  for (const Cut cut : all_of<Cut>()) {
    if (!arrived(cursor)) break;
    const PlannedStep step = parallelism::planned(cut, trace_.ranks, trace_.tokens, trace_.schedule,
                                                  trace_.microbatches, trace_.link);
    const int lane = static_cast<int>(cut);
    double at = 0;
    const double parts[] = {step.compute, step.wire, step.idle};
    for (int part = 0; part < 3; ++part) {
      const double ms = 1e3 * parts[part];
      if (ms <= 0) continue;
      list.add({lane, at, at + ms, part == 2 ? State::wasted : State::done, kTones[part],
                kNames[part], part, lane * 3 + part, 1});
      cuts.push_back(lane);
      at += ms;
    }
    most = std::max(most, at);
    bars.marks.emplace_back(
        lane_end({"time_end", lane}, "ms", "cut", at, text(significant(at, 3) + " ms")));
  }
  Spans spans = list.made(most);
  spans.items.about.push_back({"cut", {-1, std::move(cuts)}});
  bars.marks.insert(bars.marks.begin(), std::move(spans));
  return labelled({"planned_time"}, std::move(bars),
                  text(fmt::format("time of a step on {} (derived)", name_of(trace_.link)), "time"),
                  {.weight = 1, .least_width = 12, .least_height = 8});
}

// ---- explanations -------------------------------------------------------------------------------------------

std::string ParallelismScene::explain(const View& view, const Key& key) const {
  const int n = trace_.ranks;
  for (int rank = 0; rank < n; ++rank) {
    if (!key.is({kRankNames[rank]}) || key.i < 0 || key.i >= n || key.j < 0 || key.j >= n) continue;
    const int count = times_in(marks_at(view.cursor, rank, key.i), key.j);
    return fmt::format("chunk {} at rank {}\nrank {}'s numbers: {}", key.i, rank, key.j,
                       count == 0 ? std::string("not in it") : words::times(count));
  }
  if (key.is({"slot"}) && key.i >= 0 && key.i < static_cast<int>(trace_.slots.size())) {
    const Slot& slot = trace_.slots[static_cast<std::size_t>(key.i)];
    return fmt::format("microbatch {}, {} in stage {}", slot.microbatch + 1,
                       slot.backward ? "backward" : "forward", slot.stage + 1);
  }
  return {};
}

}  // namespace tilestep::scenes
