// What every lesson promises a classroom: questions, events, knobs for the stage. A lesson that has been
// recorded on a GPU must ask more than one without numbers to ask about.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/recording.hpp"
#include "lesson_headers.hpp"
#include "scenes/shared/questions.hpp"
#include "tests/lesson_contract/future.hpp"
#include "tests/lesson_contract/knob_cases.hpp"
#include "tests/part.hpp"
#include "tests/reports.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using contract::to_text;
using scenes::Cursor, scenes::Question, scenes::Scene;
using tests::report_of;

namespace {

bool recorded(const lab::Lesson& lesson) {
  return lab::recording(lesson.info().id) != nullptr;
}

/// The places between two steps of the first and the last ones.
std::vector<Cursor> between_steps(const Scene& scene) {
  constexpr int kFirst = 100;
  const scenes::StepAxis axis = scene.steps();
  std::vector<Cursor> cursors;
  for (int tile = 0; tile <= axis.tiles; ++tile) {
    if (tile < kFirst || tile > axis.tiles - 3) cursors.push_back({tile, axis.last_phase(tile)});
  }
  return cursors;
}

/// Each choice of a preset: what a knob of names chooses.
std::vector<lab::Settings> presets(const lab::Lesson& lesson) {
  std::vector<lab::Settings> cases = {{}};
  for (const lab::Knob& knob : lesson.knobs()) {
    if (knob.kind != lab::KnobKind::choice && knob.kind != lab::KnobKind::toggle) continue;
    for (const lab::Settings& settings : contract::some_knob_ends(lesson)) {
      if (settings.count(knob.id) > 0) cases.push_back(settings);
    }
  }
  return cases;
}

// ---- one question ------------------------------------------------------------------------------

bool in_picture(const picture::Box& box, const picture::Key& key) {
  if (box.key == key) return true;
  const auto has = [&](const picture::Mark& mark) { return picture::has(mark, key); };
  return std::any_of(box.marks.begin(), box.marks.end(), has) ||
         std::any_of(box.boxes.begin(), box.boxes.end(),
                     [&](const picture::Box& inner) { return in_picture(inner, key); });
}

bool has_line(const picture::Box& box, const picture::Key& in) {
  if (box.key == in && box.boxes.empty() && !box.marks.empty()) {
    return picture::key_of(box.marks.back()) == picture::Key{"guess"} &&
           std::holds_alternative<picture::Rule>(box.marks.back());
  }
  return std::any_of(box.boxes.begin(), box.boxes.end(),
                     [&](const picture::Box& inner) { return has_line(inner, in); });
}

/// The reason is a clause, so that "No: they shrink, because …" is one sentence, and says more than the answer.
void check_reason(const Question& question) {
  const std::string& reason = question.because;
  INFO(reason);
  REQUIRE(reason.size() > 1);
  CHECK(reason.back() == '.');
  CHECK(reason == scenes::lowered(reason));
  CHECK(reason.find(". ") == std::string::npos);
  CHECK(reason.find("\n") == std::string::npos);
  CHECK_FALSE(reason.starts_with(scenes::answer_text(question) + ":"));
}

void check_choices(const Question& question) {
  CHECK(question.choices.size() >= 2);
  CHECK(question.choices.size() <= 4);
  const std::set<std::string> different(question.choices.begin(), question.choices.end());
  CHECK(different.size() == question.choices.size());
  CHECK(different.count("") == 0);
  CHECK(question.answer >= 0);
  CHECK(question.answer < static_cast<int>(question.choices.size()));
}

/// A number to be set stands on its axis, and cannot be hit blindly.
void check_number(const Question& question, const picture::Picture& picture) {
  REQUIRE(question.values.size() == 1);
  REQUIRE(question.where.size() == 1);
  const auto axis =
      std::find_if(picture.axes.begin(), picture.axes.end(),
                   [&](const picture::Axis& each) { return each.name == question.axis; });
  REQUIRE(axis != picture.axes.end());
  const double span = axis->high - axis->low;
  CHECK(question.values[0] >= axis->low);
  CHECK(question.values[0] <= axis->high);
  CHECK(question.tolerance >= 0.005 * span);
  CHECK(question.tolerance <= 0.15 * span);
  // What is guessed stands there as a line.
  picture::Picture guessed = picture;
  scenes::add_guess(guessed, question, {{}, -1, question.values[0]});
  CHECK(has_line(guessed.root, question.where[0]));
}

void check_question(const Question& question, const Scene& scene, Cursor cursor) {
  INFO(question.text);
  CHECK(question.text.find('?') != std::string::npos);
  check_reason(question);
  CHECK(scene.question({cursor})->text == question.text);
  CHECK(scene.question({cursor})->answer == question.answer);
  CHECK(cursor.tile < scene.steps().tiles);
  const picture::Picture picture = scene.picture(scene.extent(), {cursor});
  if (question.choices.empty()) {
    check_number(question, picture);
  } else {
    check_choices(question);
  }
  for (const picture::Key& key : question.where) {
    CAPTURE(picture::to_text(key));
    CHECK(in_picture(picture.root, key));
  }
}

/// A number that is asked for at step after step: what it was is no right guess at what it becomes.
struct Before {
  int tile = -2;
  double value = 0;
};
void check_moves(const Question& question, int tile, std::map<std::string, Before>& before) {
  if (!question.choices.empty()) return;
  const double now = question.values[0];
  Before& last = before[question.id];
  CAPTURE(last.value, now, question.tolerance);
  const bool asked = last.tile + 1 == tile && last.value != now;
  CHECK((!asked || std::abs(last.value - now) > question.tolerance));
  last = {tile, now};
}

/// The answers' places, for each number of choices: each question of each run once.
struct Places {
  std::map<std::size_t, std::array<int, 4>> counts;

