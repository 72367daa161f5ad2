#include "app/keep/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "app/cli/command.hpp"
#include "app/cli/fitted_table.hpp"
#include "app/cli/output.hpp"
#include "app/file.hpp"
#include "app/keep/place.hpp"
#include "kernels/base/workbench/exercise.hpp"
#include "scenes/shared/course.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostProgressBytes = 1 << 20;

struct ProgressArguments {
  bool json = false, csv = false, reset = false, force = false;
  std::string out, folder;
};

int count_known(const std::set<std::string>& all, const std::vector<std::string>& names) {
  return static_cast<int>(std::count_if(
      names.begin(), names.end(), [&](const std::string& name) { return all.count(name) > 0; }));
}

/// A row for the first steps, which have exercises alone, and one for each lesson of the course.
void add_rows(lab::Table& table, const Progress& progress, const std::vector<lab::Cell>& before) {
  const auto add_row = [&](const std::string& lesson, const std::vector<std::string>& stops,
                           const std::vector<std::string>& exercises) {
    const auto found = progress.lessons.find(lesson);
    const Progress::Lesson done =
        found == progress.lessons.end() ? Progress::Lesson() : found->second;
    std::vector<lab::Cell> cells = before;
    const auto add = [&](std::size_t count) { cells.emplace_back(static_cast<double>(count)); };
    cells.emplace_back(lesson);
    add(static_cast<std::size_t>(count_known(done.stops, stops)));
    add(stops.size());
    add(done.right.size());
    add(done.asked.size());
    add(static_cast<std::size_t>(count_known(done.exercises, exercises)));
    add(exercises.size());
    const CasePoints cases = points_of_cases(done.cases);
    add(static_cast<std::size_t>(cases.tries));
    add(static_cast<std::size_t>(cases.points));
    add(static_cast<std::size_t>(cases.cases) * 100);
    table.add(std::move(cells));
  };
  std::vector<std::string> steps;
  for (const lab::Exercise& one : lab::exercises()) {
    if (one.lesson == lab::kFirstSteps) steps.push_back(one.id());
  }
  add_row(std::string(lab::kFirstSteps), {}, steps);
  for (const scenes::CourseRow& row : scenes::course()) {
    add_row(row.lesson, row.stops, row.exercises);
  }
}

std::vector<lab::Column> columns() {
  return {lab::column("lesson", "lesson"),
          lab::whole("stops_read", "stops read"),
          lab::whole("stops", "of"),
          lab::whole("questions_right", "questions right"),
          lab::whole("questions_asked", "answered"),
          lab::whole("exercises_solved", "exercises solved"),
          lab::whole("exercises", "of"),
          lab::whole("fixes_tried", "fixes tried"),
          lab::whole("case_points", "points of cases"),
          lab::whole("case_points_of", "of")};
}

/// One table of all the files that were handed in, a student a file.
int print_class(const fs::path& folder) {
  std::error_code failed;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    if (entry.path().extension() == ".json" && entry.is_regular_file(failed)) {
      files.push_back(entry.path());
    }
  }
  if (failed) {
    throw Error(
        fmt::format("the folder '{}' cannot be read: {}", folder.string(), failed.message()),
        ExitCode::unavailable);
  }
  if (files.empty()) {
    throw Error(
        fmt::format("there is no progress (*.json) in '{}'; students write theirs with "
                    "`tilestep progress --export FILE.json`",
                    folder.string()));
  }
  std::sort(files.begin(), files.end());
  lab::Table table{"class", "Progress of a class", columns(), {}};
  table.columns.insert(table.columns.begin(), lab::column("student", "student"));
  bool whole = true;
  for (const fs::path& file : files) {
    try {
      add_rows(table, progress_from(read_file(file, kMostProgressBytes)), {file.stem().string()});
    } catch (const Error& error) {
      whole = false;
      remark(fmt::format("skipped '{}': {}", file.string(), error.what()));
    }
  }
  print(table.to_csv());
  return static_cast<int>(whole ? ExitCode::good : ExitCode::check_failed);
}

int progress(const ProgressArguments& arguments) {
  if (!arguments.folder.empty()) {
    if (!arguments.csv || arguments.json || arguments.reset || !arguments.out.empty()) {
      throw Error("--class works only with --csv: tilestep progress --class DIR --csv");
    }
    return print_class(arguments.folder);
  }
  if (arguments.csv) throw Error("--csv needs --class: tilestep progress --class DIR --csv");
  ProgressFile file(progress_path());
  if (arguments.reset) {
    file.reset();
    print_line("Progress is reset.");
    return static_cast<int>(ExitCode::good);
  }
  const Progress done = file.load();
  if (const std::string said = file.take_remark(); !said.empty()) remark(said);
  if (!arguments.out.empty()) {
    write_output(arguments.out, progress_text(done), arguments.force);
    return static_cast<int>(ExitCode::good);
  }
  if (arguments.json) {
    print(progress_text(done));
    return static_cast<int>(ExitCode::good);
  }
  lab::Table table{"progress", "Progress", columns(), {}};
  add_rows(table, done, {});
  print(aligned(table));
  return static_cast<int>(ExitCode::good);
}

}  // namespace

void add_progress(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<ProgressArguments>();
  CLI::App* command =
      app.add_subcommand("progress", "Show what you have read, answered and solved, or hand it in");
  command->add_flag("--json", arguments->json, "As JSON");
  command->add_flag("--reset", arguments->reset, "Forget it all");
  command->add_option("--export", arguments->out, "Write it to a file to hand in")
      ->type_name("FILE");
  command->add_flag("--force", arguments->force, "Overwrite a file of another kind");
  command->add_option("--class", arguments->folder, "Read the files that students handed in")
      ->type_name("DIR");
  command->add_flag("--csv", arguments->csv, "(--class) a row per student and lesson");
  command->callback([arguments, &invocation] {
    invocation.action = [arguments] { return progress(*arguments); };
  });
}

}  // namespace tilestep::app
