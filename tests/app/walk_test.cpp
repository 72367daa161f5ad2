// What a user does with a lesson, with real keys and a real pointer, for every lesson that `list` names:
// a new one is walked without further ado. TILESTEP_WALK names one that is walked alone.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/app/display_window.hpp"
#include "tests/catch.hpp"
#include "tests/part.hpp"
#include "tests/paths.hpp"

using namespace tilestep::tests;
using namespace std::chrono_literals;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// ---- which lessons ---------------------------------------------------------------------------------

std::string id_of(const json& lesson) {
  return lesson.at("id").get<std::string>();
}

json all_lessons() {
  return run_tilestep({"list", "--json"}).json().at("lessons");
}

std::vector<json> lessons_to_walk() {
  const char* only = std::getenv("TILESTEP_WALK");
  std::vector<json> chosen;
  bool known = only == nullptr;
  Part part("walks", 8);
  for (const json& lesson : all_lessons()) {
    const bool skipped = part.skips();
    if (only != nullptr && id_of(lesson) != only) continue;
    known = true;
    if (!skipped) chosen.push_back(lesson);
  }
  INFO("TILESTEP_WALK is '" << (only == nullptr ? "" : only) << "'");
  REQUIRE(known);
  return chosen;
}

// ---- a window on a lesson --------------------------------------------------------------------------

/// Where a window keeps its settings and what is saved.
class Home {
 public:
  /// `calm`: steps are there at once, so that a test need not wait for each.
  explicit Home(bool calm) {
    fs::create_directories(folder_.path() / "Documents");
    fs::create_directories(folder_.path() / ".config" / "tilestep");
    std::ofstream(folder_.path() / ".config" / "tilestep" / "settings.json")
        << json{{"tilestep_settings", 1}, {"reduce_motion", calm}, {"tour_seen", true}};
  }
  const fs::path& path() const { return folder_.path(); }
  std::vector<fs::path> capsules() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(folder_.path() / "Documents")) {
      if (entry.path().string().ends_with(".tilestep.json")) all.push_back(entry.path());
    }
    return all;
  }

 private:
  TemporaryFolder folder_;
};

struct Look {
  bool calm = true, questions = false;
  std::vector<std::string> more = {};
};

std::vector<std::string> words_for(const json& lesson, const Look& look) {
  std::vector<std::string> words = {"open",     id_of(lesson), "--backend",
                                    "emulated", "--questions", look.questions ? "on" : "off"};
  words.insert(words.end(), look.more.begin(), look.more.end());
  return words;
}

/// A window on a lesson whose first run is through.
class Walk {
 public:
  explicit Walk(const json& its_lesson, const Look& look = {})
      : lesson(its_lesson),
        home(look.calm),
        display(make_display()),
        window(*display, words_for(lesson, look), tilestep::tests::paths::kProgram, home.path()) {
    const bool ready = eventually([&] { return !window.program().alive() || rests(); }, 60s);
    INFO("the last map: " << window.map().dump());
    REQUIRE(ready);
    REQUIRE(window.program().alive());
    window.focus();
    if (auto side = window.at("compare")) side_ = inside(*side);
  }