  void add(const Question& question) {
    if (!question.choices.empty())
      ++counts[question.choices.size()][static_cast<std::size_t>(question.answer)];
  }
  /// Chi-square with as many less one degrees of freedom; a fair draw passes in all but one of 10,000.
  void check() const {
    constexpr double kMost[] = {0, 0, 15.2, 18.5, 21.2};
    for (const auto& [choices, places] : counts) {
      int all = 0;
      for (const int count : places) all += count;
      const double fair = static_cast<double>(all) / static_cast<double>(choices);
      double sum = 0;
      for (std::size_t i = 0; i < choices; ++i)
        sum += (places[i] - fair) * (places[i] - fair) / fair;
      CAPTURE(choices, places[0], places[1], places[2], places[3]);
      CHECK(sum < kMost[choices]);
    }
  }
};

/// Well formed, asked again alike, none after the end, and the answer at no favourite place.
void check_questions(const lab::Lesson& lesson) {
  constexpr int kRuns = tests::kFewShapes ? 40 : 200;
  const auto scene = tests::scene_of(lesson.info().id);
  std::vector<lab::Settings> cases = contract::some_knob_ends(lesson);
  tests::Part part("questions of " + lesson.info().id, 5);
  for (const lab::Settings& settings : contract::knob_mixtures(lesson, kRuns)) {
    if (!part.skips() && contract::takes(lesson, settings)) cases.push_back(settings);
  }
  Places places;
  std::set<std::string> known;
  for (const lab::Settings& settings : cases) {
    INFO(to_text(settings));
    const lab::Report& report = report_of(lesson.info().id, settings);
    scene->load(report);
    std::map<std::string, Before> before;
    for (const Cursor cursor : between_steps(*scene)) {
      const auto question = scene->question({cursor});
      if (!question) continue;
      CAPTURE(cursor.tile, cursor.phase);
      check_question(*question, *scene, cursor);
      check_moves(*question, cursor.tile, before);
      if (known.insert(question->text + to_text(report.params)).second) places.add(*question);
    }
  }
  CHECK_FALSE(known.empty());
  places.check();
}

// ---- all of a lesson ---------------------------------------------------------------------------

/// How often each kind is asked in a run.
std::map<std::string, int> kinds_of(const Scene& scene) {
  std::map<std::string, int> kinds;
  for (const Cursor cursor : between_steps(scene)) {
    if (const auto question = scene.question({cursor})) ++kinds[question->id];
  }
  return kinds;
}

void check_kinds(const lab::Lesson& lesson) {
  if (!recorded(lesson)) return;
  const auto scene = tests::scene_of(lesson.info().id);
  std::set<std::string> kinds;
  bool number = false;
  for (const lab::Settings& settings : presets(lesson)) {
    INFO(to_text(settings));
    scene->load(report_of(lesson.info().id, settings));
    for (const auto& [kind, times] : kinds_of(*scene)) {
      CAPTURE(kind, times);
      CHECK_FALSE(kind.empty());
      if (scene->steps().tiles > 2) CHECK(times < scene->steps().tiles);
      kinds.insert(kind);
    }
    for (const Cursor cursor : between_steps(*scene)) {
      const auto question = scene->question({cursor});
      number = number || (question && question->choices.empty());
    }
  }
  CHECK(kinds.size() >= 3);
  // One that is set, not chosen. Numbers of a small format are too few and too near for a scale.
  CHECK((number || lesson.info().id == "accumulator-precision"));
  scene->load(report_of(lesson.info().id));
  CHECK(kinds_of(*scene).size() >= 3);
  for (const Question& question :
       scene->measured_questions(tests::recorded_bench(lesson.info().id))) {
    kinds.insert(question.id);
  }
  CHECK(kinds.size() >= 5);
}

// ---- about measurements ------------------------------------------------------------------------

/// The bench as another GPU might have measured it.
lab::Report other_bench(const lab::Report& bench, std::mt19937& random) {
  lab::Report other = bench;
  const auto change = [&](double& value) {
    value *= 0.2 + 0.2 * static_cast<double>(random() % 10);
  };
  for (lab::Table& table : other.tables) {
    for (auto& row : table.rows) {
      for (std::size_t c = 0; c < row.size(); ++c) {
        double* number = std::get_if<double>(&row[c]);
        const std::string& id = table.columns[c].id;
        const bool names_row = c == 0 || id == "columns" || id == "bytes" || id == "size" ||
                               id == "experts" || id == "skew" || id == "k" ||
                               id == "element_bytes" || id == "stride" || id == "head_dim" ||
                               id == "length" || id == "page_size";
        if (number != nullptr && !names_row) change(*number);
      }
    }
  }
  for (lab::Measurement& each : other.measurements) change(each.value);
  return other;
}

void check_measured_questions(const lab::Lesson& lesson) {
  if (!recorded(lesson)) return;
  const auto scene = tests::scene_of(lesson.info().id);
  scene->load(report_of(lesson.info().id));
  const lab::Report& bench = tests::recorded_bench(lesson.info().id);
  const std::vector<Question> asked = scene->measured_questions(bench);
  CHECK(asked.size() >= 2);
  std::set<std::string> views, kinds;
  for (const auto& view : scene->measured_spec().views) views.insert(view.name);
  for (const Question& question : asked) {
    INFO(question.text);
    CHECK(question.text.find('?') != std::string::npos);
    check_choices(question);
    check_reason(question);
    CHECK(kinds.insert(question.id).second);
    CHECK(tests::contains(question.because, bench.device.name));
    CHECK(question.because.find_first_of("0123456789") != std::string::npos);
    CHECK_FALSE(question.masks.empty());
    for (const std::string& mask : question.masks) CHECK(views.count(mask) == 1);
  }
  // The answers are the bench's own.
  std::mt19937 random(7);
  std::map<std::string, int> changed;
  for (int i = 0; i < 40; ++i) {
    for (const Question& other : scene->measured_questions(other_bench(bench, random))) {
      check_choices(other);
      const auto same = std::find_if(asked.begin(), asked.end(), [&](const Question& each) {
        return each.id == other.id && scenes::answer_text(each) == scenes::answer_text(other);
      });
      if (same == asked.end()) ++changed[other.id];
    }
  }
  for (const std::string& kind : kinds) {
    CAPTURE(kind);
    CHECK(changed[kind] > 0);
  }
  // No rows, no question.
  lab::Report empty = bench;
  for (lab::Table& table : empty.tables) table.rows.clear();
  empty.measurements.clear();
  CHECK(scene->measured_questions(empty).empty());
  empty.tables.clear();
  CHECK(scene->measured_questions(empty).empty());
}

// ---- events, knobs -----------------------------------------------------------------------------

int letters(const std::string& text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
  }));
}

