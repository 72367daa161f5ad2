// What every lesson's guided path promises: each stop stands where its picture has what the text names, and
// numbers that it says of a GPU are those that were recorded there. A lesson without stops need not have one.

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/lab/number.hpp"
#include "lesson_headers.hpp"
#include "scenes/picture/shot.hpp"
#include "scenes/shared/guide.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/stage/measured_plots.hpp"
#include "scenes/ui/picture_view.hpp"
#include "tests/lesson_contract/knob_cases.hpp"
#include "tests/lesson_contract/scaled.hpp"
#include "tests/paths.hpp"
#include "tests/reports.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using scenes::Guide;
using scenes::GuideStop;
using tests::report_of;

namespace {

// ---- what is in a picture ------------------------------------------------------------------------

void add_keys(std::set<std::string>& keys, const picture::Items* items) {
  if (items == nullptr) return;
  for (int item = 0; item < items->count; ++item) keys.insert(to_text(items->key(item)));
}

void add_keys(std::set<std::string>& keys, const picture::Box& box) {
  keys.insert(to_text(box.key));
  for (const picture::Mark& mark : box.marks) {
    keys.insert(to_text(key_of(mark)));
    add_keys(keys, items_of(mark));
    const auto* stacks = std::get_if<picture::Stacks>(&mark);
    if (stacks != nullptr) add_keys(keys, &stacks->held);
  }
  for (const picture::Box& inner : box.boxes) add_keys(keys, inner);
}

// ---- numbers -------------------------------------------------------------------------------------

struct Claim {
  std::string number;
  std::string unit;
};

/// "6.97 against 5.74 TFLOP/s" claims two numbers of one unit.
std::vector<Claim> claims_in(const std::string& text) {
  static const std::regex claim(
      R"((\d+(?:\.\d+)?(?:(?:, | and | against | to | or )\d+(?:\.\d+)?)*)[\s\u00A0]?(GB/s|TFLOP/s|%))");
  static const std::regex number(R"(\d+(?:\.\d+)?)");
  std::vector<Claim> claims;
  for (std::sregex_iterator at(text.begin(), text.end(), claim), end; at != end; ++at) {
    const std::string list = (*at)[1];
    for (std::sregex_iterator each(list.begin(), list.end(), number); each != end; ++each) {
      claims.push_back({each->str(), (*at)[2]});
    }
  }
  return claims;
}

/// The numbers of a bench in this unit. Percents are also what the bench has as shares of 1.
std::vector<double> recorded(const lab::Report& bench, const std::string& unit) {
  std::vector<double> values;
  const auto add = [&](double value, const std::string& of) {
    if (of == unit) values.push_back(value);
    if (unit == "%" && of.empty() && std::abs(value) <= 2) values.push_back(100 * value);
  };
  for (const lab::Measurement& each : bench.measurements) add(each.value, each.unit);
  for (const lab::Table& table : bench.tables) {
    for (const auto& row : table.rows) {
      for (std::size_t c = 0; c < row.size(); ++c) {
        if (const auto* value = std::get_if<double>(&row[c])) add(*value, table.columns[c].unit);
      }
    }
  }
  return values;
}

/// Whether one of `values` reads as `claim` when it is rounded to as many decimals.
bool stands_in(const std::vector<double>& values, const std::string& claim) {
  const std::size_t point = claim.find('.');
  const double decimals =
      point == std::string::npos ? 0 : static_cast<double>(claim.size() - point - 1);
  const double half = 0.5 * std::pow(10.0, -decimals) * (1 + 1e-6);
  const double wanted = *lab::number_of<double>(claim);
  return std::any_of(values.begin(), values.end(),
                     [&](double value) { return std::abs(value - wanted) <= half; });
}

std::vector<std::string> paragraphs(const std::string& text) {
  std::vector<std::string> parts = {""};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (line.empty()) parts.emplace_back();
    parts.back() += line + " ";
    at = end + 1;
  }
  return parts;
}

/// Rates are measured, so each is of the GPU that its paragraph or an earlier one of the same part names;
/// a percent is held to the recording where its paragraph names the GPU.
void check_numbers(const std::string& part, const std::string& lesson) {
  bool named = false;
  for (const std::string& paragraph : paragraphs(part)) {
    const bool here = tests::contains(paragraph, "H200");
    named = named || here;
    for (const Claim& claim : claims_in(paragraph)) {
      if (claim.unit == "%" && !here) continue;
      INFO(claim.number << ' ' << claim.unit << " in: " << paragraph);
      CHECK(named);
      CHECK(stands_in(recorded(tests::recorded_bench(lesson), claim.unit), claim.number));
    }
  }
}

