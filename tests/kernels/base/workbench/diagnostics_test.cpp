// What compilers say, by line of the edited source.

#include "kernels/base/workbench/diagnostics.hpp"

#include "tests/catch.hpp"

namespace tilestep::workbench {
namespace {

using lab::Severity;

constexpr std::string_view kEdited = "kernels/attention/online_softmax/one_pass.cu";

TEST_CASE("errors of the edited source have their lines and come before warnings", "[workbench]") {
  const auto said = diagnostics_in(
      "/c/edited/kernels/attention/online_softmax/one_pass.cu:7:3: warning: unused variable 'x' "
      "[-Wunused]\n"
      "/c/edited/kernels/attention/online_softmax/one_pass.cu: In function 'void f()':\n"
      "/c/edited/kernels/attention/online_softmax/one_pass.cu:12:34: error: expected ';' before "
      "'}' token\n"
      "/c/edited/kernels/attention/online_softmax/one_pass.cu:12:34: note: to match this '{'\n"
      "/c/edited/kernels/attention/online_softmax/one_pass.cu:12:34: error: expected ';' before "
      "'}' token\n",
      kEdited);
  REQUIRE(said.size() == 2);
  CHECK(said[0].line == 12);
  CHECK(said[0].column == 34);
  CHECK(said[0].severity == Severity::error);
  CHECK(said[0].text == "expected ';' before '}' token");
  CHECK(said[1].line == 7);
  CHECK(said[1].severity == Severity::warning);
  CHECK(sentence_of(said, kEdited) ==
        "one_pass.cu does not compile: line 12: expected ';' before '}' token");
}

TEST_CASE("what goes wrong in a header is put where it was asked for", "[workbench]") {
  const auto said = diagnostics_in(
      "/c/edited/kernels/attention/online_softmax/one_pass.cu:40:18:   required from here\n"
      "/c/headers/kernels/base/simt/checked.hpp:30:8: error: no match for 'operator[]'\n"
      "/c/headers/kernels/attention/online_softmax/launch.cu:83:5: error: 'three_pass' was not "
      "declared\n",
      kEdited);
  REQUIRE(said.size() == 2);
  CHECK(said[0].line == 40);
  CHECK(said[0].text == "no match for 'operator[]' (checked.hpp, line 30)");
  CHECK(said[1].line == 0);
  CHECK(said[1].text == "'three_pass' was not declared (launch.cu, line 83)");
  CHECK(tests::contains(sentence_of(said, kEdited), "(and 1 more error)"));
}

TEST_CASE("nvcc's form and fatal errors are read as well", "[workbench]") {
  const auto said = diagnostics_in(
      "/c/edited/kernels/attention/online_softmax/one_pass.cu(9): error: identifier \"y\" is "
      "undefined\n"
      "/c/edited/kernels/attention/online_softmax/one_pass.cu:3:10: fatal error: nothing.hpp: No "
      "such file\n",
      kEdited);
  REQUIRE(said.size() == 2);
  CHECK(said[0].line == 9);
  CHECK(said[0].column == 0);
  CHECK(said[0].text == "identifier \"y\" is undefined");
  CHECK(said[1].text == "nothing.hpp: No such file");
}

TEST_CASE("of thousands of errors some are kept, and noise is none", "[workbench]") {
  std::string output =
      "make: nothing to be done: 1\n:::\nx:\n(3): error: \nfile:99999999999999: error: far\n";
  CHECK(diagnostics_in(output, kEdited).empty());
  for (int line = 1; line <= 2000; ++line) {
    output += "/e/kernels/attention/online_softmax/one_pass.cu:" + std::to_string(line) +
              ":1: error: no\n";
  }
  CHECK(diagnostics_in(output, kEdited).size() == kMostDiagnostics);
}

}  // namespace
}  // namespace tilestep::workbench
