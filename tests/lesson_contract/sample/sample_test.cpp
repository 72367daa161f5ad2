// The sample lesson in the program that is made of it.

#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/skip.hpp"

using namespace tilestep::tests;

TEST_CASE("a program of the sample lesson alone lists and runs it", "[sample]") {
  const auto lessons = run_tilestep({"list", "--json"}).json().at("lessons");
  REQUIRE(lessons.size() == 1);
  CHECK(lessons[0].at("id") == "tree-sum");
  CHECK(lessons[0].at("chapter") == "Machine");
  const Outcome run = run_tilestep({"run", "tree-sum", "--set", "rounds=4", "--markdown"});
  CHECK(run.code == 0);
  check_contains(run.out, "16 numbers are added up in 4 rounds: 136.");
}

TEST_CASE("a shot of the sample lesson", "[sample]") {
  TemporaryFolder folder;
  const std::string map = (folder.path() / "map.json").string();
  const Outcome shot = run_tilestep({"shot", "tree-sum", "--step", "2", "--out",
                                     (folder.path() / "a.png").string(), "--ui-map", map});
  if (shot.code == 3) return skip("no pictures can be drawn here: " + shot.err);
  REQUIRE(shot.code == 0);
  const auto parts = nlohmann::json::parse(file_text(map));
  CHECK(parts.at("lesson") == "tree-sum");
  CHECK(parts.at("step") == 2);
  check_contains(parts.dump(), "Round 2: 2 threads add.");
  CHECK(parts.at("lost").empty());
}
