#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/command.hpp"
#include "app/cli/output.hpp"
#include "app/cli/terminal.hpp"
#include "kernels/catalog.hpp"
#include "scenes/shared/course.hpp"

namespace tilestep::app {
namespace {

using nlohmann::json;

json lesson_json(const lab::Lesson& lesson) {
  json knobs = json::array();
  for (const lab::Knob& knob : lesson.knobs()) knobs.push_back(lab::to_json(knob));
  const lab::LessonInfo& info = lesson.info();
  return {{"id", info.id},
          {"title", info.title},
          {"chapter", info.chapter},
          {"takeaway", info.takeaway},
          {"knobs", std::move(knobs)}};
}

std::string lesson_text(const lab::Lesson& lesson) {
  const lab::LessonInfo& info = lesson.info();
  std::string text =
      fmt::format("{}  {} · {}\n  {}\n", info.id, info.chapter, info.title, info.takeaway);
  for (const lab::Knob& knob : lesson.knobs()) {
    const std::string initial = knob.text(knob.initial);
    const std::string about = fmt::format("{} [{}; {} if not set]", knob.help, knob.allowed(),
                                          initial.empty() ? "nothing" : initial);
    // For a program that reads it, a knob is a line.
    text += fmt::format("    {:<15} {}", knob.id, for_reader(about, 20));
  }
  return text;
}

struct ListArguments {
  bool json = false, course = false, markdown = false;
};

/// What each lesson takes and gives.
int list_course(const ListArguments& arguments) {
  const lab::Table table = scenes::course_table();
  if (arguments.json) {
    json rows = json::array();
    for (const scenes::CourseRow& row : scenes::course()) {
      rows.push_back({{"lesson", row.lesson},
                      {"chapter", row.chapter},
                      {"title", row.title},
                      {"minutes", row.minutes},
                      {"stops", row.stops},
                      {"exercises", row.exercises},
                      {"before", row.before},
                      {"after", row.after}});
    }
    print(json_text({{"course", std::move(rows)}}));
  } else if (arguments.markdown) {
    print(table.to_markdown());
  } else {
    std::string text;
    for (const scenes::CourseRow& row : scenes::course()) {
      text += fmt::format("{}{}  {} · {}, about {} minutes, {} stops, {} exercises\n",
                          text.empty() ? "" : "\n", row.lesson, row.chapter, row.title, row.minutes,
                          row.stops.size(), row.exercises.size());
      text += fmt::format("  before: {}\n  afterwards you can: {}\n", row.before, row.after);
    }
    print(text);
  }
  return static_cast<int>(ExitCode::good);
}

int list(const ListArguments& arguments) {
  if (arguments.markdown && !arguments.course) {
    throw Error("--markdown needs --course: tilestep list --course --markdown");
  }
  if (arguments.markdown && arguments.json) {
    throw Error("only one of --json and --markdown can be given at once");
  }
  if (arguments.course) return list_course(arguments);
  json all = json::array();
  std::string text;
  for (const lab::Lesson* lesson : lessons()) {
    all.push_back(lesson_json(*lesson));
    text += (text.empty() ? "" : "\n") + lesson_text(*lesson);
  }
  print(arguments.json ? json_text({{"lessons", std::move(all)}}) : text);
  return static_cast<int>(ExitCode::good);
}

}  // namespace

void add_list(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<ListArguments>();
  CLI::App* command = app.add_subcommand("list", "List the lessons and their knobs");
  command->add_flag(
      "--course", arguments->course,
      "List the course: time, stops, exercises, prerequisites, what you can do afterwards");
  command->add_flag("--json", arguments->json, "As JSON");
  command->add_flag("--markdown", arguments->markdown, "(--course) as a Markdown table");
  command->callback(
      [arguments, &invocation] { invocation.action = [arguments] { return list(*arguments); }; });
}

}  // namespace tilestep::app
