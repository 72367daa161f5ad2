// What the command line promises of every lesson that `list` names.

#include <algorithm>
#include <set>

#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/part.hpp"

using namespace tilestep::tests;
using nlohmann::json;

namespace {

json lessons() {
  return run_tilestep({"list", "--json"}).json().at("lessons");
}

std::string id_of(const json& lesson) {
  return lesson.at("id").get<std::string>();
}

Outcome run(const json& lesson, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"run", id_of(lesson), "--backend", "emulated"};
  words.insert(words.end(), more.begin(), more.end());
  return run_tilestep(words);
}

bool is_number(const json& value) {
  return value.is_number() || value == "inf" || value == "-inf" || value == "nan";
}
bool is_null_or_text(const json& value) {
  return value.is_null() || value.is_string();
}

void check_table(const json& table) {
  CHECK(table.at("id").is_string());
  CHECK(table.at("title").is_string());
  REQUIRE(!table.at("columns").empty());
  for (const json& column : table.at("columns")) {
    CHECK(column.at("id").is_string());
    CHECK(column.at("label").is_string());
    CHECK(is_null_or_text(column.at("unit")));
  }
  for (const json& row : table.at("rows")) {
    if (row.size() != table.at("columns").size()) FAIL_CHECK("a row with other columns");
    for (const json& cell : row) {
      const bool good = cell.is_null() || cell.is_string() || is_number(cell);
      if (!good) FAIL_CHECK("a cell is " << cell);
    }
  }
}

void check_measurement(const json& m) {
  static const std::set<std::string> kProvenances = {"measured", "counted", "traced", "derived",
                                                     "recorded"};
  INFO(m.dump());
  CHECK(m.at("id").is_string());
  CHECK(m.at("variant").is_string());
  CHECK(kProvenances.contains(m.at("provenance").get<std::string>()));
  CHECK(is_number(m.at("value")));
  CHECK(m.at("unit").is_string());
  CHECK((m.at("p10").is_null() || is_number(m.at("p10"))));
  CHECK((m.at("p90").is_null() || is_number(m.at("p90"))));
  CHECK(m.at("samples").is_number_integer());
  if (m.at("provenance") == "recorded") {
    CHECK(m.at("device").is_string());
    check_matches(m.at("recorded_at").get<std::string>(), "20[0-9]{2}-[01][0-9]-[0-3][0-9]");
  }
  // A timed number needs samples enough.
  if (m.at("provenance") == "measured") CHECK(m.at("samples").get<int>() >= 20);
}

void check_report(const json& report, const json& lesson) {
  CHECK(report.at("lesson") == lesson.at("id"));
  for (const json& knob : lesson.at("knobs")) {
    CHECK(report.at("params").at(knob.at("id").get<std::string>()) == knob.at("default"));
  }
  CHECK(!report.at("summary").get<std::string>().empty());
  const json& device = report.at("device");
  CHECK(device.at("backend") == "emulated");
  CHECK(!device.at("name").get<std::string>().empty());
  CHECK(is_null_or_text(device.at("recorded_at")));
  REQUIRE(!report.at("tables").empty());
  for (const json& table : report.at("tables")) check_table(table);
  for (const json& m : report.at("measurements")) {
    check_measurement(m);
    CHECK(m.at("provenance") != "measured");  // nothing is timed under emulation
  }
  REQUIRE(!report.at("checks").empty());
  for (const json& check : report.at("checks")) {
    CHECK(check.at("id").is_string());
    CHECK(check.at("ok") == true);
    CHECK(is_number(check.at("max_error")));
    CHECK(is_number(check.at("tolerance")));
  }
  CHECK(report.at("trace").is_object());
}

/// A CSV field as RFC 4180 writes it.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

/// A table's cell as Markdown has it.
std::string markdown_cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

void check_refused(const std::vector<std::string>& arguments,
                   const std::vector<std::string>& named) {
  const Outcome outcome = run_tilestep(arguments);
  INFO(outcome.err);
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  for (const std::string& name : named) check_contains(outcome.err, name);
}

}  // namespace

