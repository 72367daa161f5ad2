#include "app/keep/capsule.hpp"

#include <sys/stat.h>

#include <fstream>

#include "app/keep/link.hpp"
#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;
using nlohmann::json;

namespace {

Capsule sample() {
  Capsule capsule = capsule_of(report_of("online-softmax", {{"tile_width", std::int64_t{2}}}));
  capsule.step = 3;
  capsule.phase = 1;
  capsule.picks = {{"token", 4}};
  capsule.guesses = {{{1, 3}, 2, 0}, {{2, 3}, -1, 4.5}};
  capsule.notes = "look at \"m\"\nand ℓ";
  return capsule;
}

/// The sentence with which a text is refused: bad input.
std::string refusal(const std::string& text) {
  try {
    capsule_from_text(text, "the file 'a.json'");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::bad_input);
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    CHECK(std::string(error.what()).starts_with("the file 'a.json'"));
    return error.what();
  }
  FAIL("a bad capsule was opened");
  return {};
}

/// The refusal of the sample with something else in it.
template <class Change>
std::string refusal_with(Change change) {
  json text = json::parse(capsule_text(sample()));
  change(text);
  return refusal(text.dump());
}

}  // namespace

TEST_CASE("a capsule comes back as it was", "[keep]") {
  for (const lab::Lesson* lesson : lessons()) {
    INFO(lesson->info().id);
    Capsule capsule = capsule_of(report_of(lesson->info().id));
    if (const lab::Recording* recording = lab::recording(lesson->info().id)) {
      capsule.bench = recording->bench;
    }
    const std::string text = capsule_text(capsule);
    const Capsule again = capsule_from_text(text, "it");
    CHECK(again.lesson() == lesson->info().id);
    CHECK((capsule_text(again) == text));
  }
  const Capsule again = capsule_from_text(capsule_text(sample()), "it");
  CHECK(again.step == 3);
  CHECK(again.phase == 1);
  CHECK(again.picks == sample().picks);
  CHECK(again.guesses == sample().guesses);
  CHECK(again.notes == sample().notes);
  CHECK(again.made_at == sample().made_at);
  check_matches(again.made_at, "2[0-9]{3}-[0-9]{2}-[0-9]{2}");
  check_matches(again.program, "[0-9]+\\.[0-9]+\\.[0-9]+");
}

TEST_CASE("what is no capsule is refused in a sentence that says what it is", "[keep]") {
  check_contains(refusal(""), "is not a capsule: it is not JSON");
  check_contains(refusal("hello"), "is not a capsule: it is not JSON");
  check_contains(refusal("[1e999]"), "is not a capsule: it is not JSON");  // no double holds it
  check_contains(refusal("[1, 2]"), "'tilestep_capsule'");
  check_contains(refusal("{}"), "'tilestep_capsule'");
  const std::string text = capsule_text(sample());
  for (const std::size_t size : {text.size() / 3, text.size() / 2, text.size() - 3}) {
    check_contains(refusal(text.substr(0, size)), "is cut off after");
  }
}

TEST_CASE("a capsule that is nested without end is refused", "[keep]") {
  json text = json::parse(capsule_text(sample()));
  text["report"]["trace"] = "HERE";
  std::string deep = text.dump();
  const std::size_t levels = 200'000;
  deep.replace(deep.find("\"HERE\""), 6, std::string(levels, '[') + std::string(levels, ']'));
  check_contains(refusal(deep), "it nests more than 100 objects and lists");
  text["notes"] = std::string(levels, '[');  // in a text they are letters
  text["report"] = json::parse(capsule_text(sample()))["report"];
  CHECK(capsule_from_text(text.dump(), "the capsule").notes.size() == levels);
}

TEST_CASE("a capsule of a newer tilestep is named so", "[keep]") {
  const std::string said = refusal_with([](json& text) {
    text["tilestep_capsule"] = 2;
    text["program"] = "9.0.0";
    text.erase("report");
  });
  check_contains(said, "newer tilestep (9.0.0)");
  check_contains(refusal_with([](json& text) { text["tilestep_capsule"] = "1"; }),
                 "tilestep_capsule");
}

