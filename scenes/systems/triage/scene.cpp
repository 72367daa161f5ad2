#include "scenes/systems/triage/scene.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using triage::Instrument, triage::Op, triage::Probe, triage::Row, triage::Verdict;
using words::counted, words::percent, words::significant;

StepAxis TriageScene::loaded(const triage::Trace&) {
  find_events();
  return {trace_.length(), 1, "look", {""}};
}

std::vector<const Row*> TriageScene::rows_of(int look) const {
  std::vector<const Row*> rows;
  for (const Row& row : trace_.rows) {
    if (row.look == look) rows.push_back(&row);
  }
  return rows;
}

std::vector<Probe> TriageScene::spent(Instrument instrument, Cursor cursor) const {
  std::vector<Probe> all;
  for (std::size_t i = 0; i < trace_.looks.size() && static_cast<int>(i) < cursor.tile; ++i) {
    if (trace_.looks[i].instrument == instrument) all.push_back(trace_.looks[i]);
  }
  return all;
}

// ---- words --------------------------------------------------------------------------------------------

namespace {

/// "attend", "product of head": a kernel, and its operator where that is called otherwise.
std::string named(const Row& row) {
  const std::string op = row.op < 0 ? std::string() : std::string(name_of(static_cast<Op>(row.op)));
  return op.empty() || op == row.what ? row.what : row.what + " of " + op;
}

}  // namespace

std::string TriageScene::headline_of(int look) const {
  const Probe& its = probe(look);
  const std::vector<const Row*> rows = rows_of(look);
  const auto first_by = [&rows](auto larger) {
    return **std::max_element(rows.begin(), rows.end(),
                              [&](const Row* a, const Row* b) { return larger(*a) < larger(*b); });
  };
  const auto sum = [&rows](auto of) {
    double all = 0;
    for (const Row* row : rows) all += of(*row);
    return all;
  };
  if (rows.empty()) return "The instrument shows nothing here.";
  switch (its.instrument) {
    case Instrument::timeline: {
      const auto calls =
          std::count_if(rows.begin(), rows.end(), [](const Row* row) { return row->lane == 0; });
      return fmt::format("{}: {} of the host, {} on the device.", fmt::format("Step {}", its.step),
                         counted(calls, "call"),
                         counted(static_cast<std::int64_t>(rows.size()) - calls, "kernel"));
    }
    case Instrument::kernels: {
      const Row& top = *rows.front();
      const auto launches =
          static_cast<std::int64_t>(sum([](const Row& row) { return row.count; }));
      if (timed()) {
        return fmt::format("{} takes {} of the kernels' time.", named(top),
                           percent(top.second / 100));
      }
      return fmt::format("Step {} launches {}, most often {}.", its.step,
                         counted(launches, "kernel"), named(top));
    }
    case Instrument::shapes: {
      const auto narrow = std::count_if(rows.begin(), rows.end(), [](const Row* row) {
        return row->value > 0 && row->value < 4;
      });
      return narrow == 0 ? "All weights are read by loads of 16 bytes, the rest by 4 and more."
                         : fmt::format("{} its weights by loads of 2 bytes.",
                                       narrow == 1 ? "One kernel reads" : "Some kernels read");
    }
    case Instrument::counters: {
      const Row low = first_by([](const Row& row) { return -row.second; });
      return fmt::format("{} has the lowest occupancy, {}.", named(low), percent(low.second / 100));
    }
    case Instrument::roofline: {
      const Row most = first_by([](const Row& row) { return row.count; });
      return fmt::format("{} asks memory for most, {} MB.", named(most),
                         significant(most.count, 3));
    }
    case Instrument::sectors: {
      const Row worst = first_by([](const Row& row) { return row.value / row.second; });
      return fmt::format("{} touches {} sectors per request, where {} hold what it reads.",
                         named(worst), significant(worst.value, 3), significant(worst.second, 3));
    }
    case Instrument::gaps: {
      double calls = 0;
      for (const Row* row : rows) calls += row->lane == 0 ? row->count : 0;
      return fmt::format("The host makes {} for step {}.",
                         counted(static_cast<std::int64_t>(calls), "call"), its.step);
    }
    case Instrument::queue:
      break;
  }
  const Row& step = *rows.front();
  return step.count == step.second
             ? fmt::format("The loop computes the {} that are wanted.",
                           counted(static_cast<std::int64_t>(step.second), "row"))
             : fmt::format("The loop computes {}, and {} wanted.",
                           counted(static_cast<std::int64_t>(step.count), "row"),
                           step.second == 1 ? "1 is" : significant(step.second, 3) + " are");
}

