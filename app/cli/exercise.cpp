#include "kernels/base/workbench/exercise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/cli/exercise_check.hpp"
#include "app/cli/fitted_table.hpp"
#include "app/cli/output.hpp"
#include "app/file.hpp"
#include "app/keep/place.hpp"
#include "app/keep/progress.hpp"
#include "app/worker/sandbox.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// ---- list ---------------------------------------------------------------------------------------

struct ListArguments {
  std::string which;  ///< a lesson, the first steps, or LESSON/NAME; empty: all
  bool json = false, solution = false;
};

json exercise_json(const lab::Exercise& one, bool solution) {
  json cases = json::array(), goals = json::array();
  for (const lab::ExerciseCase& each : one.cases) {
    cases.push_back({{"name", each.name}, {"set", each.assignments}});
  }
  for (const lab::ExerciseGoal& each : one.goals) goals.push_back(each.text);
  for (const lab::ExerciseSpeed& each : one.speeds) goals.push_back(each.text);
  json to = {{"exercise", one.id()},     {"lesson", one.lesson},
             {"title", one.title},       {one.is_program() ? "program" : "source", one.file()},
             {"task", one.task},         {"cases", std::move(cases)},
             {"goals", std::move(goals)}};
  if (solution) to["solution"] = one.solution;
  return to;
}

std::string whole_text(const lab::Exercise& one, bool solution) {
  std::string text = fmt::format("{}  {}\n  {}\n\n{}\n", one.id(), one.title, one.file(), one.task);
  if (solution) text += fmt::format("\nSolution:\n\n{}", one.solution);
  return text;
}

/// Those of a lesson or of the first steps; empty: all, the first steps first.
std::vector<const lab::Exercise*> exercises_of(const std::string& which) {
  std::vector<const lab::Exercise*> chosen;
  const auto add = [&](std::string_view lesson) {
    for (const lab::Exercise& one : lab::exercises()) {
      if (one.lesson == lesson) chosen.push_back(&one);
    }
  };
  if (which.empty() || which == lab::kFirstSteps) add(lab::kFirstSteps);
  if (which == lab::kFirstSteps) return chosen;
  std::vector<std::string> names;
  if (!which.empty()) names.push_back(which);
  for (const lab::Lesson* lesson : parse_lessons(names)) add(lesson->info().id);
  return chosen;
}

int list(const ListArguments& arguments) {
  const bool one_alone = arguments.which.find('/') != std::string::npos;
  if (arguments.solution && !one_alone) {
    throw Error("--solution needs one exercise: tilestep exercise list LESSON/NAME --solution");
  }
  std::vector<const lab::Exercise*> chosen;
  if (one_alone) {
    chosen.push_back(&lab::exercise(arguments.which));
  } else {
    chosen = exercises_of(arguments.which);
  }
  if (arguments.json) {
    json all = json::array();
    for (const lab::Exercise* one : chosen) all.push_back(exercise_json(*one, arguments.solution));
    print(json_text(all));
  } else if (one_alone) {
    print(whole_text(*chosen.front(), arguments.solution));
  } else {
    for (const lab::Exercise* one : chosen)
      print_line(fmt::format("{:<56}{}", one->id(), one->title));
  }
  return static_cast<int>(ExitCode::good);
}

void add_list_of(CLI::App& exercise, Invocation& invocation) {
  auto arguments = std::make_shared<ListArguments>();
  CLI::App* command = exercise.add_subcommand("list", "List the exercises, or print one task");
  command->add_option("LESSON", arguments->which,
                      "Lesson, first-steps, or exercise as LESSON/NAME");
  command->add_flag("--solution", arguments->solution, "Print a solution");
  command->add_flag("--json", arguments->json, "As JSON");
  command->callback(
      [arguments, &invocation] { invocation.action = [arguments] { return list(*arguments); }; });
}

// ---- reset --------------------------------------------------------------------------------------

