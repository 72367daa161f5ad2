#include "tests/lesson_contract/future.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/shell/panes.hpp"
#include "scenes/shared/questions.hpp"
#include "tests/reports.hpp"

namespace tilestep::contract {

using scenes::Cursor;
using scenes::Scene;
using scenes::ScenePlayer;
using tests::Parts;
using tests::SceneFrame;

/// All that is drawn, to the last vertex.
struct Ink {
  std::string bytes;
  Parts parts;
  std::vector<std::string> texts;
};

namespace {

const ImVec2 kSize{860, 480}, kTable{3000, 2400};

Ink ink_of(SceneFrame& frame, ImVec2 size, const std::function<void()>& draw) {
  Ink ink;
  ink.parts = frame.draw(size, draw);
  for (const auto& drawn : frame.context().texts()) ink.texts.push_back(drawn.text);
  const ImDrawData& data = *ImGui::GetDrawData();
  for (int i = 0; i < data.CmdListsCount; ++i) {
    const ImDrawList& list = *data.CmdLists[i];
    ink.bytes.append(reinterpret_cast<const char*>(list.VtxBuffer.Data),
                     static_cast<std::size_t>(list.VtxBuffer.size_in_bytes()));
  }
  return ink;
}

/// What tells the two apart, by the names of the map.
std::string difference(const Ink& a, const Ink& b) {
  std::string names;
  for (const auto& [id, part] : a.parts) {
    const auto other = b.parts.find(id);
    if (other == b.parts.end()) {
      names += id + " (gone) ";
    } else if (part.value != other->second.value) {
      names += fmt::format("{} ({} / {}) ", id, part.value, other->second.value);
    } else if (part.raw_min.x != other->second.raw_min.x ||
               part.raw_min.y != other->second.raw_min.y ||
               part.raw_max.x != other->second.raw_max.x ||
               part.raw_max.y != other->second.raw_max.y) {
      names += id + " (elsewhere) ";
    }
  }
  for (const auto& [id, part] : b.parts) {
    if (a.parts.count(id) == 0) names += id + " ";
  }
  for (std::size_t i = 0; i < std::min(a.texts.size(), b.texts.size()); ++i) {
    if (a.texts[i] != b.texts[i]) names += fmt::format("'{}' / '{}' ", a.texts[i], b.texts[i]);
  }
  if (names.empty() && a.bytes != b.bytes) names = "ink that is not in the map";
  return names;
}

/// Numbers of the run that follow from no trace are known when it is through.
void change_numbers(lab::Table& table) {
  for (auto& row : table.rows) {
    for (std::size_t c = 1; c < row.size(); ++c) {
      if (double* number = std::get_if<double>(&row[c])) *number = 1.5 * *number + 1;
    }
  }
}

}  // namespace

/// The report as it would be with another future.
lab::Report Futures::with_other_future(const lab::Report& report, Cursor now,
                                       std::mt19937& random) const {
  lab::Report other = report;
  other.trace = other_future_(report.trace, {{now.tile, now.phase}, random});
  for (lab::Measurement& measurement : other.measurements) {
    // A formula's number is known from the start, unless it has one of the run in it; that is not known
    // before the run began.
    const auto stands_in = [&](const lab::Measurement& of_run) {
      return of_run.provenance != lab::Provenance::derived &&
             measurement.detail.find(of_run.id) != std::string::npos;
    };
    const bool of_run =
        measurement.provenance != lab::Provenance::derived ||
        std::any_of(report.measurements.begin(), report.measurements.end(), stands_in);
    if (!of_run || now.tile > 0) continue;
    measurement.value *= 1.5;
    measurement.detail += "; another";
  }
  const std::vector<lab::Table> of_trace = tables_of_(other.trace);
  for (lab::Table& table : other.tables) {
    const auto known = static_cast<std::ptrdiff_t>(now.tile);
    const auto found = std::find_if(of_trace.begin(), of_trace.end(),
                                    [&](const lab::Table& each) { return each.id == table.id; });
    if (found != of_trace.end()) {
      table = *found;
    } else if (table.id == true_.scene().steps().table && known < std::ssize(table.rows)) {
      const auto names = table.rows;
      std::shuffle(table.rows.begin() + known, table.rows.end(), random);
      for (std::size_t r = 0; r < names.size(); ++r) table.rows[r][0] = names[r][0];
    } else if (table.id == "readouts") {
      change_numbers(table);
    }
  }
  return other;
}

Futures::Futures(const MakeScene& make, OtherFuture other_future, TablesOf tables_of)
    : other_future_(other_future), tables_of_(tables_of), true_(make()), other_(make()) {
  frame_.context().record_texts(true);
  true_.load(tests::report_of(true_.scene().lesson()));
  frame_.show({300, 400}, [&] { true_.draw_picture({}); });  // no first frame is like the others
}

std::vector<std::string> Futures::compare(const lab::Settings& settings, int cursors, int seeds,
                                          bool hovered) {
  faults_.clear();
  const lab::Report& report = tests::report_of(true_.scene().lesson(), settings);
  true_.load(report);
  const scenes::StepAxis axis = true_.scene().steps();
  const int places = axis.places() - (axis.folded > 0 ? 1 : axis.phases_in(axis.tiles));
  for (int i = 0; i < std::min(cursors, places); ++i) {
    const int place = static_cast<int>(std::int64_t{i} * places / std::min(cursors, places));
    const Cursor now = axis.at_place(place);
    for (int seed = 0; seed < seeds; ++seed) {
      std::mt19937 random(static_cast<unsigned>(seed));
      compare_at(report, now, random);
      if (hovered && seed == 0) compare_hovered(now);
    }
  }
  return faults_;
}

void Futures::compare_at(const lab::Report& report, Cursor now, std::mt19937& random) {
  const lab::Report other = with_other_future(report, now, random);
  ++compared_;
  if (other.trace != report.trace) ++changed_;
  true_.load(report);
  other_.load(other);
  same("picture", now, kSize, [&](ScenePlayer& player) { player.draw_picture(now); });
  same("readouts", now, {300, 400}, [&](ScenePlayer& player) {
    for (const ui::Readout& one : player.readouts(now)) ui::readout(one);
  });
  same_details(now);
  same_events(now);
  same_tables(report.tables.size(), now);
}

std::vector<std::string> Futures::compare_asked(const lab::Settings& settings, int seeds,
                                                std::map<std::string, Asked>& asked) {
  faults_.clear();
  const lab::Report& report = tests::report_of(true_.scene().lesson(), settings);
  true_.load(report);
  const scenes::StepAxis axis = true_.scene().steps();
  constexpr int kMostSteps = 64;
  for (int tile = 0; tile < std::min(axis.tiles, kMostSteps); ++tile) {
    const Cursor now{tile, axis.last_phase(tile)};
    true_.load(report);
    const auto question = true_.scene().question(true_.view(now));
    if (!question) continue;
    Asked& kind = asked[question->id];
    for (int seed = 0; seed < seeds; ++seed) {
      std::mt19937 random(static_cast<unsigned>(seed));
      compare_at(report, now, random);
      ++kind.times;
      const auto other = other_.scene().question(other_.view(now));
      const bool asked_again = other && other->id == question->id;
      if (asked_again && scenes::answer_text(*other) != scenes::answer_text(*question)) ++kind.open;
    }
  }
  return faults_;
}

/// What happened until now does not hang on what comes.
void Futures::same_events(Cursor now) {
  const auto ink = [&](const ScenePlayer& player) {
    Ink all;
    for (const scenes::Event& each : player.scene().events()) {
      if (each.at > now) continue;
      all.texts.push_back(fmt::format("{}.{} {}", each.at.tile, each.at.phase, each.text));
    }
    all.bytes = std::to_string(all.texts.size());
    return all;
  };
  tell("events", now, ink(true_), ink(other_));
}

void Futures::compare_hovered(Cursor now) {
  const Parts parts = frame_.draw(kSize, [&] { true_.draw_picture(now); });
  // Of many parts alike (the elements of a tile) some are enough.
  const std::size_t every = 1 + parts.size() / (tests::kSweptSizes.size() < 3 ? 15 : 60);
  std::size_t number = 0;
  for (const auto& [id, part] : parts) {
    if (number++ % every != 0) continue;
    ImGui::GetIO().MousePos = tests::center(part);
    same("pointer on " + id, now, kSize, [&](ScenePlayer& player) { player.draw_picture(now); });
  }
  ImGui::GetIO().MousePos = {-1, -1};
}

/// The sentences that readouts say when they are pointed at.
void Futures::same_details(Cursor now) {
  const auto ink = [&](const ScenePlayer& player) {
    Ink all;
    for (const scenes::Readout& each : player.scene().readouts(player.view(now))) {
      all.texts.push_back(each.detail);
    }
    for (const auto& [line, value] : player.scene().source(player.view(now)).values) {
      all.texts.push_back(fmt::format("line {}: {}", line, value));
    }
    return all;
  };
  tell("details", now, ink(true_), ink(other_));
}

/// A table's columns are as wide as all that will stand in them, so that they do not jump; where it is
/// scrolled to hangs on what was on show before.
void Futures::same_tables(std::size_t count, Cursor now) {
  for (std::size_t t = 0; t < count; ++t) {
    const auto ink = [&](const ScenePlayer& player) {
      const lab::Table& table = player.scene().report()->tables[t];
      ui::TableLook look = app::table_look(player, table, now);
      const int current = std::exchange(look.current_row, -1);
      Ink all = ink_of(frame_, kTable, [&] { ui::data_table(table, look); });
      all.texts.push_back(fmt::format("current row {}", current));
      for (auto& [id, part] : all.parts) part.raw_min = part.raw_max = {};
      all.bytes.clear();
      return all;
    };
    tell("table " + true_.scene().report()->tables[t].id, now, ink(true_), ink(other_));
  }
}

void Futures::tell(const std::string& what, Cursor now, const Ink& of_true, const Ink& of_other) {
  const std::string told = difference(of_true, of_other);
  if (!told.empty()) {
    faults_.push_back(fmt::format("step {}.{}, {}: {}", now.tile, now.phase, what, told));
  }
}

void Futures::same(const std::string& what, Cursor now, ImVec2 size,
                   const std::function<void(ScenePlayer&)>& draw) {
  const auto ink = [&](ScenePlayer& player) {
    frame_.show(size, [&] { draw(player); });  // what lights up does so a frame later
    return ink_of(frame_, size, [&] { draw(player); });
  };
  tell(what, now, ink(true_), ink(other_));
}

}  // namespace tilestep::contract
