#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "app/cli/cli.hpp"

namespace {

/// This very program, which the window starts again as its worker: through the kernel's own link,
/// because a build may meanwhile have put another one at its path.
std::string program_path(const char* called) {
  constexpr const char* kSelf = "/proc/self/exe";
  std::error_code error;
  return std::filesystem::exists(kSelf, error) ? kSelf : called;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return tilestep::app::run_cli(arguments, program_path(argc > 0 ? argv[0] : "tilestep"));
}