  /// There is a picture, and no other one is on its way.
  bool rests() const {
    const json& map = window.map();
    if (!map.is_object()) return false;
    bool device = false, progress = false;
    for (const json& part : map.at("parts")) {
      device = device || part.at("id") == "device";
      progress = progress || part.at("id") == "progress";
    }
    return device && !progress;
  }
  void require_rest() {
    const bool rest = eventually([&] { return rests(); });
    INFO("the last map: " << window.map().dump());
    REQUIRE(rest);
  }
  bool becomes(const std::string& id, const std::string& value) {
    return eventually([&] { return window.value(id) == value; });
  }
  bool comes(const std::string& id) {
    return eventually([&] { return window.has(id); });
  }
  bool goes(const std::string& id) {
    return eventually([&] { return !window.has(id); });
  }
  /// R: the knobs' defaults, the first step. `control` is of one that has been turned.
  void reset(const std::string& control, const std::string& value) {
    window.press("r");
    REQUIRE(becomes(control, value));
    require_rest();
    REQUIRE(eventually([&] { return window.step() == 0; }));
  }
  /// A knob's control, whole: the side panel is scrolled to it, on from where it is or from its top.
  std::optional<json> reach(const std::string& id) {
    const auto is_there = [&] {
      const auto part = window.at(id);
      return part && part->at("rect") == part->at("raw");
    };
    for (int notch = 0; notch < 40 && !is_there(); ++notch) {
      window.scroll(side_, notch == 10 ? -30 : 1);
      REQUIRE(eventually([&] { return window.answered(window.map()); }));
    }
    return window.steady(id);
  }
  std::string reached_value(const std::string& id) {
    const auto part = reach(id);
    INFO(id << " in the last map: " << window.map().dump());
    REQUIRE(part);
    return part->at("value").get<std::string>();
  }
  /// Saves a capsule and reads it.
  json capsule() {
    const std::size_t before = home.capsules().size();
    window.press("ctrl+s");
    REQUIRE(eventually([&] { return home.capsules().size() > before; }));
    const auto all = home.capsules();
    newest = *std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return fs::last_write_time(a) < fs::last_write_time(b);
    });
    json read;
    REQUIRE(eventually([&] {
      read = json::parse(file_text(newest), nullptr, false);
      return read.is_object();
    }));
    return read;
  }

  const json lesson;
  const Home home;
  const std::unique_ptr<Display> display;
  Window window;
  fs::path newest;  ///< the capsule that was read last

 private:
  Spot side_{1250, 330};
};

bool can_be_shown() {
  return make_display() != nullptr;
}

#define EACH_LESSON(lesson)    \
  if (!can_be_shown()) return; \
  for (const json& lesson : lessons_to_walk()) DYNAMIC_SECTION(id_of(lesson))

// ---- where a window stands -------------------------------------------------------------------------

struct Place {
  int tile = -1, tiles = -1;
  std::string phase;
};

/// As the transport says it: "Step 2 of 4", "4 steps to come".
Place place_of(const Window& window) {
  const auto part = window.at("place");
  if (!part) return {};
  const std::string words = part->at("label").get<std::string>();
  std::smatch match;
  if (std::regex_match(words, match, std::regex("(\\d+) .* to come"))) {
    return {0, std::stoi(match[1]), ""};
  }
  if (std::regex_match(words, match, std::regex(".* (\\d+) of (\\d+)"))) {
    return {std::stoi(match[1]), std::stoi(match[2]), part->at("value").get<std::string>()};
  }
  return {};
}

// ---- the guided path -------------------------------------------------------------------------------

/// Whether somebody has measured the lesson, so that there is something to show without a GPU.
bool is_recorded(const json& lesson) {
  const fs::path root = fs::path(tilestep::tests::paths::kSource) / "assets" / "recordings";
  const auto all = fs::recursive_directory_iterator(root);
  return std::any_of(begin(all), end(all), [&](const fs::directory_entry& entry) {
    return entry.path().filename() == id_of(lesson) + ".json";
  });
}

/// What a stop's comment in the lesson's text says: `step=2 phase=rescale preset=rising`.
using Stop = std::map<std::string, std::string>;

std::vector<Stop> stops_of(const json& lesson) {
  std::vector<Stop> stops;
  const fs::path root = fs::path(tilestep::tests::paths::kSource) / "assets" / "lessons";
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().filename() != id_of(lesson) + ".md") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      constexpr std::string_view kMark = "<!-- stop:";
      if (!line.starts_with(kMark)) continue;
      std::istringstream words(line.substr(kMark.size()));
      Stop& stop = stops.emplace_back();
      for (std::string word; words >> word && word != "-->";) {
        const std::size_t is = word.find('=');
        stop[word.substr(0, is)] = word.substr(is + 1);
      }
    }
  }
  return stops;
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Two texts of a knob's value: "2" and "2.0" are one.
bool same(const std::string& a, const std::string& b) {
  if (a == b) return true;
  char *end_a = nullptr, *end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
  return !a.empty() && !b.empty() && *end_a == '\0' && *end_b == '\0' && x == y;
}

