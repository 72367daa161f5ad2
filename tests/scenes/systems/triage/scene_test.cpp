// What only the picture of triage does, held to the trace that it is drawn from.
#include "scenes/systems/triage/scene.hpp"

#include <algorithm>

#include "tests/scenes/marks.hpp"

using namespace tilestep;
using picture::State;
using scenes::Cursor, scenes::TriageScene;
using tests::contains, tests::count_of, tests::items_named, tests::mark_named, tests::picture_at;
using ShownTriage = tests::Shown<TriageScene>;

namespace {

lab::Settings looking(const std::string& which, const std::string& probes) {
  return {{"case", which}, {"probes", probes}};
}
std::vector<std::string> looked_at(const TriageScene& scene, int step) {
  return items_named(picture_at(scene, {step, 0}), "instrument").names;
}

}  // namespace

TEST_CASE("Triage: the checklist ticks what was looked at by now, and no more", "[triage_scene]") {
  ShownTriage shown(looking("case-5", "queue,kernels,kernels:4"));
  for (int step = 0; step <= shown.trace().length(); ++step) {
    const std::vector<std::string> ticked = looked_at(*shown, step);
    const auto open = std::count(ticked.begin(), ticked.end(), "look");
    CHECK(open == triage::kInstruments - (step == 0 ? 0 : step == 1 ? 1 : 2));
  }
  CHECK(looked_at(*shown, 3)[1] == "step 2, 4");
  const auto left = [&](int step) { return shown->readouts({Cursor{step, 0}}).front().value; };
  CHECK(left(0) == "8");
  CHECK(left(2) == "6");
  CHECK(left(4) == "5");
}

TEST_CASE("Triage: a click on an instrument spends a probe, the second time on the fourth step",
          "[triage_scene]") {
  ShownTriage shown(looking("case-1", "queue,kernels"));
  const auto probes = [&](int instrument) {
    const picture::Key key{"instrument", instrument};
    const auto asked = shown->dropped({Cursor{1, 0}}, key, key);
    return asked ? std::get<std::string>(asked->at("probes")) : std::string();
  };
  CHECK(probes(static_cast<int>(triage::Instrument::shapes)) == "queue,kernels,shapes");
  CHECK(probes(static_cast<int>(triage::Instrument::kernels)) == "queue,kernels,kernels:4");
  CHECK(probes(99).empty());
  ShownTriage spent(
      looking("case-1", "timeline,kernels,shapes,counters,roofline,sectors,gaps,queue"));
  const picture::Key key{"instrument", 0};
  CHECK_FALSE(spent->dropped({Cursor{1, 0}}, key, key).has_value());
}

TEST_CASE("Triage: the pointer spends a probe on what it clicks", "[triage_scene]") {
  ShownTriage shown(looking("case-1", "queue,kernels"));
  const auto draw = [&] { return shown.picture(Cursor{1, 0}, {1100, 700}); };
  shown.point_away();
  const auto parts = draw();
  shown.point_at(parts.at("instrument_5"));
  draw();
  shown.press(true);
  draw();
  shown.press(false);
  draw();
  const auto request = shown.player().take_request();
  REQUIRE(request);
  CHECK(std::get<std::string>(request->at("probes")) == "queue,kernels,sectors");
}

TEST_CASE("Triage: a bar per row of an instrument, as long as its number", "[triage_scene]") {
  struct Seen {
    const char *probe, *mark;
    double (*number)(const triage::Row&);
  };
  const auto count = [](const triage::Row& row) { return row.count; };
  const auto value = [](const triage::Row& row) { return row.value; };
  const auto second = [](const triage::Row& row) { return row.second; };
  for (const Seen& seen : {Seen{"gaps", "gap_bar", count}, Seen{"sectors", "sector_bar", value},
                           Seen{"counters", "counter_bar", second}}) {
    INFO(seen.probe);
    ShownTriage shown(looking("case-8", seen.probe));
    const picture::Picture picture = picture_at(*shown, {1, 0});
    const auto& bars = mark_named<picture::Spans>(picture, seen.mark);
    std::size_t at = 0;
    for (const triage::Row& row : shown.trace().rows) {
      REQUIRE(at < bars.end.size());
      CHECK(bars.end[at] == seen.number(row));
      CHECK(bars.lane[at] == static_cast<int>(at));
      ++at;
    }
    CHECK(at == shown.trace().rows.size());
  }
}

TEST_CASE("Triage: padding is hatched", "[triage_scene]") {
  ShownTriage padded(looking("case-9", "queue")), sound(looking("case-8", "queue"));
  const auto wasted = [](const TriageScene& scene) {
    return count_of(items_named(picture_at(scene, {1, 0}), "queue_bar"), State::wasted);
  };
  CHECK(wasted(*padded) == triage::kLoop);
  CHECK(wasted(*sound) == 0);
  CHECK(contains(padded->sentence({1, 0}), "8 rows"));
}

TEST_CASE("Triage: what a fix did is said once it was run, and graded by parts", "[triage_scene]") {
  lab::Settings settings = looking("case-1", "kernels");
  CHECK(ShownTriage(settings).trace().length() == 2);
  settings["cause"] = std::string("unfused-dequant");
  settings["operator"] = std::string("qkv");
  settings["fix"] = std::string("fuse-the-dequant");
  ShownTriage shown(settings);
  REQUIRE(shown.trace().length() == 3);
  const picture::Items grades = items_named(picture_at(*shown, {3, 0}), "grade");
  CHECK(grades.names[0] == "not said");
  CHECK(grades.names[1] == "not it");
  CHECK(grades.names[2] == "right");
  CHECK(grades.names[3] == "right");
  CHECK(grades.state[1] == State::wrong);
  const triage::Verdict& verdict = shown.trace().verdict;
  CHECK(verdict.after_mb < verdict.before_mb);
  CHECK(verdict.after_launches < verdict.before_launches);
  CHECK(contains(shown->sentence({3, 0}), "With fuse-the-dequant"));
  settings["fix"] = std::string("faster-norm");
  ShownTriage wrong(settings);
  CHECK(contains(wrong->sentence({3, 0}), "With faster-norm"));
  CHECK(wrong.trace().verdict.fixed == 0);
  CHECK(wrong.trace().verdict.after_mb == wrong.trace().verdict.before_mb);
}
