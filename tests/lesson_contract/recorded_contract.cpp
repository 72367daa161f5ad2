// A number that was recorded earlier stands beside the picture only where the knobs stand as they did then.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/lab/compare.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/base/lab/replay.hpp"
#include "kernels/lessons.hpp"
#include "tests/lesson_contract/knob_cases.hpp"
#include "tests/lesson_contract/pictures.hpp"
#include "tests/part.hpp"
#include "tests/reports.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using lab::Measurement;
using scenes::Readout;

namespace {

bool agree(const lab::Settings& some, const lab::Settings& all) {
  for (const auto& [id, value] : some) {
    const auto found = all.find(id);
    if (found == all.end() || found->second != value) return false;
  }
  return true;
}

/// The same run: knobs without effect may stand otherwise.
bool is_same_run(const lab::Knobs& knobs, const lab::Settings& recorded,
                 const lab::Settings& params) {
  lab::Settings then = knobs.defaults();
  for (const auto& [id, value] : recorded) {
    if (then.count(id) == 0) return false;
    then[id] = value;
  }
  return lab::in_effect(knobs, then) == lab::in_effect(knobs, params);
}

/// What was recorded of `id` for these knobs: beside the picture of the same settings, or in the bench
/// for a case that they are.
std::vector<double> recorded_for(const lab::Lesson& lesson, std::string_view id,
                                 const lab::Settings& params) {
  std::vector<double> values;
  const lab::Recording* recording = lab::recording(lesson.info().id);
  if (recording == nullptr) return values;
  lab::recorded_run(lesson.info().id, [&](const lab::Report& run) {
    for (const Measurement& m : run.measurements) {
      if (m.id != id) continue;
      const auto knobs = lesson.case_of(m);
      const bool same =
          knobs ? agree(*knobs, params) : is_same_run(lesson.knobs(), run.params, params);
      if (same) values.push_back(m.value);
    }
    return false;
  });
  for (const Measurement& m : recording->bench.measurements) {
    const auto knobs = lesson.case_of(m);
    if (m.id == id && knobs && agree(*knobs, params)) values.push_back(m.value);
  }
  return values;
}

/// The number at the start of `text`, and half of its last digit.
std::pair<double, double> shown_number(const std::string& text) {
  const std::size_t point = text.find('.');
  const auto decimals = point == std::string::npos ? 0 : text.size() - point - 1;
  return {std::strtod(text.c_str(), nullptr), 0.5 * std::pow(10.0, -static_cast<int>(decimals))};
}

bool is_dash(const Readout& readout) {
  return readout.value == "—" || readout.value == "–";
}

/// What is wrong with recorded numbers among `readouts`, a line each; `shown` counts them.
std::string recorded_faults(const lab::Lesson& lesson, const std::vector<Readout>& readouts,
                            const lab::Settings& params, int& shown) {
  std::string faults;
  for (const Readout& readout : readouts) {
    if (readout.provenance != lab::Provenance::recorded) continue;
    if (is_dash(readout)) {
      if (readout.detail.empty())
        faults += fmt::format("{}: a dash without a reason\n", readout.id);
      continue;
    }
    ++shown;
    const auto [value, half] = shown_number(readout.value);
    bool found = false;
    for (const double recorded : recorded_for(lesson, readout.id, params)) {
      found = found || std::abs(recorded - value) <= half * (1 + 1e-9);
    }
    if (!found) {
      faults += fmt::format("{} = {} was not recorded for {}\n", readout.id, readout.value,
                            contract::to_text(params));
    }
  }
  return faults;
}

std::vector<Readout> readouts_at_end(const lab::Report& report) {
  const auto scene = tests::scene_of(report.lesson);
  scene->load(report);
  return scene->readouts({contract::some_cursors(*scene).back()});
}

void check_recorded(const lab::Lesson& lesson) {
  std::vector<lab::Settings> all = contract::some_knob_ends(lesson);
  tests::Part part("mixtures of " + lesson.info().id, 8);
  for (const lab::Settings& mixture : contract::knob_mixtures(lesson, 40)) {
    if (!part.skips() && contract::takes(lesson, mixture)) all.push_back(mixture);
  }
  all.emplace_back();
  int shown = 0;
  for (const lab::Settings& settings : all) {
    const lab::Report& report = tests::report_of(lesson.info().id, settings);
    const std::string faults =
        recorded_faults(lesson, readouts_at_end(report), report.params, shown);
    INFO(contract::to_text(settings));
    INFO(faults);
    CHECK(faults.empty());
  }
  // The check sees a number that is shown for other knobs than its own.
  for (Readout readout : readouts_at_end(tests::report_of(lesson.info().id))) {
    readout.provenance = lab::Provenance::recorded;
    readout.value = "123.456";
    CHECK(recorded_faults(lesson, {readout}, lesson.knobs().defaults(), shown) != "");
    readout.value = "—";
    readout.detail.clear();
    CHECK(recorded_faults(lesson, {readout}, lesson.knobs().defaults(), shown) != "");
  }
}

}  // namespace

