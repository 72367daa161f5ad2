#include "app/cli/exercise_check.hpp"
#include "tests/catch.hpp"

namespace tilestep::app {
namespace {

CheckedFile handed_in(const std::string& file, const std::string& exercise, int cases_right,
                      double seconds) {
  CheckedFile one{"class/" + file, exercise, {}, seconds};
  one.verdict.cases_right = cases_right;
  return one;
}

TEST_CASE("a class's table has a row for each student and exercise", "[cli]") {
  const std::string rescale = "online-softmax/put-back-the-rescale",
                    pad = "coalescing/pad-the-tile";
  const int most = lab::points_of(lab::exercise(pad), {}, false).most;
  const lab::Table table = class_table(
      "class",
      {handed_in("ada/hand-in/pad.cu", pad, 1, 2), handed_in("ada/pad.cu", pad, 2, 2.25),
       handed_in("ada/pad_old.cu", pad, 0, 2), handed_in("bob.cu", rescale, 1, 4),
       handed_in("eve/notes.cu", "none/such", 0, 0)},
      false);
  REQUIRE(table.rows.size() == 7);  // three students, two exercises, and what names none
  const auto row = [&](std::size_t at) {
    std::string text;
    for (std::size_t i = 0; i < table.columns.size(); ++i) text += table.text(at, i) + "|";
    return text;
  };
  CHECK(row(0) == "ada|" + pad + "|2|" + std::to_string(most) + "|2.2||");
  CHECK(row(1).starts_with("ada|" + rescale + "||"));
  CHECK(row(2) == "bob|" + pad + "||" + std::to_string(most) + "|||");
  CHECK(row(3).starts_with("bob|" + rescale + "|1|"));
  CHECK(row(5) == "eve|none/such|0||0.0||");
}

TEST_CASE("a class's table has the first steps beside the lessons", "[cli]") {
  const std::string pad = "coalescing/pad-the-tile", bias = "first-steps/8-add-a-bias";
  CheckedFile reached = handed_in("bob/bias.cu", bias, 1, 2);
  reached.verdict.goals = {{"no coalescing", 0, true}};
  const lab::Table table = class_table(
      "class", {handed_in("ada/pad.cu", pad, 1, 2), handed_in("ada/bias.cu", bias, 1, 2), reached},
      false);
  REQUIRE(table.rows.size() == 4);
  const auto cells = [&](std::size_t row) {
    return table.text(row, 1) + " " + table.text(row, 2) + "/" + table.text(row, 3);
  };
  CHECK(cells(1) == bias + " 1/2");
  CHECK(cells(3) == bias + " 2/2");
}

TEST_CASE("a class's table tells files of one text, save the exercise as it was given", "[cli]") {
  const std::string pad = "coalescing/pad-the-tile",
                    rescale = "online-softmax/put-back-the-rescale";
  const auto of_text = [](const std::string& file, const std::string& exercise, std::string text) {
    CheckedFile one = handed_in(file, exercise, 1, 1);
    one.text = std::move(text);
    return one;
  };
  const std::string given = lab::starter(lab::exercise(pad));
  const lab::Table table = class_table(
      "class",
      {of_text("ada/pad.cu", pad, "float a[33];"), of_text("ada/pad_old.cu", pad, "float b[33];"),
       of_text("bob.cu", pad, "  float a [33];\n"), of_text("cem.cu", pad, "float b[33];"),
       of_text("dan.cu", rescale, "float a[33];"), of_text("eve.cu", pad, given),
       of_text("fay.cu", pad, given)},
      false);
  const auto same = [&](const std::string& student, const std::string& exercise) {
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      if (table.text(r, 0) == student && table.text(r, 1) == exercise) return table.text(r, 5);
    }
    return std::string("no row");
  };
  CHECK(same("ada", pad) == "bob, cem");  // by the file that counts and by the other one
  CHECK(same("bob", pad) == "ada");
  CHECK(same("cem", pad) == "ada");
  CHECK(same("dan", rescale).empty());
  CHECK(same("eve", pad).empty());
  CHECK(same("fay", pad).empty());
}

}  // namespace
}  // namespace tilestep::app