struct ResetArguments {
  std::string lesson, name, out;
  bool force = false;
};

int reset(const ResetArguments& arguments) {
  if (arguments.lesson.empty() || arguments.name.empty()) {
    throw Error("name the exercise: tilestep exercise reset LESSON NAME --out DIR");
  }
  if (arguments.out.empty()) throw Error("name the folder for the file: --out DIR");
  const lab::Exercise& one = lab::exercise(arguments.lesson + "/" + arguments.name);
  const std::string text = lab::starter(one);
  const fs::path file = fs::path(arguments.out) / (one.name + ".cu");
  std::error_code error;
  if (fs::exists(file, error) && read_source(file) != text) {
    if (!arguments.force) {
      throw Error(fmt::format(
          "'{}' has changes and was left alone; --force saves it as {}.bak and writes it again",
          file.string(), file.filename().string()));
    }
    write_file(fs::path(file.string() + ".bak"), read_source(file));
  }
  write_file(file, text);
  print_line(file.string());
  return static_cast<int>(ExitCode::good);
}

void add_reset(CLI::App& exercise, Invocation& invocation) {
  auto arguments = std::make_shared<ResetArguments>();
  CLI::App* command = exercise.add_subcommand("reset", "Write an exercise's starting file");
  command->add_option("LESSON", arguments->lesson, "Lesson of the exercise, or first-steps");
  command->add_option("NAME", arguments->name, "Name, as listed by `tilestep exercise list`");
  command->add_option("--out", arguments->out, "Folder for NAME.cu")->type_name("DIR");
  command->add_flag("--force", arguments->force,
                    "Overwrite a changed file; the old one is kept as NAME.cu.bak");
  command->callback(
      [arguments, &invocation] { invocation.action = [arguments] { return reset(*arguments); }; });
}

// ---- check --------------------------------------------------------------------------------------

struct CheckArguments {
  std::string path, exercise;
  std::string backend = "emulated";
  bool json = false, csv = false, trust = false, solution = false;
};

std::string verdict_text(const CheckedFile& checked, bool solution) {
  const lab::ExerciseVerdict& verdict = checked.verdict;
  std::string text =
      fmt::format("{}  {}\n  {}\n", checked.file, checked.exercise, verdict.sentence);
  if (!verdict.hint.empty()) text += fmt::format("  Hint: {}\n", verdict.hint);
  if (!verdict.hint.empty() && verdict.failed && verdict.failed->line > 0) {
    text += fmt::format("  See line {} of your file.\n", verdict.failed->line);
  }
  if (const lab::Exercise* one = known_exercise(checked.exercise); solution && one != nullptr) {
    text += fmt::format("\nSolution:\n\n{}", one->solution);
  }
  return text;
}

/// Whose kernels are run, and so how.
ExercisePlan plan_of(const CheckArguments& arguments, const std::string& program) {
  ExercisePlan plan{program, arguments.backend};
  if (arguments.trust) return plan;
  if (arguments.backend != "emulated") {
    throw Error(
        "a sandbox has no GPU: with --backend cuda the kernels run with all your rights, so it "
        "needs --trust too");
  }
  plan.sandboxed = sandbox_status().available;
  if (!plan.sandboxed) {
    throw Error(fmt::format("kernels are checked only in a sandbox, and {}; with --trust they run "
                            "without one, with all your rights",
                            sandbox_status().reason),
                ExitCode::unavailable);
  }
  return plan;
}

