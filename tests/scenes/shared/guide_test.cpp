#include "scenes/shared/guide.hpp"

#include "kernels/catalog.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::scenes;

namespace {

struct Params {
  int stride = 2, access = 0;
};

Guide parse(std::string_view markdown) {
  const lab::Knobs knobs = lab::KnobTable<Params>()
                               .integer(&Params::stride, {"stride", "How far apart."}, 1, 64)
                               .choice(&Params::access, {"access", "Which way."}, {"load", "store"})
                               .knobs();
  return parse_guide(markdown, knobs);
}

/// Checks that `markdown` is refused in these words.
void check_refused(std::string_view markdown, const std::string& words) {
  const std::string said = tests::error_of([&] { parse(markdown); });
  CAPTURE(said, words);
  CHECK(tests::contains(said, words));
}

/// A stop with these words and this text.
std::string stop(std::string_view words, std::string_view text = "Text.") {
  return "# Title\n\n<!-- stop: " + std::string(words) + " -->\n## One\n\n" + std::string(text) +
         "\n";
}

}  // namespace

TEST_CASE("a guided path is read from a lesson's text", "[scenes_shared]") {
  const Guide guide = parse(
      "# Title\n\nA sentence, with [a page](https://example.org).\n\n"
      "<!-- stop: step=2 phase=last_one stride=32 access=store light=m,score_5 kind=surprise "
      "tab=data -->\n"
      "## The maximum `m` moves\n\n"
      "Look at [m](light:m).\n\n"
      "- [stride 8](try:stride=8)\n- [`both` at [1]](try:stride=1&access=load)\n\n"
      "```\n<!-- stop: in code -->\n[code](try:none=1)\n```\n"
      "### Deeper\n\nThe end: `[x](try:code=2)`.\n"
      "<!-- stop: -->\n## Nothing set\n"
      "<!-- more -->\n## Sources\n\nA book.\n");
  CHECK(guide.intro == "# Title\n\nA sentence, with [a page](https://example.org).\n");
  REQUIRE(guide.stops.size() == 2);
  const GuideStop& one = guide.stops[0];
  CHECK(one.title == "The maximum `m` moves");
  CHECK(one.text.starts_with("Look at [m](light:m).\n"));
  CHECK(one.text.ends_with("### Deeper\n\nThe end: `[x](try:code=2)`.\n"));
  CHECK(one.settings ==
        lab::Settings{{"stride", std::int64_t{32}}, {"access", std::string("store")}});
  CHECK(one.step == 2);
  CHECK(one.phase == "last_one");
  CHECK(one.light == std::vector<std::string>{"m", "score_5"});
  CHECK(one.kind == "surprise");
  CHECK(one.tab == "data");
  CHECK(one.tries ==
        std::vector<Try>{
            {"stride 8", {{"stride", std::int64_t{8}}}},
            {"`both` at [1]", {{"stride", std::int64_t{1}}, {"access", std::string("load")}}}});
  const GuideStop& two = guide.stops[1];
  CHECK(two.title == "Nothing set");
  CHECK(two.text.empty());
  CHECK(two.settings.empty());
  CHECK(two.step == 0);
  CHECK(two.phase.empty());
  CHECK(guide.more == "## Sources\n\nA book.\n");
}

TEST_CASE("a phase is a name or a number of those that the steps have", "[scenes_shared]") {
  const std::vector<std::string> names = {"load", "barrier", "last one", "barrier"};
  const auto phase = [&](const std::string& words) {
    return phase_of(parse(stop(words)).stops[0], names);
  };
  CHECK(phase("phase=load") == 0);
  CHECK(phase("phase=last_one") == 2);
  CHECK(phase("phase=3") == 3);
  const auto said = [&](const std::string& words) {
    return tests::error_of([&] { phase(words); });
  };
  CHECK(tests::contains(said("phase=4"), "phase is '4', but must be a number from 0 to 3"));
  CHECK(tests::contains(said("phase=store"), "one of load, barrier, last one, barrier"));
  CHECK(tests::contains(said("phase=barrier"), "the only one of that name"));
}

TEST_CASE("a text outlives settings whose steps have no such phase", "[scenes_shared]") {
  const GuideStop one = parse(stop("step=2 phase=rescale")).stops[0];
  CHECK(cursor_at(one, {.tiles = 3, .phases = 1, .phase_names = {"all"}}) == Cursor{2, 0});
  CHECK(cursor_at(one, {.tiles = 3, .phases = 2, .phase_names = {"load", "rescale"}}) ==
        Cursor{2, 1});
}

TEST_CASE("a stop stands where its trace has steps", "[scenes_shared]") {
  const auto at = [](std::string_view words, int steps, int phases) {
    StepAxis axis;
    axis.tiles = steps;
    axis.phases = phases;
    for (int i = 0; i < phases; ++i) axis.phase_names.push_back("phase " + std::to_string(i));
    return cursor_at(parse(stop(words)).stops[0], axis);
  };
  CHECK(at("step=2 phase=1", 4, 4) == Cursor{2, 1});
  CHECK(at("step=2", 4, 4) == Cursor{2, 3});
  CHECK(at("step=9 phase=1", 4, 4) == Cursor{4, 3});
  CHECK(at("phase=1", 4, 4) == Cursor{0, 3});
  CHECK(at("step=1 phase=3", 4, 1) == Cursor{1, 0});
}

