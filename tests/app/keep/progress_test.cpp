#include "app/keep/progress.hpp"

#include <fstream>

#include "tests/app/child.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::app;
using tests::contains;
using tests::file_text;
namespace fs = std::filesystem;

namespace {

Progress of(const std::string& lesson, Progress::Lesson done) {
  return {{{lesson, std::move(done)}}};
}

}  // namespace

TEST_CASE("what two windows have done adds up in one file", "[keep]") {
  const tests::TemporaryFolder folder;
  const fs::path path = folder.path() / "deep" / "progress.json";
  ProgressFile one(path), other(path);
  CHECK(one.load() == Progress());
  one.add(of("coalescing", {.stops = {"The good case"}, .right = {"share"}, .asked = {"share"}}));
  other.add(of("coalescing", {.stops = {"Every second float"}}));
  const Progress all = other.add(of("tiling", {.exercises = {"tiling/find-the-missing-barrier"}}));
  CHECK(all.lessons.at("coalescing").stops.size() == 2);
  CHECK(all.lessons.at("coalescing").right == std::set<std::string>{"share"});
  CHECK(one.load() == all);
  CHECK(progress_from(progress_text(all)) == all);
  one.reset();
  CHECK(one.load() == Progress());
}

TEST_CASE("progress that is damaged is set aside, that of a newer tilestep left alone", "[keep]") {
  const tests::TemporaryFolder folder;
  const fs::path path = folder.path() / "progress.json";
  for (const char* text :
       {"", "{", "[]", R"({"tilestep_progress": 1})", R"({"tilestep_progress": 1, "lessons": []})",
        R"({"tilestep_progress": 1, "lessons": {"tiling": {"stops": [7]}}})"}) {
    CAPTURE(text);
    std::ofstream(path) << text;
    ProgressFile file(path);
    CHECK(file.load() == Progress());
    CHECK(contains(file.take_remark(), "set aside"));
    CHECK_FALSE(fs::exists(path));
    file.add(of("tiling", {.stops = {"a"}}));
    CHECK(ProgressFile(path).load().lessons.at("tiling").stops.size() == 1);
  }
  const std::string newer = R"({"tilestep_progress": 2, "lessons": {}})";
  std::ofstream(path) << newer;
  ProgressFile file(path);
  CHECK(file.load() == Progress());
  CHECK(contains(file.take_remark(), "newer tilestep"));
  file.add(of("tiling", {.stops = {"a"}}));
  CHECK(file_text(path) == newer);
}

TEST_CASE("without a folder for it progress is of this window alone", "[keep]") {
  ProgressFile file(std::nullopt);
  CHECK(file.load() == Progress());
  CHECK(file.add(of("tiling", {.stops = {"a"}})).lessons.count("tiling") == 1);
  CHECK(file.take_remark().empty());
}

TEST_CASE("fixes that were tried on cases are kept, and further tries cost points", "[keep]") {
  const Progress some =
      of("triage", {.cases = {"case-1: use-bf16 = 10", "case-2: align-rows = 90"}});
  Progress all = some;
  all.add(of("triage", {.cases = {"case-1: fuse-the-dequant = 95"}}));
  CHECK(progress_from(progress_text(all)) == all);
  CHECK(all.lessons.at("triage").cases.size() == 3);
  // A lesson without cases is written as before there were any.
  CHECK_FALSE(contains(progress_text(of("tiling", {.stops = {"a"}})), "cases"));
  const CasePoints points = points_of_cases(all.lessons.at("triage").cases);
  CHECK(points.cases == 2);
  CHECK(points.tries == 3);
  CHECK(points.points == 95 - 15 + 90);
  CHECK(points_of_cases({}).points == 0);
  // Trying everything is worth nothing, and what is no such text counts nothing.
  std::set<std::string> many;
  for (int i = 0; i < 9; ++i) many.insert("case-3: fix " + std::to_string(i) + " = 99");
  CHECK(points_of_cases(many).points == 0);
  CHECK(points_of_cases({"", "case-1", ": = ", "case-4: x = many", "case-5 = 70"}).points == 0);
}