std::string TriageScene::sentence(Cursor cursor) const {
  if (cursor.tile <= 0) return std::string(triage::complaint_of(trace_.which));
  if (look(cursor) >= 0) return headline_of(look(cursor));
  if (cursor.tile < trace_.verdict_step()) {
    if (trace_.bound() > 0) {
      return fmt::format("{} takes {} of the kernels' time: at most {:.2f} times as fast.",
                         name_of(trace_.suspect), percent(trace_.suspect_share), trace_.bound());
    }
    return trace_.suspect == triage::Suspect::open
               ? "Nothing is named yet."
               : fmt::format("The suspect is {}.", name_of(trace_.suspect));
  }
  const Verdict& verdict = trace_.verdict;
  if (!verdict.applied) return "No fix is applied: the loop is as it was.";
  const std::string fix(name_of(trace_.fix));
  if (verdict.before_us > 0) {
    return fmt::format("With {} a step takes {:.0f} µs instead of {:.0f}: {:.2f} times as fast.",
                       fix, verdict.after_us, verdict.before_us, verdict.gain());
  }
  return verdict.fixed == verdict.faults
             ? fmt::format("With {} nothing is left of what was hidden.", fix)
         : verdict.fixed > 0 ? "One of two faults is gone."
                             : fmt::format("With {} the fault is still there.", fix);
}

std::string triage_row_text(Instrument instrument, const Row& row, bool timed) {
  std::string said = row.what + "\n" + row.note;
  const auto columns = triage::columns_of(instrument);
  const double numbers[] = {row.count, row.value, row.second};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name.empty() || (columns[i].timed && !timed)) continue;
    said += fmt::format("\n{}: {}{}{}", columns[i].name, significant(numbers[i], 4),
                        columns[i].unit.empty() ? "" : " ", columns[i].unit);
  }
  return said;
}

std::vector<picture::Symbol> TriageScene::symbols(const View&) const {
  return {{"head",
           {"op", static_cast<int>(Op::head)},
           4,
           "The product of a row with the vocabulary's weights: its logits.",
           {}},
          {"attend",
           {"op", static_cast<int>(Op::attend)},
           1,
           "Attention over the cache, of one row per user.",
           {}},
          {"norm",
           {"op", static_cast<int>(Op::norm)},
           11,
           "RMSNorm: a row divided by its root mean square, times gains.",
           {}}};
}

std::vector<std::string> TriageScene::stage_knobs() const {
  return {"case", "operator", "fix"};
}

// ---- tables ---------------------------------------------------------------------------------------------

Cursor TriageScene::known(const lab::Table& table, int row, int column) const {
  if (table.id == "looks" || table.id == "diagnosis") return {};
  if (table.id == "readings") {
    if (column == 0) return {};
    const double* const number = std::get_if<double>(&table.rows[static_cast<std::size_t>(row)][1]);
    return {number == nullptr ? 0 : static_cast<int>(*number), 0};
  }
  return Scene::known(table, row, column);
}

int TriageScene::table_row(std::string_view table_id, const View& view) const {
  const int shown = look(view.cursor);
  return table_id == "looks" ? shown : -1;
}