TEST_CASE("list says of every lesson what it is and what its knobs allow", "[cli_contract]") {
  const Outcome text = run_tilestep({"list"});
  CHECK(text.code == 0);
  const json all = lessons();
  REQUIRE(!all.empty());
  for (const json& lesson : all) {
    check_matches(id_of(lesson), "[a-z0-9]+(-[a-z0-9]+)*");
    check_contains(text.out, id_of(lesson));
    for (const char* member : {"title", "chapter", "takeaway"}) {
      CHECK(!lesson.at(member).get<std::string>().empty());
    }
    for (const json& knob : lesson.at("knobs")) {
      for (const char* member : {"id", "label", "help", "allowed"}) {
        CHECK(!knob.at(member).get<std::string>().empty());
      }
      CHECK(!knob.at("default").is_null());
      check_contains(text.out, knob.at("id").get<std::string>());
    }
  }
}

TEST_CASE("run of every lesson holds the contract in every form", "[cli_contract]") {
  // The forms beside JSON are of half of the lessons.
  Part part("forms of run", 2);
  for (const json& lesson : lessons()) {
    INFO(id_of(lesson));
    const Outcome as_json = run(lesson, {"--json"});
    INFO(as_json.err);
    REQUIRE(as_json.code == 0);
    const json report = as_json.json();
    check_report(report, lesson);
    if (part.skips()) continue;

    const Outcome text = run(lesson, {});
    CHECK(text.code == 0);
    const Outcome all = run(lesson, {"--all"});
    CHECK(all.code == 0);
    CHECK(all.out.size() >= text.out.size());
    const Outcome csv = run(lesson, {"--csv"});
    CHECK(csv.code == 0);
    const Outcome markdown = run(lesson, {"--markdown"});
    CHECK(markdown.code == 0);
    for (const json& table : report.at("tables")) {
      std::string header;
      for (const json& column : table.at("columns")) {
        const std::string label = column.at("label").get<std::string>();
        header += (header.empty() ? "" : ",") + csv_field(column.at("id").get<std::string>());
        if (table == report.at("tables").front()) {
          check_contains(markdown.out, markdown_cell(label));
        }
      }
      if (table == report.at("tables").front()) check_contains(csv.out, header);
      check_contains(all.out, table.at("title").get<std::string>());
    }
  }
}

TEST_CASE("every lesson refuses what it does not know, naming what it does", "[cli_contract]") {
  for (const json& lesson : lessons()) {
    const std::string id = id_of(lesson);
    INFO(id);
    std::string ids;
    for (const json& knob : lesson.at("knobs")) {
      ids += (ids.empty() ? "" : ", ") + knob.at("id").get<std::string>();
    }
    check_refused({"run", id, "--set", "no_such_knob=1"}, {"no_such_knob", ids});
    for (const json& knob : lesson.at("knobs")) {
      if (knob.at("kind") == "text") continue;
      const std::string name = knob.at("id").get<std::string>();
      check_refused({"run", id, "--set", name + "=nonsense"},
                    {"'" + name + "'", knob.at("allowed").get<std::string>()});
      break;
    }
    check_refused({"run", id, "--no-such-flag"}, {"--no-such-flag", "--json"});
    check_refused({"run", id, "--json", "--csv"}, {"--json", "--csv"});
  }
  check_refused({"run", "no-such-lesson"}, {"no-such-lesson", id_of(lessons().front())});
}

TEST_CASE("bench of every lesson measures, or shows what was recorded and says so",
          "[cli_contract]") {
  for (const json& lesson : lessons()) {
    INFO(id_of(lesson));
    const Outcome outcome = run_tilestep({"bench", id_of(lesson), "--json"});
    INFO(outcome.err);
    if (outcome.code == 3) {  // no GPU, and nothing was recorded
      check_contains(outcome.err, "record");
      continue;
    }
    REQUIRE(outcome.code == 0);
    const json report = outcome.json();
    for (const json& m : report.at("measurements")) check_measurement(m);
    if (report.at("device").at("backend") == "cuda") continue;
    check_contains(outcome.err, "nothing was measured here");
    CHECK(report.at("device").at("backend") == "recorded");
    for (const json& m : report.at("measurements")) CHECK(m.at("provenance") != "measured");
  }
}
