// Exercises as data, and the command that writes and checks them.

#include "kernels/base/workbench/exercise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/base/workbench/judge.hpp"
#include "kernels/catalog.hpp"
#include "tests/app/child.hpp"
#include "tests/catch.hpp"

namespace tilestep {
namespace {

namespace fs = std::filesystem;
using tests::contains, tests::error_of, tests::run_tilestep;

constexpr const char* kPath = "assets/exercises/online-softmax/one.md";

/// A small exercise, with `from` replaced by `to`.
std::string text_with(std::string_view from = "", std::string_view to = "") {
  std::string text = R"(# Title

- source: kernels/attention/online_softmax/one_pass.cu

The task.

## Cases

- plain:
- rising: preset=rising keys=48

## Goal

- rescales in rising <= 3
- tiles.l of it >= 0.5

## Speed

- softmax_bandwidth of online-one-read >= 0.9
- softmax_bandwidth of online-two-pass >= 1.2 x three-pass

## Solution

```cuda
  a;
```

## Hole

```cuda
  b;
```

## Wrong: first

```cuda
  c;
```

- says: no

## Wrong: second

```cuda
  d;
```

- says: no

## Wrong: third

```cuda
  e;
```

- says: no

## Hints

- check final_output: One.
- case rising: Two, which
  goes on.
- wrote `x ? a : b`: Three.
- otherwise: Four.
)";
  if (from.empty()) return text;
  const std::size_t at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

std::string refusal(std::string_view from, std::string_view to) {
  return error_of([&] { lab::parse_exercise(kPath, text_with(from, to)); });
}

TEST_CASE("an exercise is read as it is written", "[exercise]") {
  const lab::Exercise one = lab::parse_exercise(kPath, text_with());
  CHECK(one.id() == std::string("online-softmax/one"));
  CHECK(one.title == "Title");
  CHECK(one.task == "The task.");
  REQUIRE(one.cases.size() == 2);
  CHECK(one.cases[0].assignments.empty());
  CHECK(one.cases[1].assignments == std::vector<std::string>{"preset=rising", "keys=48"});
  REQUIRE(one.goals.size() == 2);
  CHECK(one.goals[0].in_case == "rising");
  CHECK(one.goals[0].at_most);
  CHECK(one.goals[1].id == "tiles");
  CHECK(one.goals[1].column == "l");
  CHECK(one.goals[1].variant == "it");
  CHECK_FALSE(one.goals[1].at_most);
  REQUIRE(one.speeds.size() == 2);
  CHECK(one.speeds[0].rung == "online-one-read");
  CHECK(one.speeds[1].rung == "three-pass");
  CHECK(one.speeds[1].factor == 1.2);
  CHECK(one.solution == "  a;\n");
  CHECK(one.wrong.size() == 3);
  REQUIRE(one.hints.size() == 4);
  CHECK(one.hints[1].text == "Two, which goes on.");
  CHECK(one.hints[2].about == "x ? a : b");
}

TEST_CASE("what is wrong in an exercise is said with its line", "[exercise]") {
  CHECK(contains(refusal("# Title", "Title"), "line 1 is no title"));
  CHECK(contains(refusal("- source: ", "- file: "), "line 3"));
  CHECK(contains(refusal("The task.\n", ""), "where the task should stand"));
  CHECK(contains(refusal("- rising: ", "- plain: "), "line 10 names a case for the second time"));
  CHECK(contains(refusal("<= 3", "< 3"), "line 14 is no goal"));
  CHECK(contains(refusal(" in rising <=", " in falling <="), "a goal in a case 'falling'"));
  CHECK(contains(refusal(">= 0.9", ">= fast"), "is no speed"));
  CHECK(contains(refusal("## Hole", "## Holes"), "begins a section 'Holes'"));
  CHECK(contains(refusal("## Hole", "## Solution"), "a second section 'Solution'"));
  CHECK(contains(refusal("```cuda\n  b;\n```", "b;"), "is no fenced block"));
  CHECK(contains(refusal("  e;\n```\n\n- says: no\n", "  e;\n```\n"), "says"));
  CHECK(contains(refusal("## Wrong: third\n\n```cuda\n  e;\n```\n\n- says: no\n", ""), "three"));
  CHECK(contains(refusal("- otherwise: Four.\n", ""), "otherwise"));
  CHECK(contains(refusal("- case rising: Two", "- case falling: Two"), "a case 'falling'"));
  CHECK(contains(refusal("- check final_output: One.", "- check: One."), "is no hint"));
  CHECK(contains(refusal("  e;\n```\n\n- says: no\n", "  e;\n"), "never ends"));
  CHECK(contains(error_of([] { lab::parse_exercise("One.md", text_with()); }), "path"));
}

// ---- programs -----------------------------------------------------------------------------------

constexpr const char* kProgramPath = "assets/exercises/first-steps/one.md";

/// A small exercise that is a program, with `from` replaced by `to`.
std::string program_with(std::string_view from = "", std::string_view to = "") {
  std::string text = text_with();
  const auto replace = [&](std::string_view old, std::string_view by) {
    const std::size_t at = text.find(old);
    REQUIRE(at != text.npos);
    text.replace(at, old.size(), by);
  };
  replace("- source: kernels/attention/online_softmax/one_pass.cu", "- program: one.cu");
  replace("## Cases\n\n- plain:\n- rising: preset=rising keys=48\n\n", "");
  replace("- rescales in rising <= 3\n- tiles.l of it >= 0.5\n", "- no coalescing\n");
  const std::size_t speed = text.find("## Speed"), solution = text.find("## Solution");
  text.erase(speed, solution - speed);
  replace("- check final_output: One.", "- mistake bounds: One.");
  replace("- case rising: Two", "- prints: Two");
  if (!from.empty()) replace(from, to);
  return text;
}

std::string program_refusal(std::string_view from, std::string_view to) {
  return error_of([&] { lab::parse_exercise(kProgramPath, program_with(from, to)); });
}

TEST_CASE("an exercise has a program in place of a source", "[exercise]") {
  const lab::Exercise one = lab::parse_exercise(kProgramPath, program_with());
  CHECK(one.is_program());
  CHECK(one.source.empty());
  CHECK(one.program == "assets/exercises/first-steps/one.cu");
  CHECK(one.file() == one.program);
  CHECK(one.task == "The task.");
  CHECK(one.cases.empty());
  REQUIRE(one.goals.size() == 1);
  CHECK(one.goals[0].text == "no coalescing");
  CHECK(one.goals[0].id == "coalescing");
  REQUIRE(one.hints.size() == 4);
  CHECK(one.hints[0].key == lab::HintKey::mistake);
  CHECK(one.hints[0].about == "bounds");
  CHECK(one.hints[1].key == lab::HintKey::prints);
  CHECK(lab::points_of(one, {}, true).most == 2);
}

TEST_CASE("what is wrong in a program's exercise is said with its line", "[exercise]") {
  for (const char* name : {"", "one", "One.cu", "../one.cu", "first-steps/one.cu", ".cu"}) {
    CAPTURE(name);
    CHECK(contains(program_refusal("- program: one.cu", std::string("- program: ") + name),
                   "line 3"));
  }
  CHECK(contains(program_refusal("- program: one.cu", "- program: one.cu\n- source: kernels/a.cu"),
                 "line 4 names a second file"));
  CHECK(contains(program_refusal("## Goal", "## Cases\n\n- plain:\n\n## Goal"),
                 "has a section 'Cases', which no program has"));
  CHECK(contains(program_refusal("## Goal", "## Speed\n\n- a of b >= 1\n\n## Goal"),
                 "has a section 'Speed'"));
  CHECK(contains(program_refusal("## Wrong: first", "## Slow: first"), "three or more"));
  for (const char* goal : {"- no bounds", "- no", "- no such", "- coalescing", "- rescales <= 3"}) {
    CAPTURE(goal);
    CHECK(contains(program_refusal("- no coalescing", goal), "line 9 is no goal of a program"));
  }
  for (const char* kind : {"coalescing", "crash", "such"}) {
    CAPTURE(kind);
    CHECK(contains(program_refusal("- mistake bounds", std::string("- mistake ") + kind),
                   "is no kind of mistake"));
  }
  CHECK(contains(program_refusal("- mistake bounds", "- mistake"), "is no hint"));
  CHECK(contains(program_refusal("- mistake bounds", "- check final_output"),
                 "one of compile, mistake KIND"));
  CHECK(contains(program_refusal("- prints: Two", "- order: Two"), "is no hint"));
  CHECK(contains(refusal("- check final_output: One.", "- mistake bounds: One."), "is no hint"));
  CHECK(contains(refusal("- case rising: Two", "- prints: Two"), "is no hint"));
}

TEST_CASE("the first steps are eight programs, whose solutions stand in them", "[exercise]") {
  int count = 0;
  for (const lab::Exercise& one : lab::exercises()) {
    CHECK(one.is_program() == (one.lesson == lab::kFirstSteps));
    if (!one.is_program()) continue;
    INFO(one.id());
    ++count;
    const std::string_view program = lab::asset(one.program);
    CHECK(lab::with_code(one, one.solution) == program);
    const auto lines = std::count(program.begin(), program.end(), '\n');
    CHECK((lines >= 40 && lines <= 70));
    CHECK(contains(program, "int main()"));
    const std::string starter = lab::starter(one);
    CHECK(lab::exercise_id_of(starter) == one.id());
    CHECK(contains(starter, "// " + one.title));
    CHECK(starter.ends_with("\n\n" + lab::with_code(one, one.hole)));
  }
  CHECK(count == 8);
  for (const lab::Lesson* lesson : lessons()) CHECK(lesson->info().id != lab::kFirstSteps);
}

/// The report of a program that prints `printed`.
lab::Report program_report(const std::string& printed, int status = 0) {
  lab::Report report;
  lab::Table findings{"findings",
                      "",
                      {"kind", "mistake", lab::whole("line"), lab::whole("other_line"),
                       lab::whole("launch"), "text", "lesson"}};
  lab::Table launches{"launches", "", {lab::whole("launch")}};
  launches.add({1});
  report.tables = {findings, launches};
  report.trace = nlohmann::json{{"printed", printed}, {"status", status}};
  return report;
}

lab::Report with_finding(lab::Report report, const char* kind, bool mistake, int line) {
  report.tables[0].add({kind, mistake ? "yes" : "no", line == 0 ? lab::Cell() : lab::Cell(line),
                        lab::Cell(), lab::Cell(), std::string("it says ") + kind, ""});
  return report;
}

/// One of the first steps, judged where the student's program has this report; the solved one prints "4\n5\n".
lab::ExerciseVerdict program_verdict(const std::function<lab::Report()>& run,
                                     const std::string& text = "int main() {}") {
  lab::Exercise one = lab::parse_exercise(kProgramPath, program_with());
  // The judge compares with the starter: a block that is in the program.
  const lab::Exercise& real = lab::exercise("first-steps/1-scale-a-vector");
  one.program = real.program;
  one.solution = real.solution;
  return lab::judge_program(one, text, [&](std::string_view source) {
    return source == text ? run() : program_report("4\n5\n");
  });
}

TEST_CASE("a program passes that has no mistake and prints what the solved one prints",
          "[exercise]") {
  const auto good = program_verdict([] { return program_report("4\n5\n"); });
  CHECK(good.ok);
  CHECK(good.cases_right == 1);
  CHECK(good.hint.empty());
  CHECK(contains(good.sentence, "no coalescing finding"));
  REQUIRE(good.goals.size() == 1);
  CHECK(good.goals[0].ok);
  CHECK(good.goals[0].value == 0);
  // Slow in another way than the goal asks for.
  CHECK(program_verdict([] {
          return with_finding(program_report("4\n5\n"), "divergence", false, 7);
        }).ok);
}

TEST_CASE("a program's verdict names the mistake and its line", "[exercise]") {
  const auto failed = [](const std::function<lab::Report()>& run, lab::HintKey kind, int line,
                         std::string_view says, std::string_view hint) {
    const auto verdict = program_verdict(run);
    INFO(verdict.sentence);
    CHECK_FALSE(verdict.ok);
    REQUIRE(verdict.failed);
    CHECK(verdict.failed->kind == kind);
    CHECK(verdict.failed->line == line);
    CHECK(contains(verdict.sentence, says));
    CHECK(verdict.hint == hint);
    return verdict;
  };
  using lab::HintKey;
  const auto wrong = failed(
      [] {
        return with_finding(with_finding(program_report("4\n5\n"), "bounds", true, 7), "leak", true,
                            9);
      },
      HintKey::mistake, 7, "Not yet: it says bounds (bounds, line 7).", "One.");
  CHECK(wrong.failed->checks == std::vector<std::string>{"bounds", "leak"});
  CHECK(wrong.cases_right == 0);
  CHECK_FALSE(wrong.goals[0].ok);
  failed([] { return with_finding(program_report("4\n5\n"), "leak", true, 0); }, HintKey::mistake,
         0, "it says leak (leak).", "Four.");
  failed([] { return with_finding(program_report(""), "crash", true, 3); }, HintKey::crash, 3,
         "it says crash", "Four.");
  failed([] { return program_report("4\n5\n", 2); }, HintKey::crash, 0, "ends with status 2",
         "Four.");
  failed([] { return program_report("4\n6\n"); }, HintKey::prints, 0,
         "line 2 of the output is '6', and the solved program prints '5'", "Two, which goes on.");
  failed([] { return program_report("4\n"); }, HintKey::prints, 0, "is nothing, and the solved",
         "Two, which goes on.");
  failed([] { return program_report("4\n5\n6\n"); }, HintKey::prints, 0,
         "line 3 of the output is '6', and the solved program prints nothing",
         "Two, which goes on.");
  failed(
      [] {
        lab::Report report = program_report("4\n5\n");
        report.tables[1].rows.clear();
        return report;
      },
      HintKey::prints, 0, "launches no kernel", "Two, which goes on.");
  const auto slow =
      failed([] { return with_finding(program_report("4\n5\n"), "coalescing", false, 8); },
             HintKey::goal, 8, "the results are right, but it says coalescing", "Four.");
  CHECK(slow.cases_right == 1);
  CHECK(slow.goals[0].value == 1);
  CHECK_FALSE(slow.goals[0].ok);
  failed(
      []() -> lab::Report {
        throw lab::SourceError("it does not compile", {{3, 1, lab::Severity::error, ""}});
      },
      HintKey::compile, 3, "does not compile", "Four.");
  failed([]() -> lab::Report { throw Error("it left no report", ExitCode::check_failed); },
         HintKey::crash, 0, "left no report", "Four.");
  // A process that leaves things out of its report does not pass.
  for (const std::size_t table : {std::size_t{0}, std::size_t{1}}) {
    failed(
        [&] {
          lab::Report report = program_report("4\n5\n");
          report.tables.erase(report.tables.begin() + static_cast<std::ptrdiff_t>(table));
          return report;
        },
        HintKey::crash, 0, "report is incomplete", "Four.");
  }
  const auto leaks = [] { return with_finding(program_report("4\n5\n"), "leak", true, 3); };
  CHECK(program_verdict(leaks, "y = x? a:b").hint == "Three.");
}

TEST_CASE("a program that cannot be run is nobody's mistake", "[exercise]") {
  CHECK(contains(error_of([] {
                   program_verdict([]() -> lab::Report {
                     throw Error("there is no C++ compiler here", ExitCode::unavailable);
                   });
                 }),
                 "no C++ compiler"));
  const lab::Exercise& one = lab::exercise("first-steps/1-scale-a-vector");
  CHECK(contains(error_of([&] {
                   lab::judge_program(one, "a", [](std::string_view text) {
                     lab::Report report = program_report("4\n");
                     if (text != "a") report.checks = {{"mistakes", false, 1, 0, ""}};
                     return report;
                   });
                 }),
                 "the solved program of first-steps/1-scale-a-vector fails"));
}

TEST_CASE("every lesson has three exercises, whose solutions stand in its source", "[exercise]") {
  for (const lab::Lesson* lesson : lessons()) {
    int count = 0;
    for (const lab::Exercise& one : lab::exercises()) {
      if (one.lesson != lesson->info().id) continue;
      ++count;
      INFO(one.id());
      const std::string_view source = lab::asset(one.source);
      CHECK(lab::with_code(one, one.solution) == source);
      CHECK(lab::exercise_id_of(lab::starter(one)) == one.id());
      CHECK(contains(lab::starter(one), one.hole));
      for (const lab::ExerciseCase& each : one.cases) {
        lab::Settings settings;
        for (const std::string& set : each.assignments) lesson->knobs().set(settings, set);
        CHECK_NOTHROW(lesson->knobs().completed(settings));
      }
    }
    INFO(lesson->info().id);
    CHECK(count >= 3);
  }
}

TEST_CASE("a solution that is not there, or there twice, is refused", "[exercise]") {
  const lab::Exercise one = lab::parse_exercise(kPath, text_with());
  CHECK(lab::with_code(one, "x;\n  a;\ny;\n", "  b;\n") == "x;\n  b;\ny;\n");
  CHECK(contains(error_of([&] { lab::with_code(one, "x;\n", "b"); }), "0 times"));
  CHECK(contains(error_of([&] { lab::with_code(one, "  a;\n  a;\n", "b"); }), "2 times"));
  // Not in the middle of a line.
  CHECK(contains(error_of([&] { lab::with_code(one, "x;  a;\n", "b"); }), "0 times"));
}

// ---- the judge ----------------------------------------------------------------------------------

lab::Measurement number(const std::string& id, double value, const std::string& variant = "") {
  lab::Measurement one;
  one.id = id;
  one.value = value;
  one.variant = variant;
  return one;
}

lab::Report good_report() {
  lab::Report report;
  report.checks = {{"final_output", true, 0, 0, ""}};
  report.measurements = {number("rescales", 2)};
  lab::Table table{"tiles", "Tiles", {"l"}};
  table.add({0.25});
  table.add({0.75});
  report.tables = {table};
  return report;
}

using Run = std::function<lab::Report(const lab::Settings& settings, simt::ThreadOrder order)>;

/// The exercise that is judged here.
const lab::Exercise& judged() {
  static const lab::Exercise kOne = [] {
    lab::Exercise one = lab::parse_exercise(kPath, text_with(" of it", ""));
    // The judge compares with the starter: a block that is in the source.
    one.solution = "    float o_new = times<Format>(o, rescale);\n";
    one.hole = "    float o_new = o;\n";
    return one;
  }();
  return kOne;
}

/// The verdict where `run` answers, for a kernel that has `code`; `again` is what others make of the same outputs.
lab::ExerciseVerdict verdict_of(const Run& run, const std::string& code = "a",
                                const Run& again = nullptr,
                                lab::JudgeUntil until = lab::JudgeUntil::failure) {
  return lab::judge(
      judged(), code, lesson("online-softmax").knobs(),
      [&](const lab::Settings& settings, simt::ThreadOrder order) {
        std::vector<lab::Report> reports = {run(settings, order)};
        if (again) reports.push_back(again(settings, order));
        return reports;
      },
      [] { return 7; }, until);
}

TEST_CASE("a kernel passes in all cases and orders, with seeds drawn after the first run",
          "[exercise]") {
  std::vector<std::int64_t> seeds;
  const auto verdict = verdict_of([&](const lab::Settings& settings, simt::ThreadOrder) {
    const auto seed = settings.find("seed");
    seeds.push_back(seed == settings.end() ? -1 : std::get<std::int64_t>(seed->second));
    return good_report();
  });
  CHECK(verdict.ok);
  CHECK(verdict.hint.empty());
  CHECK(verdict.runs == 7);
  CHECK(seeds == std::vector<std::int64_t>{-1, 7, 7, 7, 7, 7, 7});
  REQUIRE(verdict.goals.size() == 2);
  CHECK(verdict.goals[0].value == 2);
  CHECK(verdict.goals[1].value == 0.75);
}

TEST_CASE("the hint follows from what went wrong", "[exercise]") {
  const auto failing = [](const std::string& check) {
    return [check](const lab::Settings&, simt::ThreadOrder) {
      lab::Report report = good_report();
      report.checks.push_back({check, false, 2, 1, ""});
      return report;
    };
  };
  CHECK(verdict_of(failing("final_output")).hint == "One.");
  CHECK(verdict_of(failing("weights")).hint == "Four.");
  CHECK(verdict_of(failing("weights"), "y = x? a:b").hint == "Three.");
  const auto rising = verdict_of([&](const lab::Settings& settings, simt::ThreadOrder order) {
    return settings.contains("keys") ? failing("weights")(settings, order) : good_report();
  });
  CHECK(rising.hint == "Two, which goes on.");
  CHECK(contains(rising.sentence, "with preset=rising keys=48 the check 'weights' fails"));
}

TEST_CASE("a point for each case that is right in all orders, and for goals where all are",
          "[exercise]") {
  int rising_runs = 0;
  const auto failing_in = [&](bool rising, const std::string& how) {
    const auto run = [&, rising, how](const lab::Settings& settings, simt::ThreadOrder) {
      rising_runs += settings.contains("keys");
      lab::Report report = good_report();
      if (settings.contains("keys") == rising && !how.empty()) {
        if (how != "check") throw Error(how);
        report.checks.push_back({"weights", false, 2, 1, ""});
      }
      return report;
    };
    rising_runs = 0;
    return verdict_of(run, "a", nullptr, lab::JudgeUntil::end);
  };
  const auto points = [](const lab::ExerciseVerdict& verdict, bool timed = false) {
    const lab::ExercisePoints of = lab::points_of(judged(), verdict, timed);
    return std::pair(of.got, of.most);
  };
  CHECK(points(failing_in(false, "")) == std::pair(4, 4));
  CHECK(points(failing_in(false, ""), true) == std::pair(4, 6));
  // The first case fails: the second is tried all the same, and the verdict stays that of the first.
  const lab::ExerciseVerdict plain = failing_in(false, "check");
  CHECK(points(plain) == std::pair(1, 4));
  CHECK(rising_runs == 3);
  CHECK(plain.failed->case_name == "plain");
  CHECK(points(failing_in(true, "check")) == std::pair(1, 4));
  CHECK(points(failing_in(false, "the launch took longer than 10 seconds")) == std::pair(0, 4));
  CHECK(rising_runs == 0);
  lab::Report missed = good_report();
  missed.measurements = {number("rescales", 4)};
  CHECK(points(verdict_of([&](const auto&, auto) { return missed; })) == std::pair(3, 4));
}

TEST_CASE("a difference between orders of the threads is told", "[exercise]") {
  const auto verdict = verdict_of([](const lab::Settings&, simt::ThreadOrder order) {
    lab::Report report = good_report();
    report.checks.push_back({"weights", order != simt::ThreadOrder::descending, 2, 1, ""});
    return report;
  });
  REQUIRE(verdict.failed);
  CHECK(verdict.failed->other_order_passes);
  CHECK(contains(verdict.sentence, "threads in descending order"));
  CHECK(contains(verdict.sentence, "with the threads in another order it is right"));
}

TEST_CASE("a goal that is missed fails a kernel whose results are right", "[exercise]") {
  const auto verdict = verdict_of([](const lab::Settings&, simt::ThreadOrder) {
    lab::Report report = good_report();
    report.measurements[0].value = 4;
    return report;
  });
  CHECK_FALSE(verdict.ok);
  REQUIRE(verdict.failed);
  CHECK(verdict.failed->kind == lab::HintKey::goal);
  CHECK(contains(verdict.sentence, "rescales is 4; the goal is at most 3"));
}

TEST_CASE("what a kernel's process says of itself is never better than what its outputs say",
          "[exercise]") {
  const auto good = [](const lab::Settings&, simt::ThreadOrder) { return good_report(); };
  const auto wrong = [](const lab::Settings&, simt::ThreadOrder) {
    lab::Report report = good_report();
    report.checks[0] = {"final_output", false, 2, 1, ""};
    return report;
  };
  const auto slow = [](const lab::Settings&, simt::ThreadOrder) {
    lab::Report report = good_report();
    report.measurements[0].value = 4;
    return report;
  };
  CHECK(verdict_of(good, "a", good).ok);
  for (const auto& [told, seen] : {std::pair<Run, Run>(good, wrong), {wrong, good}}) {
    CHECK(contains(verdict_of(told, "a", seen).sentence, "the check 'final_output' fails"));
  }
  for (const auto& [told, seen] : {std::pair<Run, Run>(good, slow), {slow, good}}) {
    CHECK(contains(verdict_of(told, "a", seen).sentence, "rescales is 4"));
  }
}

TEST_CASE("no compiler is nobody's mistake", "[exercise]") {
  const auto run = [](const lab::Settings&, simt::ThreadOrder) -> lab::Report {
    throw Error("there is no C++ compiler here", ExitCode::unavailable);
  };
  CHECK(contains(error_of([&] { verdict_of(run); }), "no C++ compiler"));
  const auto broken = verdict_of([](const lab::Settings&, simt::ThreadOrder) -> lab::Report {
    throw lab::SourceError("one_pass.cu does not compile: line 3: expected ';'",
                           {{3, 1, lab::Severity::error, "expected ';'"}});
  });
  REQUIRE(broken.failed);
  CHECK(broken.failed->kind == lab::HintKey::compile);
  CHECK(broken.failed->line == 3);
}

TEST_CASE("a rate is held against the lesson's own", "[exercise]") {
  const lab::Exercise one = lab::parse_exercise(kPath, text_with());
  lab::ExerciseVerdict good;
  good.ok = true;
  good.sentence = "Solved.";
  const auto race = [](double theirs) {
    return [theirs](const lab::ExerciseSpeed& speed) {
      lab::Report report;
      report.device.name = "a GPU";
      report.summary = "busiest is DRAM, at 90 % of its peak (counted)";
      const auto add = [&](const std::string& rung, double value) {
        if (value == 0) return;
        lab::Measurement rate = number("softmax_bandwidth", value, rung.c_str());
        rate.provenance = lab::Provenance::measured;
        rate.unit = "GB/s";
        report.measurements.push_back(rate);
      };
      add(speed.variant, theirs);
      add("built-in " + speed.rung, 100);
      return report;
    };
  };
  const auto fast = lab::judge_speed(one, good, race(130));
  CHECK(fast.ok);
  CHECK(contains(fast.sentence,
                 "1.3 times that of the built-in three-pass (100 GB/s); "
                 "busiest is DRAM, at 90 % of its peak (counted); the goal is at "
                 "least 1.2 times."));
  REQUIRE(fast.goals.size() == 2);
  CHECK(fast.goals[1].value == 1.3);
  const auto slow = lab::judge_speed(one, good, race(110));
  CHECK_FALSE(slow.ok);
  CHECK(contains(slow.sentence, "Not yet: the results are right, but on a GPU"));
  CHECK(contains(slow.sentence, "1.1 times that of the built-in three-pass"));
  CHECK(slow.hint == "Four.");
  REQUIRE(slow.failed);
  CHECK(slow.failed->kind == lab::HintKey::speed);
  const auto wrong = lab::judge_speed(one, good, race(0));
  CHECK_FALSE(wrong.ok);
  CHECK(contains(wrong.sentence, "wrong at the size that is timed"));
  lab::ExerciseVerdict bad;
  CHECK(lab::judge_speed(one, bad, race(130)).goals.empty());
}

TEST_CASE("three exercises ask for speed, by rates that the lesson's bench has", "[exercise]") {
  int with_speed = 0;
  for (const lab::Exercise& one : lab::exercises()) {
    with_speed += one.speeds.empty() ? 0 : 1;
    CAPTURE(one.id());
    for (const lab::ExerciseSpeed& speed : one.speeds) {
      const lab::Recording* recording = lab::recording(one.lesson);
      REQUIRE(recording != nullptr);
      const auto* top = recording->bench.measurement(speed.id, speed.variant);
      const auto* below = recording->bench.measurement(speed.id, speed.rung);
      REQUIRE(top != nullptr);
      REQUIRE(below != nullptr);
      // With room: other GPUs and a student's own way are not to fail by a little.
      CHECK(top->value / below->value > 1.1 * speed.factor);
      CHECK(speed.factor > 1);
    }
    CHECK(one.slow.empty() == one.speeds.empty());
  }
  CHECK(with_speed >= 3);
}

TEST_CASE("without a GPU a rate is neither reached nor missed", "[exercise]") {
  const lab::Exercise one = lab::parse_exercise(kPath, text_with());
  lab::ExerciseVerdict good;
  good.ok = true;
  const auto left = lab::leave_speed(one, good);
  CHECK(left.ok);
  CHECK(contains(left.sentence, "speed was not judged"));
  REQUIRE(left.goals.size() == 2);
  CHECK_FALSE(left.goals[0].judged);
  lab::ExerciseVerdict bad;
  CHECK(lab::leave_speed(one, bad).sentence.empty());
}

// ---- the command --------------------------------------------------------------------------------

void write(const fs::path& file, std::string_view text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

const std::string kRescale = "online-softmax/put-back-the-rescale";

TEST_CASE("exercise list says what there is, and solutions on asking alone", "[exercise]") {
  const auto all = run_tilestep({"exercise", "list", "--json"});
  CHECK(all.code == 0);
  CHECK(all.json().size() == lab::exercises().size());
  const auto of = run_tilestep({"exercise", "list", "online-softmax"});
  CHECK(contains(of.out, kRescale));
  CHECK_FALSE(contains(of.out, "tiling/"));
  const auto one = run_tilestep({"exercise", "list", kRescale});
  CHECK(contains(one.out, "relative to the old maximum"));
  CHECK_FALSE(contains(one.out, lab::exercise(kRescale).solution));
  const auto solution = run_tilestep({"exercise", "list", kRescale, "--solution"});
  CHECK(contains(solution.out, lab::exercise(kRescale).solution));
  CHECK(run_tilestep({"exercise", "list", "--solution"}).code == 2);
  // The first steps come first.
  CHECK(run_tilestep({"exercise", "list"}).out.starts_with("first-steps/1-scale-a-vector  "));
  const auto steps = run_tilestep({"exercise", "list", "first-steps"});
  CHECK(std::count(steps.out.begin(), steps.out.end(), '\n') == 8);
  const lab::Exercise& step = lab::exercise("first-steps/6-count-dice");
  CHECK_FALSE(contains(run_tilestep({"exercise", "list", step.id()}).out, step.solution));
  CHECK(contains(run_tilestep({"exercise", "list", step.id(), "--solution"}).out, step.solution));
  const auto data = run_tilestep({"exercise", "list", "first-steps", "--json"}).json();
  REQUIRE(data.size() == 8);
  CHECK(data[5].at("program") == step.program);
  CHECK_FALSE(data[5].contains("source"));
  const auto none = run_tilestep({"exercise", "list", "online-softmax/none"});
  CHECK(none.code == 2);
  CHECK(contains(none.err, "put-back-the-rescale"));
  CHECK(run_tilestep({"exercise", "list", "none"}).code == 2);
  CHECK(run_tilestep({"exercise"}).code == 2);
}

TEST_CASE("exercise reset loses nothing", "[exercise]") {
  const tests::TemporaryFolder folder;
  const fs::path file = folder.path() / "put-back-the-rescale.cu";
  const auto reset = [&](std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"exercise",       "reset",
                                      "online-softmax", "put-back-the-rescale",
                                      "--out",          folder.path().string()};
    words.insert(words.end(), more.begin(), more.end());
    return run_tilestep(words);
  };
  CHECK(reset().code == 0);
  CHECK(tests::file_text(file) == lab::starter(lab::exercise(kRescale)));
  CHECK(reset().code == 0);  // nothing was changed
  write(file, "mine");
  const auto refused = reset();
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "--force"));
  CHECK(tests::file_text(file) == "mine");
  CHECK(reset({"--force"}).code == 0);
  CHECK(tests::file_text(file) == lab::starter(lab::exercise(kRescale)));
  CHECK(tests::file_text(file.string() + ".bak") == "mine");
}

