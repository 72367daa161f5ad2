#include "kernels/base/workbench/program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "kernels/base/simt/error.hpp"

extern char** environ;

namespace tilestep::workbench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kAskMs = 10;

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

/// Messages are read by a program: they must not follow the user's language.
std::vector<std::string> english_environment() {
  std::vector<std::string> all = {"LC_ALL=C"};
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view entry(*each);
    if (!entry.starts_with("LC_") && !entry.starts_with("LANG")) all.emplace_back(entry);
  }
  return all;
}

/// A started program and what it writes.
class Child {
 public:
  explicit Child(std::vector<std::string> words);
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Reads what is there, waiting a moment. False at its end.
  bool read(std::string& output);
  int wait();
  void end();

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

Child::Child(std::vector<std::string> words) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(fmt::format("no pipe can be made: {}", std::strerror(errno)),
                ExitCode::unavailable);
  }
  std::vector<std::string> environment = english_environment();
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int failed = ::posix_spawnp(&pid_, words.front().c_str(), &files, &attributes,
                                    pointers_to(words).data(), pointers_to(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  ::close(ends[1]);
  out_ = ends[0];
  if (failed == 0) return;
  pid_ = -1;
  ::close(std::exchange(out_, -1));
  throw Error(fmt::format("'{}' cannot be started: {}", words.front(), std::strerror(failed)),
              ExitCode::unavailable);
}

bool Child::read(std::string& output) {
  pollfd waits{out_, POLLIN, 0};
  if (::poll(&waits, 1, kAskMs) <= 0) return true;
  char bytes[16384];
  const ssize_t count = ::read(out_, bytes, sizeof bytes);
  if (count < 0) return errno == EINTR;
  if (count == 0) return false;
  const std::size_t room = kMostOutput - std::min(kMostOutput, output.size());
  output.append(bytes, std::min(room, static_cast<std::size_t>(count)));
  return true;
}

int Child::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void Child::end() {
  if (out_ >= 0) ::close(std::exchange(out_, -1));
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);
  wait();
}

}  // namespace

Ran run_program(const std::vector<std::string>& words, std::chrono::milliseconds limit,
                int memory_mb, const std::function<bool()>& stop) {
  std::vector<std::string> all = words;
  if (memory_mb > 0) {
    all = {"/bin/sh", "-c", fmt::format("ulimit -v {}; exec \"$@\"", memory_mb * 1024), "sh"};
    all.insert(all.end(), words.begin(), words.end());
  }
  Child child(std::move(all));
  Ran ran;
  const auto end = Clock::now() + limit;
  while (child.read(ran.output)) {
    if (stop && stop()) throw Cancelled();
    if (Clock::now() < end) continue;
    ran.timed_out = true;
    child.end();
    return ran;
  }
  ran.status = child.wait();
  return ran;
}

std::string find_program(const std::string& name) {
  if (name.empty()) return {};
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "" : path;
  while (!folders.empty()) {
    const std::size_t colon = std::min(folders.find(':'), folders.size());
    std::string program = std::string(folders.substr(0, colon)) + "/" + name;
    if (::access(program.c_str(), X_OK) == 0) return program;
    folders.remove_prefix(std::min(colon + 1, folders.size()));
  }
  return {};
}

}  // namespace tilestep::workbench
