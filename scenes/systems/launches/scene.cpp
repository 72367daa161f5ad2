#include "scenes/systems/launches/scene.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/lab/source.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using launches::CallTrace, launches::How, launches::Mode, launches::Op, launches::StepTrace,
    launches::WorkTrace;
using simt::CallKind;
using words::counted;

StepAxis LaunchesScene::loaded(const launches::Trace&) {
  find_events();
  return {trace_.length(), 1, "beat", {""}};
}

// ---- where the cursor is ------------------------------------------------------------------------------

const CallTrace* LaunchesScene::call_at(int beat) const {
  const auto found = std::find_if(trace_.calls.begin(), trace_.calls.end(),
                                  [beat](const CallTrace& call) { return call.beat == beat; });
  return found == trace_.calls.end() ? nullptr : &*found;
}

std::vector<const WorkTrace*> LaunchesScene::works_at(int beat) const {
  std::vector<const WorkTrace*> all;
  for (const WorkTrace& work : trace_.works) {
    if (work.beat == beat) all.push_back(&work);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const WorkTrace* a, const WorkTrace* b) { return a->stream < b->stream; });
  return all;
}

int LaunchesScene::most_beats() const {
  int most = 1;
  for (const StepTrace& one : trace_.steps) {
    most = std::max(most, one.last_beat - one.first_beat + 1);
  }
  return most;
}

// What was submitted follows from calls: work that is not done yet is not known.
LaunchesScene::Launched LaunchesScene::launched(int place, Cursor cursor) const {
  Launched found;
  for (const launches::NodeTrace& node : trace_.nodes) {
    if (node.place == place && node.beat <= cursor.tile) found.reached = Reached::in_graph;
  }
  const std::string label = launches::label_at(place);
  for (const CallTrace& call : trace_.calls) {
    if (call.beat > cursor.tile || !in_step(call.beat, cursor) || call.captured) continue;
    const bool is_it = call.kind == CallKind::replay ||
                       (call.kind == CallKind::launch &&
                        (call.what == label || call.what == launches::kWholeStep));
    if (is_it) found.reached = Reached::submitted;
  }
  for (const WorkTrace& work : trace_.works) {
    if (work.beat > cursor.tile || !in_step(work.beat, cursor)) continue;
    if (work.place != place && work.what != launches::kWholeStep) continue;
    found.reached = work.beat == cursor.tile ? Reached::working : Reached::done;
    found.wrong = work.wrong;
  }
  return found;
}

int LaunchesScene::ahead(Cursor cursor) const {
  int count = 0;
  for (const CallTrace& call : trace_.calls) {
    if (call.beat > cursor.tile || call.captured) continue;
    if (call.kind == CallKind::upload || call.kind == CallKind::launch) ++count;
    if (call.kind == CallKind::replay) count += launches::launches_of(trace_.layers);
  }
  for (const WorkTrace& work : trace_.works) count -= work.beat <= cursor.tile ? 1 : 0;
  return count;
}

// ---- words --------------------------------------------------------------------------------------------

namespace {

std::string call_text(const CallTrace& call) {
  switch (call.kind) {
    case CallKind::upload:
      return "The host copies " + call.what + " to the device";
    case CallKind::launch:
      return call.captured ? "The host captures " + call.what : "The host launches " + call.what;
    case CallKind::record:
      return fmt::format("The host records {} in stream {}", call.what, call.stream + 1);
    case CallKind::wait:
      return fmt::format("Stream {} is to wait for {}", call.stream + 1, call.what);
    case CallKind::begin_capture:
      return "A capture begins: from here on nothing runs";
    case CallKind::end_capture:
      return fmt::format("The capture ends: {} is a list of launches and what they come after",
                         call.what);
    case CallKind::instantiate:
      return "The driver makes " + call.what + " ready to be started";
    case CallKind::update:
      return "The driver gives " + call.what + " the new arguments";
    case CallKind::set:
      return "The driver gives one node new arguments";
    case CallKind::replay:
      return "The host starts " + call.what + " with one call";
    case CallKind::synchronize:
      break;
  }
  return "The host waits for " + call.what;
}

}  // namespace

