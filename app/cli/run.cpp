#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/cli/fitted_table.hpp"
#include "app/cli/output.hpp"
#include "app/cli/report_text.hpp"
#include "app/keep/capsule.hpp"
#include "app/worker/ask.hpp"
#include "kernels/base/workbench/compute_sanitizer.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

struct RunArguments {
  LessonArguments lesson;
  std::string backend = "auto", lab = "here";
  FormatArguments format;
  bool all = false;
  std::string capsule;
  bool force = false;
  std::string kernel;   ///< file of an edited source
  bool trials = false;  ///< of that
};

int run(RunArguments& arguments, const std::string& program) {
  arguments.format.check();
  if (arguments.all && arguments.format.any()) {
    throw Error(
        "--all applies to the text output: it cannot be combined with --json, --csv or --markdown");
  }
  if (!arguments.capsule.empty() && !names_capsule(arguments.capsule)) {
    throw Error(fmt::format("--capsule cannot be '{}'; allowed: a file that ends in {}",
                            arguments.capsule, kCapsuleEnding));
  }
  if (!arguments.capsule.empty()) require_capsule_output(arguments.capsule, arguments.force);
  if (arguments.trials && arguments.kernel.empty()) {
    throw Error("--trials needs an edited kernel: --kernel FILE");
  }
  lab::Request request;
  request.lesson = arguments.lesson.chosen().info().id;
  request.params = arguments.lesson.settings();
  request.backend = parse_backend(arguments.backend);
  if (!arguments.kernel.empty()) {
    request.kernel = read_kernel_edit(request.lesson, arguments.kernel);
  }
  const LabAddress address = parse_lab(arguments.lab);
  if (!address.elsewhere()) remark_refused_cuda(request.backend);
  lab::Report trials;
  lab::Report report = [&] {
    TerminalProgress progress;
    // What instruments kernels looks at this process.
    const auto lab = workbench::is_sanitized() ? nullptr
                     : request.kernel          ? make_process_lab_at(address, program)
                                               : make_lab(address, program);
    lab::Report answered = ask(lab.get(), request, progress);
    if (arguments.trials) {
      request.action = lab::Request::Action::trials;
      request.orders = false;  // the run has had them
      trials = ask(lab.get(), request, progress);
    }
    return answered;
  }();
  remark_refused_turn(report);
  if (!arguments.capsule.empty()) {
    write_capsule(arguments.capsule, capsule_of(report, request.kernel), arguments.force);
  }
  for (const lab::Table& table : trials.tables) report.add(table);
  for (const lab::Check& check : trials.checks) report.add(check);
  if (arguments.format.json) {
    print(json_text(lab::to_json(report)));
  } else if (arguments.format.csv) {
    print(report_csv(report));
  } else if (arguments.format.markdown) {
    print(report_markdown(report));
  } else if (arguments.all) {
    print(report_text(report));
  } else {
    print(report_brief(report, terminal_size()));
    for (const lab::Table& table : trials.tables) {
      print(table.rows.empty() ? fmt::format("\n{}\n", trials.summary)
                               : fmt::format("\n{}\n{}", table.title, aligned(table)));
    }
  }
  return static_cast<int>(report.ok() ? ExitCode::good : ExitCode::check_failed);
}

}  // namespace

void add_run(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Run a lesson and print its report");
  add_lesson(*command, arguments->lesson);
  command->add_option("--backend", arguments->backend, "auto, cuda, emulated or recorded")
      ->type_name("BACKEND");
  add_lab(*command, arguments->lab);
  command->add_flag("--all", arguments->all, "Print all tables, measurements and checks in full");
  command->add_flag("--json", arguments->format.json, "Print everything as JSON");
  command->add_flag("--csv", arguments->format.csv, "Print the tables as CSV");
  command->add_flag("--markdown", arguments->format.markdown,
                    "Print everything except the trace as Markdown");
  command
      ->add_option("--capsule", arguments->capsule,
                   "Also save the run, for `tilestep open FILE` on a machine without a GPU")
      ->type_name("FILE");
  add_force(*command, arguments->force);
  add_kernel(*command, arguments->kernel);
  command->add_flag(
      "--trials", arguments->trials,
      "Also run the edited kernel at the lesson's trial settings: edges, masks, other data");
  command->callback([arguments, &invocation] {
    invocation.action = [arguments, &invocation] { return run(*arguments, invocation.program); };
  });
}

}  // namespace tilestep::app