// ---- numbers of the trace -------------------------------------------------------------------------

void add_numbers(std::vector<double>& values, const std::string& text) {
  static const std::regex number(R"(\d+(?:\.\d+)?)");
  for (std::sregex_iterator at(text.begin(), text.end(), number), end; at != end; ++at) {
    values.push_back(*lab::number_of<double>(at->str()));
  }
}

void add_numbers(std::vector<double>& values, const picture::Box& box) {
  add_numbers(values, picture::plain(box.label.full));
  add_numbers(values, picture::plain(box.value.full));
  for (const picture::Mark& mark : box.marks) {
    if (const auto* lines = std::get_if<picture::Lines>(&mark)) {
      for (const picture::Text& row : lines->rows) add_numbers(values, picture::plain(row.full));
    }
    if (const picture::Items* items = items_of(mark)) {
      values.insert(values.end(), items->value.each.begin(), items->value.each.end());
    }
  }
  for (const picture::Box& inner : box.boxes) add_numbers(values, inner);
}

/// What stands in the picture, beside it and under Data, but for what was recorded.
std::vector<double> numbers_at(const scenes::Scene& scene, const scenes::View& view) {
  std::vector<double> values;
  const picture::Picture shown = scene.picture(scene.extent(), view);
  add_numbers(values, picture::plain(shown.headline.full));
  add_numbers(values, shown.root);
  for (const scenes::Readout& readout : scene.readouts(view)) add_numbers(values, readout.value);
  const lab::Recording* recording = lab::recording(scene.report()->lesson);
  for (const lab::Table& table : scene.report()->tables) {
    if (recording != nullptr && recording->bench.table(table.id) != nullptr) continue;
    for (const auto& row : table.rows) {
      for (const lab::Cell& cell : row) {
        if (const auto* value = std::get_if<double>(&cell)) values.push_back(*value);
      }
    }
  }
  return values;
}

/// Every number with a point in a stop's text can be seen at the stop; where it is about measurements, it may
/// be a recorded one.
void check_decimals(const GuideStop& stop, const scenes::Scene& scene, const scenes::View& view) {
  // The end of FP32 and its logarithm; a quotient that figures_test forms.
  static const std::set<std::string> known = {"3.4", "88.7", "1.21"};
  static const std::regex decimal(R"((^|[^\w.])(\d+\.\d+)(?!\w|\.\d))");
  static const std::regex target(R"(\]\([^)]*\))");
  const std::string text = std::regex_replace(stop.text, target, "]");
  std::vector<double> values = numbers_at(scene, view);
  const lab::Recording* recording = lab::recording(scene.report()->lesson);
  const std::pair<const char*, double> units[] = {{"", 1},           {"%", 1},    {"GB/s", 1},
                                                  {"TFLOP/s", 1},    {"µs", 1},   {"ms", 1},
                                                  {"million", 1e-3}, {"MB", 1e-3}};
  for (const auto& [unit, scale] : units) {
    if (recording == nullptr || stop.tab != "measured") break;
    for (const double value : recorded(recording->bench, unit)) values.push_back(scale * value);
  }
  for (std::sregex_iterator at(text.begin(), text.end(), decimal), end; at != end; ++at) {
    const std::string number = (*at)[2];
    INFO(number << " is neither to be seen at the stop nor recorded");
    CHECK((known.count(number) == 1 || stands_in(values, number)));
  }
}

// ---- words ---------------------------------------------------------------------------------------

/// What may stand in backticks: names of knobs and their choices, of kernels and of what they report.
class Names {
 public:
  explicit Names(const lab::Lesson& lesson) : knobs_(lesson.knobs()) {
    for (const lab::Knob& knob : knobs_) {
      names_.insert(knob.id);
      names_.insert(knob.choices.begin(), knob.choices.end());
    }
    add(report_of(lesson.info().id));
    if (const lab::Recording* recording = lab::recording(lesson.info().id)) add(recording->bench);
    const auto scene = tests::scene_of(lesson.info().id);
    scene->load(report_of(lesson.info().id));
    const auto phases = scene->steps().phase_names;
    names_.insert(phases.begin(), phases.end());
  }

  bool know(const std::string& code) const {
    static const std::regex word("[a-z][a-z0-9_-]+"), assignment("[a-z_]+=[a-z0-9.-]+");
    if (std::regex_match(code, assignment)) {
      lab::Settings settings;
      knobs_.set(settings, code);  // or throws what is allowed
      return true;
    }
    if (!std::regex_match(code, word) || names_.count(code) > 0) return true;
    return in_sources(code);
  }

