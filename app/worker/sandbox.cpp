#include "app/worker/sandbox.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <chrono>
#include <system_error>

#include "kernels/base/simt/error.hpp"
#include "kernels/base/workbench/program.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBubblewrap = "bwrap";
constexpr const char* kLimiter = "prlimit";  // of util-linux
constexpr std::chrono::seconds kTrialLimit{10};
// The compiler may take 4 GiB; a stack of every emulated thread is reserved, and hardly used.
constexpr long long kMemoryBytes = 12LL << 30;
constexpr long long kFileBytes = 256LL << 20;
constexpr int kProcessorSeconds = 300;
constexpr int kProcesses = 4096;

std::vector<std::string> limits() {
  if (workbench::find_program(kLimiter).empty()) return {};
  return {kLimiter,
          fmt::format("--as={}", kMemoryBytes),
          fmt::format("--fsize={}", kFileBytes),
          fmt::format("--cpu={}", kProcessorSeconds),
          fmt::format("--nproc={}", kProcesses),
          "--core=0",
          "--"};
}

SandboxStatus look() {
  if (workbench::find_program(kBubblewrap).empty()) {
    return {false, "bubblewrap is not installed (Debian: apt-get install bubblewrap)"};
  }
  try {
    const ScratchFolder scratch;
    std::vector<std::string> words = sandbox_prefix(scratch.path(), "/bin/true");
    words.push_back("/bin/true");
    const workbench::Ran ran = workbench::run_program(words, kTrialLimit);
    if (ran.status == 0) return {true, ""};
    return {false, fmt::format("bubblewrap makes no sandbox here: {}",
                               ran.output.substr(0, ran.output.find('\n')))};
  } catch (const Error& error) {
    return {false, fmt::format("bubblewrap makes no sandbox here: {}", error.what())};
  }
}

}  // namespace

const SandboxStatus& sandbox_status() {
  static const SandboxStatus status = look();
  return status;
}

std::vector<std::string> sandbox_prefix(const fs::path& scratch, const fs::path& program) {
  const std::string beside = program.parent_path().string();
  std::vector<std::string> words = {
      kBubblewrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
      "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
      // What listens there would be spoken to through a read-only file as well.
      "--tmpfs", "/run", "--bind", scratch.string(), "/tmp",
      // It may lie below what is now hidden.
      "--ro-bind", beside, beside, "--chdir", "/tmp", "--setenv", "TILESTEP_CACHE", "/tmp/cache",
      "--setenv", "TMPDIR", "/tmp", "--"};
  const auto more = limits();
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

LabAddress sandboxed_lab(const fs::path& scratch, const std::string& program) {
  std::error_code error;
  const fs::path real = fs::canonical(program, error);
  const fs::path whole = error ? fs::path(program) : real;
  LabAddress lab{LabAddress::Kind::command, "in a sandbox", {}, sandbox_prefix(scratch, whole)};
  lab.arguments.push_back(whole.string());
  lab.arguments.emplace_back("worker");
  return lab;
}

ScratchFolder::ScratchFolder() {
  std::error_code error;
  const fs::path all = fs::temp_directory_path(error);
  std::string name = ((error ? fs::path("/tmp") : all) / "tilestep-scratch-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw Error(fmt::format("no folder can be made in {}: {}", all.string(),
                            std::error_code(errno, std::generic_category()).message()),
                ExitCode::unavailable);
  }
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

}  // namespace tilestep::app
