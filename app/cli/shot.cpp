#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/cli/output.hpp"
#include "app/file.hpp"
#include "app/window/window.hpp"

namespace tilestep::app {
namespace {

struct ShotArguments {
  bool theme_given = false;  ///< else it is as the kind of picture wants it

  LookArguments look;
  std::string out;
  std::string ui_map;
  bool force = false;
};

int shot(ShotArguments& arguments, const std::string& program) {
  ShotOptions options;
  const std::string ending = std::filesystem::path(arguments.out).extension().string();
  const bool svg = ending == ".svg" || ending == ".SVG";
  if (svg && !arguments.look.compared.empty()) {
    throw Error("--compare excludes SVG, which holds one run; name a PNG: --out FILE.png");
  }
  if (svg && !arguments.theme_given) arguments.look.theme = "light";
  options.shell = arguments.look.shell(true);
  options.shell.still = true;
  options.shell.program = program;
  const Size size = parse_size(arguments.look.size);
  options.width = size.width;
  options.height = size.height;
  if (arguments.out.empty()) throw Error("name the picture: --out FILE.png or FILE.svg");
  if (!svg && !ending.empty() && ending != ".png" && ending != ".PNG") {  // a device has none
    throw Error("--out names a picture of kind '" + ending + "'; allowed: .png, .svg");
  }
  if (!arguments.ui_map.empty() && same_file(arguments.out, arguments.ui_map)) {
    throw Error(fmt::format("--out and --ui-map both name '{}': give each a file of its own",
                            arguments.ui_map));
  }
  for (const std::string* out : {&arguments.out, &arguments.ui_map}) {
    if (!out->empty()) require_output(*out, arguments.force);
  }
  options.out = arguments.out;
  options.ui_map = arguments.ui_map;
  options.force = arguments.force;
  remark_refused_cuda(options.shell.backend);
  svg ? take_svg(options) : take_shot(options);
  return static_cast<int>(ExitCode::good);
}

}  // namespace

void add_shot(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<ShotArguments>();
  CLI::App* command = app.add_subcommand("shot", "Draw one picture of a lesson; needs no display");
  add_look(*command, arguments->look);
  add_labs(*command, arguments->look.labs, false);
  command
      ->add_option("--out", arguments->out,
                   "PNG of the window, or SVG of the picture (on white unless --theme is given)")
      ->type_name("F.png|F.svg");
  command->add_option("--ui-map", arguments->ui_map, "Write the position of each control as JSON")
      ->type_name("F.json");
  add_force(*command, arguments->force);
  command->callback([arguments, command, &invocation] {
    arguments->theme_given = command->count("--theme") > 0;
    invocation.action = [arguments, &invocation] { return shot(*arguments, invocation.program); };
  });
}

}  // namespace tilestep::app
