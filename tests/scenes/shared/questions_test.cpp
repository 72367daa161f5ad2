#include "scenes/shared/questions.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::scenes;

TEST_CASE("the answer is at every place equally often", "[scenes_shared]") {
  for (const int choices : {2, 3, 4}) {
    std::array<int, 4> places{};
    for (int i = 0; i < 1200; ++i) {
      std::vector<std::string> others = {"b", "c", "d"};
      others.resize(static_cast<std::size_t>(choices - 1));
      const Question question = ask("question " + std::to_string(i), "a", others);
      REQUIRE(question.choices.size() == static_cast<std::size_t>(choices));
      CHECK(question.choices[static_cast<std::size_t>(question.answer)] == "a");
      ++places[static_cast<std::size_t>(question.answer)];
    }
    for (int place = 0; place < choices; ++place) {
      CAPTURE(choices, place);
      // Five standard deviations of a fair draw.
      CHECK(std::abs(places[static_cast<std::size_t>(place)] - 1200 / choices) < 90);
    }
  }
}

TEST_CASE("a question always looks the same", "[scenes_shared]") {
  const Question one = ask("how many?", "4", {"1", "2", "8"});
  const Question other = ask("how many?", "4", {"1", "2", "8"});
  CHECK(one.choices == other.choices);
  CHECK(one.answer == other.answer);
}

TEST_CASE("numeric choices differ, are counts, and are four", "[scenes_shared]") {
  for (const std::int64_t answer : {0, 1, 2, 7, 512}) {
    const Question question = ask_count("how many?", answer, {answer, -3, 1, 1, 2});
    const std::set<std::string> different(question.choices.begin(), question.choices.end());
    CAPTURE(answer);
    CHECK(different.size() == 4);
    CHECK(question.choices.size() == 4);
    CHECK(different.count("-3") == 0);
    CHECK(question.choices[static_cast<std::size_t>(question.answer)] == std::to_string(answer));
  }
  // The first of the others come first.
  const Question question = ask_count("how many?", 5, {10, 20, 30, 40});
  CHECK(std::count(question.choices.begin(), question.choices.end(), "40") == 0);
}