 private:
  /// Kernels are built into the program; what else stands beside them lies on disk.
  static bool in_sources(const std::string& code) {
    for (const lab::Asset& asset : lab::assets()) {
      if (asset.path.starts_with("kernels/") && tests::contains(asset.text, code)) return true;
    }
    namespace fs = std::filesystem;
    for (const auto& entry : fs::recursive_directory_iterator(
             std::string(tilestep::tests::paths::kSource) + "/kernels")) {
      if (entry.path().extension() != ".hpp") continue;
      std::ifstream file(entry.path());
      const std::string text(std::istreambuf_iterator<char>(file), {});
      if (tests::contains(text, code)) return true;
    }
    return false;
  }

  void add(const lab::Report& report) {
    for (const lab::Check& each : report.checks) names_.insert(each.id);
    for (const lab::Measurement& each : report.measurements) {
      names_.insert(each.id);
      names_.insert(each.variant);
    }
    for (const lab::Table& table : report.tables) {
      for (std::size_t row = 0; row < table.rows.size(); ++row) names_.insert(table.text(row, 0));
      for (const lab::Column& column : table.columns) names_.insert(column.id);
    }
  }

  const lab::Knobs& knobs_;
  std::set<std::string> names_;
};

void check_words(std::string_view text, const lab::Lesson& lesson) {
  const Names names(lesson);
  const std::string all(text);
  static const std::regex code("`([^`\n]+)`"), lone_l(R"((^|[\s(*`])l([\s,.;:)*`]|$))");
  for (std::sregex_iterator at(all.begin(), all.end(), code), end; at != end; ++at) {
    INFO("`" << (*at)[1] << "` is no knob, value, kernel or column of the lesson");
    CHECK(names.know((*at)[1]));
  }
  INFO("the denominator is written ℓ");
  CHECK_FALSE(std::regex_search(all, lone_l));
}

// ---- stops ---------------------------------------------------------------------------------------

/// In the shot of a stop, in windows of the sizes that people have, all that it lights is drawn, and the boxes that are
/// left take half of the picture.
void check_shot(const GuideStop& stop, const scenes::Scene& scene, const scenes::View& view) {
  const picture::Picture whole = scene.picture(scene.extent(), view);
  for (const auto& [area, scale] : contract::kStages) {
    const contract::Scaled metrics(scale);
    std::vector<picture::Key> off;
    for (const picture::Box* box : picture::beside(whole, stop.subject(), area, metrics)) {
      off.push_back(box->key);
    }
    const picture::Placed placed = picture::place(whole, area, metrics, off);
    std::set<std::string> drawn;
    for (const auto& piece : placed.pieces) drawn.insert(to_text(piece.of.key));
    for (const auto& stroke : placed.strokes) drawn.insert(to_text(stroke.of.key));
    for (const auto& words : placed.words) drawn.insert(to_text(words.of.key));
    for (const auto& room : placed.rooms) drawn.insert(to_text(room.key));
    for (const std::string& key : stop.light) {
      INFO(key << " is lit, in " << area.width() << " x " << area.height() << " at " << scale);
      CHECK(drawn.count(key) == 1);
    }
    INFO("of " << area.width() << " x " << area.height());
    if (!off.empty() && area.height() > 500)
      CHECK(picture::filled_by(whole, placed) >= picture::kFilled);
  }
}

void check_stop(const lab::Lesson& lesson, const GuideStop& stop, tests::SceneFrame& frame) {
  const std::string& id = lesson.info().id;
  INFO("at the stop " << stop.title);
  CHECK(stop.title.size() <= 64);
  CHECK_FALSE(stop.text.empty());
  const auto scene = tests::scene_of(id);
  scene->load(report_of(id, stop.settings));
  const scenes::StepAxis steps = scene->steps();
  CHECK(stop.step <= steps.tiles);
  if (!stop.phase.empty()) {
    CHECK(scenes::phase_of(stop, steps.phase_names) < steps.phases_in(stop.step));
  }
  const scenes::Cursor cursor = cursor_at(stop, steps);
  std::set<std::string> keys;
  add_keys(keys, scene->picture(scene->extent(), scenes::View{cursor}).root);
  for (const std::string& key : stop.light) {
    INFO(key << " is lit");
    CHECK(keys.count(key) == 1);
  }
  check_decimals(stop, *scene, scenes::View{cursor});
  frame.show({1200, 700}, [&] { check_shot(stop, *scene, scenes::View{cursor}); });
  for (const scenes::GuideLink& link : scenes::links_of(stop.text)) {
    if (!link.target.starts_with("light:")) continue;
    INFO(link.target);
    CHECK(keys.count(link.target.substr(6)) == 1);
  }
  for (const scenes::Try& chip : stop.tries) {
    INFO("the chip " << chip.label);
    CHECK(chip.label.size() <= 30);  // on one line of a narrow column
    lab::Settings settings = stop.settings;
    for (const auto& [knob, value] : chip.settings) settings[knob] = value;
    CHECK(contract::takes(lesson, settings));
  }
}

