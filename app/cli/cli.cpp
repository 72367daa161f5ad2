#include "app/cli/cli.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>
#include <sstream>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/cli/interrupt.hpp"
#include "app/cli/output.hpp"
#include "app/keep/capsule.hpp"
#include "app/profile/trace.hpp"
#include "kernels/base/lab/assets.hpp"
#include "kernels/base/lab/meant.hpp"
#include "kernels/base/simt/error.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

constexpr const char* kAbout =
    "tilestep teaches how GPU kernels for language models work: step through what a kernel did and "
    "see what it cost.";
constexpr const char* kExitCodes =
    "Exit codes: 0 success; 1 a check failed; 2 bad usage or input; 3 device, display or file not "
    "available; 130 interrupted by Ctrl-C.\nSee `tilestep COMMAND --help` for details.";

std::vector<std::string> command_names(CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

/// Without a command the window opens: `tilestep --theme light` is `tilestep open --theme light`.
std::vector<std::string> with_command(CLI::App& app, std::vector<std::string> arguments) {
  if (arguments.empty()) return {"open"};
  if (arguments.front() == "help") {  // `tilestep help bench`
    arguments.erase(arguments.begin());
    arguments.resize(std::min<std::size_t>(arguments.size(), 1));
    arguments.emplace_back("--help");
  }
  if (arguments.front() == "-v") arguments.front() = "--version";
  const std::string first = arguments.front();
  if (first == "-h" || first == "--help" || first == "--version" || first == "--licenses")
    return arguments;
  if (first.starts_with("-")) {
    arguments.insert(arguments.begin(), "open");
    return arguments;
  }
  const std::vector<std::string> names = command_names(app);
  const bool command = std::find(names.begin(), names.end(), first) != names.end();
  if (!command && (names_capsule(first) ||
                   profile::names_trace(first))) {  // `tilestep FILE`, as a file manager calls it
    arguments.insert(arguments.begin(), "open");
    return arguments;
  }
  if (command) return arguments;
  std::vector<std::string> all = names;
  for (const lab::Lesson* lesson : lessons()) {
    all.push_back(lesson->info().id);
    if (lesson->info().id != first) continue;
    arguments.insert(arguments.begin(), "open");  // `tilestep tiling`
    return arguments;
  }
  const std::string meant = lab::meant(first, all);
  throw Error(fmt::format("there is no command '{}'; {}the commands are: {}", first,
                          meant.empty() ? "" : fmt::format("did you mean '{}'? All ", meant),
                          joined(names)));
  return arguments;
}

std::string option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    names.push_back(option->get_positional() ? option->get_name(true) : option->get_name());
  }
  return joined(names);
}

/// What was wrong, on one line, and what the command allows.
std::string sentence(CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::string name =
      chosen.empty() ? std::string("tilestep") : "tilestep " + command.get_name();
  std::string what = error.what();
  const auto extras = command.remaining();
  if (!extras.empty()) {
    what = fmt::format("'{}' is not understood here", extras.front());
  } else if (const auto colon = what.find(": 1 required"); colon != std::string::npos) {
    what = fmt::format("{} needs a value", what.substr(0, colon));
  } else if (const auto most = what.find(": At Most 1 required"); most != std::string::npos) {
    what = fmt::format("{} is given more than once", what.substr(0, most));
  }
  std::replace(what.begin(), what.end(), '\n', ' ');
  return fmt::format("{}; allowed with '{}': {}", what, name, option_names(command));
}

int fail(const std::exception& error, ExitCode code) {
  remark(error.what());
  return static_cast<int>(code);
}

/// Parses and acts. Help and the version are printed like any result.
int run_command(CLI::App& app, Invocation& invocation, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = with_command(app, arguments);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app.parse(std::move(words));
  } catch (const CLI::Success& success) {
    std::ostringstream text;
    const int code = app.exit(success, text, text);
    print(text.str());
    return code;
  }
  return invocation.action();
}

}  // namespace

int run_cli(const std::vector<std::string>& arguments, const std::string& program) {
  prepare_output();
  Invocation invocation;
  invocation.program = program;
  CLI::App app(kAbout, "tilestep");
  app.footer(kExitCodes);
  app.set_version_flag("--version", "tilestep " TILESTEP_VERSION);
  app.add_flag_callback(
      "--licenses",
      [] {
        print(lab::asset("assets/licenses/third-party.txt"));
        throw CLI::Success();
      },
      "Show the licenses of the bundled fonts and libraries");
  app.require_subcommand(0, 1);
  for (const auto add :
       {add_open, add_list, add_run, add_bench, add_record, add_shot, add_film, add_site, add_tour,
        add_verify_recording, add_worksheet, add_exercise, add_progress, add_worker, add_inspect,
        add_profile, add_assembly, add_doctor}) {
    add(app, invocation);
  }
  try {
    const int code = run_command(app, invocation, arguments);
    flush_output();
    return code;
  } catch (const CLI::ParseError& error) {
    return fail(Error(sentence(app, error)), ExitCode::bad_input);
  } catch (const Cancelled& cancelled) {
    remark(cancelled.what());
    if (Interrupt::pressed()) Interrupt::end_program();
    return static_cast<int>(cancelled.code());
  } catch (const Error& error) {
    return fail(error, error.code());
  } catch (const std::bad_alloc&) {
    return fail(Error("there is not enough memory for this; choose smaller values"),
                ExitCode::unavailable);
  } catch (const std::exception& error) {
    return fail(error, ExitCode::unavailable);
  }
}

}  // namespace tilestep::app
