// Marks in kernel sources, and that every source that was built in has sound ones.

#include "kernels/base/lab/source.hpp"

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/simt/error.hpp"
#include "tests/catch.hpp"

namespace tilestep::lab {
namespace {

std::string error_of_marks(std::string_view text) {
  try {
    (void)SourceMarks("one.cu", text).line("load");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a mark gives the line that it stands on", "[lab]") {
  const SourceMarks marks("one.cu", "a = b;  // [step: load]\n\n// [step: load again]\nc;\n");
  CHECK(marks.line("load") == 1);
  CHECK(marks.line("load again") == 3);
  CHECK(marks.all().size() == 2);
}

TEST_CASE("a missing, doubled or torn mark is an error that names the file", "[lab]") {
  CHECK(error_of_marks("a;  // [step: load]\n") == "");
  CHECK(error_of_marks("a;  // [step: store]\n") ==
        "one.cu has no line with the mark '// [step: load]'");
  CHECK(error_of_marks("\na;  // [step: load]\nb;  // [step: load]\n") ==
        "one.cu marks the step 'load' twice, in lines 2 and 3");
  CHECK(error_of_marks("\na;  // [step: load\n]") ==
        "one.cu:2: the mark '// [step: ' has no end ']'");
  CHECK(error_of_marks("a;  // [step: load") != "");
}

TEST_CASE("lines that record the picture are found whole", "[lab]") {
  CHECK(recorder_lines("a;\n  tape.note(1,\n            {f(2)});\nb;\n") ==
        std::vector<LineRange>{{2, 3}});
  CHECK(recorder_lines("if (tape.chosen(t)) {  // (\n  a(;\n}\nb;") ==
        std::vector<LineRange>());  // never ends: that is no statement
  CHECK(recorder_lines("if (tape.chosen(t)) {  // (\n  a;\n}\ntape.note(1);\nb;\n") ==
        std::vector<LineRange>{{1, 4}});
  CHECK(recorder_lines(
            "clock(tape, 1, n);\nclock<32>(tape,\n  2, n);\nlinger(tape);\nclock_of(n);\n") ==
        std::vector<LineRange>{{1, 4}});
  // What the kernel needs stays, though a tape watches it.
  CHECK(recorder_lines("const auto a = tape.traced(b,\n  1);\n// tape.note(1);\n").empty());
  // In the middle of a statement none begins; a step's line stays.
  CHECK(recorder_lines("a(b,\n  tape.put(1));\ntape.put(2);\nb;\n") ==
        std::vector<LineRange>{{3, 3}});
  CHECK(recorder_lines("a;\ntape.put(2);  // [step: end]\nprobe.start();\n") ==
        std::vector<LineRange>{{3, 3}});
  CHECK(recorder_lines("").empty());
  CHECK(recorder_lines("tape.note(").empty());
}

TEST_CASE("the marks of every kernel source are sound", "[lab]") {
  int sources = 0;
  int marks = 0;
  for (const Asset& asset : assets()) {
    if (!asset.path.ends_with(".cu")) continue;
    INFO(asset.path);
    ++sources;
    const SourceMarks found = source_marks(asset.path);
    for (const auto& [step, line] : found.all()) {
      INFO(step);
      CHECK(line > 0);
      ++marks;
    }
  }
  CHECK(sources > 0);
  CHECK(marks > 0);
}

}  // namespace
}  // namespace tilestep::lab