TEST_CASE("a capsule that does not hold together is refused", "[keep]") {
  check_contains(refusal_with([](json& text) { text["lesson"] = "no-such-lesson"; }),
                 "online-softmax");
  check_contains(refusal_with([](json& text) { text["lesson"] = "coalescing"; }),
                 "of the lesson 'online-softmax', not 'coalescing'");
  check_contains(refusal_with([](json& text) { text["settings"]["tile_width"] = 4; }),
                 "other settings");
  check_contains(refusal_with([](json& text) { text["settings"]["tile_width"] = 0; }), "1–1024");
  check_contains(refusal_with([](json& text) { text["settings"]["colour"] = 1; }), "tile_width");
  check_contains(refusal_with([](json& text) { text["report"].erase("summary"); }), "summary");
  check_contains(refusal_with([](json& text) { text["report"]["trace"] = json::array(); }),
                 "trace");
  check_contains(refusal_with([](json& text) {
                   text["bench"] = text["report"];
                   text["bench"]["lesson"] = "tiling";
                 }),
                 "bench");
  check_contains(refusal_with([](json& text) { text["step"] = -1; }), "step");
  check_contains(refusal_with([](json& text) { text["step"] = "two"; }), "step");
  check_contains(refusal_with([](json& text) { text["picks"] = 3; }), "picks");
  check_contains(refusal_with([](json& text) { text["picks"]["token"] = "x"; }), "token");
  check_contains(refusal_with([](json& text) { text["guesses"][0].erase("choice"); }), "choice");
  check_contains(refusal_with([](json& text) { text["guesses"][0]["choice"] = 9; }), "choice");
  check_contains(refusal_with([](json& text) { text["notes"] = json::array(); }), "notes");
  check_contains(refusal_with([](json& text) { text["notes"] = std::string(2 << 20, 'x'); }),
                 "notes");
}

namespace {

constexpr const char* kSource = "kernels/attention/online_softmax/one_pass.cu";

/// The sample as a run of an edited kernel leaves it.
Capsule sample_with(const std::string& text) {
  lab::Report report = sample().report;
  report.kernel = lab::EditedKernel{kSource, lab::hash_of(text), "g++ 12.2.0", 1, false, {}};
  return capsule_of(report, lab::KernelEdit{kSource, text});
}

/// Why the kernel of a sample with something else in it is not opened. The rest of the capsule is.
template <class Change>
std::string kernel_refusal(Change change) {
  json text = json::parse(capsule_text(sample_with("// mine\n")));
  change(text);
  const Capsule capsule = capsule_from_text(text.dump(), "the file 'a.json'");
  CHECK_FALSE(capsule.kernel);
  CHECK(capsule.report.tables.size() == sample().report.tables.size());
  CHECK(capsule.kernel_refused.size() < 1000);
  CHECK(capsule.kernel_refused.find_first_of("\n\x1b") == std::string::npos);
  check_contains(capsule.kernel_refused, "the kernel in the file 'a.json' is not opened: ");
  CHECK(json::parse(capsule_text(capsule)).count("kernel") == 0);  // nor is it passed on
  return capsule.kernel_refused;
}

}  // namespace

TEST_CASE("a capsule of an edited kernel carries its source", "[keep]") {
  const std::string source = "// mine: \"m\" ℓ\r\n\tfloat x;\n";
  const std::string text = capsule_text(sample_with(source));
  CHECK(json::parse(text)["kernel"]["hash"] == lab::hash_of(source));
  const Capsule again = capsule_from_text(text, "it");
  CHECK(again.kernel_refused.empty());
  REQUIRE(again.kernel);
  CHECK((*again.kernel == lab::KernelEdit{kSource, source}));
  CHECK((capsule_text(again) == text));
  // One without, as they were before, and one whose report is of another source than was at hand.
  json old = json::parse(text);
  old.erase("kernel");
  // A source that has moved to another folder of its lesson since.
  json moved = json::parse(text);
  for (json* of : {&moved["kernel"], &moved["report"]["kernel"]}) {
    (*of)["path"] = "kernels/attention/online_softmax/then/one_pass.cu";
  }
  const Capsule found = capsule_from_text(moved.dump(), "it");
  REQUIRE(found.kernel);
  CHECK(found.kernel->path == kSource);
  CHECK(found.report.kernel->path == kSource);
  const Capsule without = capsule_from_text(old.dump(), "it");
  CHECK_FALSE(without.kernel);
  CHECK(without.kernel_refused.empty());
  CHECK(without.report.kernel);
  CHECK_FALSE(capsule_of(without.report, lab::KernelEdit{kSource, "// another"}).kernel);
  CHECK_FALSE(capsule_of(sample().report, lab::KernelEdit{kSource, source}).kernel);
}

TEST_CASE("a kernel that a capsule should not have is left out, with a sentence", "[keep]") {
  const auto with_text = [](const std::string& source) {
    return [source](json& text) {
      text["kernel"]["text"] = source;
      text["kernel"]["hash"] = text["report"]["kernel"]["hash"] = lab::hash_of(source);
    };
  };
  for (const std::string path :
       {"/etc/passwd", "../../.bashrc", "kernels/attention/online_softmax/launch.cu",
        "kernels/memory/coalescing/access.cu", "one_pass.cu", ""}) {
    check_contains(kernel_refusal([&](json& text) {
                     text["kernel"]["path"] = text["report"]["kernel"]["path"] = path;
                   }),
                   "not a source of 'online-softmax'; allowed: kernels/attention/");
  }
  check_contains(kernel_refusal([](json& text) {
                   text["kernel"]["path"] = std::string(1 << 20, 'x') + "\x1b[2J\n";
                 }),
                 "not a source of");
  check_contains(kernel_refusal(with_text(std::string(lab::kMostKernelBytes + 1, 'x'))),
                 "a kernel source has at most 524288");
  check_contains(kernel_refusal(with_text(std::string("// a\0b", 6))), "no text");
  check_contains(kernel_refusal(with_text("// \x1b[31m")), "no text");
  check_contains(kernel_refusal([](json& text) { text["kernel"]["text"] = "// other\n"; }),
                 "its hash does not match its text");
  check_contains(kernel_refusal([](json& text) { text["kernel"]["hash"] = "0123"; }), "hash");
  check_contains(kernel_refusal([](json& text) { text["report"].erase("kernel"); }),
                 "of another kernel");
  check_contains(kernel_refusal([](json& text) { text["report"]["kernel"]["hash"] = "0123"; }),
                 "of another kernel");
  check_contains(kernel_refusal([](json& text) { text["kernel"] = 3; }), "kernel");
  check_contains(kernel_refusal([](json& text) { text["kernel"].erase("hash"); }), "hash");
  check_contains(kernel_refusal([](json& text) { text["kernel"]["text"] = json::array(); }),
                 "text");
  CHECK(capsule_from_text(capsule_text(sample_with(std::string(lab::kMostKernelBytes, 'x'))), "it")
            .kernel);
}

