#include <algorithm>
#include <map>
#include <set>

#include "app/keep/guided.hpp"
#include "app/keep/quiz.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/catalog.hpp"
#include "scenes/shared/questions.hpp"
#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;
namespace fs = std::filesystem;

namespace {

std::map<std::string, std::string> made(const std::string& lesson, const std::string& seed) {
  TemporaryFolder folder;
  const Outcome outcome =
      run_tilestep({"worksheet", lesson, "--seed", seed, "--out", folder.path().string()});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    files[entry.path().filename().string()] = file_text(entry.path());
    check_contains(outcome.out, entry.path().string() + "\n");
  }
  return files;
}

/// A quiz is made of many runs: one lesson, the same in all tests.
std::vector<const lab::Lesson*> some_lessons() {
  std::vector<const lab::Lesson*> some;
  Part part("quizzes", lessons().size());
  for (const lab::Lesson* lesson : lessons()) {
    if (!part.skips()) some.push_back(lesson);
  }
  return some;
}

}  // namespace

TEST_CASE("a quiz asks nothing twice, and of every kind before a second of one", "[worksheet]") {
  for (const lab::Lesson* lesson : some_lessons()) {
    INFO(lesson->info().id);
    const auto all = make_quiz(lesson->info().id, 1, 1000);
    const auto quiz = make_quiz(lesson->info().id, 1, 8);
    CHECK(quiz.size() == std::min<std::size_t>(8, all.size()));
    CHECK(quiz.size() >= 5);
    std::set<std::string> texts, ids, all_ids;
    for (const QuizItem& item : all) all_ids.insert(item.question.id);
    for (const QuizItem& item : quiz) {
      CHECK(texts.insert(item.question.text).second);
      ids.insert(item.question.id);
      if (item.question.choices.empty()) {
        CHECK(item.question.values.size() == 1);
      } else {
        CHECK(item.question.answer >= 0);
        CHECK(item.question.answer < std::ssize(item.question.choices));
      }
      if (item.measured) continue;
      CHECK(item.asked < item.told);
      CHECK(item.evidence.rows.size() <= 4);
    }
    CHECK(ids.size() == std::min<std::size_t>(all_ids.size(), 8));
  }
}

TEST_CASE("no picture of a quiz tells what another question asks, and easy ones come first",
          "[worksheet]") {
  for (const lab::Lesson* lesson : some_lessons()) {
    const auto quiz = make_quiz(lesson->info().id, 2, 8);
    bool measured = false;
    std::size_t turned = 0;
    for (const QuizItem& one : quiz) {
      INFO(lesson->info().id << ": " << one.question.text);
      CHECK_FALSE((measured && !one.measured));
      measured = one.measured;
      if (measured) continue;
      const auto here = lab::differing(one.report->params, lesson->knobs().defaults()).size();
      CHECK(here >= turned);
      turned = here;
      for (const QuizItem& other : quiz) {
        if (other.measured || other.asked < one.told) continue;
        const auto scene = scene_of(*other.report);
        const auto there = scene->question({one.asked});
        const std::string answer = answer_text(one.question);
        if (!there || there->id != one.question.id || answer_text(*there) != answer) continue;
        const std::string said =
            picture::plain(scene->picture(scene->extent(), {other.asked}).headline.full);
        CHECK((" " + said + " ").find(" " + answer + " ") == std::string::npos);
      }
    }
  }
}

TEST_CASE("a quiz turns no knob that its question does not depend on", "[worksheet]") {
  for (const QuizItem& item : make_quiz("tiling", 1, 8)) {
    if (item.measured) continue;
    INFO(item.question.text);
    const lab::Settings turned =
        lab::differing(item.report->params, lesson("tiling").knobs().defaults());
    for (const auto& [knob, value] : turned) {
      lab::Settings fewer = turned;
      fewer.erase(knob);
      const auto question = scene_of(emulated_report("tiling", fewer))->question({item.asked});
      CHECK_FALSE((question && question->text == item.question.text &&
                   question->because == item.question.because));
    }
  }
}

TEST_CASE("the evidence is about what was asked", "[worksheet]") {
  bool found = false;
  for (const QuizItem& item : make_quiz("coalescing", 1, 1000)) {
    if (!item.question.text.starts_with("Warp 1 is next")) continue;
    found = true;
    bool told = false;
    for (std::size_t row = 0; row < item.evidence.rows.size(); ++row) {
      told = told || (item.evidence.text(row, 0) == "0" && item.evidence.text(row, 1) == "1");
    }
    CHECK(told);
  }
  CHECK(found);
}