std::string LaunchesScene::sentence(Cursor cursor) const {
  const launches::ShapeTrace& shape = trace_.shape;
  const launches::Tiling tiling = shape.tiling();
  if (cursor.tile <= 0) {
    return fmt::format("A host has {} done, {}.",
                       counted(static_cast<std::int64_t>(trace_.steps.size()), "decode step"),
                       trace_.mode == Mode::eager      ? "kernel by kernel"
                       : trace_.mode == Mode::graph    ? "by a graph"
                       : trace_.mode == Mode::bucketed ? "by graphs for buckets of batch sizes"
                                                       : "by one persistent kernel");
  }
  if (cursor.tile == trace_.tiles_step()) {
    return fmt::format(
        "{} x {} in tiles of {} x {}: {}, of which {:.0f} % are wanted.", shape.m, shape.n,
        launches::kTileM, launches::kTileN, counted(tiling.tiles(), "tile"),
        100.0 * shape.m * shape.n /
            (static_cast<double>(tiling.tiles()) * launches::kTileM * launches::kTileN));
  }
  if (cursor.tile == trace_.waves_step()) {
    return fmt::format("{} multiprocessors take {} in {}.", launches::kMultiprocessors,
                       counted(tiling.tiles(), "tile"), counted(tiling.waves, "wave"));
  }
  if (cursor.tile >= trace_.dispatch_step()) {
    return fmt::format("The dispatcher takes {}: {}.", name_of(shape.kernel), shape.why);
  }
  const CallTrace* const call = call_at(cursor.tile);
  std::string said = call == nullptr ? "The host waits" : call_text(*call);
  std::vector<std::string> at_work;
  for (const WorkTrace* work : works_at(cursor.tile)) {
    at_work.push_back(work->kernel == "copy"          ? "the copy"
                      : work->kernel == "fill"        ? "the counter"
                      : work->kernel == "gate_single" ? work->what + " (single)"
                                                      : work->what);
  }
  if (!at_work.empty()) said += "; the device works on " + words::joined(at_work);
  const StepTrace& now = step_at(cursor);
  if (cursor.tile == now.last_beat && now.wrong > 0) {
    said += fmt::format("; {} of the step {} wrong", counted(now.wrong, "number"),
                        now.wrong == 1 ? "is" : "are");
  }
  return said + ".";
}

std::vector<picture::Symbol> LaunchesScene::symbols(const View&) const {
  return {
      {"norm", {"op", 1}, 11, "RMSNorm: a row divided by its root mean square, times gains.", {}},
      {"gate", {"op", 2}, 1, "The product whose silu multiplies up's.", {}},
      {"act", {"op", 4}, 8, "SwiGLU: silu(gate) · up, which needs both.", {}}};
}

std::vector<std::string> LaunchesScene::stage_knobs() const {
  return {"mode", "batches", "break"};
}

// ---- tables ---------------------------------------------------------------------------------------------

Cursor LaunchesScene::known(const lab::Table& table, int row, int column) const {
  const auto at = static_cast<std::size_t>(row);
  if (table.id == "calls") {
    return column == 0 ? Cursor{} : Cursor{trace_.calls[at].beat, 0};
  }
  if (table.id == "works") {
    return column == 0 ? Cursor{} : Cursor{trace_.works[at].beat, 0};
  }
  if (table.id == "steps") {
    const StepTrace& of = trace_.steps[at];
    if (column <= 1) return {};
    return {column <= 3 ? of.first_beat : of.last_beat, 0};
  }
  if (table.id == "choices")
    return row == 0 && column >= 5 ? Cursor{trace_.dispatch_step(), 0} : Cursor{};
  if (table.id == "amdahl") return {};
  return Scene::known(table, row, column);
}