#define LESSON(chapter, id, title)                                                  \
  TEST_CASE(title ": recorded numbers are those of the knobs", "[" #id "_scene]") { \
    check_recorded(id::lesson());                                                   \
  }
#include "kernels/lessons.def"

namespace {

bool is_kebab(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c == '-' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
}

/// What is wrong with a lesson's telling settings, a line each.
std::string telling_faults(const lab::Lesson& lesson, std::span<const lab::Telling> sets) {
  std::string faults;
  if (sets.size() < 3) faults += fmt::format("{} of at least three\n", sets.size());
  std::set<std::string> names;
  std::set<lab::Settings> settings = {lesson.knobs().defaults()};
  for (const lab::Telling& set : sets) {
    const auto fault = [&](const char* what) { faults += set.name + ": " + what + "\n"; };
    if (!is_kebab(set.name)) fault("no name for a file, as in two-words");
    if (!names.insert(set.name).second) fault("another one's name");
    if (!set.why.ends_with(".")) fault("no sentence on what is to be seen");
    if (!contract::takes(lesson, set.settings)) {
      fault("the lesson does not take it");
    } else if (!settings.insert(lesson.knobs().completed(set.settings)).second) {
      fault("the settings of another, or the defaults");
    }
  }
  return faults;
}

lab::Report recorded(std::string_view lesson, const lab::Settings& settings) {
  return answer({std::string(lesson), settings, lab::Request::Action::run, "recorded"},
                tests::unwatched);
}

/// Every recorded run answers for its settings, also for knobs that the lesson has got since, and is
/// drawn; the defaults among them.
void check_answers(const lab::Lesson& lesson) {
  const std::string& id = lesson.info().id;
  if (lab::recording(id) == nullptr) return;
  std::set<lab::Settings> all = {lesson.knobs().defaults()};
  lab::recorded_run(id, [&](const lab::Report& run) {
    all.insert(lesson.knobs().completed(run.params));
    return false;
  });
  for (const lab::Settings& settings : all) {
    INFO(contract::to_text(settings));
    const lab::Report report = recorded(id, settings);
    CHECK(report.params == settings);
    CHECK(report.device.backend == "recorded");
    CHECK_FALSE(report.recorded_at.empty());
    const auto scene = tests::scene_of(id);
    scene->load(report);
    CHECK(scene->steps().tiles > 0);
  }
}

/// Whether a report has what a lesson declares to be of the machine: "trace.tiles.begin".
bool has_part(const lab::Report& report, const std::string& path) {
  const std::size_t dot = path.find('.');
  const std::string kind = path.substr(0, dot), rest = path.substr(dot + 1);
  if (kind == "measurements") return report.measurement(rest) != nullptr;
  if (kind == "checks") {
    return std::any_of(report.checks.begin(), report.checks.end(),
                       [&](const lab::Check& check) { return check.id == rest; });
  }
  const std::string first = rest.substr(0, rest.find('.'));
  const std::string second = first == rest ? "" : rest.substr(first.size() + 1);
  if (kind == "trace") {
    if (!report.trace->contains(first)) return false;
    const nlohmann::json& part = report.trace->at(first);
    // Of a list its rows have the fields.
    const bool rows = part.is_array() && !part.empty();
    return second.empty() || (rows ? part.front() : part).contains(second);
  }
  const lab::Table* table = kind == "tables" ? report.table(first) : nullptr;
  return table != nullptr &&
         (second.empty() || std::any_of(table->columns.begin(), table->columns.end(),
                                        [&](const lab::Column& c) { return c.id == second; }));
}

/// What a lesson says to be of the machine, or retired, but no run has, a line each.
std::string parts_of_nothing(const lab::Lesson& lesson, const lab::Replay& replay) {
  std::string faults;
  const auto missing = [&](const std::string& path) {
    for (const lab::Telling& set : lesson.telling()) {
      if (has_part(tests::report_of(lesson.info().id, set.settings), path)) return false;
    }
    return lab::recorded_run(lesson.info().id, [&](const lab::Report& run) {
             return has_part(run, path);
           }) == nullptr;
  };
  for (const auto* parts : {&replay.of_machine, &replay.retired}) {
    for (const auto& part : *parts) {
      if (part.why.empty() || missing(part.path)) faults += part.path + "\n";
    }
  }
  for (const auto& order : replay.any_order) {
    for (const std::string& by : order.by) {
      if (missing(order.path + "." + by)) faults += order.path + " by " + by + "\n";
    }
  }
  if (replay.rounding > 0 && replay.rounding_why.empty()) faults += "rounding without a reason\n";
  return faults;
}

/// What was not recorded is refused, and what is offered instead is answered.
void check_refuses(const lab::Lesson& lesson) {
  const std::string& id = lesson.info().id;
  if (lab::recording(id) == nullptr) return;
  int refused = 0;
  tests::Part part("recorded ends of " + id, 12);
  for (const lab::Settings& settings : contract::knob_ends(lesson)) {
    if (part.skips() && refused > 0) continue;
    INFO(contract::to_text(settings));
    try {
      const lab::Report report = recorded(id, settings);
      CHECK(report.params == lesson.knobs().completed(settings));
    } catch (const Error& error) {
      ++refused;
      CHECK(error.code() == ExitCode::unavailable);
      const std::string sentence = error.what();
      CHECK(sentence.find("nearest: --set ") != std::string::npos);
      const auto fix = lab::fix_of(error);
      REQUIRE(fix);
      lab::Settings there = lesson.knobs().completed(settings);
      for (const auto& [knob, value] : fix->settings) {
        CHECK(there.at(knob) != value);
        CHECK(sentence.find(fmt::format("--set {}={}", knob, lab::to_text(value))) !=
              std::string::npos);
        there.at(knob) = value;
      }
      CHECK(recorded(id, there).params == there);
    }
  }
  CHECK(refused > 0);
}

}  // namespace