std::optional<lab::Settings> TriageScene::dropped(const View& view, const picture::Key& item,
                                                  const picture::Key& onto) const {
  if (!item.is({"instrument"}) || onto != item || item.i < 0 || item.i >= triage::kInstruments)
    return std::nullopt;
  std::vector<Probe> probes = trace_.looks;
  if (probes.size() >= triage::kProbes) return std::nullopt;
  const auto instrument = static_cast<Instrument>(item.i);
  // The usual step first, then the fourth, then the others.
  for (const int step : {triage::kUsualStep, triage::kLoop, 1, 3}) {
    const Probe wanted{instrument, step};
    if (std::find(probes.begin(), probes.end(), wanted) != probes.end()) continue;
    probes.push_back(wanted);
    return lab::Settings{{"probes", triage::text_of(probes)}};
  }
  static_cast<void>(view);
  return std::nullopt;
}

// ---- numbers beside the picture -----------------------------------------------------------------------

std::vector<Readout> TriageScene::readouts(const View& view) const {
  const Cursor cursor = view.cursor;
  const int spent_now = std::min(cursor.tile, static_cast<int>(trace_.looks.size()));
  std::vector<Readout> all = {{"probes", "probes left", std::to_string(triage::kProbes - spent_now),
                               "", lab::Provenance::derived, "8 less the probes spent by now"}};
  if (cursor.tile >= trace_.diagnosis_step() && trace_.bound() > 0) {
    all.push_back({"bound", "at most", fmt::format("{:.2f}", trace_.bound()), "× as fast",
                   lab::Provenance::derived, "1 / (1 − the suspect's share of the kernels' time)"});
  }
  const Verdict& verdict = trace_.verdict;
  if (cursor.tile < trace_.verdict_step() || !verdict.applied) return all;
  if (verdict.before_us > 0) {
    all.push_back({"gain", "times as fast", fmt::format("{:.2f}", verdict.gain()), "",
                   lab::Provenance::derived,
                   "before / after, mean of four steps, " + trace_.times_from});
  }
  all.push_back({"points", "points", std::to_string(verdict.points), "of 100",
                 lab::Provenance::derived,
                 "10 bottleneck, 15 operator, 25 cause, 40 share of the possible gain, 10 probes "
                 "left"});
  return all;
}

// ---- the kernel -----------------------------------------------------------------------------------------

SourceMark TriageScene::source(const View& view) const {
  // The kernel of the looks' first row; the suspect's from the diagnosis on.
  Op op = Op::norm;
  const int shown = look(view.cursor);
  for (const Row* row : rows_of(shown)) {
    if (row->op < 0) continue;
    op = static_cast<Op>(row->op);
    break;
  }
  if (shown < 0) {
    for (int i = 0; i < triage::kOps; ++i) {
      const auto each = static_cast<Op>(i);
      if (trace_.suspect == triage::Suspect::step || !triage::covers(trace_.suspect, each))
        continue;
      op = each;
      break;
    }
  }
  const std::string_view source = triage::source_of(op);
  std::vector<int> lines;
  int current = -1;
  for (int i = 0; i < triage::kOps; ++i) {
    const auto each = static_cast<Op>(i);
    const int line = trace_.lines[static_cast<std::size_t>(i)];
    if (triage::source_of(each) != source || line == 0) continue;
    if (std::find(lines.begin(), lines.end(), line) != lines.end()) continue;
    if (each == op) current = static_cast<int>(lines.size());
    lines.push_back(line);
  }
  SourceMark mark = source_mark(source, lines, view.cursor.tile > 0 ? current : -1);
  std::sort(mark.step_lines.begin(), mark.step_lines.end());
  // What the looks so far have shown of each line's kernel.
  for (const Row& row : trace_.rows) {
    if (row.op < 0 || row.look >= view.cursor.tile) continue;
    const Instrument its = probe(row.look).instrument;
    const int line = trace_.lines[static_cast<std::size_t>(row.op)];
    if (its == Instrument::timeline || line == 0 ||
        triage::source_of(static_cast<Op>(row.op)) != source) {
      continue;
    }
    const auto columns = triage::columns_of(its);
    const bool first = columns[1].timed && !timed();
    std::string& value = mark.values[line];
    value +=
        fmt::format("{}{}: {} = {}", value.empty() ? "" : "; ", row.what,
                    columns[first ? 0 : 1].name, significant(first ? row.count : row.value, 3));
  }
  return mark;
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(triage, TriageScene)
