#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "app/cli/cli.hpp"

namespace {

/// The path of this very program, which the window starts again as its worker.
std::string program_path(const char* called) {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(called) : path.string();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return tilestep::app::run_cli(arguments, program_path(argc > 0 ? argv[0] : "tilestep"));
}