/// The place is the stop's.
void check_place(const Window& window, const Stop& stop) {
  const int step = stop.count("step") > 0 ? std::stoi(stop.at("step")) : 0;
  CHECK(eventually([&] {
    const Place place = place_of(window);
    return place.tile >= 0 && place.tile == std::min(step, place.tiles);
  }));
  if (stop.count("phase") == 0 || step == 0) return;
  std::string phase = stop.at("phase");
  std::replace(phase.begin(), phase.end(), '_', ' ');
  if (phase.find_first_not_of("0123456789") != std::string::npos) {
    CHECK(eventually([&] { return lower(place_of(window).phase) == lower(phase); }));
  }
}

/// What is on show was run with the stop's knobs, and the others at their defaults.
void check_knobs(Walk& walk, const Stop& stop) {
  json kept;
  const auto is_wanted = [&](const json& knob) {
    const std::string id = knob.at("id").get<std::string>();
    const std::string wanted = stop.count(id) > 0 ? stop.at(id) : text_of(knob.at("default"));
    return same(text_of(kept.at("settings").at(id)), wanted);
  };
  const json& knobs = walk.lesson.at("knobs");
  eventually([&] {  // the run may wait for the one before
    kept = walk.capsule();
    return std::all_of(knobs.begin(), knobs.end(), is_wanted);
  });
  for (const json& knob : knobs) {
    INFO(knob.at("id") << " in " << kept.at("settings"));
    CHECK(is_wanted(knob));
  }
}

void check_tab(Window& window, const Stop& stop) {
  if (stop.count("tab") > 0) {
    CHECK(eventually([&] { return window.is_selected("tab_" + stop.at("tab")); }));
  } else {
    CHECK(eventually([&] { return !window.has("tab_data"); }));  // nothing lies over the picture
  }
}

/// A chip of the stop on show sets something else on foot, and Esc comes back.
bool tries_out(Walk& walk, std::size_t stop) {
  Window& window = walk.window;
  const std::string id = "s" + std::to_string(stop) + "_try_0";
  const auto chip = window.at(id);
  if (!chip || !is_whole(*chip)) return false;
  const Place before = place_of(window);
  REQUIRE(window.click_on(id));
  REQUIRE(eventually([&] { return window.label("stop_next") == "Back to the stop"; }));
  walk.require_rest();
  CHECK_FALSE(window.has("failure"));
  window.press("Escape");
  CHECK(eventually([&] { return window.label("stop_next") != "Back to the stop"; }));
  walk.require_rest();
  CHECK(place_of(window).tile == before.tile);
  return true;
}

// ---- questions -------------------------------------------------------------------------------------

/// How many were right, of how many, as the score says: "1 of 2 right".
std::pair<int, int> score_of(const Window& window) {
  std::smatch match;
  const std::string words = window.value("score");
  if (!std::regex_match(words, match, std::regex("(\\d+) of (\\d+) right"))) return {0, 0};
  return {std::stoi(match[1]), std::stoi(match[2])};
}

bool asks(const Window& window) {
  return window.has("question") && !window.has("predict_verdict") &&
         (window.has("predict_0") || window.has("predict_number"));
}

/// → until a question is open, of which kind ever or with choices. False: the end is there before.
bool go_to_question(Window& window, const std::string& key = "Right", bool with_choices = false) {
  for (int presses = 0; presses < 80; ++presses) {
    const bool open = asks(window);
    if (open && (!with_choices || window.has("predict_0"))) return true;
    const Place place = place_of(window);
    if (place.tile == place.tiles) return false;
    const int step = window.step();
    window.press(key);
    REQUIRE(eventually([&] { return window.step() > step || (!open && asks(window)); }));
  }
  return false;
}

