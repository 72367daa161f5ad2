// The picture of the lesson on launches: two lanes and more of beats, the step's kernels, the rows computed; then tiles,
// waves and choices.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"
#include "scenes/systems/launches/scene.hpp"

namespace tilestep::scenes {

using namespace picture;
using launches::CallTrace, launches::How, launches::kMostBatch, launches::Mode, launches::Op,
    launches::StepTrace, launches::WorkTrace;
using simt::CallKind;
using words::counted;

namespace {

/// Tones of the operations, on both lanes and in the grid.
constexpr std::uint8_t kOpTones[] = {9, 11, 1, 3, 8, 10, 5};
constexpr int kOps = 7;
constexpr double kMostSlower = 5;
constexpr double kShares[] = {0, 0.05, 0.1, 0.2, 0.4, 1};
constexpr int kShareCount = 6;

std::uint8_t tone_of(int place) {
  return place < 0 ? std::uint8_t{0} : kOpTones[static_cast<std::size_t>(launches::op_at(place))];
}

/// What a call is in a narrow bar.
std::string bar_text(const CallTrace& call) {
  switch (call.kind) {
    case CallKind::launch:
      return call.what == launches::kWholeStep ? "whole step"
                                               : call.what.substr(0, call.what.find(' '));
    case CallKind::upload:
      // "copy", or "copy2" where the host has another array.
      return "copy" + (call.what.find(' ') == std::string::npos
                           ? std::string()
                           : call.what.substr(call.what.find(' ') + 1));
    case CallKind::begin_capture:
      return "begin";
    case CallKind::end_capture:
      return "end";
    case CallKind::instantiate:
      return "ready";
    case CallKind::synchronize:
      return "sync";
    case CallKind::replay:
      return "graph";
    case CallKind::record:
      return "event";
    default:
      return std::string(name_of(call.kind));
  }
}

Box page_gap() {
  return box({"gap"}, {}, {}, {.rank = 2, .weight = 0, .least_height = 0.8f});
}

}  // namespace

Extent LaunchesScene::extent() const {
  const int steps = static_cast<int>(trace_.steps.size());
  const launches::Tiling tiling = trace_.shape.tiling();
  std::vector<std::string> step_names, shares, layers, beats;
  for (int i = 1; i <= trace_.layers; ++i) layers.push_back(fmt::format("layer {}", i));
  for (int i = 1; i <= most_beats(); ++i) beats.push_back(std::to_string(i));
  for (int i = 1; i <= steps; ++i) step_names.push_back(fmt::format("step {}", i));
  for (const double share : kShares) shares.push_back(fmt::format("{:.0f} %", 100 * share));
  std::vector<std::string> slots(kMostBatch);
  return {{{.name = "beat",
            .kind = Axis::band,
            .count = most_beats(),
            .ticks = true,
            .names = std::move(beats),
            .align = 0,
            .least_slot = 46},
           {.name = "lane",
            .kind = Axis::band,
            .count = 3,
            .names = {"host", "stream 1", "stream 2"},
            .least_slot = 14},
           {.name = "us",
            .high = std::max(trace_.span_us, 1.0),
            .fixed = true,
            .title = text("µs since the step's first call"),
            .ticks = true},
           {.name = "op",
            .kind = Axis::band,
            .count = kOps,
            .names = std::vector<std::string>(kOps),
            .least_slot = 12},
           {.name = "layer",
            .kind = Axis::band,
            .count = trace_.layers,
            .names = std::move(layers),
            .least_slot = 12},
           {.name = "step",
            .kind = Axis::band,
            .count = steps,
            .ticks = true,
            .names = std::move(step_names),
            .least_slot = 20},
           {.name = "row",
            .kind = Axis::band,
            .count = kMostBatch,
            .names = std::move(slots),
            .align = 0,
            .least_slot = 6},
           {.name = "tile_row", .kind = Axis::band, .count = tiling.rows, .least_slot = 3},
           {.name = "tile_column", .kind = Axis::band, .count = tiling.columns, .least_slot = 3},
           {.name = "m",
            .high = launches::kMostSide,
            .fixed = true,
            .title = text("rows of X, m"),
            .ticks = true},
           {.name = "waves", .high = 16, .fixed = true, .ticks = true},
           {.name = "share",
            .kind = Axis::band,
            .count = kShareCount,
            .ticks = true,
            .names = std::move(shares)},
           {.name = "times", .high = kMostSlower, .fixed = true, .step = 1, .ticks = true}}};
}

Picture LaunchesScene::picture(const Extent& extent, const View& view) const {
  const Cursor cursor = view.cursor;
  Text headline{marked(sentence(cursor), symbols(view))};
  if (in_steps(cursor)) {
    std::vector<Axis> axes = extent.axes;
    // The beats that led here are worth more than room for those to come.
    axes.front().focus = std::max(cursor.tile - step_at(cursor).first_beat - 3, 0);
    return {std::move(headline),
            std::move(axes),
            column({"launches"},
                   {page_gap(), lanes(cursor),
                    row({"below"}, {kernels(cursor), rows(cursor), steps_ledger(cursor)},
                        {.even = true, .weight = 3})},
                   {.even = true}),
            {"lanes", "kernels"}};
  }
  if (cursor.tile < trace_.dispatch_step()) {
    return {std::move(headline),
            extent.axes,
            column({"launches"}, {page_gap(), row({"shape"}, {tiles(cursor), staircase(cursor)},
                                                  {.even = true})}),
            {cursor.tile >= trace_.waves_step() ? "stairs" : "tiles"}};
  }
  return {std::move(headline),
          extent.axes,
          column({"launches"},
                 {page_gap(), row({"dispatch"}, {choices(), slowdowns()}, {.even = true})}),
          {"choices", "slowdowns"}};
}

// ---- beats ----------------------------------------------------------------------------------------------

/// The host's calls above what the device does in each stream, by beats, or on a GPU by its clock and the host's;
/// outlines are captured, and nothing runs.
Box LaunchesScene::lanes(Cursor cursor) const {
  const int first = step_at(cursor).first_beat;
  SpanList list("bar", trace_.timed ? Name("us") : Name("beat"), "lane", "op");
  const auto add = [&](int lane, const auto& what, State state, int place, std::string name, int id,
                       bool outline) {
    if (what.beat > cursor.tile || !in_step(what.beat, cursor)) return;
    if (trace_.timed && what.end_us <= what.begin_us) return;  // a copy leaves no stamps
    const double begin = trace_.timed ? std::max(what.begin_us, 0.0) : what.beat - first;
    list.add({.lane = lane,
              .begin = begin,
              .end = trace_.timed ? std::max(what.end_us, begin) : begin + 1,
              .state = state == State::plain && what.beat == cursor.tile ? State::current : state,
              .tone = tone_of(place),
              .name = std::move(name),
              .about = place < 0 ? -1 : static_cast<int>(launches::op_at(place)),
              .id = id,
              .lanes = 1,
              .flags = outline ? kWas : kNone});
  };
  for (std::size_t i = 0; i < trace_.calls.size(); ++i) {
    const CallTrace& call = trace_.calls[i];
    int place = -1;
    for (int p = 0; call.kind == CallKind::launch && p < launches::launches_of(trace_.layers);
         ++p) {
      if (launches::label_at(p) == call.what) place = p;
    }
    add(0, call, State::plain, place, bar_text(call), static_cast<int>(i), call.captured);
  }
  const int calls = static_cast<int>(trace_.calls.size());
  for (std::size_t i = 0; i < trace_.works.size(); ++i) {
    const WorkTrace& work = trace_.works[i];
    add(1 + work.stream, work, work.wrong ? State::wrong : State::plain, work.place,
        work.what == launches::kWholeStep ? std::string("whole step")
        : work.kernel == "gate_single"    ? "single"
                                          : work.kernel,
        calls + static_cast<int>(i), false);
  }
  const std::string said =
      trace_.timed
          ? fmt::format("host and device in step {}: the two clocks agree within {} µs",
                        step(cursor) + 1, words::significant(trace_.clocks_us, 2))
          : fmt::format("host and device in step {}: beats are order, not time", step(cursor) + 1);
  return labelled({"lanes"}, box({"beats"}, {list.made()}, {}, {.least_height = 3, .left = 4.6f}),
                  text(said, "host and device", "beats"),
                  {.weight = 4, .least_width = 12, .least_height = 4.6f});
}

/// The launches of a step: dim ones are not submitted, striped ones wait.
Box LaunchesScene::kernels(Cursor cursor) const {
  Cells cells{items("kernel", kOps * trace_.layers)};
  cells.x = "op";
  cells.y = "layer";
  cells.columns = kOps;
  std::vector<int> ops;
  for (int layer = 0; layer < trace_.layers; ++layer) {
    for (int op = 0; op < kOps; ++op) {
      const bool exists = op > 0 || layer == 0;
      const int place = launches::place_of(static_cast<Op>(op), layer);
      const Launched now = exists ? launched(place, cursor) : Launched{};
      // As a profile names it, whose name is all that shows a fallback.
      const bool fell = static_cast<Op>(op) == Op::gate && trace_.mode != Mode::persistent &&
                        layer >= trace_.layers - trace_.fallback;
      cells.items.names.push_back(fell     ? "single"
                                  : exists ? std::string(name_of(static_cast<Op>(op)))
                                           : "");
      const bool waits = now.reached == Reached::in_graph || now.reached == Reached::submitted;
      cells.items.glyph.each.push_back(!exists ? kHollow : waits ? kStriped : kSolid);
      cells.items.tone.each.push_back(exists ? kOpTones[op] : std::uint8_t{0});
      cells.items.state.each.push_back(now.wrong                         ? State::wrong
                                       : now.reached == Reached::working ? State::current
                                       : now.reached == Reached::nowhere ? State::to_come
                                                                         : State::plain);
      ops.push_back(exists ? op : -1);
    }
  }
  cells.items.about = {{"op", {-1, ops}}};
  return labelled(
      {"kernels"}, box({"grid"}, {std::move(cells)}, {}, {.least_height = 2.4f, .left = 3.6f}),
      text("kernels by layer: striped are submitted", "kernels: striped wait", "kernels"),
      {.rank = 1, .weight = 3, .least_width = 14, .least_height = 4});
}

/// Rows of each step's products: those of tokens, and hatched the padding of a bucket.
Box LaunchesScene::rows(Cursor cursor) const {
  const int steps = static_cast<int>(trace_.steps.size());
  Cells cells{items("token", kMostBatch * steps)};
  cells.x = "step";
  cells.y = "row";
  cells.columns = steps;
  std::vector<int> of;
  for (int slot = 0; slot < kMostBatch; ++slot) {
    for (int s = 0; s < steps; ++s) {
      const StepTrace& one = trace_.steps[static_cast<std::size_t>(s)];
      const bool begun = cursor.tile >= one.first_beat;
      const bool wanted = slot < one.batch, padding = begun && !wanted && slot < one.rows;
      cells.items.glyph.each.push_back(wanted || padding ? kSolid : kHollow);
      cells.items.state.each.push_back(padding                                ? State::wasted
                                       : !wanted                              ? State::to_come
                                       : s == step(cursor) && cursor.tile > 0 ? State::current
                                       : begun                                ? State::done
                                                                              : State::plain);
      of.push_back(s);
    }
  }
  cells.items.about = {{"step", {-1, of}}};
  return labelled({"rows"}, box({"slots"}, {std::move(cells)}, {}, {.least_height = 3}),
                  text("tokens: hatched are padding", "tokens", "rows"),
                  {.rank = 2, .weight = 2, .least_width = 8, .least_height = 4.6f});
}

/// How each step was done, once it is.
Box LaunchesScene::steps_ledger(Cursor cursor) const {
  Ledger table{items("done", 0), {}, {}};
  table.columns = {text("calls"), text("kernels"), text("wrong")};
  for (std::size_t s = 0; s < trace_.steps.size(); ++s) {
    const StepTrace& one = trace_.steps[s];
    const bool begun = cursor.tile >= one.first_beat, ended = cursor.tile >= one.last_beat;
    table.rows.push_back(
        text(fmt::format("step {}{}", s + 1, begun ? ": " + std::string(name_of(one.how)) : "")));
    for (const int number : {one.calls, one.kernels, one.wrong}) {
      table.items.names.push_back(ended ? std::to_string(number) : "–");
    }
    for (int column = 0; column < 3; ++column) {
      table.items.state.each.push_back(column == 2 && ended && one.wrong > 0 ? State::wrong
                                                                             : State::plain);
    }
  }
  table.items.count = static_cast<int>(table.items.names.size());
  table.items.per_row = 3;
  return labelled({"steps"}, box({"steps_table"}, {std::move(table)}, {}, {.least_height = 3}),
                  text("steps: how each was done", "steps", "steps"),
                  {.rank = 2, .weight = 3, .least_width = 18, .least_height = 4.6f});
}

// ---- shapes -----------------------------------------------------------------------------------------------

/// The tiles of C: those over its edge are hatched, and a wave is a tone.
Box LaunchesScene::tiles(Cursor cursor) const {
  const launches::Tiling tiling = trace_.shape.tiling();
  Cells cells{items("tile", tiling.tiles())};
  cells.x = "tile_column";
  cells.y = "tile_row";
  cells.columns = tiling.columns;
  cells.items.per_row = tiling.columns;
  const bool by_wave = cursor.tile >= trace_.waves_step();
  for (int tile = 0; tile < tiling.tiles(); ++tile) {
    const bool over =
        (tile / tiling.columns == tiling.rows - 1 && trace_.shape.m % launches::kTileM != 0) ||
        (tile % tiling.columns == tiling.columns - 1 && trace_.shape.n % launches::kTileN != 0);
    const int wave = tile / launches::kMultiprocessors;
    cells.items.state.each.push_back(State::plain);
    cells.items.glyph.each.push_back(over ? kStriped : kSolid);
    cells.items.tone.each.push_back(by_wave ? category_tone(wave % kCategories) : std::uint8_t{1});
  }
  return labelled({"tiles"},
                  box({"tile_grid"}, {std::move(cells)}, {}, {.least_height = 3, .left = 1.4f}),
                  text(by_wave ? "tiles: a tone per wave, striped over the edge"
                               : "tiles of C: striped over the edge",
                       "tiles", "tiles"),
                  {.weight = 1, .least_width = 12, .least_height = 5});
}

/// Waves over m: up to the knob's m, and then beyond.
Box LaunchesScene::staircase(Cursor cursor) const {
  const bool whole = cursor.tile >= trace_.waves_step();
  const int until = whole ? launches::kMostSide : trace_.shape.m;
  Curve curve{.key = {"staircase"}, .ax = "m", .ay = "waves", .tone = 1, .base = {0}};
  int before = -1;
  for (int rows = 1; (rows - 1) * launches::kTileM < until; ++rows) {
    const int from = (rows - 1) * launches::kTileM, to = std::min(rows * launches::kTileM, until);
    const int waves = launches::tiling_of(to, trace_.shape.n).waves;
    if (waves != before) {
      curve.x.push_back(from);
      curve.y.push_back(waves);
    }
    curve.x.push_back(to);
    curve.y.push_back(waves);
    before = waves;
  }
  curve.end = text(counted(before, "wave"));
  Rule here{.key = {"m_here"},
            .axis = "m",
            .at = static_cast<double>(trace_.shape.m),
            .state = State::current,
            .label = text(fmt::format("m = {}", trace_.shape.m))};
  return labelled({"stairs"},
                  box({"staircase_box"}, {std::move(curve), std::move(here)}, {},
                      {.least_height = 5, .left = 3, .right = 5}),
                  text(fmt::format("waves of {} multiprocessors, n = {}",
                                   launches::kMultiprocessors, trace_.shape.n),
                       "waves", "waves"),
                  {.weight = 1, .least_width = 12, .least_height = 6});
}

/// What the dispatcher chooses for the knobs' shape and for others.
Box LaunchesScene::choices() const {
  Ledger table{items("choice", 0), {}, {}};
  table.columns = {text("kernel")};
  const std::vector<lab::Table> tables = tables_of(trace_);
  const auto of = std::find_if(tables.begin(), tables.end(),
                               [](const lab::Table& each) { return each.id == "choices"; });
  for (std::size_t row = 0; of != tables.end() && row < of->rows.size(); ++row) {
    // The others are 4096³ but for one number.
    const auto differs = [&](std::size_t column, const char* name) {
      return of->text(row, column) == "4096"
                 ? std::string()
                 : fmt::format(", {} = {}", name, of->text(row, column));
    };
    const std::string offset = of->text(row, 4) == "0" ? "" : ", " + of->text(row, 4) + " B off";
    const std::string what = row == 0
                                 ? std::string(", yours")
                                 : differs(1, "m") + differs(2, "n") + differs(3, "k") + offset;
    table.rows.push_back(text(of->text(row, 0) + what));
    table.items.names.push_back(of->text(row, 5));
    table.items.state.each.push_back(row == 0 ? State::current : State::plain);
  }
  table.items.count = static_cast<int>(table.items.names.size());
  table.items.per_row = 1;
  return labelled({"choices"}, box({"choice_table"}, {std::move(table)}, {}, {.least_height = 9}),
                  text("kernel by shape: 4096³ where none is given", "kernel by shape", "kernels"),
                  {.weight = 1, .least_width = 12, .least_height = 10});
}

/// What a fallback costs a model.
Box LaunchesScene::slowdowns() const {
  std::vector<float> values;
  for (const double share : kShares) {
    values.push_back(static_cast<float>(launches::slowdown(share, kMostSlower)));
  }
  Bars bars{items("slowdown", std::move(values), {Format::fixed, 1}), "share", "times"};
  return labelled({"slowdowns"},
                  box({"slowdown_box"}, {std::move(bars)}, {}, {.least_height = 5, .left = 3}),
                  text("times as long, by the share that is 5 times slower",
                       "times as long, by share", "times"),
                  {.weight = 1, .least_width = 9, .least_height = 6});
}

// ---- explanations -------------------------------------------------------------------------------------------

std::string LaunchesScene::explain(const View& view, const Key& key) const {
  const int beat = view.cursor.tile;
  if (key.is({"bar"}) && key.i >= 0) {
    const auto i = static_cast<std::size_t>(key.i);
    if (i < trace_.calls.size()) {
      const CallTrace& call = trace_.calls[i];
      if (call.beat > beat) return {};
      return fmt::format("call {}: {} {}{}", i + 1, name_of(call.kind), call.what,
                         call.captured ? "\ncaptured: it becomes a node, and nothing runs" : "");
    }
    const std::size_t at = i - trace_.calls.size();
    if (at >= trace_.works.size() || trace_.works[at].beat > beat) return {};
    const WorkTrace& work = trace_.works[at];
    std::string said = fmt::format("{}\nsubmitted by call {}", work.what, work.call + 1);
    for (const int before : work.after) {
      said += fmt::format("\nafter {}", trace_.works[static_cast<std::size_t>(before)].what);
    }
    for (const launches::FindingTrace& each : trace_.findings) {
      if (work.wrong && each.beat <= beat) said += "\n" + each.text;
    }
    return said;
  }
  if (key.is({"kernel"}) && key.i >= 0 && key.i < kOps * trace_.layers) {
    const int layer = key.i / kOps, op = key.i % kOps;
    if (op == 0 && layer > 0) return {};
    const int place = launches::place_of(static_cast<Op>(op), layer);
    std::string said = launches::label_at(place);
    for (const launches::NodeTrace& node : trace_.nodes) {
      if (node.place == place && node.beat <= beat)
        said =
            launches::label_at(place) + fmt::format("\nin graph {}: {}", node.graph + 1, node.uses);
    }
    return said;
  }
  if (key.is({"tile"}) && key.i >= 0 && !in_steps(view.cursor)) {
    const launches::Tiling tiling = trace_.shape.tiling();
    const int tile = key.i * tiling.columns + std::max(key.j, 0);
    return fmt::format("tile {} of {}\nwave {}", tile + 1, tiling.tiles(),
                       tile / launches::kMultiprocessors + 1);
  }
  return {};
}

}  // namespace tilestep::scenes
