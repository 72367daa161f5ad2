// The picture of the lesson on diagnosis: an instrument as large as it gets, the checklist and the diagnosis beside it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"
#include "scenes/systems/triage/scene.hpp"

namespace tilestep::scenes {

using namespace picture;
using triage::Instrument, triage::kInstruments, triage::kLoop, triage::Op, triage::Probe,
    triage::Row, triage::Verdict;
using words::percent, words::significant;

namespace {

/// Tones of the operators, in every instrument; 0: of no interest.
constexpr std::uint8_t kTones[triage::kOps] = {0, 11, 8, 0, 1, 0, 5, 0, 3, 9, 0, 0, 4, 0, 10};
constexpr int kMostBars = 16;

std::uint8_t tone_of(int op) {
  return op < 0 ? std::uint8_t{0} : kTones[op];
}
/// The operator that a mark is about; −1 for one without a tone.
int about_of(int op) {
  return tone_of(op) == 0 ? -1 : op;
}

/// What the checklist asks of each instrument.
constexpr const char* kAsks[kInstruments] = {"two lanes",    "by time",       "formats",
                                             "occupancy",    "FLOP per byte", "loads",
                                             "host's calls", "rows"};

Box empty_gap() {
  return box({"gap"}, {}, {}, {.rank = 2, .weight = 0, .least_height = 0.6f});
}

/// Which number of a row an instrument's bars show, and on which axis.
struct Barred {
  int number = 1;  ///< 0 count, 1 value, 2 second
  Name axis, bar, end;
};
Barred barred(Instrument instrument, bool timed) {
  switch (instrument) {
    case Instrument::kernels:
      return {timed ? 1 : 0, "largest", "kernel_bar", "kernel_end"};
    case Instrument::counters:
      return {2, "occupancy", "counter_bar", "counter_end"};
    case Instrument::gaps:
      return {0, "calls", "gap_bar", "gap_end"};
    case Instrument::roofline:
      return {1, "largest", "roof_bar", "roof_end"};
    default:
      return {1, "sectors", "sector_bar", "sector_end"};
  }
}
double number_of(const Row& row, int number) {
  return number == 0 ? row.count : number == 1 ? row.value : row.second;
}

/// The room for it, in heights of a line of text.
float right_of(Instrument instrument, bool timed) {
  switch (instrument) {
    case Instrument::kernels:
      return timed ? 16.0f : 9.5f;
    case Instrument::counters:
      return timed ? 14.0f : 9.0f;
    case Instrument::roofline:
      return timed ? 16.0f : 10.5f;
    case Instrument::gaps:
      return timed ? 8.0f : 3.0f;
    default:
      return 10.0f;
  }
}
/// What stands behind a bar.
std::string end_text(Instrument instrument, const Row& row, bool timed) {
  const auto number = [](double x) { return significant(x, 3); };
  const std::string count = number(row.count), value = number(row.value),
                    second = number(row.second);
  switch (instrument) {
    case Instrument::kernels:
      return timed ? fmt::format("{}: {} µs, {} %, × {}", row.what, value, second, count)
                   : fmt::format("{}: × {}", row.what, count);
    case Instrument::counters:
      return fmt::format("{} %, {} at once{}", second, count,
                         timed && row.value >= 1 ? fmt::format(", {:.0f} GB/s", row.value) : "");
    case Instrument::roofline:
      return fmt::format("{} FLOP/B; {} MB{}", value, count,
                         timed ? fmt::format(", {:.1f} TFLOP/s", 1e-3 * row.second) : "");
    case Instrument::gaps:
      return timed && row.value > 0 ? fmt::format("{}, {} µs", count, value) : count;
    default:
      return row.value > row.second ? fmt::format("{}, where {} would do", value, second) : value;
  }
}

}  // namespace

Extent TriageScene::extent() const {
  return {
      {{.name = "clock",
        .high = trace_.span,
        .title = text(timed() ? "µs since the step's first call" : "beats: order, not time"),
        .ticks = true},
       {.name = "lane",
        .kind = Axis::band,
        .count = 2,
        .names = {"host", "device"},
        .least_slot = 14},
       {.name = "row", .kind = Axis::band, .count = kMostBars, .least_slot = 10},
       {.name = "largest", .high = 100, .fixed = true, .title = text("%"), .ticks = true},
       {.name = "occupancy",
        .high = 100,
        .fixed = true,
        .title = text("% of the warps"),
        .ticks = true},
       {.name = "calls", .high = trace_.most_calls, .title = text("in a step"), .ticks = true},
       {.name = "sectors",
        .high = 32,
        .fixed = true,
        .title = text("sectors per request"),
        .ticks = true},
       {.name = "rows", .high = 8, .fixed = true, .step = 2, .title = text("rows"), .ticks = true},
       {.name = "part", .high = 100, .fixed = true, .title = text("% of the time"), .ticks = true},
       {.name = "times", .low = 1, .high = 5, .fixed = true, .step = 1, .ticks = true},
       {.name = "of_before",
        .high = 100,
        .fixed = true,
        .title = text("% of before"),
        .ticks = true},
       {.name = "measure",
        .kind = Axis::band,
        .count = timed() ? 3 : 2,
        .names = timed() ? std::vector<std::string>{"bytes", "kernels", "time"}
                         : std::vector<std::string>{"bytes", "kernels"},
        .least_slot = 14}}};
}

Picture TriageScene::picture(const Extent& extent, const View& view) const {
  const Cursor cursor = view.cursor;
  Picture made{Text{marked(sentence(cursor), symbols(view))}, extent.axes};
  const int shown = look(cursor);
  Box subject = shown >= 0                               ? instrument(shown)
                : cursor.tile <= 0                       ? complaint()
                : cursor.tile == trace_.diagnosis_step() ? bound(cursor)
                                                         : outcome();
  made.subject = {to_text(subject.key)};
  if (shown >= 0) {
    for (Axis& axis : made.axes) {
      if (axis.name != Name("row")) continue;
      std::vector<std::string> names;
      for (const Row* row : barred_rows(shown)) {
        const bool expert = row->what.starts_with("expert ");
        names.push_back(row->op >= 0 && !expert ? std::string(name_of(static_cast<Op>(row->op)))
                                                : row->what);
      }
      axis.count = std::max(static_cast<int>(names.size()), 1);
      axis.names = std::move(names);
    }
  }
  made.root =
      column({"triage"},
             {empty_gap(),
              row({"case"},
                  {std::move(subject), column({"beside"}, {checklist(cursor), diagnosis(cursor)},
                                              {.rank = 2, .weight = 1.6f, .least_width = 16})},
                  {.even = true})},
             {.even = true});
  return made;
}

/// The six questions that lead from a complaint to a cause, with the instruments that answer them.
Box TriageScene::complaint() const {
  constexpr const char* kQuestions[][3] = {
      {"What is the bottleneck?", "bottleneck", "queue, roofline"},
      {"Which operator?", "operator", "kernels, timeline"},
      {"Which shape?", "shape", "shapes"},
      {"Which format?", "format", "shapes"},
      {"Which kernel?", "kernel", "counters, sectors"},
      {"What does the system do?", "system", "gaps, queue"}};
  Ledger questions{items("question", 0), {}, {text("answered by")}};
  for (const auto& [asked, brief, by] : kQuestions) {
    Text row = text(asked, brief);
    row.group = "asked";
    questions.rows.push_back(std::move(row));
    questions.items.names.emplace_back(by);
  }
  questions.items.count = static_cast<int>(questions.items.names.size());
  questions.items.per_row = 1;
  return labelled({"complaint"},
                  {box({"questions"}, {std::move(questions)}, text("six questions"),
                       {.weight = 4, .least_height = 8})},
                  {}, {.weight = 6, .least_width = 16.9f, .least_height = 10});
}

Box TriageScene::instrument(int look) const {
  switch (probe(look).instrument) {
    case Instrument::timeline:
      return timeline(look);
    case Instrument::shapes:
      return ledger(look);
    case Instrument::queue:
      return queue(look);
    default:
      return bars(look);
  }
}

Box TriageScene::timeline(int look) const {
  SpanList list("span", "clock", "lane", "op");
  for (const Row* row : rows_of(look)) {
    list.add({.lane = row->lane,
              .begin = row->value,
              .end = row->second,
              .state = row->what == "synchronize" ? State::wasted : State::plain,
              .tone = tone_of(row->op),
              .name = row->what.substr(0, row->what.find(' ')),
              .about = about_of(row->op),
              .lanes = 1});
  }
  return labelled(
      {"shown"}, box({"lanes", look}, {list.made()}, {}, {.least_height = 5, .left = 4.2f}),
      text(fmt::format("step {}, hatched: the host waits; {}", probe(look).step,
                       timed() ? trace_.times_from : "beats are order, not time"),
           fmt::format("step {}, hatched: the host waits", probe(look).step), "timeline"),
      {.weight = 4, .least_width = 16, .least_height = 6});
}

/// Those with bars: the largest, where small ones would be too short to see.
std::vector<const Row*> TriageScene::barred_rows(int look) const {
  std::vector<const Row*> rows = rows_of(look);
  constexpr std::size_t kLargest = 9;
  const bool many = probe(look).instrument == Instrument::kernels && timed();
  if (many && rows.size() > kLargest) rows.resize(kLargest);
  return rows;
}

/// A bar per kernel, its name and other numbers behind it.
Box TriageScene::bars(int look) const {
  const Instrument which = probe(look).instrument;
  const Barred its = barred(which, timed());
  SpanList list(its.bar, its.axis, "row", "op");
  std::vector<Mark> ends;
  int lane = 0;
  double most = 0;
  const auto rows = barred_rows(look);
  double largest = 0;
  for (const Row* row : rows) largest = std::max(largest, number_of(*row, its.number));
  for (const Row* row : rows) {
    double value = number_of(*row, its.number);
    if (its.axis == Name("largest")) value *= largest > 0 ? 100 / largest : 0;
    list.add({.lane = lane,
              .begin = 0,
              .end = value,
              .tone = tone_of(row->op),
              .about = about_of(row->op),
              .id = lane,
              .lanes = 1});
    most = std::max(most, value);
    ends.emplace_back(lane_end({its.end, lane}, its.axis, "row", value,
                               text(end_text(which, *row, timed())), 0, {}, false));
    ++lane;
  }
  if (which == Instrument::sectors) {  // what would do, as an outline
    for (std::size_t i = 0; i < rows.size(); ++i) {
      list.add({.lane = static_cast<int>(i),
                .begin = 0,
                .end = rows[i]->second,
                .about = rows[i]->op,
                .id = kMostBars + static_cast<int>(i),
                .lanes = 1,
                .flags = kWas});
      most = std::max(most, rows[i]->second);
    }
  }
  Box bars = box({"bar_box", look}, {list.made(most)}, {},
                 {.least_height = 8,
                  .left = which == Instrument::gaps ? 6.5f : 4.4f,
                  .right = right_of(which, timed())});
  bars.marks.insert(bars.marks.end(), ends.begin(), ends.end());
  return labelled({"shown"}, std::move(bars),
                  text(fmt::format("{} of step {}{}", name_of(which), probe(look).step,
                                   which == Instrument::sectors  ? ": outlined, what would do"
                                   : its.axis == Name("largest") ? ", in % of the largest"
                                                                 : ""),
                       std::string(name_of(which))),
                  {.weight = 4, .least_width = 20, .least_height = 9});
}

/// Shapes: which kernel runs what, and how wide its loads are.
Box TriageScene::ledger(int look) const {
  Ledger table{items("shape_item", 0), {}, {text("kernel"), text("load, B", "load")}};
  std::vector<int> about;
  for (const Row* row : rows_of(look)) {
    // "qkv: BF16 384 x 128, 4 rows; rows 129 numbers apart"
    const std::string op = row->note.substr(0, row->note.find(':')),
                      format = row->note.substr(op.size() + 2, 4),
                      layout = row->note.substr(row->note.find(';') + 2);
    Text said = text(row->note, op + " " + format + ", " + layout, op + " " + format);
    said.group = "shape_rows";
    table.rows.push_back(std::move(said));
    table.items.names.push_back(row->what);
    table.items.names.push_back(significant(row->value, 3));
    about.insert(about.end(), 2, about_of(row->op));
  }
  table.items.count = static_cast<int>(table.items.names.size());
  table.items.per_row = 2;
  table.items.about = {{"op", {-1, about}}};
  const float height = 1.3f * static_cast<float>(table.rows.size() + 1);
  return labelled({"shown"},
                  box({"readings", look}, {std::move(table)}, {}, {.least_height = height}),
                  text(fmt::format("shapes of step {}", probe(look).step), "shapes"),
                  {.weight = 6, .least_width = 16, .least_height = 9});
}

/// Rows of the loop's steps, hatched those that nobody wants; and of each expert.
Box TriageScene::queue(int look) const {
  SpanList list("queue_bar", "rows", "row", "op");
  std::vector<Mark> ends;
  int lane = 0;
  double most = 0;
  for (const Row* row : rows_of(look)) {
    const bool step = row->op < 0;
    const double wanted = step ? std::min(row->count, row->second) : row->count;
    list.add({.lane = lane,
              .begin = 0,
              .end = wanted,
              .tone = tone_of(row->op),
              .about = about_of(row->op),
              .id = lane,
              .lanes = 1});
    if (row->count > wanted) {
      list.add({.lane = lane,
                .begin = wanted,
                .end = row->count,
                .state = State::wasted,
                .name = "padding",
                .about = about_of(row->op),
                .id = kMostBars + lane,
                .lanes = 1});
    }
    most = std::max(most, row->count);
    std::string said = words::counted(static_cast<std::int64_t>(row->count), "row");
    if (step && timed()) said += fmt::format(", {:.0f} µs", row->value);
    ends.emplace_back(
        lane_end({"queue_end", lane}, "rows", "row", row->count, text(said), 0, {}, false));
    ++lane;
  }
  Box bars =
      box({"bar_box", look}, {list.made(most)}, {}, {.least_height = 7, .left = 5, .right = 8});
  bars.marks.insert(bars.marks.end(), ends.begin(), ends.end());
  return labelled({"shown"}, std::move(bars),
                  text("queue: rows of each step, and of each expert", "queue"),
                  {.weight = 4, .least_width = 16, .least_height = 8});
}

// ---- beside it --------------------------------------------------------------------------------------------

/// The instruments with what each answers. A click spends a probe.
Box TriageScene::checklist(Cursor cursor) const {
  Ledger list{items("instrument", kInstruments), {}, {text("looked at")}};
  int left = triage::kProbes;
  for (int i = 0; i < kInstruments; ++i) {
    const std::vector<Probe> probes = spent(static_cast<Instrument>(i), cursor);
    left -= static_cast<int>(probes.size());
    std::string steps;
    for (const Probe& probe : probes) {
      steps += (steps.empty() ? "step " : ", ") + std::to_string(probe.step);
    }
    list.rows.push_back(text(std::string(name_of(static_cast<Instrument>(i)))));
    list.items.names.push_back(probes.empty() ? "look" : steps);
    const int now = look(cursor);
    const bool current = now >= 0 && static_cast<int>(probe(now).instrument) == i;
    list.items.state.each.push_back(current          ? State::current
                                    : probes.empty() ? State::to_come
                                                     : State::done);
  }
  list.items.per_row = 0;
  list.items.act = {Act::set, "instrument"};
  list.items.about = {{"instrument", {0, numbers(kInstruments)}}};
  return labelled({"checklist"}, box({"list"}, {std::move(list)}, {}, {.least_height = 9}),
                  text(fmt::format("checklist: {} left of 8 probes", left),
                       fmt::format("{} probes left", left)),
                  {.rank = 1, .weight = 5, .least_width = 15, .least_height = 10});
}

/// What was said so far.
Box TriageScene::diagnosis(Cursor) const {
  Ledger said{items("said", 0), {}, {text("diagnosis")}};
  const auto add = [&said](const char* what, std::string_view name, bool open) {
    said.rows.push_back(text(what));
    said.items.names.push_back(open ? "?" : std::string(name));
    said.items.state.each.push_back(open ? State::to_come : State::plain);
  };
  add("bottleneck", name_of(trace_.bottleneck), trace_.bottleneck == triage::Bottleneck::open);
  add("operator", name_of(trace_.suspect), trace_.suspect == triage::Suspect::open);
  add("cause", name_of(trace_.cause), trace_.cause == triage::Cause::open);
  add("fix", name_of(trace_.fix), trace_.fix == triage::Fix::none);
  if (trace_.which == triage::Case::mixed) {
    add("second fix", name_of(trace_.second), trace_.second == triage::Fix::none);
  }
  said.items.count = static_cast<int>(said.items.names.size());
  said.items.per_row = 1;
  return labelled({"diagnosis"}, box({"sayings"}, {std::move(said)}, {}, {.least_height = 5}), {},
                  {.rank = 3, .weight = 3, .least_width = 15, .least_height = 6});
}

// ---- the end ------------------------------------------------------------------------------------------------

/// How many times as fast a step can become, by the share of a kernel that takes no time any more; and the suspect's.
Box TriageScene::bound(Cursor) const {
  Curve curve{.key = {"amdahl"}, .ax = "part", .ay = "times", .base = {1}};
  for (int percent = 0; percent <= 80; percent += 2) {
    curve.x.push_back(percent);
    curve.y.push_back(1 / (1 - 0.01 * percent));
  }
  std::vector<Mark> marks = {std::move(curve)};
  const bool has = trace_.suspect_share > 0;
  if (has) {
    marks.emplace_back(
        Rule{.key = {"suspect_here"},
             .axis = "part",
             .at = std::min(100 * trace_.suspect_share, 100.0),
             .state = State::current,
             .label = text(fmt::format("{}: {:.2f}", name_of(trace_.suspect), trace_.bound()))});
  }
  const std::string said =
      has ? fmt::format("1 / (1 − {:.3f}) = {:.2f}", trace_.suspect_share, trace_.bound())
      : trace_.suspect == triage::Suspect::step ? "the step is all of it: no bound"
      : trace_.suspect == triage::Suspect::open ? "no operator is named"
      : timed()                                 ? "look at kernels or the timeline for its share"
                                                : "its share is not known without a clock";
  return labelled(
      {"bound"},
      {box({"curve_box"}, std::move(marks), {},
           {.weight = 5, .least_height = 6, .left = 3, .right = 2}),
       box({"formula"}, {lines("formula_line", {text(said)}, Lines::words)}, {},
           {.rank = 1, .weight = 1, .least_height = 1.4f})},
      text("times as fast at most, by a kernel's share of the time", "at most, by share"),
      {.weight = 4, .least_width = 16, .least_height = 8});
}

/// Before, after, and the sound step; and what the diagnosis was worth.
Box TriageScene::outcome() const {
  const Verdict& verdict = trace_.verdict;
  std::vector<Box> boxes;
  if (verdict.applied) {
    SpanList list("took", "of_before", "measure", "what");
    std::vector<Mark> ends;
    int lane = 0;
    const auto add = [&](double before, double after, const std::string& said) {
      if (before <= 0) return;
      const double share = std::min(100 * after / before, 100.0);
      list.add({.lane = lane, .begin = 0, .end = share, .id = lane, .lanes = 1});
      list.add({.lane = lane, .begin = 0, .end = 100, .id = 3 + lane, .lanes = 1, .flags = kWas});
      ends.emplace_back(
          lane_end({"took_end", lane}, "of_before", "measure", share, text(said), 0, {}, false));
      ++lane;
    };
    const auto both = [](double before, double after, const char* unit) {
      return fmt::format("{} of {}{}", significant(after, 3), significant(before, 3), unit);
    };
    add(verdict.before_mb, verdict.after_mb, both(verdict.before_mb, verdict.after_mb, " MB"));
    add(verdict.before_launches, verdict.after_launches,
        both(verdict.before_launches, verdict.after_launches, ""));
    add(verdict.before_us, verdict.after_us, both(verdict.before_us, verdict.after_us, " µs"));
    Box bars = box({"took_box"}, {list.made(100)}, {},
                   {.weight = 5, .least_height = 5, .left = 4, .right = 9});
    bars.marks.insert(bars.marks.end(), ends.begin(), ends.end());
    boxes.push_back(std::move(bars));
  }
  Ledger grade{items("grade", 0), {}, {text("the diagnosis")}};
  const auto add = [&grade](const char* what, bool right, bool open = false) {
    grade.rows.push_back(text(what));
    grade.items.names.push_back(right ? "right" : open ? "not said" : "not it");
    grade.items.state.each.push_back(right ? State::done : open ? State::to_come : State::wrong);
  };
  const auto say = [&grade](const char* what, std::string said) {
    grade.rows.push_back(text(what));
    grade.items.names.push_back(std::move(said));
    grade.items.state.each.push_back(State::plain);
  };
  if (verdict.applied) {
    add("bottleneck", verdict.right_bottleneck, trace_.bottleneck == triage::Bottleneck::open);
    add("operator", verdict.right_operator, trace_.suspect == triage::Suspect::open);
    add("cause", verdict.right_cause, trace_.cause == triage::Cause::open);
    add("fix", verdict.fixed == verdict.faults);
    if (verdict.before_us > 0) say("share of the possible gain", percent(verdict.share()));
    say("probes left", std::to_string(trace_.probes_left()));
    say("points of 100", std::to_string(verdict.points));
  } else {
    say("fix", "none yet");
  }
  grade.items.count = static_cast<int>(grade.items.names.size());
  grade.items.per_row = 1;
  boxes.push_back(
      box({"grades"}, {std::move(grade)}, {}, {.rank = 1, .weight = 4, .least_height = 8.5f}));
  return labelled({"outcome"}, std::move(boxes),
                  text("four steps: after, outlined before", "outcome"),
                  {.weight = 4, .least_width = 18, .least_height = 7});
}

std::string TriageScene::explain(const View& view, const Key& key) const {
  const int shown = look(view.cursor);
  if (key.is({"instrument"}) && key.i >= 0 && key.i < kInstruments) {
    const bool out = trace_.looks.size() >= triage::kProbes;
    return fmt::format("{}: {}\n{}", name_of(static_cast<Instrument>(key.i)), kAsks[key.i],
                       out ? "no probe is left" : "a click spends a probe");
  }
  if (shown < 0 || key.i < 0) return {};
  const std::vector<const Row*> rows = rows_of(shown);
  int at = -1;
  if (key.is({"span"})) at = key.i;
  if (key.is({"kernel_bar", "counter_bar", "roof_bar", "sector_bar", "gap_bar", "queue_bar"}))
    at = key.i % kMostBars;
  if (at < 0 || at >= static_cast<int>(rows.size())) return {};
  return triage_row_text(probe(shown).instrument, *rows[static_cast<std::size_t>(at)], timed());
}

}  // namespace tilestep::scenes