TEST_CASE("no question speaks of another one", "[worksheet]") {
  for (const lab::Lesson* lesson : lessons()) {
    const lab::Recording* recording = lab::recording(lesson->info().id);
    REQUIRE(recording != nullptr);
    for (const auto& scene : scenes::make_scenes()) {
      if (scene->lesson() != lesson->info().id) continue;
      for (const scenes::Question& question : scene->measured_questions(recording->bench)) {
        INFO(question.text);
        for (const char* word : {"And ", "The same"}) CHECK_FALSE(question.text.starts_with(word));
        for (const std::string& choice : question.choices) CHECK(choice != "0.0×");
      }
    }
  }
}

TEST_CASE("a class's worth of worksheets, and their questions for Moodle", "[worksheet]") {
  TemporaryFolder folder;
  const auto make = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"worksheet", "coalescing", "--out", folder.path().string()});
    return run_tilestep(words);
  };
  const Outcome outcome = make({"--seeds", "5-6", "--gift"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  std::set<std::string> texts;
  for (const int seed : {5, 6}) {
    const fs::path place = folder.path() / ("seed-" + std::to_string(seed));
    check_contains(file_text(place / "sheet.md"), "--seed " + std::to_string(seed));
    for (const QuizItem& item : make_quiz("coalescing", seed, 8)) texts.insert(item.question.text);
  }
  const std::string gift = file_text(folder.path() / "coalescing.gift");
  CHECK(gift.starts_with("$CATEGORY: tilestep/Memory coalescing\n\n::coalescing 5.1::[html]"));
  check_contains(gift, "src\\=\"data\\:image/svg+xml;base64,");
  // Of its signs only those are bare that begin and end a question's answers.
  std::map<char, std::size_t> bare;
  for (std::size_t i = 1; i < gift.size(); ++i) {
    if (gift[i] == '\\')
      ++i;
    else
      ++bare[gift[i]];
  }
  CHECK(bare['{'] == texts.size());
  CHECK(bare['}'] == texts.size());
  CHECK(bare['='] > 0);
  CHECK(bare['='] <= texts.size());
  CHECK(bare['~'] >= bare['=']);
  for (const auto& [words, says] : std::map<std::string, std::string>{
           {"6-5", "FIRST-LAST"}, {"7", "FIRST-LAST"}, {"1-999", "at most 200"}}) {
    const Outcome refused = make({"--seeds", words});
    CHECK(refused.code == 2);
    check_contains(refused.err, says);
  }
  CHECK(make({"--seeds", "1-2", "--seed", "1"}).code == 2);
}

TEST_CASE("the same seed gives the same worksheet, another one another", "[worksheet]") {
  const auto first = made("coalescing", "5");
  CHECK((made("coalescing", "5") == first));
  CHECK((made("coalescing", "6") != first));
}

TEST_CASE("a worksheet has a sheet without answers, a key and the evidence", "[worksheet]") {
  for (const lab::Lesson* lesson : some_lessons()) {
    INFO(lesson->info().id);
    const auto files = made(lesson->info().id, "11");
    const auto quiz = make_quiz(lesson->info().id, 11, 8);
    for (const char* name : {"sheet", "key", "evidence"}) {
      const std::string html = files.at(std::string(name) + ".html");
      check_contains(html, "@page { size: A4;");
      for (const std::string& text : {html, files.at(std::string(name) + ".md")}) {
        check_contains(text, lesson->info().title);
        check_contains(text, "--seed 11");
        check_contains(text, "Question " + std::to_string(quiz.size()));
        CHECK(text.find("Question " + std::to_string(quiz.size() + 1)) == std::string::npos);
      }
    }
    const std::string& sheet = files.at("sheet.md");
    for (std::size_t i = 0; i < quiz.size(); ++i) {
      const scenes::Question& question = quiz[i].question;
      check_contains(sheet, question.text);
      CHECK(sheet.find(question.because) == std::string::npos);
      check_contains(files.at("key.md"), question.because);
      CHECK(files.at("key.md").find("e+") == std::string::npos);  // "± 2.5e+02"
      check_contains(files.at("evidence.md"), question.because);
      for (const std::string& choice : question.choices) check_contains(sheet, choice);
      if (quiz[i].measured) continue;
      const std::string number = std::to_string(i + 1);
      for (const char* when : {"before", "after"}) {
        const std::string file = "q" + number + "-" + when + ".svg";
        check_contains(files.at(file), "<svg");
        check_contains(files.at("evidence.html"), "src=\"" + file + "\"");
      }
      check_contains(files.at("sheet.html"), "src=\"q" + number + "-before.svg\"");
    }
    for (const char* name : {"sheet.md", "sheet.html", "key.md", "key.html"}) {
      CHECK(files.at(name).find("-after.svg") == std::string::npos);
    }
  }
}