/// Answers with the choice `index`, or a number, and lets the step be shown. Returns whether it was right.
bool answer(Window& window, int index) {
  const int step = window.step();
  const auto before = score_of(window);
  if (window.has("predict_0")) {
    const std::string choice = "predict_" + std::to_string(index);
    REQUIRE(window.has(choice));
    window.press(std::string(1, static_cast<char>('a' + index)));
    REQUIRE(eventually([&] { return window.is_selected(choice); }));
  } else {
    const auto slider = window.at("predict_number");
    const std::string value = window.value("predict_number");
    window.take_hold(inside(*slider, 0.2));
    window.point_at(inside(*slider, 0.25 + 0.1 * index));
    REQUIRE(eventually([&] { return window.value("predict_number") != value; }));
    window.let_go();
  }
  // What was said stands, and nothing has been shown yet.
  CHECK(window.step() == step);
  CHECK_FALSE(window.has("predict_verdict"));
  window.press("Right");
  REQUIRE(eventually([&] { return window.has("predict_verdict"); }));
  CHECK(window.step() == step + 1);
  const std::string verdict = window.value("predict_verdict");
  const bool right = verdict == "right";
  CHECK((right || verdict == "wrong"));
  CHECK(eventually([&] {
    return score_of(window) == std::pair(before.first + (right ? 1 : 0), before.second + 1);
  }));
  return right;
}

int choices_of(const Window& window) {
  int count = 0;
  while (window.has("predict_" + std::to_string(count))) ++count;
  return count;
}

// ---- knobs -----------------------------------------------------------------------------------------

double number(const std::string& text) {
  return text == "off" ? 0 : std::strtod(text.c_str(), nullptr);
}

/// Along its whole range: the handle stays below the pointer, and the slider where it is.
void drag_slider(Walk& walk, const json& knob) {
  Window& window = walk.window;
  const std::string id = "slider_" + knob.at("id").get<std::string>();
  walk.require_rest();  // a report that comes later would move it
  const auto slider = walk.reach(id);
  REQUIRE(slider);
  const double most = knob.at("max").get<double>();
  const double least = knob.contains("zero") ? 0 : knob.at("min").get<double>();
  const auto is_at = [&](double low, double high) {
    return eventually([&] {
      const double now = number(window.value(id));
      return window.at(id) && now >= low && now <= high;
    });
  };
  window.take_hold(inside(*slider, 0.4));
  double before = -1;
  for (const double share : {0.0, 0.3, 0.6, 1.0}) {
    INFO(id << " at " << share << " is " << window.value(id));
    window.point_at(inside(*slider, share == 1 ? 0.999 : share));
    if (share == 0) {
      CHECK(is_at(least, least));
    } else if (share == 1) {
      CHECK(is_at(most, most));
    } else {
      CHECK(is_at(before, most));
      // One of few whole numbers takes the nearest.
      const bool rises = most - least > 4 || std::round(least + share * (most - least)) > before;
      CHECK(eventually([&] { return number(window.value(id)) > before; }, rises ? 60s : 1s) ==
            rises);
    }
    before = number(window.value(id));
    // Pictures, numbers and refusals come and go meanwhile; the slider is where the hand is.
    const auto now = window.at(id);
    REQUIRE(now);
    CHECK(now->at("raw") == slider->at("raw"));
  }
  window.point_at(inside(*slider, 0.4));
  CHECK(eventually([&] { return number(window.value(id)) < most; }));
  window.let_go();
  walk.require_rest();
}

/// Another choice than the one that it has: of a list that opens, or of a row.
void choose_another(Walk& walk, const json& knob) {
  Window& window = walk.window;
  const std::string id = "knob_" + knob.at("id").get<std::string>();
  const auto control = walk.reach(id);
  REQUIRE(control);
  const std::string before = window.value(id);
  const auto choices = knob.at("choices").get<std::vector<std::string>>();
  const std::size_t other = choices.front() == before ? 1 : 0;
  const std::string choice = id + "_" + std::to_string(other);
  if (!window.has(choice)) {
    window.click(*control);
  }
  REQUIRE(window.click_on(choice));
  CHECK(walk.becomes(id, choices[other]));
  walk.require_rest();
}

void turn_switch(Walk& walk, const json& knob) {
  const std::string id = "knob_" + knob.at("id").get<std::string>();
  const auto control = walk.reach(id);
  REQUIRE(control);
  const std::string before = walk.window.value(id);
  walk.window.click(*control);
  CHECK(walk.becomes(id, before == "true" ? "false" : "true"));
  walk.require_rest();
}

