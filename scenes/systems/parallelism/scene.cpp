#include "scenes/systems/parallelism/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace parallelism;
using words::counted, words::percent, words::significant;

StepAxis ParallelismScene::loaded(const Trace&) {
  find_events();
  return {trace_.length(), parallelism::kPhases, "beat", {"send", "arrive"}, ""};
}

// ---- where the cursor is ------------------------------------------------------------------------------

int ParallelismScene::done(Cursor cursor) const {
  return std::clamp(arrived(cursor) ? cursor.tile : cursor.tile - 1, 0, trace_.beats());
}
int ParallelismScene::sent(Cursor cursor) const {
  return std::clamp(cursor.tile, 0, trace_.beats());
}

/// Whose numbers a rank has in a chunk. At the end it is what it went on with.
int ParallelismScene::marks_at(Cursor cursor, int rank, int chunk) const {
  if (done(cursor) == trace_.beats() && trace_.waits.empty()) return trace_.used_at(rank, chunk);
  return trace_.held_at(done(cursor), rank, chunk);
}

double ParallelismScene::chunk_bytes(int chunk) const {
  if (chunk < 0) return trace_.message;
  const int packs = trace_.message / 16;
  return 16.0 *
         (part_begin(packs, trace_.ranks, chunk + 1) - part_begin(packs, trace_.ranks, chunk));
}

double ParallelismScene::sent_by(int rank, Cursor cursor) const {
  double bytes = 0;
  for (const Sent& one : trace_.sent) {
    if (one.from == rank && one.beat < sent(cursor)) bytes += chunk_bytes(one.chunk);
  }
  return bytes;
}
double ParallelismScene::sent_in_all() const {
  double most = 0;
  for (int rank = 0; rank < trace_.ranks; ++rank) {
    double its = 0;
    for (int to = 0; to < trace_.ranks; ++to) its += trace_.link_at(rank, to);
    most = std::max(most, its);
  }
  return most;
}

double ParallelismScene::memory_of(Kind kind, int rank) const {
  return trace_.memory[at(static_cast<int>(kind) * trace_.ranks + rank)];
}

// ---- words --------------------------------------------------------------------------------------------

std::string ParallelismScene::beat_words(Cursor cursor) const {
  const int beat = cursor.tile - 1, n = trace_.ranks;
  if (trace_.sent.empty()) return "The all-reduce was never called: nothing is sent.";
  const auto first = std::find_if(trace_.sent.begin(), trace_.sent.end(),
                                  [beat](const Sent& one) { return one.beat == beat; });
  if (first == trace_.sent.end()) return "Nothing is sent: all ranks wait.";
  const std::string name = fmt::format("Beat {} of {}", cursor.tile, trace_.beats());
  const bool all = first->chunk < 0;
  if (!arrived(cursor)) {
    const auto count = std::count_if(trace_.sent.begin(), trace_.sent.end(),
                                     [beat](const Sent& one) { return one.beat == beat; });
    if (all)
      return fmt::format("{}: {} {} sent, {} bytes each.", name, counted(count, "whole message"),
                         count == 1 ? "is" : "are", trace_.message);
    return fmt::format(
        "{}: each rank sends a chunk of {} bytes to the next; rank {} sends chunk {}.", name,
        significant(chunk_bytes(first->chunk), 4), first->from, first->chunk);
  }
  const int marks = marks_at(cursor, first->to, std::max(first->chunk, 0));
  if (marks < 0) return fmt::format("{}: rank {} has no sum.", name, first->to);
  int counts = 0, most = 0;
  for (int rank = 0; rank < n; ++rank) {
    counts += times_in(marks, rank) > 0 ? 1 : 0;
    most = std::max(most, times_in(marks, rank));
  }
  const std::string what = all ? fmt::format("rank {}'s message", first->to)
                               : fmt::format("chunk {} at rank {}", first->chunk, first->to);
  if (most > 1) return fmt::format("{}: in {} a rank's numbers count twice.", name, what);
  return fmt::format("{}: {} is now a sum of {}.", name, what, counted(counts, "rank"));
}

