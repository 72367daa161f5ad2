#include "app/keep/saves.hpp"

#include <stdlib.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/keep/place.hpp"
#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;
namespace fs = std::filesystem;

namespace {

lab::Table table_sample() {
  lab::Table table{"rows", "Rows", {lab::whole("tile"), lab::real("rate", "rate", "GB/s", 1)}};
  table.columns.push_back(lab::column("why", "why"));
  table.add({0, 1.26, "a, \"b\""});
  table.add({1, 2.0, "tab\there\nand on"});
  return table;
}

/// An environment variable, for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("a table is saved as CSV, TSV and JSON", "[keep]") {
  CHECK(table_text(table_sample(), {}, TableForm::csv) ==
        "tile,rate,why\n0,1.3,\"a, \"\"b\"\"\"\n1,2.0,\"tab\there\nand on\"\n");
  CHECK(table_text(table_sample(), {}, TableForm::tsv) ==
        "tile\trate (GB/s)\twhy\n0\t1.3\ta, \"b\"\n1\t2.0\ttab here and on\n");
  const auto saved = nlohmann::json::parse(table_text(table_sample(), {}, TableForm::json));
  CHECK(saved.at("id") == "rows");
  CHECK(saved.at("rows").size() == 2);
  CHECK(saved.at("rows")[1][1] == 2.0);
}

TEST_CASE("what is not on show yet is not in what is saved", "[keep]") {
  const auto hidden = [](int row, int column) { return row == 1 && column > 0; };
  for (const TableForm form : {TableForm::csv, TableForm::tsv, TableForm::json}) {
    const std::string text = table_text(table_sample(), hidden, form);
    CHECK(text.find("2.0") == std::string::npos);
    CHECK(text.find("and on") == std::string::npos);
    check_contains(text, "1.");
  }
  check_contains(table_text(table_sample(), hidden, TableForm::csv), "\n1,,\n");
  check_contains(table_text(table_sample(), hidden, TableForm::tsv), "\n1\t\t\n");
}

TEST_CASE("what is saved goes to the documents folder, and never over a file", "[keep]") {
  TemporaryFolder home;
  const Variable at_home("HOME", home.path().string());
  const Variable no_config("XDG_CONFIG_HOME", "");
  CHECK(documents_folder() == fs::current_path());
  fs::create_directory(home.path() / "Documents");
  CHECK(documents_folder() == home.path() / "Documents");
  fs::create_directories(home.path() / ".config");
  fs::create_directory(home.path() / "Papiere");
  std::ofstream(home.path() / ".config" / "user-dirs.dirs")
      << "# made by xdg-user-dirs\nXDG_DOCUMENTS_DIR=\"$HOME/Papiere\"\n";
  CHECK(documents_folder() == home.path() / "Papiere");
  fs::remove(home.path() / "Papiere");
  CHECK(documents_folder() == home.path() / "Documents");

  const fs::path first = free_name(home.path(), "tiling", ".csv");
  CHECK(first.filename() == "tiling-" + day_of_today() + "-1.csv");
  std::ofstream(first) << "mine";
  fs::create_symlink("nowhere", home.path() / ("tiling-" + day_of_today() + "-2.csv"));
  CHECK(free_name(home.path(), "tiling", ".csv").filename() ==
        "tiling-" + day_of_today() + "-3.csv");
}