/// The view that a stop names is one of the lesson's, and so are its filter and the value. A stop that opens Measured
/// says which view.
void check_view(const GuideStop& stop, const scenes::Scene& scene) {
  INFO("at the stop " << stop.title << ", view " << stop.view);
  const auto views = scene.measured_spec().views;
  if (stop.tab == "measured" && views.size() > 1) CHECK_FALSE(stop.view.empty());
  if (stop.view.empty()) {
    CHECK(stop.filter.empty());
    return;
  }
  const auto view = std::find_if(views.begin(), views.end(),
                                 [&](const auto& each) { return each.name == stop.view; });
  REQUIRE(view != views.end());
  if (stop.filter.empty()) return;
  const auto filter = std::find_if(view->filters.begin(), view->filters.end(),
                                   [&](const auto& each) { return each.id == stop.filter; });
  REQUIRE(filter != view->filters.end());
  bool known = false;
  for (const scenes::measured::Plot& plot : view->plots) {
    const lab::Table rows = scenes::measured::rows_of(scenes::measured::rows_of(plot),
                                                      tests::recorded_bench(scene.lesson()));
    for (const std::string& value : scenes::distinct(rows, filter->column)) {
      known = known || value == stop.filtered;
    }
  }
  INFO(stop.filter << " " << stop.filtered);
  CHECK(known);
}

/// What a path asks: before a step that a stop names, and before the charts that its stops open. Nothing is asked twice.
std::size_t check_asks(const lab::Lesson& lesson, const Guide& guide) {
  std::set<std::string> asked;
  std::size_t count = 0;
  for (const GuideStop& stop : guide.stops) {
    INFO("at the stop " << stop.title << ", ask " << stop.ask);
    const auto scene = tests::scene_of(lesson.info().id);
    scene->load(report_of(lesson.info().id, stop.settings));
    if (!stop.ask.empty()) {
      const auto question = scene->question(scenes::View{asked_at(stop, scene->steps())});
      REQUIRE(question);
      CHECK(question->id == stop.ask);
      CHECK(asked.insert(question->text).second);
      ++count;
    }
    if (stop.tab != "measured") continue;
    for (const auto& question :
         scene->measured_questions(tests::recorded_bench(lesson.info().id))) {
      const auto& masks = question.masks;
      const bool masked = std::find(masks.begin(), masks.end(), stop.view) != masks.end();
      count += masked && asked.insert(question.text).second ? 1 : 0;
    }
  }
  return count;
}

void check_guide(const lab::Lesson& lesson) {
  const std::string& id = lesson.info().id;
  const auto scene = tests::scene_of(id);
  scene->load(report_of(id));
  const std::string_view text = scenes::lesson_text(id);
  const Guide guide = scenes::parse_guide(text, lesson.knobs());
  check_words(text, lesson);
  check_numbers(guide.intro, id);
  check_numbers(guide.more, id);
  for (const GuideStop& stop : guide.stops) check_numbers(stop.text, id);
  if (guide.stops.empty()) return;
  CHECK(guide.stops.size() >= 8);
  CHECK(guide.stops.size() <= 15);
  std::size_t tries = 0;
  std::set<std::string> kinds;
  tests::SceneFrame frame;
  for (const GuideStop& stop : guide.stops) {
    check_stop(lesson, stop, frame);
    check_view(stop, *scene);
    tries += stop.tries.size();
    kinds.insert(stop.kind);
  }
  CHECK(check_asks(lesson, guide) >= 4);
  CHECK(tries >= 2);
  CHECK(tries <= 5);
  for (const std::string& kind : scenes::guide_kinds()) {
    INFO("no stop is of kind " << kind);
    CHECK(kinds.count(kind) == 1);
  }
}

}  // namespace

#define LESSON(chapter, id, title)                                                         \
  TEST_CASE(title ": the guided path says what is to be seen", "[" #id "_scene][guide]") { \
    check_guide(id::lesson());                                                             \
  }
#include "kernels/lessons.def"
