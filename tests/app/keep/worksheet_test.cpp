#include <algorithm>
#include <map>
#include <set>

#include "app/keep/quiz.hpp"
#include "kernels/catalog.hpp"
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

/// A quiz is made of many runs: one lesson in three, the same in all tests.
std::vector<const lab::Lesson*> some_lessons() {
  std::vector<const lab::Lesson*> some;
  Part part("quizzes", 3);
  for (const lab::Lesson* lesson : lessons()) {
    if (!part.skips()) some.push_back(lesson);
  }
  return some;
}

}  // namespace

TEST_CASE("a quiz asks nothing twice, and of every kind before a second of one", "[keep]") {
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

TEST_CASE("the same seed gives the same worksheet, another one another", "[keep]") {
  const auto first = made("coalescing", "5");
  CHECK((made("coalescing", "5") == first));
  CHECK((made("coalescing", "6") != first));
}

TEST_CASE("a worksheet has a sheet without answers, a key and the evidence", "[keep]") {
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
