#include <filesystem>
#include <memory>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/cli/output.hpp"
#include "app/window/window.hpp"

namespace tilestep::app {
namespace {

struct ShotArguments {
  LookArguments look;
  std::string out;
  std::string ui_map;
};

int shot(ShotArguments& arguments) {
  ShotOptions options;
  options.shell = arguments.look.shell(true);
  options.shell.still = true;
  const Size size = parse_size(arguments.look.size);
  options.width = size.width;
  options.height = size.height;
  if (arguments.out.empty()) throw Error("say where the picture goes: --out FILE.png");
  const std::string ending = std::filesystem::path(arguments.out).extension().string();
  if (!ending.empty() && ending != ".png" && ending != ".PNG") {  // a device has none
    throw Error("--out names a picture of kind '" + ending + "'; allowed: .png");
  }
  options.out = arguments.out;
  options.ui_map = arguments.ui_map;
  remark_refused_cuda(options.shell.backend);
  take_shot(options);
  return static_cast<int>(ExitCode::good);
}

}  // namespace

void add_shot(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<ShotArguments>();
  CLI::App* command = app.add_subcommand("shot", "Draws one picture of a lesson; needs no display");
  add_look(*command, arguments->look);
  command->add_option("--out", arguments->out, "The PNG file to write")->type_name("F.png");
  command->add_option("--ui-map", arguments->ui_map, "Writes where each control is, as JSON")
      ->type_name("F.json");
  command->callback(
      [arguments, &invocation] { invocation.action = [arguments] { return shot(*arguments); }; });
}

}  // namespace tilestep::app
