#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/command.hpp"
#include "app/cli/output.hpp"
#include "kernels/catalog.hpp"

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
    text += fmt::format("    {:<14} {} [{}; {} if not set]\n", knob.id, knob.help, knob.allowed(),
                        knob.text(knob.initial));
  }
  return text;
}

int list(bool as_json) {
  json all = json::array();
  std::string text;
  for (const lab::Lesson* lesson : lessons()) {
    all.push_back(lesson_json(*lesson));
    text += (text.empty() ? "" : "\n") + lesson_text(*lesson);
  }
  print(as_json ? json_text({{"lessons", std::move(all)}}) : text);
  return static_cast<int>(ExitCode::good);
}

}  // namespace

void add_list(CLI::App& app, Invocation& invocation) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("list", "List the lessons and their knobs");
  command->add_flag("--json", *as_json, "As JSON");
  command->callback(
      [as_json, &invocation] { invocation.action = [as_json] { return list(*as_json); }; });
}

}  // namespace tilestep::app
