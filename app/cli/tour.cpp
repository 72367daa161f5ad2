#include <fmt/format.h>

#include <memory>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/cli/output.hpp"
#include "app/cli/site.hpp"
#include "app/cli/tour_sheet.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

struct TourArguments {
  std::string out;
  std::string lab = "here";
  bool force = false;
  bool sheet = false;
  std::vector<std::string> lessons;  ///< of sheets
  LookArguments look;
};

}  // namespace

void add_tour(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<TourArguments>();
  CLI::App* command =
      app.add_subcommand("tour", "Write the pages of `site` with the path's settings alone");
  command->add_option("--out", arguments->out, "Folder for the tour")->type_name("DIR");
  add_force(*command, arguments->force);
  add_lab(*command, arguments->lab);
  CLI::Option* sheet = command->add_flag(
      "--sheet", arguments->sheet, "Write LESSON.png instead, all stops of a lesson on one sheet");
  LookArguments& look = arguments->look;
  look.size = "1280x720";
  command->add_option("--lesson", arguments->lessons, "A sheet of this lesson alone")
      ->type_name("LESSON")
      ->allow_extra_args(false)
      ->needs(sheet);
  command
      ->add_option("--size", look.size, "Size of the window on a sheet, shown at half (1280x720)")
      ->type_name("WxH")
      ->needs(sheet);
  command->add_option("--theme", look.theme, "dark or light")->type_name("THEME")->needs(sheet);
  command->add_option("--text-scale", look.text_scale, "Text size, 1–2")
      ->type_name("X")
      ->needs(sheet);
  command->add_flag("--reader", look.reader, "Show the lesson's text beside the picture")
      ->needs(sheet);
  command->callback([arguments, &invocation] {
    invocation.action = [arguments, &invocation] {
      if (arguments->out.empty()) throw Error("name the folder for the tour: --out DIR");
      if (arguments->sheet) {
        arguments->look.presenter = !arguments->look.reader;
        arguments->look.labs = {arguments->lab};
        write_sheets(arguments->out, parse_lessons(arguments->lessons), arguments->look,
                     invocation.program, arguments->force);
        return static_cast<int>(ExitCode::good);
      }
      SiteRequest request;
      request.out = arguments->out;
      request.lessons.assign(lessons().begin(), lessons().end());
      request.options.few = true;
      request.lab = parse_lab(arguments->lab);
      request.program = invocation.program;
      request.force = arguments->force;
      return write_site(request);
    };
  });
}

}  // namespace tilestep::app