TEST_CASE("exercise reset writes a program with its task", "[exercise]") {
  const tests::TemporaryFolder folder;
  const auto reset = run_tilestep(
      {"exercise", "reset", "first-steps", "6-count-dice", "--out", folder.path().string()});
  CHECK(reset.code == 0);
  const std::string text = tests::file_text(folder.path() / "6-count-dice.cu");
  CHECK(text.starts_with("// tilestep exercise first-steps/6-count-dice\n//\n// Count dice\n"));
  CHECK(contains(text, "exactly once.\n\n// Counts how often"));
  CHECK(contains(text, "counts[bin]++;"));
  CHECK_FALSE(contains(text, "  atomicAdd("));
  CHECK(contains(run_tilestep({"exercise", "reset", "first-steps", "none", "--out", "a"}).err,
                 "those of first-steps are: 1-scale-a-vector"));
}

TEST_CASE("exercise check refuses what it cannot check", "[exercise]") {
  const tests::TemporaryFolder folder;
  const auto check = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"exercise", "check"});
    return run_tilestep(words);
  };
  const std::string file = (folder.path() / "a.cu").string();
  CHECK(check({}).code == 2);
  CHECK(check({file}).code == 3);
  CHECK(check({folder.path().string()}).code == 2);  // no kernel
  write(file, "int main() {}\n");
  const auto unnamed = check({file});
  CHECK(unnamed.code == 2);
  CHECK(contains(unnamed.err, "--exercise LESSON/NAME"));
  CHECK(check({file, "--exercise", "online-softmax/none"}).code == 2);
  CHECK(check({file, "--backend", "magic"}).code == 2);
  CHECK(contains(check({file, "--csv"}).err, "check DIR --csv"));
  CHECK(check({folder.path().string(), "--csv", "--json"}).code == 2);
  CHECK(contains(check({file, "--exercise", kRescale, "--backend", "cuda"}).err, "--trust"));
  write(file, std::string(600 << 10, ' '));
  CHECK(check({file, "--exercise", kRescale}).code != 0);
}

TEST_CASE("without bubblewrap a folder is checked on trust alone", "[exercise]") {
  const tests::TemporaryFolder folder;
  write(folder.path() / "ada" / "a.cu", "// nothing\n");
  const auto refused = run_tilestep({"exercise", "check", folder.path().string()}, "",
                                    {{"PATH", folder.path().string()}});
  CHECK(refused.code == 3);
  CHECK(contains(refused.err, "--trust"));
  const auto trusted =
      run_tilestep({"exercise", "check", folder.path().string(), "--trust", "--json"}, "",
                   {{"PATH", folder.path().string()}});
  CHECK(trusted.code == 1);
  CHECK(contains(trusted.json().at(0).at("sentence").get<std::string>(), "names no exercise"));
  const auto table = run_tilestep({"exercise", "check", folder.path().string(), "--trust", "--csv"},
                                  "", {{"PATH", folder.path().string()}});
  CHECK(table.out.starts_with("student,exercise,points,of,seconds,same_text\nada,,0,,0"));
}

}  // namespace
}  // namespace tilestep