std::string ParallelismScene::part_words(Kind kind) const {
  double most = 0;
  for (int rank = 0; rank < trace_.ranks; ++rank) most = std::max(most, memory_of(kind, rank));
  const ModelShape model = small_model(trace_.cut, trace_.ranks, trace_.schedule);
  const double share = most / (4.0 * static_cast<double>(model.layers * model.layer()));
  return share >= 0.999 ? std::string("all") : percent(share);
}

std::string ParallelismScene::sentence(Cursor cursor) const {
  if (cursor.tile <= 0)
    return fmt::format("{} ranks have {} bytes each, and all need the sum of all.", trace_.ranks,
                       trace_.message);
  if (in_beats(cursor)) {
    if (done(cursor) == trace_.beats() && !trace_.outcome.text.empty())
      return fmt::format("{}: {}.", name_of(trace_.broken), trace_.outcome.text);
    if (done(cursor) == trace_.beats())
      return fmt::format("All ranks have the sum of all; each sent at most {} bytes.",
                         significant(sent_in_all(), 5));
    return beat_words(cursor);
  }
  if (cursor.tile == trace_.cut_step()) {
    int forward = 0, backward = 0;
    std::vector<double> sent(at(trace_.ranks));
    for (const CutCall& call : trace_.calls) {
      (call.backward ? backward : forward) += 1;
      for (std::size_t rank = 0; rank < sent.size(); ++rank) sent[rank] += call.bytes[rank];
    }
    const double bytes = *std::max_element(sent.begin(), sent.end());
    if (!arrived(cursor))
      return fmt::format("Cut by {}: a rank holds {} of the parameters, and forward takes {}.",
                         name_of(trace_.cut), part_words(Kind::parameters),
                         counted(forward, "call"));
    return fmt::format("Backward takes {}; a rank sends at most {} bytes in a step, as planned.",
                       counted(backward, "call"), significant(bytes, 7));
  }
  if (cursor.tile == trace_.pipeline_step()) {
    const std::string share = percent(bubble_of(trace_.slots, trace_.ranks));
    if (!arrived(cursor))
      return fmt::format("{} through {}, forward: a stage waits for the one before.",
                         counted(trace_.microbatches, "microbatch", "microbatches"),
                         counted(stages_of(trace_.schedule, trace_.ranks), "stage"));
    return fmt::format("{}: ranks do nothing for {} of the time.", name_of(trace_.schedule), share);
  }
  if (!arrived(cursor))
    return fmt::format("32 layers on {} ranks, planned: what each cut needs of a rank's memory.",
                       trace_.ranks);
  return fmt::format("The same by time, on {}: computing, sending and waiting, one after another.",
                     name_of(trace_.link));
}

std::vector<picture::Symbol> ParallelismScene::symbols(const View&) const {
  return {};
}
std::vector<std::string> ParallelismScene::stage_knobs() const {
  return {"algorithm", "cut", "break"};
}

// ---- tables -------------------------------------------------------------------------------------------

Cursor ParallelismScene::known(const lab::Table& table, int row, int column) const {
  const int arrive = static_cast<int>(Phase::arrive);
  if (table.id == "sent") return {trace_.sent[at(row)].beat + 1, 0};
  if (table.id == "waits") return {trace_.beats(), arrive};
  if (table.id == "links") return column < 2 ? Cursor{} : Cursor{trace_.beats(), arrive};
  if (table.id == "memory") return column == 0 ? Cursor{} : Cursor{trace_.cut_step(), 0};
  if (table.id == "calls") return {trace_.cut_step(), trace_.calls[at(row)].backward ? arrive : 0};
  if (table.id == "plan") {
    if (column < 2) return {};
    return {trace_.length(), column == 2 ? 0 : arrive};
  }
  return Scene::known(table, row, column);
}

int ParallelismScene::table_row(std::string_view table_id, const View& view) const {
  if (table_id != "sent" || !in_beats(view.cursor)) return -1;
  for (std::size_t i = 0; i < trace_.sent.size(); ++i) {
    if (trace_.sent[i].beat + 1 == view.cursor.tile) return static_cast<int>(i);
  }
  return -1;
}