int LaunchesScene::table_row(std::string_view table_id, const View& view) const {
  if (view.cursor.tile < 1 || !in_steps(view.cursor)) return -1;
  if (table_id == "steps") return step(view.cursor);
  if (table_id == "calls") {
    const CallTrace* const call = call_at(view.cursor.tile);
    return call == nullptr ? -1 : static_cast<int>(call - trace_.calls.data());
  }
  if (table_id == "works") {
    const auto works = works_at(view.cursor.tile);
    return works.empty() ? -1 : static_cast<int>(works.front() - trace_.works.data());
  }
  return -1;
}

// ---- numbers beside the picture -----------------------------------------------------------------------

std::vector<Readout> LaunchesScene::readouts(const View& view) const {
  const Cursor cursor = view.cursor;
  const int beat = std::min(cursor.tile, trace_.beats);
  int calls = 0, kernels = 0;
  for (const CallTrace& call : trace_.calls) calls += call.beat <= beat ? 1 : 0;
  for (const WorkTrace& work : trace_.works) {
    kernels += work.beat <= beat && work.kernel != "copy" && work.kernel != "fill" ? 1 : 0;
  }
  const std::string on = "by now, on " + report_.device.name;
  std::vector<Readout> all = {
      {"calls", "calls of the host", std::to_string(calls), "", lab::Provenance::traced,
       "to CUDA, of all decode steps " + on},
      {"kernels", "kernels done", std::to_string(kernels), "", lab::Provenance::traced, on},
      {"ahead", "submitted, not done", std::to_string(ahead({beat, 0})), "",
       lab::Provenance::traced, "launches and copies in the queues"}};
  for (const launches::FindingTrace& each : trace_.findings) {
    if (each.beat > cursor.tile) continue;
    Readout found{"mistake", "mistake", "named", "", lab::Provenance::traced, each.text};
    found.look = Readout::wrong;
    all.push_back(std::move(found));
    break;
  }
  if (in_steps(cursor)) return all;
  const launches::Tiling tiling = trace_.shape.tiling();
  all.push_back({"tiles", "tiles", std::to_string(tiling.tiles()), "", lab::Provenance::derived,
                 fmt::format("{} along m, {} along n", tiling.rows, tiling.columns)});
  if (cursor.tile >= trace_.waves_step()) {
    all.push_back({"waves", "waves", std::to_string(tiling.waves), "", lab::Provenance::derived,
                   fmt::format("of {} multiprocessors", launches::kMultiprocessors)});
    all.push_back({"filled", "filled",
                   words::percent(launches::filled(trace_.shape.m, trace_.shape.n, tiling)), "",
                   lab::Provenance::derived, "wanted numbers / room of the waves' tiles"});
  }
  return all;
}

// ---- the kernel -----------------------------------------------------------------------------------------

SourceMark LaunchesScene::source(const View& view) const {
  const Cursor cursor = view.cursor;
  if (trace_.mode == Mode::persistent) {
    SourceMark mark = source_mark(launches::kPersistentSource, trace_.persistent_lines, -1);
    for (const WorkTrace* work : works_at(cursor.tile)) {
      if (work->kernel == "persistent") mark.current = trace_.persistent_lines[0];
    }
    // What block 0 made in the last layer's phases, noted in the last step.
    for (std::size_t phase = 0; phase < trace_.persistent_lines.size(); ++phase) {
      const std::size_t at = trace_.phases.size() - trace_.persistent_lines.size() + phase;
      if (cursor.tile < trace_.beats || at >= trace_.phases.size()) continue;
      mark.values[trace_.persistent_lines[phase]] =
          fmt::format("{}[0] = {:.3g}", phase == 0 ? "a" : "h", trace_.phases[at]);
    }
    return mark;
  }
  SourceMark mark = source_mark(launches::kStepSource, trace_.lines, -1);
  for (const WorkTrace* work : works_at(cursor.tile)) {
    if (work->place < 0) continue;
    const int line = trace_.lines[static_cast<std::size_t>(launches::op_at(work->place))];
    if (mark.current == 0) mark.current = line;
    std::string& launched = mark.values[line];
    launched +=
        fmt::format("{}{}, call {}", launched.empty() ? "" : "; ", work->what, work->call + 1);
  }
  return mark;
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(launches, LaunchesScene)