#define LESSON(chapter, id, title)                                                     \
  TEST_CASE(title ": its recordings are answered from and drawn", "[" #id "_scene]") { \
    check_answers(id::lesson());                                                       \
    check_refuses(id::lesson());                                                       \
  }                                                                                    \
  TEST_CASE(title ": three settings beside the defaults are worth a recording",        \
            "[" #id "_scene]") {                                                       \
    CHECK(telling_faults(id::lesson(), id::lesson().telling()) == "");                 \
    if (lab::recording(id::kLessonId) == nullptr) return;                              \
    CHECK(parts_of_nothing(id::lesson(), id::lesson().replay()) == "");                \
  }
#include "kernels/lessons.def"

TEST_CASE("telling settings that are none are seen", "[scenes_shared]") {
  const lab::Lesson& softmax = lesson("online-softmax");
  const lab::Settings wide = {{"tile_width", std::int64_t{8}}};
  const std::vector<lab::Telling> sets = {{"wide", "It is wide.", wide},
                                          {"wide", "It is wide.", wide},
                                          {"Not so", "", {}},
                                          {"none", "There is none.", {{"query", std::int64_t{9}}}}};
  CHECK(telling_faults(softmax, sets) ==
        "wide: another one's name\n"
        "wide: the settings of another, or the defaults\n"
        "Not so: no name for a file, as in two-words\n"
        "Not so: no sentence on what is to be seen\n"
        "Not so: the settings of another, or the defaults\n"
        "none: the lesson does not take it\n");
  CHECK(telling_faults(softmax, {}) == "0 of at least three\n");
}

