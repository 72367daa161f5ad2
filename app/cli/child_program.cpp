#include "app/cli/child_program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "kernels/base/simt/error.hpp"

extern char** environ;

namespace tilestep::app {
namespace {

std::vector<std::string> environment_with(const std::map<std::string, std::string>& extra) {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view entry(*each);
    if (extra.count(std::string(entry.substr(0, entry.find('=')))) == 0) all.emplace_back(entry);
  }
  for (const auto& [name, value] : extra) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

ChildProgram::ChildProgram(const std::vector<std::string>& words,
                           const std::map<std::string, std::string>& extra) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(fmt::format("no pipe can be made: {}", std::strerror(errno)),
                ExitCode::unavailable);
  }
  std::vector<std::string> arguments = words, environment = environment_with(extra);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int failed = ::posix_spawnp(&pid_, words.front().c_str(), &files, nullptr,
                                    pointers_to(arguments).data(), pointers_to(environment).data());
  ::posix_spawn_file_actions_destroy(&files);
  ::close(ends[1]);
  out_ = ends[0];
  if (failed == 0) return;
  ::close(out_);
  throw Error(fmt::format("'{}' cannot be started: {}", words.front(), std::strerror(failed)),
              ExitCode::unavailable);
}

ChildProgram::~ChildProgram() {
  ::close(out_);
  if (pid_ < 0) return;
  ::kill(pid_, SIGTERM);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<std::string> ChildProgram::read_line(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::size_t newline = 0;
  while ((newline = read_.find('\n')) == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd waits{out_, POLLIN, 0};
    const int ready = left.count() <= 0 ? 0 : ::poll(&waits, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    char bytes[4096];
    const ssize_t count = ::read(out_, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    read_.append(bytes, static_cast<std::size_t>(count));
  }
  std::string line = read_.substr(0, newline);
  read_.erase(0, newline + 1);
  return line;
}

double ChildProgram::finish() {
  int status = 0;
  rusage usage{};
  while (::wait4(pid_, &status, 0, &usage) < 0) {
    if (errno != EINTR) return -1;
  }
  pid_ = -1;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return -1;
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

}  // namespace tilestep::app