/// What its own words give as an example.
void type_text(Walk& walk, const json& knob) {
  const std::string id = "knob_" + knob.at("id").get<std::string>();
  const std::string allowed = knob.at("allowed").get<std::string>();
  std::smatch match;
  REQUIRE(std::regex_search(allowed, match, std::regex("such as ([^ ]*[^ ,])")));
  const auto control = walk.reach(id);
  REQUIRE(control);
  walk.window.click(*control);
  REQUIRE(walk.window.steady(id));
  walk.window.type(match[1]);  // in place of what stands there, which a click selects
  walk.window.hold("Return");
  CHECK(walk.becomes(id, match[1]));
  walk.window.let_go("Return");
  walk.require_rest();
}

/// The id of what a hand takes hold of.
std::string control_of(const json& knob) {
  const std::string kind = knob.at("kind").get<std::string>();
  return (kind == "integer" || kind == "real" ? "slider_" : "knob_") +
         knob.at("id").get<std::string>();
}

void turn(Walk& walk, const json& knob) {
  const std::string kind = knob.at("kind").get<std::string>();
  INFO(knob.dump());
  if (kind == "integer" || kind == "real") {
    drag_slider(walk, knob);
  } else if (kind == "choice") {
    choose_another(walk, knob);
  } else if (kind == "toggle") {
    turn_switch(walk, knob);
  } else {
    REQUIRE(kind == "text");
    type_text(walk, knob);
  }
}

}  // namespace

TEST_CASE("a lesson's guided path leads from its first stop to its last", "[walk]") {
  EACH_LESSON(lesson) {
    Walk walk(lesson);
    Window& window = walk.window;
    const std::vector<Stop> stops = stops_of(lesson);
    REQUIRE(stops.size() >= 8);
    window.press("l");
    REQUIRE(walk.comes("lesson_text"));
    const auto says = [&](std::size_t stop) {
      return "Stop " + std::to_string(stop) + " of " + std::to_string(stops.size());
    };
    bool tried = false;
    for (std::size_t stop = 1; stop <= stops.size(); ++stop) {
      INFO("stop " << stop);
      window.press("bracketright");
      REQUIRE(eventually([&] { return window.label("reader_place") == says(stop); }));
      // The text has come along.
      CHECK(eventually([&] { return window.is_selected("stop_" + std::to_string(stop)); }));
      walk.require_rest();
      CHECK_FALSE(window.has("failure"));
      check_tab(window, stops[stop - 1]);
      check_knobs(walk, stops[stop - 1]);
      check_place(window, stops[stop - 1]);
      tried = tried || tries_out(walk, stop);
    }
    CHECK(tried);
    // After the last stop the next lesson is to come, if there is one.
    const bool last = id_of(all_lessons().back()) == id_of(lesson);
    CHECK(window.label("stop_next") == (last ? "Next stop" : "Next lesson"));
    CHECK(window.value("stop_next") == (last ? "disabled" : ""));
    window.press("bracketleft");
    CHECK(eventually([&] { return window.label("reader_place") == says(stops.size() - 1); }));
    window.press("l");
    CHECK(walk.goes("lesson_text"));
  }
}

TEST_CASE("a lesson's questions are answered right and wrong by the score", "[walk]") {
  EACH_LESSON(lesson) {
    Walk walk(lesson, {.questions = true});
    Window& window = walk.window;
    REQUIRE(go_to_question(window));
    const bool first = answer(window, 0);
    const auto start_again = [&] {
      window.press("r");
      REQUIRE(eventually([&] { return window.step() == 0 && !window.has("predict_verdict"); }));
      walk.require_rest();
    };
    start_again();
    // Whoever asks again is asked the same, so that one of the choices is right and the others wrong.
    bool right = first, wrong = !first;
    for (int choice = 0; choice < 4 && !(right && wrong); ++choice) {
      REQUIRE(go_to_question(window, "Right", true));
      const std::string question = window.label("question");
      if (choice < choices_of(window)) (answer(window, choice) ? right : wrong) = true;
      CHECK(window.label("question") == question);  // it stays until the next step
      start_again();
    }
    CHECK(right);
    CHECK(wrong);
    // Another → goes without an answer.
    REQUIRE(go_to_question(window));
    const int step = window.step();
    const auto before = score_of(window);
    window.press("Right");
    CHECK(eventually([&] { return window.step() == step + 1 && !asks(window); }));
    REQUIRE(window.click_on("tab_predict"));
    CHECK(eventually([&] { return score_of(window) == before; }));
  }
}