TEST_CASE("a capsule stands where it stood, and beyond the last step at the last", "[keep]") {
  const scenes::StepAxis axis{8, 4, "tile", {"maximum", "rescale", "weights", "accumulate"}};
  Capsule capsule = sample();
  CHECK(cursor_of(capsule, axis) == scenes::Cursor{3, 1});
  capsule.phase = -1;
  CHECK(cursor_of(capsule, axis) == scenes::Cursor{3, 3});
  capsule.step = 99;
  CHECK(cursor_of(capsule, axis) == scenes::Cursor{8, 3});
  capsule.step = 0;
  capsule.phase = 2;
  CHECK(cursor_of(capsule, axis) == scenes::Cursor{0, 3});
}

TEST_CASE("only what the picture lets one follow is followed again", "[keep]") {
  const auto picks = [](const char* lesson, std::map<std::string, int> wanted) {
    for (const auto& scene : scenes::make_scenes()) {
      if (scene->lesson() != lesson) continue;
      Capsule capsule = capsule_of(report_of(lesson));
      capsule.picks = std::move(wanted);
      scene->load(capsule.report);
      return picks_of(capsule, *scene, cursor_of(capsule, scene->steps()));
    }
    FAIL("no scene");
    return std::map<picture::Name, int>{};
  };
  const auto followed = picks("moe-routing", {{"token", 7}, {"nothing", 1}});
  REQUIRE(followed.size() == 1);
  CHECK((followed.begin()->first == picture::Name("token")));
  CHECK(followed.begin()->second == 7);
  CHECK(picks("online-softmax", {{"nothing", 1}}).empty());
}

TEST_CASE("files that are none, or too large, are refused", "[keep]") {
  TemporaryFolder folder;
  const auto path = folder.path() / "a.tilestep.json";
  const auto refused = [&path](ExitCode code) -> std::string {
    try {
      read_capsule(path);
    } catch (const Error& error) {
      CHECK(error.code() == code);
      check_contains(error.what(), path.string());
      return error.what();
    }
    FAIL("it was opened");
    return {};
  };
  check_contains(refused(ExitCode::unavailable), "No such file");
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  check_contains(refused(ExitCode::unavailable), "not a file");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  check_contains(refused(ExitCode::unavailable), "folder");
  std::filesystem::remove(path);
  std::ofstream(path) << "{";
  std::filesystem::resize_file(path, kMostCapsuleBytes + 1);
  check_contains(refused(ExitCode::bad_input), "67108864");
  std::filesystem::remove(path);
  write_capsule(path, sample(), false);
  CHECK(read_capsule(path).step == 3);
}

TEST_CASE("a link is the command line that comes back", "[keep]") {
  CHECK(link_of("coalescing", {}, 0) == "tilestep open coalescing");
  CHECK(link_of("coalescing", {{"stride", std::int64_t{8}}}, 3) ==
        "tilestep open coalescing --set stride=8 --step 3");
  CHECK(link_of("online-softmax", {}, 2, 1) == "tilestep open online-softmax --step 2 --phase 1");
  CHECK_THROWS_AS(link_of("no-such-lesson", {}, 0), Error);
  CHECK_THROWS_AS(link_of("coalescing", {{"colour", std::int64_t{8}}}, 0), Error);
  CHECK(shell_word("a=1,2;rm -rf") == "'a=1,2;rm -rf'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(shell_word("") == "''");
  // Every knob away from its default comes back through `--set`.
  for (const lab::Lesson* lesson : lessons()) {
    for (const lab::Knob& knob : lesson->knobs()) {
      if (knob.choices.size() < 2) continue;
      const std::string other =
          knob.text(knob.initial) == knob.choices[0] ? knob.choices[1] : knob.choices[0];
      check_contains(link_of(lesson->info().id, {{knob.id, other}}, 0),
                     " --set " + shell_word(knob.id + "=" + other));
    }
  }
}
