#include <algorithm>
#include <sstream>

#include "app/cli/fitted_table.hpp"
#include "app/cli/report_text.hpp"
#include "app/cli/terminal.hpp"
#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/part.hpp"

using namespace tilestep::tests;
namespace app = tilestep::app;
namespace lab = tilestep::lab;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> lesson_ids() {
  std::vector<std::string> ids;
  const auto list = run_tilestep({"list", "--json"}).json();
  for (const auto& lesson : list.at("lessons")) ids.push_back(lesson.at("id"));
  return ids;
}

/// What `run` prints at a terminal of that size.
std::string shown(const std::string& lesson, const std::string& columns,
                  const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"run", lesson, "--backend", "emulated"};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome outcome = run_tilestep(words, "", {{"COLUMNS", columns}, {"LINES", "30"}});
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  return outcome.out;
}

lab::Table table_of(std::vector<lab::Column> columns, std::vector<std::vector<lab::Cell>> rows) {
  return {"t", "A table", std::move(columns), std::move(rows)};
}

}  // namespace

TEST_CASE("run fits the terminal: sentence, main table, checks on a line, few numbers", "[cli]") {
  Part part("runs in a terminal", 5);
  for (const std::string& lesson : lesson_ids()) {
    if (part.skips()) continue;
    const auto report = run_tilestep({"run", lesson, "--backend", "emulated", "--json"}).json();
    for (const char* columns : {"60", "80", "132"}) {
      const std::string text = shown(lesson, columns);
      INFO(lesson << " at " << columns << " columns:\n" << text);
      const auto lines = lines_of(text);
      for (const std::string& line : lines) {
        INFO(line);
        CHECK(app::display_width(line) <= std::stoul(columns));
      }
      CHECK(lines.size() <= 42);
      // The sentence comes first, wrapped.
      const std::string sentence = report.at("summary");
      CHECK(sentence.starts_with(lines.front().substr(0, lines.front().rfind(' '))));
      const std::size_t checks = report.at("checks").size();
      check_contains(
          text, "\n" + std::to_string(checks) + (checks == 1 ? " check" : " checks") + " ok\n");
      check_contains(text, "--all");
      const auto rates = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
        return line.find("GB/s") != std::string::npos || line.find("TFLOP/s") != std::string::npos;
      });
      const auto& numbers = report.at("measurements");
      const bool recorded = std::any_of(numbers.begin(), numbers.end(), [](const auto& number) {
        return number.at("provenance") == "recorded";
      });
      CHECK((rates > 0) == recorded);
      CHECK(rates <= 6);
      CHECK((text.find("Recorded on NVIDIA") != std::string::npos) == recorded);
    }
  }
}

TEST_CASE("run without a terminal takes 80 columns", "[cli]") {
  for (const std::string& line : lines_of(shown("tiling", ""))) {
    INFO(line);
    CHECK(app::display_width(line) <= 80);
  }
}

TEST_CASE("run --all prints every table, measurement and check", "[cli]") {
  const auto report = run_tilestep({"run", "coalescing", "--backend", "emulated", "--json"}).json();
  const std::string text = shown("coalescing", "80", {"--all"});
  for (const auto& table : report.at("tables")) {
    check_contains(text, table.at("title").get<std::string>());
  }
  for (const auto& check : report.at("checks")) {
    check_contains(text, check.at("id").get<std::string>());
  }
  CHECK(lines_of(text).size() > report.at("measurements").size());
  CHECK(text.find("Omitted") == std::string::npos);
  CHECK(run_tilestep({"run", "coalescing", "--all", "--json"}).code == 2);
}

TEST_CASE("a knob whose zero has a name shows the name", "[cli]") {
  check_contains(run_tilestep({"list"}).out, "; off if not set]");
  check_contains(shown("moe-routing", "80"), "capacity=off");
  check_contains(shown("moe-routing", "80", {"--set", "capacity=1.5"}), "capacity=1.5");
}

TEST_CASE("a failed check is named with its error and its tolerance", "[cli]") {
  lab::Report report;
  report.lesson = "tiling";
  report.summary = "A sentence.";
  report.checks = {{"fine", true, 0, 0, ""}, {"output", false, 0.5, 0.25, "because of rounding"}};
  const std::string text = app::report_brief(report, {80, 24});
  check_contains(text, "1 of 2 checks FAILED");
  check_contains(text, "output: error 0.5, tolerance 0.25; because of rounding");
  CHECK(text.find("fine") == std::string::npos);
}

TEST_CASE("columns align whatever signs they hold", "[cli]") {
  CHECK(app::display_width("a·b×ℓ") == 5);
  CHECK(app::display_width("e\u0301") == 1);
  CHECK(app::display_width("行列") == 4);
  const lab::Table table = table_of(
      {{"a", "ℓ · m", "", -1}, {"b", "value", "GB/s", 1}},
      {{std::string("2×2"), 1.0}, {std::string("行列 x"), 22.5}, {std::string("e\u0301"), 3.0}});
  for (const std::string& line : lines_of(app::aligned(table))) {
    INFO(line);
    CHECK(app::display_width(line) == 2 + 6 + 2 + 12);
  }
}

TEST_CASE("a table that is too wide wraps words, then leaves columns out; rows beyond are counted",
          "[cli]") {
  const std::string words = "a few words that go on for quite a while and then some more";
  const lab::Table table =
      table_of({{"n", "n", "", 0}, {"w", "what it does", "", -1}, {"r", "measured rate", "", 0}},
               {{1.0, words, 123456.0}, {2.0, words, 1.0}, {3.0, words, 1.0}});
  const app::FittedTable wide = app::fitted(table, 100, 50);
  CHECK(wide.rows_left_out == 0);
  CHECK(wide.columns_left_out.empty());
  CHECK(wide.text == app::aligned(table));
  const app::FittedTable narrow = app::fitted(table, 40, 50);
  for (const std::string& line : lines_of(narrow.text)) CHECK(app::display_width(line) <= 40);
  check_contains(narrow.text, "123456");
  CHECK(narrow.columns_left_out.empty());
  const app::FittedTable tiny = app::fitted(table, 25, 50);
  for (const std::string& line : lines_of(tiny.text)) CHECK(app::display_width(line) <= 25);
  CHECK(tiny.columns_left_out == std::vector<std::string>{"measured rate"});
  const app::FittedTable low = app::fitted(table, 100, 4);
  CHECK(low.lines == 4);
  CHECK(low.rows_left_out == 1);
}

TEST_CASE("words wrap at spaces, and what is longer than a line is cut", "[cli]") {
  using Lines = std::vector<std::string>;
  CHECK((app::wrapped_lines("one two three", 7) == Lines{"one two", "three"}));
  CHECK((app::wrapped_lines("abcdefgh ij", 3) == Lines{"abc", "def", "gh", "ij"}));
  CHECK((app::wrapped_lines("", 5) == Lines{""}));
  CHECK(app::wrapped("one two three", 9, 2) == "one two\n  three\n");
}