TEST_CASE("a part of the machine that no run has is seen", "[scenes_shared]") {
  const lab::Replay replay{.of_machine = {{"trace.steps.m", "why"},
                                          {"trace.steps.x", "why"},
                                          {"tables.tiles.rescale", "why"},
                                          {"tables.tiles.x", "why"},
                                          {"checks.x", "why"},
                                          {"summary", ""}},
                           .any_order = {{"tables.tiles", {"tile", "y"}}},
                           .rounding = 1};
  CHECK(parts_of_nothing(lesson("online-softmax"), replay) ==
        "trace.steps.x\ntables.tiles.x\nchecks.x\nsummary\ntables.tiles by y\n"
        "rounding without a reason\n");
}

TEST_CASE("what was not recorded is refused with the nearest that was", "[scenes_shared]") {
  if (lab::recording("tiling") == nullptr) return;
  const std::string_view elsewhere =
      "; choose --backend emulated, or cuda where there is a GPU, for other settings";
  const auto refusal = [](const lab::Settings& settings) {
    return tests::error_of([&] { recorded("tiling", settings); });
  };
  const lab::Recording& tiling = *lab::recording("tiling");
  CHECK(refusal({{"tile", std::int64_t{9}}}) ==
        fmt::format("these settings of 'tiling' were not recorded; nearest: --set tile=8, recorded "
                    "{} on {}{}",
                    tiling.recorded_at, tiling.run.device.name, elsewhere));
  CHECK(refusal({{"tile", std::int64_t{9}}, {"seed", std::int64_t{2}}})
            .find("nearest: --set seed=1 --set tile=8, recorded") != std::string::npos);
  const auto near = nearest_recorded("tiling", {{"tile", std::int64_t{8}}});
  REQUIRE(near);
  CHECK(near->changes.empty());
  CHECK_FALSE(nearest_recorded("tiling", {}, [](const lab::Report&) { return false; }));
}

TEST_CASE("a number of another case is seen", "[scenes_shared]") {
  const lab::Recording* recording = lab::recording("tiling");
  if (recording == nullptr) return;
  const lab::Lesson& tiling = lesson("tiling");
  const Measurement* m = recording->bench.measurement("registers_per_thread", "shared-tile");
  REQUIRE(m != nullptr);
  CHECK(m->detail.starts_with("32x32 tiles, padded"));  // what its case says
  const std::vector<Readout> readouts = {{"registers_per_thread", "registers",
                                          fmt::format("{:.0f}", m->value), "",
                                          lab::Provenance::recorded, "how"}};
  int shown = 0;
  lab::Settings params = tiling.knobs().completed(
      {{"variant", "shared-tile"}, {"tile", std::int64_t{32}}, {"padding", true}});
  CHECK(recorded_faults(tiling, readouts, params, shown) == "");
  params["padding"] = false;
  CHECK(recorded_faults(tiling, readouts, params, shown) != "");
  params["padding"] = true;
  params["tile"] = std::int64_t{8};
  CHECK(recorded_faults(tiling, readouts, params, shown) != "");
}

TEST_CASE("the tiling lesson shows what its timed kernel takes where the knobs are that kernel's",
          "[tiling_scene]") {
  if (lab::recording("tiling") == nullptr) return;
  const auto registers = [](const lab::Settings& settings) {
    for (const Readout& readout : readouts_at_end(tests::report_of("tiling", settings))) {
      if (readout.id == "registers_per_thread") return readout.value;
    }
    return std::string("none");
  };
  CHECK(registers({}) == "—");
  CHECK(registers({{"tile", std::int64_t{32}}, {"padding", true}}) == "30");
  CHECK(registers({{"variant", "naive"}, {"tile", std::int64_t{32}}}) == "32");
  CHECK(registers({{"variant", "naive"}}) == "—");
  CHECK(registers({{"variant", "warp-tile"}}) == "127");
}
