#include <memory>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/window/window.hpp"

namespace tilestep::app {

void add_open(CLI::App& app, Invocation& invocation) {
  auto look = std::make_shared<LookArguments>();
  CLI::App* command =
      app.add_subcommand("open", "Opens the window; what happens without a command");
  add_look(*command, *look);
  command->callback([look, &invocation] {
    invocation.action = [look, &invocation] {
      WindowOptions options;
      options.shell = look->shell(false);
      const Size size = parse_size(look->size);
      options.width = size.width;
      options.height = size.height;
      options.program = invocation.program;
      return run_window(options);
    };
  });
}

}  // namespace tilestep::app