int check(const CheckArguments& arguments, const std::string& program) {
  if (arguments.path.empty()) throw Error("name what to check: tilestep exercise check FILE|DIR");
  if (arguments.backend != "emulated" && arguments.backend != "cuda") {
    throw Error(
        fmt::format("--backend cannot be '{}' here; allowed: emulated, cuda", arguments.backend));
  }
  if (!arguments.exercise.empty()) (void)lab::exercise(arguments.exercise);
  std::error_code error;
  const bool folder = fs::is_directory(arguments.path, error);
  if (arguments.csv && (!folder || arguments.json || arguments.solution)) {
    throw Error(
        "--csv needs a class's folder and neither --json nor --solution: tilestep "
        "exercise check DIR --csv");
  }
  std::vector<fs::path> files = {arguments.path};
  if (folder) {
    files = kernels_in(arguments.path);
  } else if (arguments.exercise.empty() &&
             lab::exercise_id_of(read_source(arguments.path)).empty()) {
    throw Error(
        fmt::format("the first line of '{}' names no exercise; say which one it is: "
                    "--exercise LESSON/NAME",
                    arguments.path));
  }
  ExercisePlan plan = plan_of(arguments, program);
  const bool timed = arguments.backend == "cuda";
  json all = json::array();
  std::vector<CheckedFile> done;
  bool good = true;
  TerminalProgress progress;
  const auto take = [&](const CheckedFile& checked) {
    good = good && checked.verdict.ok;
    if (!arguments.json && !arguments.csv) print(verdict_text(checked, arguments.solution));
    all.push_back(to_json(checked));
    done.push_back(checked);
    const lab::Exercise* one = known_exercise(checked.exercise);
    if (arguments.solution && one != nullptr) all.back()["solution"] = one->solution;
    if (folder && one != nullptr) {
      const lab::ExercisePoints points = lab::points_of(*one, checked.verdict, timed);
      all.back().update({{"points", points.got}, {"of", points.most}});
    }
    if (folder)
      progress.report(static_cast<double>(all.size()) / static_cast<double>(files.size()),
                      fmt::format("{} of {} files", all.size(), files.size()));
  };
  if (folder) {
    plan.until = lab::JudgeUntil::end;
    check_class(files, arguments.exercise, plan, take);
  } else {
    const CheckedFile checked = check_file(arguments.path, arguments.exercise, plan);
    take(checked);
    if (const lab::Exercise* one = known_exercise(checked.exercise);
        checked.verdict.ok && one != nullptr) {
      ProgressFile progress_file(progress_path());
      progress_file.add({{{one->lesson, {.exercises = {one->id()}}}}});
      if (const std::string said = progress_file.take_remark(); !said.empty()) remark(said);
    }
  }
  if (folder && !arguments.json) {
    const lab::Table table = class_table(arguments.path, done, timed);
    print(arguments.csv ? table.to_csv() : "\n" + aligned(table));
  }
  if (arguments.json) print(json_text(all));
  return static_cast<int>(good ? ExitCode::good : ExitCode::check_failed);
}

void add_check(CLI::App& exercise, Invocation& invocation) {
  auto arguments = std::make_shared<CheckArguments>();
  CLI::App* command = exercise.add_subcommand(
      "check", "Check a kernel or program, or a class's folder of them, in a sandbox");
  command->add_option("PATH", arguments->path, "File or folder");
  command
      ->add_option("--exercise", arguments->exercise,
                   "Exercise as LESSON/NAME (default: named by the file's first line)")
      ->type_name("ID");
  command->add_option("--backend", arguments->backend, "emulated, or cuda, which also checks speed")
      ->type_name("BACKEND");
  command->add_flag("--trust", arguments->trust, "Run without a sandbox, with all your rights");
  command->add_flag("--solution", arguments->solution, "Also print a solution");
  command->add_flag("--json", arguments->json, "Per-file results as JSON");
  command->add_flag("--csv", arguments->csv,
                    "(DIR) a row per student and exercise: points, seconds, identical hand-ins");
  command->callback([arguments, &invocation] {
    invocation.action = [arguments, &invocation] { return check(*arguments, invocation.program); };
  });
}

}  // namespace

void add_exercise(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      "exercise", "Kernels and programs with a hole to fill in, and their checks");
  command->require_subcommand(1);
  add_list_of(*command, invocation);
  add_reset(*command, invocation);
  add_check(*command, invocation);
}

}  // namespace tilestep::app
