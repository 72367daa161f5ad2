// The sample lesson in the program that is made of it; the contract of all lessons is held beside this.

#include <algorithm>
#include <fstream>

#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/paths.hpp"
#include "tests/skip.hpp"

using namespace tilestep::tests;
namespace fs = std::filesystem;

namespace {

/// Lines of a file that hold code: not empty, no comment, not for the preprocessor.
int code_lines(const fs::path& path) {
  std::ifstream file(path);
  int lines = 0;
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos) continue;
    const std::string code = line.substr(first);
    lines += code.starts_with("//") || code.starts_with("#") ? 0 : 1;
  }
  return lines;
}

}  // namespace

TEST_CASE("the sample lesson has about a hundred lines of code", "[sample]") {
  int lines = 0;
  for (const char* folder : {"kernels/machine", "scenes"}) {
    for (const auto& entry : fs::recursive_directory_iterator(
             fs::path(tilestep::tests::paths::kSource) / "tests/lesson_contract/sample" / folder)) {
      if (entry.is_regular_file()) lines += code_lines(entry.path());
    }
  }
  CHECK(lines > 50);
  CHECK(lines <= 100);
}

TEST_CASE("a program of the sample lesson alone lists and runs it", "[sample]") {
  const auto lessons = run_tilestep({"list", "--json"}).json().at("lessons");
  REQUIRE(lessons.size() == 1);
  CHECK(lessons[0].at("id") == "tree-sum");
  CHECK(lessons[0].at("chapter") == "Machine");
  const Outcome run = run_tilestep({"run", "tree-sum", "--set", "rounds=4", "--json"});
  REQUIRE(run.code == 0);
  const auto report = run.json();
  CHECK(report.at("summary") == "16 threads add up 1 to 16 in 4 rounds.");
  CHECK(report.at("checks").at(0).at("ok") == true);
  CHECK(report.at("tables").at(0).at("rows").back() == nlohmann::json::array({4, 1, 136}));
  // The picture is drawn from what the kernel wrote: 1 to 16, then rounds of partial sums.
  const auto sums = report.at("trace").at("sums").get<std::vector<float>>();
  REQUIRE(sums.size() == 5 * 16);
  CHECK(sums[15] == 16);
  CHECK(sums[16] == 1 + 9);
  CHECK(sums[64] == 136);
}

TEST_CASE("a shot of the sample lesson", "[sample]") {
  // What OpenGL's driver keeps until the process ends is no leak of ours.
  const Environment no_leak_check = {{"ASAN_OPTIONS", "detect_leaks=0"}};
  TemporaryFolder folder;
  const std::string map = (folder.path() / "map.json").string();
  for (const char* theme : {"dark", "light"}) {
    const Outcome shot = run_tilestep({"shot", "tree-sum", "--step", "2", "--theme", theme, "--out",
                                       (folder.path() / "a.png").string(), "--ui-map", map},
                                      "", no_leak_check);
    if (shot.code == 3) return skip("no pictures can be drawn here: " + shot.err);
    REQUIRE(shot.code == 0);
    const auto parts = nlohmann::json::parse(file_text(map));
    CHECK(parts.at("lesson") == "tree-sum");
    CHECK(parts.at("step") == 2);
    check_contains(parts.dump(), "2 of 8 threads add.");
    CHECK(parts.at("lost").empty());
  }
}