TEST_CASE("a text without stops is introduction and more", "[scenes_shared]") {
  const Guide all = parse("# Title\r\n\r\nWords.\r\n");
  CHECK(all.intro.starts_with("# Title"));
  CHECK(all.stops.empty());
  CHECK(all.more.empty());
  CHECK(parse("# Title\n<!-- more -->\nWords.").more == "Words.\n");
  CHECK(parse("").intro.empty());
}

TEST_CASE("what a stop may not say is refused with line and allowed values", "[scenes_shared]") {
  const auto refused = [](std::string_view words, const std::string& why) {
    check_refused(stop(words), "line 3 of the text: ");
    check_refused(stop(words), why);
  };
  refused("strde=3",
          "no 'strde=3'; it may have step=, phase=, light=, kind=, tab=, view=, filter=, ask=, "
          "rescale= "
          "and the knobs stride, access");
  refused("stride", "no 'stride'");
  refused("stride=65", "1–64");
  refused("access=read", "load, store");
  refused("step=-1", "step is '-1', but must be a whole number from 0");
  refused("step=two", "whole number");
  refused("kind=joke", "kind is 'joke', but must be one of misconception, surprise, limits");
  refused("tab=glossary", "tab is 'glossary', but must be one of data, measured, kernel");
  refused("step=1 step=2", "a stop says step twice");
  refused("filter=size", "filter is 'size', but must be the filter's id and a value");
  refused("ask=share", "it needs step= from 1 and no phase=");
  refused("ask=share step=2 phase=1", "it needs step= from 1 and no phase=");
}

TEST_CASE("a stop names its chart and what it asks first", "[scenes_shared]") {
  const GuideStop one =
      parse(stop("step=3 ask=share tab=measured view=Copy_ladder filter=size:All_of_them"))
          .stops.at(0);
  CHECK(one.ask == "share");
  CHECK(one.view == "Copy ladder");
  CHECK(one.filter == "size");
  CHECK(one.filtered == "All of them");
  CHECK(one.rescales.empty());
  const GuideStop other = parse(stop("step=1 rescale=score,step_ms")).stops.at(0);
  CHECK(other.rescales == std::vector<std::string>{"score", "step_ms"});
  CHECK(other.text.ends_with("\nNew axis range: score, step ms.\n"));
  StepAxis steps;
  steps.tiles = 2;  // another run has fewer: the last step is asked about
  CHECK(asked_at(one, steps).tile == 1);
  steps.tiles = 8;
  CHECK(asked_at(one, steps).tile == 2);
}

TEST_CASE("stops, headings and comments stand in their order", "[scenes_shared]") {
  const std::string heading = "the line after a stop must be its heading";
  check_refused("a\n<!-- stop: -->\n\n## One\n", "line 2 of the text: " + heading);
  check_refused("<!-- stop: -->\nWords\n", "line 1 of the text: " + heading);
  check_refused("<!-- stop: -->", heading);
  check_refused("<!-- stop: -->\n<!-- more -->\n", heading);
  check_refused("<!-- stop: -->\n##Title\n", heading);
  check_refused("\n<!-- stp: step=1 -->\n## One\n",
                "line 2 of the text: a comment must stand on its own line");
  check_refused("<!-- stop: step=1\n-->\n## One\n", "its own line");
  const std::string after = "after <!-- more --> there are no stops";
  check_refused("<!-- more -->\n<!-- stop: -->\n## One\n", "line 2 of the text: " + after);
  check_refused("<!-- more -->\n<!-- more -->\n", after);
}

TEST_CASE("links that set or light nothing are refused with their line", "[scenes_shared]") {
  const auto refused = [](std::string_view text, const std::string& why) {
    const std::string markdown = stop("", "\n" + std::string(text));
    check_refused(markdown, "line 7 of the text: ");
    check_refused(markdown, why);
  };
  refused("[a](try:strde=1)", "no knob 'strde'; the knobs are: stride, access");
  refused("[a](try:stride=99)", "1–64");
  refused("[a](try:stride)", "'stride' is not of the form knob=value");
  refused("[a](try:)", "a chip sets at least one knob, as try:stride=…");
  refused("[a](light:)", "light: names no key");
  refused("[a](ligth:m)", "a link to 'ligth:m' is not one of try:, light:, https:// and http://");
  const std::string outside = "stand in the text of a stop";
  check_refused("x\n[m](light:m)\n", "line 2 of the text: ");
  check_refused("[m](light:m)\n", outside);
  check_refused("<!-- more -->\n[a](try:stride=1)\n", outside);
}

TEST_CASE("links are found where they stand", "[scenes_shared]") {
  const auto links = links_of("a [b](c) t[0] (d)\n`[e](f)` [g\nh]( i ) [j");
  REQUIRE(links.size() == 2);
  CHECK(links[0].label == "b");
  CHECK(links[0].target == "c");
  CHECK(links[0].line == 1);
  CHECK(links[1].label == "g\nh");
  CHECK(links[1].target == "i");
  CHECK(links[1].line == 2);
}

TEST_CASE("the text of every lesson is found by the lesson's name", "[scenes_shared]") {
  CHECK(lesson_text("online-softmax").starts_with("# Online softmax\n"));
  CHECK(tests::error_of([] { lesson_text("softmax"); }) ==
        "the text of 'softmax' was not built into this program");
}

TEST_CASE("every lesson of ours has a guided path", "[scenes_shared]") {
  for (const lab::Lesson* lesson : lessons()) {
    INFO(lesson->info().id);
    CHECK(tests::contains(lesson_text(lesson->info().id), "<!-- stop: "));
  }
}