void check_events(const lab::Lesson& lesson) {
  constexpr int kMostLetters = 48, kMostEvents = 24;
  const auto scene = tests::scene_of(lesson.info().id);
  std::vector<lab::Settings> cases = contract::some_knob_ends(lesson);
  cases.push_back({});
  for (const lab::Settings& settings : cases) {
    INFO(to_text(settings));
    scene->load(report_of(lesson.info().id, settings));
    const scenes::StepAxis axis = scene->steps();
    const std::vector<scenes::Event> events = scene->events();
    Cursor before{};
    std::set<int> steps;
    for (const scenes::Event& event : events) {
      CAPTURE(event.text, event.at.tile, event.at.phase);
      CHECK_FALSE(event.text.empty());
      CHECK(letters(event.text) < kMostLetters);
      CHECK(event.at.tile >= 1);
      CHECK(event.at.tile <= axis.tiles);
      CHECK(event.at.phase >= 0);
      CHECK(event.at.phase < axis.phases_in(event.at.tile));
      CHECK(before <= event.at);
      before = event.at;
      // In a folded step each phase is what a step is elsewhere.
      const bool folded = axis.folded > 0 && event.at.tile == axis.tiles;
      steps.insert(folded ? axis.tiles + event.at.phase : event.at.tile);
    }
    const int steps_of_all = axis.tiles + std::max(axis.folded - 1, 0);
    if (steps_of_all > 2) CHECK(static_cast<int>(steps.size()) < steps_of_all);
    if (steps_of_all > 8)
      CHECK(static_cast<int>(events.size()) <= std::max(kMostEvents, steps_of_all / 4));
    if (recorded(lesson) && settings.empty()) CHECK(events.size() >= 2);
  }
}