TEST_CASE("a lesson's measurements are asked about before they are shown", "[walk]") {
  EACH_LESSON(lesson) {
    Walk walk(lesson, {.questions = true});
    Window& window = walk.window;
    window.press("m");
    REQUIRE(eventually([&] { return window.is_selected("tab_measured"); }));
    bool asked = false;
    for (int view = 0; window.has("measured_view_" + std::to_string(view)) || view == 0; ++view) {
      const std::string id = "measured_view_" + std::to_string(view);
      if (window.has(id)) {
        REQUIRE(window.click_on(id));
        REQUIRE(eventually([&] { return window.is_selected(id); }));
      }
      for (int questions = 0; window.has("question") && questions < 5; ++questions) {
        asked = true;
        const std::string question = window.label("question");
        window.press(questions % 2 == 0 ? "a" : "b");
        REQUIRE(walk.comes("predict_verdict"));
        const std::string verdict = window.value("predict_verdict");
        CHECK((verdict == "right" || verdict == "wrong"));
        REQUIRE(window.click_on("see_measurement"));
        CHECK(eventually([&] { return window.label("question") != question; }));
      }
      CHECK_FALSE(window.has("question"));
    }
    CHECK(asked == is_recorded(lesson));
  }
}

TEST_CASE("a lesson is stepped through and scrubbed and played", "[walk]") {
  EACH_LESSON(lesson) {
    Walk walk(lesson, {.calm = false});
    Window& window = walk.window;
    const int tiles = place_of(window).tiles;
    REQUIRE(tiles > 1);
    // The second press ends what the first began. Where several steps are a unit, Shift goes by single steps.
    const bool units = window.label("next_line") == "Next step";
    const std::string shift = units ? "shift+" : "";
    for (int step = 1; step <= 2; ++step) {
      window.press(shift + "Right");
      window.press(shift + "Right");
      CHECK(eventually([&] { return window.step() == step; }));
    }
    CHECK(place_of(window).tile == 2);
    window.press(shift + "Left");
    CHECK(eventually([&] { return window.step() == 1 && place_of(window).tile == 1; }));
    if (units) {
      window.press("Right");
      CHECK(eventually([&] { return window.step() > 2; }));
      window.press("Left");
      window.press("Left");
      CHECK(eventually([&] { return window.step() == 0; }));
    }
    window.press("End");
    CHECK(eventually([&] { return window.step() == tiles; }));
    CHECK(window.value("next") == "disabled");
    window.press("Home");
    CHECK(eventually([&] { return window.step() == 0; }));
    window.press("n");
    CHECK(eventually([&] { return place_of(window).tile > 0; }));

    const auto scrubber = window.at("scrubber");
    REQUIRE(scrubber);
    window.take_hold(inside(*scrubber, 0.1));
    window.point_at(inside(*scrubber, 0.999));
    CHECK(eventually([&] { return window.step() == tiles; }));
    window.point_at(inside(*scrubber, 0.5));
    CHECK(eventually([&] { return std::abs(window.step() - tiles / 2) <= 1; }));
    CHECK(window.at("scrubber")->at("rect") == scrubber->at("rect"));
    window.point_at(inside(*scrubber, 0));
    CHECK(eventually([&] { return window.step() == 0; }));
    window.let_go();

    window.press("space");
    CHECK(eventually([&] { return window.label("play") == "Pause"; }));
    CHECK(eventually([&] { return window.step() >= 1; }));
    window.press("space");
    CHECK(eventually([&] { return window.label("play") == "Play"; }));
    CHECK_FALSE(window.has("failure"));
  }
}