// ---- numbers beside the picture -------------------------------------------------------------------------

std::vector<Readout> ParallelismScene::readouts(const View& view) const {
  const Cursor cursor = view.cursor;
  std::vector<Readout> all;
  if (in_beats(cursor)) {
    double most = 0;
    for (int rank = 0; rank < trace_.ranks; ++rank) most = std::max(most, sent_by(rank, cursor));
    all.push_back({"sent", "sent by a rank", significant(most, 6), "B", lab::Provenance::traced,
                   "the most that a rank has stored in others' memory so far"});
    all.push_back({"beat", "beat", std::to_string(sent(cursor)),
                   fmt::format("of {}", trace_.beats()), lab::Provenance::traced,
                   "what happens at the same time on all ranks"});
  }
  if (cursor == Cursor{trace_.cut_step(), static_cast<int>(Phase::arrive)}) {
    all.push_back({"equal", "same bits as one rank", std::to_string(trace_.cut_equal),
                   fmt::format("of {}", trace_.cut_numbers), lab::Provenance::traced,
                   "numbers that leave the model; the others differ by the order of sums"});
  }
  if (in_beats(cursor) && done(cursor) == trace_.beats() && trace_.outcome.wrong > 0) {
    all.push_back({"wrong", "wrong numbers", std::to_string(trace_.outcome.wrong),
                   fmt::format("of {}", trace_.outcome.elements), lab::Provenance::traced,
                   "of all ranks' results, against double"});
    all.back().look = Readout::wrong;
  }
  if (cursor == Cursor{trace_.pipeline_step(), static_cast<int>(Phase::arrive)}) {
    all.push_back({"bubble", "idle", percent(bubble_of(trace_.slots, trace_.ranks)), "",
                   lab::Provenance::derived,
                   "share of the ranks' time, backward taking twice as long as forward"});
  }
  if (cursor.tile < trace_.length()) return all;
  const PlannedStep step = planned(trace_.cut, trace_.ranks, trace_.tokens, trace_.schedule,
                                   trace_.microbatches, trace_.link);
  all.push_back({"planned_memory", fmt::format("memory, {}", name_of(trace_.cut)),
                 significant(step.memory() * 1e-9, 3), "GB", lab::Provenance::derived,
                 "2 bytes a number, and 8 of Adam's moments for each parameter"});
  all.back().about = {"cut", static_cast<int>(trace_.cut)};
  if (arrived(cursor)) {
    all.push_back(
        {"planned_step", fmt::format("step, {}", name_of(trace_.cut)),
         significant(step.seconds() * 1e3, 3), "ms", lab::Provenance::derived,
         fmt::format("6 · weights · tokens / ({} ranks · {:.0f} TFLOP/s), and bytes sent / "
                     "{:.0f} GB/s, and idle",
                     trace_.ranks, kTeraflops, gb_per_s(trace_.link))});
    all.back().about = {"cut", static_cast<int>(trace_.cut)};
  }
  return all;
}

// ---- the kernel -----------------------------------------------------------------------------------------

SourceMark ParallelismScene::source(const View& view) const {
  const auto lines = parallelism::step_lines();
  const Cursor cursor = view.cursor;
  const int half = trace_.algorithm == Algorithm::ring ? trace_.ranks - 1 : trace_.beats();
  const int now = cursor.tile <= 0 || !in_beats(cursor) ? -1
                  : cursor.tile > half                  ? 2
                  : arrived(cursor)                     ? 1
                                                        : 0;
  SourceMark mark = source_mark(parallelism::kSourcePath, lines, now);
  const auto first = std::find_if(trace_.sent.begin(), trace_.sent.end(),
                                  [&](const Sent& one) { return one.beat + 1 == cursor.tile; });
  if (now < 0 || first == trace_.sent.end()) return mark;
  const std::string what = first->chunk < 0 ? "all" : fmt::format("chunk {}", first->chunk);
  mark.values[lines[at(now)]] =
      fmt::format("beat {}: {} from rank {} to {}", cursor.tile, what, first->from, first->to);
  return mark;
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(parallelism, ParallelismScene)
