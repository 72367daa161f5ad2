#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/cli/fitted_table.hpp"
#include "app/cli/html.hpp"
#include "app/cli/html_page.hpp"
#include "app/cli/output.hpp"
#include "app/cli/terminal.hpp"
#include "app/file.hpp"
#include "app/keep/progress.hpp"
#include "app/keep/settings.hpp"
#include "app/shell/profiling.hpp"
#include "app/window/window.hpp"

namespace tilestep::app {
namespace {

struct ProfileArguments {
  std::string file, example, from, to, html, shot, size = "1440x900", theme = "dark";
  int top = 10, question = 0;
  double text_scale = 1;
  bool json = false, window = false, force = false, presenter = false;
};

/// "1.5ms", "300us", "2s"; a number alone is milliseconds.
std::int64_t ns_of(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  const double scale = unit == "ns"                   ? 1
                       : unit == "us" || unit == "µs" ? 1e3
                       : unit.empty() || unit == "ms" ? 1e6
                       : unit == "s"                  ? 1e9
                                                      : 0;
  if (end == text.c_str() || scale == 0 || !(number >= 0) || !(number * scale < 1e18))
    throw Error(
        fmt::format("{} cannot be '{}'; allowed: a time since the trace's first event, as 12.5ms "
                    "(ns, us, ms, s)",
                    option, text));
  return std::llround(number * scale);
}

std::optional<profile::Stretch> stretch_of(const ProfileArguments& arguments) {
  if (arguments.from.empty() && arguments.to.empty()) return std::nullopt;
  profile::Stretch stretch{0, std::int64_t{1} << 60};
  if (!arguments.from.empty()) stretch.from_ns = ns_of("--from", arguments.from);
  if (!arguments.to.empty()) stretch.to_ns = ns_of("--to", arguments.to);
  if (stretch.to_ns <= stretch.from_ns) throw Error("--to must be later than --from");
  return stretch;
}

/// An end that was not given is the trace's own.
std::shared_ptr<const Profiled> opened(const ProfileArguments& arguments) {
  if (!arguments.example.empty()) return open_profile_example(arguments.example);
  auto stretch = stretch_of(arguments);
  if (stretch && arguments.to.empty()) {
    const profile::Trace trace = profile::read_trace(arguments.file);
    stretch->to_ns = std::max(profile::numbers_of(trace).stretch.to_ns, stretch->from_ns + 1);
  }
  return open_profile(arguments.file, stretch);
}

int open_window(const ProfileArguments& arguments, const std::string& program) {
  WindowOptions options;
  const Size size = parse_size(arguments.size);
  options.width = size.width;
  options.height = size.height;
  options.program = options.shell.program = program;
  SettingsFile settings;
  options.shell.kept = settings.load();
  options.shell.theme = options.shell.kept.light ? ui::ThemeKind::light : ui::ThemeKind::dark;
  options.shell.text_scale = static_cast<float>(options.shell.kept.text_scale);
  options.settings = &settings;
  options.shell.progress = progress_path();
  if (!arguments.example.empty())
    options.shell.profiled = open_profile_example(arguments.example);
  else if (stretch_of(arguments))
    options.shell.profiled = opened(arguments);
  else
    options.shell.profiles = std::filesystem::absolute(arguments.file);
  return run_window(options);
}

void take_picture(const ProfileArguments& arguments, std::shared_ptr<const Profiled> profiled) {
  ShotOptions options;
  const Size size = parse_size(arguments.size);
  options.width = size.width;
  options.height = size.height;
  options.out = arguments.shot;
  options.force = arguments.force;
  options.shell.still = true;
  options.shell.theme = parse_theme(arguments.theme);
  options.shell.presenter = arguments.presenter;
  options.shell.text_scale = static_cast<float>(arguments.text_scale);
  options.shell.profiled = std::move(profiled);
  options.shell.profile_question = arguments.question - 1;
  take_shot(options);
}

std::string questions_text(const std::vector<profile::Answer>& answers) {
  std::string out;
  int number = 0;
  for (const profile::Answer& each : answers) {
    out += fmt::format("\n{} {}{}\n  {}", ++number, each.title,
                       each.known ? "" : " (not in this trace)", for_reader(each.text, 2));
    if (out.back() != '\n') out += '\n';
    if (each.record.empty()) continue;
    out += "  " + for_reader("To know more, record with " + each.record, 2);
    if (out.back() != '\n') out += '\n';
  }
  return out;
}

std::string page_of(const Profiled& profiled, const lab::Report& report) {
  std::string body = fmt::format(
      "<header class=\"top\"><p class=\"chapter\">Profiler trace</p><h1>{}</h1>\n<p "
      "class=\"lead\">{}</p></header>\n<main>\n",
      html_escaped(profiled.trace.file), html_escaped(report.summary));
  for (const profile::Answer& each : profiled.answers) {
    body += fmt::format("<h3>{}{}</h3>\n<p>{}</p>\n", html_escaped(each.title),
                        each.known ? "" : " (not in this trace)", html_escaped(each.text));
    if (!each.record.empty())
      body += fmt::format("<p class=\"note\">To know more, record with {}</p>\n",
                          html_escaped(each.record));
  }
  for (const lab::Table& table : report.tables) {
    if (table.id != "questions")
      body += fmt::format("<h2>{}</h2>\n{}", html_escaped(table.title), table_html(table));
  }
  for (const std::string& note : profiled.trace.notes)
    body += fmt::format("<p class=\"note\">{}</p>\n", html_escaped(note));
  return page(profiled.trace.file + " · tilestep profile", "", body + "</main>\n");
}

int profile_file(const ProfileArguments& arguments, const std::string& program) {
  if (arguments.file.empty() == arguments.example.empty()) {
    std::string names;
    for (const std::string& each : profile_examples()) names += (names.empty() ? "" : ", ") + each;
    throw Error(fmt::format(
        "name one trace: tilestep profile FILE, or --example NAME with one of {}", names));
  }
  if (!arguments.example.empty()) profile_example_text(arguments.example);
  if (arguments.top < 1 || arguments.top > 10000) throw Error("--top is 1 to 10000");
  if (arguments.question < 0 || arguments.question > 6) throw Error("--question is 1 to 6");
  if (arguments.text_scale < 1 || arguments.text_scale > 2) throw Error("--text-scale is 1 to 2");
  parse_theme(arguments.theme);
  stretch_of(arguments);
  if (!arguments.shot.empty() && !arguments.shot.ends_with(".png"))
    throw Error(
        fmt::format("--shot cannot be '{}'; allowed: a file that ends in .png", arguments.shot));
  if (!arguments.shot.empty()) require_output(arguments.shot, arguments.force);
  if (!arguments.html.empty()) require_output(arguments.html, arguments.force, kPageBegins);
  if (arguments.window) return open_window(arguments, program);
  const auto profiled = opened(arguments);
  const lab::Report report = profile::report_of(profiled->trace, profiled->numbers,
                                                static_cast<std::size_t>(arguments.top));
  if (!arguments.shot.empty()) take_picture(arguments, profiled);
  if (!arguments.html.empty())
    write_output(arguments.html, page_of(*profiled, report), arguments.force);
  if (arguments.json) {
    print(json_text(lab::to_json(report)));
    return static_cast<int>(ExitCode::good);
  }
  print(fmt::format("{}: {}\n", profiled->trace.file, report.summary));
  print(questions_text(profiled->answers));
  for (const lab::Table& table : report.tables) {
    if (table.id == "questions") continue;
    const int lines = table.id == "kernels" ? 2 * arguments.top + 4 : 24;
    print(
        fmt::format("\n{}\n{}", table.title,
                    fitted(table, static_cast<std::size_t>(terminal_size().columns), lines).text));
  }
  for (const std::string& note : profiled->trace.notes) print("\n" + for_reader(note, 0));
  return static_cast<int>(ExitCode::good);
}

}  // namespace

void add_profile(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<ProfileArguments>();
  CLI::App* command = app.add_subcommand("profile",
                                         "Read a trace of PyTorch's profiler or Nsight Systems: "
                                         "where its time went, and six questions");
  command->add_option("FILE", arguments->file,
                      "A Chrome trace (.json, .json.gz) or an SQLite export (.sqlite)");
  command
      ->add_option("--example", arguments->example,
                   "A trace that comes with tilestep: decode or decode-graph")
      ->type_name("NAME");
  command->add_option("--top", arguments->top, "Kernels to list (default 10)")->type_name("N");
  command
      ->add_option("--from", arguments->from,
                   "Count from here on, as 12.5ms since the trace's first event")
      ->type_name("T");
  command->add_option("--to", arguments->to, "Count until here")->type_name("T");
  command->add_flag("--window", arguments->window, "Open it in the window");
  command->add_option("--html", arguments->html, "Also write all of it as one page")
      ->type_name("FILE");
  command->add_option("--shot", arguments->shot, "Also draw the window (.png)")->type_name("FILE");
  command
      ->add_option("--question", arguments->question,
                   "The question at which the drawn window stands, 1–6")
      ->type_name("N");
  command->add_option("--size", arguments->size, "Size of the window in pixels (default 1440x900)")
      ->type_name("WxH");
  command->add_flag("--presenter", arguments->presenter, "Draw the window in presenter mode");
  command->add_option("--text-scale", arguments->text_scale, "Text size of the drawn window, 1–2")
      ->type_name("X");
  command->add_option("--theme", arguments->theme, "dark or light")->type_name("THEME");
  add_force(*command, arguments->force);
  command->add_flag("--json", arguments->json, "Print everything as JSON");
  command->callback([arguments, &invocation] {
    invocation.action = [arguments, &invocation] {
      return profile_file(*arguments, invocation.program);
    };
  });
}

}  // namespace tilestep::app