TEST_CASE("a lesson's tabs come by key and by click", "[walk]") {
  EACH_LESSON(lesson) {
    Walk walk(lesson, {.more = {"--step", "1"}});
    Window& window = walk.window;
    struct Tab {
      std::string key, id, shows;
    };
    const std::vector<Tab> tabs = {
        {"m", "tab_measured", is_recorded(lesson) ? "where_measured" : "measured_view_0"},
        {"k", "tab_kernel", "source_line"},
        {"g", "tab_glossary", "glossary_search"},
        {"d", "tab_data", "table_"}};
    for (const Tab& tab : tabs) {
      INFO(tab.id);
      window.press(tab.key);
      const auto shown = [&] { return window.is_selected(tab.id) && window.part(tab.shows); };
      // Not every step is a kernel's: an engine may have to go first.
      for (int steps = 0; steps < 12 && tab.key == "k"; ++steps) {
        if (eventually(shown, std::chrono::seconds(1))) break;
        window.press("Right");
      }
      CHECK(eventually(shown));
    }
    for (const Tab& tab : tabs) {
      INFO(tab.id);
      REQUIRE(window.click_on(tab.id));
      CHECK(eventually([&] { return window.is_selected(tab.id) && window.part(tab.shows); }));
    }
  }
}

TEST_CASE("a lesson's knobs all turn while their sliders stay under the pointer", "[walk]") {
  EACH_LESSON(lesson) {
    Walk walk(lesson);
    if (lesson.at("knobs").size() > 6) {  // not all are in sight
      const auto more = walk.reach("more_knobs");
      REQUIRE(more);
      walk.window.click(*more);
      REQUIRE(eventually([&] { return walk.window.label("more_knobs") != more->at("label"); }));
    }
    Part part("knobs of " + id_of(lesson), 4);
    for (const json& knob : lesson.at("knobs")) {
      if (part.skips()) continue;
      const std::string control = control_of(knob), before = walk.reached_value(control);
      turn(walk, knob);
      walk.reset(control, before);
      CHECK_FALSE(walk.window.has("failure"));
    }
  }
}

TEST_CASE("a lesson's run is kept beside another one", "[walk]") {
  EACH_LESSON(lesson) {
    Walk walk(lesson, {.more = {"--step", "1"}});
    Window& window = walk.window;
    window.press("b");
    REQUIRE(eventually([&] { return window.has("run_a") && window.has("run_b"); }));
    CHECK(window.label("compare") == "Stop comparing");
    const json& knob = lesson.at("knobs").front();
    turn(walk, knob);
    // What A has otherwise than B is said beside both, and marks of both are there.
    const std::string name = lower(knob.at("id").get<std::string>());
    CHECK(eventually([&] { return lower(window.value("run_a")).starts_with(name + " "); }));
    CHECK(lower(window.value("run_b")).starts_with(name + " "));
    CHECK(window.value("run_a") != window.value("run_b"));
    const json& map = window.map();
    const auto of_a = std::count_if(
        map.at("parts").begin(), map.at("parts").end(),
        [](const json& part) { return part.at("id").get<std::string>().starts_with("a."); });
    CHECK(of_a > 0);
    // In lock step.
    window.press("Right");
    CHECK(eventually([&] { return window.step() == 2; }));
    CHECK(window.has("run_a"));
    window.press("b");
    CHECK(eventually([&] { return !window.has("run_a") && !window.has("run_b"); }));
    CHECK(window.label("compare") == "Compare");
  }
}

TEST_CASE("a lesson's capsule comes back as it was", "[walk]") {
  EACH_LESSON(lesson) {
    Walk walk(lesson, {.more = {"--step", "1"}});
    const json& knob = lesson.at("knobs").front();
    turn(walk, knob);
    walk.window.press("Right");
    const Place before = [&] {
      REQUIRE(eventually([&] { return walk.window.step() == 2; }));
      return place_of(walk.window);
    }();
    const json kept = walk.capsule();
    CHECK(kept.at("lesson") == lesson.at("id"));
    CHECK(kept.at("step") == 2);

    Window again(*walk.display, {"open", walk.newest.string(), "--backend", "cuda"},
                 tilestep::tests::paths::kProgram, walk.home.path());
    REQUIRE(eventually([&] { return again.has("device"); }, 60s));
    CHECK(again.says("capsule of"));
    CHECK(again.map().at("lesson") == lesson.at("id"));
    CHECK(again.step() == 2);
    CHECK(place_of(again).tile == before.tile);
    CHECK(place_of(again).tiles == before.tiles);
    for (const json& part : walk.window.map().at("parts")) {
      const std::string id = part.at("id").get<std::string>();
      if (!id.starts_with("knob_") || !again.has(id)) continue;
      INFO(id);
      CHECK(part.at("value") == again.value(id));
    }
    again.focus();
    again.press("ctrl+s");
    REQUIRE(eventually([&] { return walk.home.capsules().size() == 2; }));
    for (const fs::path& path : walk.home.capsules()) {
      if (path == walk.newest) continue;
      const json copy = json::parse(file_text(path));
      for (const char* member : {"settings", "step", "phase", "picks", "report"}) {
        INFO(member);
        CHECK(copy.at(member) == kept.at(member));
      }
    }
  }
}