void check_stage_knobs(const lab::Lesson& lesson) {
  const auto scene = tests::scene_of(lesson.info().id);
  const std::vector<std::string> ids = scene->stage_knobs();
  if (recorded(lesson)) CHECK_FALSE(ids.empty());
  CHECK(ids.size() <= 3);
  CHECK(std::set<std::string>(ids.begin(), ids.end()).size() == ids.size());
  for (const std::string& id : ids) CHECK_NOTHROW(lesson.knobs().at(id));
}

// ---- nothing on screen answers -----------------------------------------------------------------

/// Kinds whose answer follows from what is seen, by thinking; or hangs on the launch as a whole, which no
/// future changes; or on steps that are all alike, so that another order of them changes nothing.
constexpr std::string_view kClosed[] = {"weight-ratio", "old-weight",     "masked-tile",
                                        "heaviest-key", "races",          "launch-loads",
                                        "loads",        "loader",         "gate",
                                        "wanted",       "slots",          "blocks",
                                        "border",       "threads",        "announced",
                                        "swizzle",      "empty-barrier",  "consumers",
                                        "visited",      "crossings",      "flops",
                                        "o-traffic",    "busy",           "adders",
                                        "kept",         "products",       "keep-or-recompute",
                                        "busy-blocks",  "batch-and-roof", "what-paging-does",
                                        "stored",       "crossing",       "at-work",
                                        "bytes-asked",  "arm-lanes",      "block-limit",
                                        "waves",        "four-chains",    "twice-the-registers",
                                        "shift-both",   "turn-values",    "unfinished",
                                        "launch-bytes"};

void check_open(const lab::Lesson& lesson, contract::OtherFuture other_future,
                contract::TablesOf tables_of) {
  contract::Futures futures([&] { return tests::scene_of(lesson.info().id); }, other_future,
                            tables_of);
  std::map<std::string, contract::Futures::Asked> asked;
  constexpr int kSeeds = 4;
  const bool few = tests::kSweptSizes.size() < 3;  // under a sanitizer
  for (const lab::Settings& settings : few ? std::vector<lab::Settings>{{}} : presets(lesson)) {
    INFO(to_text(settings));
    CHECK(futures.compare_asked(settings, kSeeds, asked) == std::vector<std::string>());
  }
  for (const auto& [kind, how] : asked) {
    CAPTURE(kind, how.times, how.open);
    const bool closed =
        std::find(std::begin(kClosed), std::end(kClosed), kind) != std::end(kClosed);
    // One run alone has too few of a kind to say.
    if (recorded(lesson) && !few) CHECK((how.open > 0 || closed));
  }
}

}  // namespace

#define LESSON(chapter, id, title)                                                          \
  TEST_CASE(title ": questions", "[" #id "_scene][questions]") {                            \
    check_questions(id::lesson());                                                          \
  }                                                                                         \
  TEST_CASE(title ": kinds of questions", "[" #id "_scene][questions]") {                   \
    check_kinds(id::lesson());                                                              \
  }                                                                                         \
  TEST_CASE(title ": questions about measurements", "[" #id "_scene][questions]") {         \
    check_measured_questions(id::lesson());                                                 \
  }                                                                                         \
  TEST_CASE(title ": events", "[" #id "_scene][questions]") {                               \
    check_events(id::lesson());                                                             \
  }                                                                                         \
  TEST_CASE(title ": knobs for the stage", "[" #id "_scene][questions]") {                  \
    check_stage_knobs(id::lesson());                                                        \
  }                                                                                         \
  TEST_CASE(title ": nothing on screen answers a question", "[" #id "_scene][questions]") { \
    check_open(id::lesson(), id::other_future, contract::tables_from<id::Trace>);           \
  }
#include "kernels/lessons.def"
