#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/cli/output.hpp"
#include "app/keep/drafts.hpp"
#include "app/keep/progress.hpp"
#include "app/shell/profiling.hpp"
#include "app/window/window.hpp"

namespace tilestep::app {
namespace {

/// What no argument says is as it was the last time; without a lesson, so is the place.
void add_kept(const CLI::App& command, LookArguments& look, const KeptSettings& kept,
              WindowOptions& options) {
  const auto given = [&command](const char* name) { return command.count(name) > 0; };
  ShellOptions& shell = options.shell;
  shell.kept = kept;
  shell.predict = given("--questions") ? look.questions == "on" : kept.predictions;
  shell.calm = kept.reduce_motion;
  if (!given("--theme")) shell.theme = kept.light ? ui::ThemeKind::light : ui::ThemeKind::dark;
  if (!given("--text-scale")) shell.text_scale = static_cast<float>(kept.text_scale);
  if (!given("--size")) {
    options.width = kept.width;
    options.height = kept.height;
  }
  const bool somewhere = given("--step") || given("--phase") || given("--stop") ||
                         given("--compare") || !look.lesson.lesson.empty() ||
                         !look.lesson.assignments.empty();
  if (somewhere) return;  // who follows a link wants what it names
  shell.first_start = !kept.tour_seen;
  if (!kept.last) return;
  shell.lesson = kept.last->lesson;
  shell.settings = kept.last->settings;
  shell.step = kept.last->step;
}

int open(const CLI::App& command, LookArguments& look, const std::string& program) {
  WindowOptions options;
  // A trace of a profiler stands where a capsule does.
  look.lesson.capsule_file();  // sorts out which word names what is to be opened
  const std::string file = look.lesson.lesson;
  const bool trace = holds_trace(file);
  if (trace) look.lesson.lesson.clear();
  options.shell = look.shell(false);
  if (trace) options.shell.profiles = std::filesystem::absolute(file);
  const Size size = parse_size(look.size);
  options.width = size.width;
  options.height = size.height;
  options.program = options.shell.program = program;
  SettingsFile settings;
  add_kept(command, look, settings.load(), options);
  options.settings = &settings;
  options.shell.drafts = drafts_folder();
  options.shell.progress = progress_path();
  options.shell.greeting = settings.take_remark();
  if (!options.shell.greeting.empty()) remark(options.shell.greeting);
  return run_window(options);
}

}  // namespace

void add_open(CLI::App& app, Invocation& invocation) {
  auto look = std::make_shared<LookArguments>();
  CLI::App* command = app.add_subcommand(
      "open",
      "Open the window at a lesson, a saved capsule or a profiler's trace (default command)");
  add_look(*command, *look);
  add_labs(*command, look->labs, true);
  command->add_option("--questions", look->questions, "Ask before steps: on or off")
      ->type_name("on|off")
      ->check([](const std::string& text) {
        return text == "on" || text == "off"
                   ? std::string()
                   : fmt::format("--questions cannot be '{}'; allowed: on, off", text);
      });
  command->add_flag("--trust", look->trust,
                    "Run the capsule's kernel without a sandbox, with all your rights");
  command->callback([look, command, &invocation] {
    invocation.action = [look, command, &invocation] {
      return open(*command, *look, invocation.program);
    };
  });
}

}  // namespace tilestep::app