TEST_CASE("a lesson goes on stage and comes back", "[walk]") {
  EACH_LESSON(lesson) {
    Walk walk(lesson, {.questions = true});
    Window& window = walk.window;
    window.press("p");
    REQUIRE(eventually([&] {
      return window.label("presenter").starts_with("Leave") &&
             !window.has("lesson_" + id_of(lesson));
    }));
    const json picture = *window.at("picture");
    CHECK(picture.at("rect")[2].get<double>() * picture.at("rect")[3].get<double>() >=
          0.7 * 1440 * 900);
    // A clicker is enough: it asks, and goes on.
    REQUIRE(go_to_question(window, "Next"));
    REQUIRE(walk.comes("card"));
    const int step = window.step();
    if (window.has("predict_1")) {
      window.press("b");
      CHECK(eventually([&] { return window.is_selected("predict_1"); }));
    }
    window.press("Next");
    CHECK(eventually([&] { return window.step() > step; }));
    CHECK(window.at("picture")->at("rect")[2] == picture.at("rect")[2]);
    // What lies over the picture comes and goes.
    window.press("d");
    CHECK(eventually([&] { return window.is_selected("tab_data"); }));
    window.press("d");
    CHECK(walk.goes("tab_data"));
    window.press("p");
    CHECK(eventually([&] {
      return window.label("presenter") == "Presenter mode" && window.has("lesson_" + id_of(lesson));
    }));
  }
}

TEST_CASE("a lesson's palette finds what there is and goes there", "[walk]") {
  EACH_LESSON(lesson) {
    Walk walk(lesson);
    Window& window = walk.window;
    const auto find = [&](const std::string& query, const std::string& id) {
      INFO("finding " << query);
      window.press("ctrl+k");
      REQUIRE(window.steady("palette"));
      window.type(query);
      REQUIRE(walk.becomes("palette", query));
      REQUIRE(eventually([&] { return window.is_selected(id); }));
      window.press("Return");
      REQUIRE(walk.goes("palette"));
    };
    find("kernel source", "find_action_kernel");
    CHECK(eventually([&] { return window.is_selected("tab_kernel"); }));
    find("warp", "find_term_warp");
    CHECK(eventually([&] { return window.is_selected("tab_glossary"); }));
    for (const json& knob : lesson.at("knobs")) {
      if (knob.at("kind") != "choice") continue;
      const std::string id = knob.at("id").get<std::string>();
      const auto choices = knob.at("choices").get<std::vector<std::string>>();
      const std::string& other = choices[choices.front() == knob.at("default") ? 1 : 0];
      find(lower(knob.at("label").get<std::string>()) + ": " + other,
           "find_knob_" + id + "_" + other);
      walk.require_rest();
      CHECK(text_of(walk.capsule().at("settings").at(id)) == other);
      break;
    }
    // Where there is one, to another lesson and back; it stands as it was left.
    std::string other;
    for (const json& each : all_lessons()) {
      if (id_of(each) != id_of(lesson)) other = each.at("title").get<std::string>();
    }
    if (other.empty()) return;
    const auto shown = [&] { return window.map().value("lesson", std::string()); };
    window.press("ctrl+k");
    REQUIRE(window.steady("palette"));
    window.type(lower(other));
    REQUIRE(walk.becomes("palette", lower(other)));
    window.press("Return");
    REQUIRE(walk.goes("palette"));
    CHECK(eventually([&] { return shown() != id_of(lesson) && !shown().empty(); }));
    find(lower(lesson.at("title").get<std::string>()), "find_lesson_" + id_of(lesson));
    CHECK(eventually([&] { return shown() == id_of(lesson); }));
    CHECK(window.value("reset") != "disabled");
  }
}
