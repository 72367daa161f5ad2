#include "app/worker/worker_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "kernels/base/simt/error.hpp"

namespace tilestep::app {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a killed process may take to vanish. Only a process stuck inside the system takes
/// longer; it is then left to the system, because nobody may wait for it.
constexpr std::chrono::milliseconds kKillGrace{500};

struct Pipe {
  int read = -1, write = -1;
};

/// Both ends stay out of other children, and above the standard three: a program started with its
/// standard input closed would otherwise get 0 here, which the child's own set-up then overwrites.
Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(fmt::format("no pipe to a worker process can be made: {}", std::strerror(errno)),
                ExitCode::unavailable);
  }
  for (int& end : ends) {
    if (end > STDERR_FILENO) continue;
    const int moved = ::fcntl(end, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    ::close(end);
    end = moved;
  }
  return {ends[0], ends[1]};
}

std::string signal_name(int number) {
  switch (number) {
    case SIGABRT:
      return " (SIGABRT)";
    case SIGBUS:
      return " (SIGBUS)";
    case SIGFPE:
      return " (SIGFPE)";
    case SIGILL:
      return " (SIGILL)";
    case SIGINT:
      return " (SIGINT)";
    case SIGKILL:
      return " (SIGKILL)";
    case SIGSEGV:
      return " (SIGSEGV)";
    case SIGTERM:
      return " (SIGTERM)";
    default:
      return "";
  }
}

/// What the child is called in lists of processes, also where `program` is /proc/self/exe.
constexpr const char* kName = "tilestep";

/// A child with `input` and `output` as its standard ones and every signal at its default. Returns
/// the error number of posix_spawn.
int spawn(const std::string& program, int input, int output, pid_t& pid) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string name = kName, command = "worker";
  char* const arguments[] = {name.data(), command.data(), nullptr};
  const int error = ::posix_spawn(&pid, program.c_str(), &files, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

}  // namespace

WorkerProcess::WorkerProcess(const std::string& program, std::size_t longest_message)
    : lines_(longest_message) {
  const Pipe in = make_pipe();
  const Pipe out = make_pipe();
  const int error = spawn(program, in.read, out.write, pid_);
  ::close(in.read);
  ::close(out.write);
  to_worker_ = in.write;
  from_worker_ = out.read;
  if (error != 0) {
    pid_ = -1;
    close_pipes();
    throw Error(fmt::format("the worker process '{} worker' cannot be started: {}", program,
                            std::strerror(error)),
                ExitCode::unavailable);
  }
  // A worker that stopped reading must not block us: it is then killed instead.
  ::fcntl(to_worker_, F_SETFL, O_NONBLOCK);
  ::fcntl(from_worker_, F_SETFL, O_NONBLOCK);
}

WorkerProcess::~WorkerProcess() {
  kill();
  close_pipes();
}

bool WorkerProcess::send(std::string_view line) {
  return write_all(to_worker_, std::string(line) + '\n');
}

bool WorkerProcess::read(const std::function<void(const std::string&)>& take) {
  const bool open = lines_.read_from(from_worker_);
  // The unfinished last line of a worker that died is half a message: it is left alone.
  while (open) {
    const auto line = lines_.next();
    if (!line) break;
    take(*line);
  }
  return open;
}

std::string WorkerProcess::end(std::chrono::milliseconds grace) {
  if (to_worker_ >= 0) ::close(std::exchange(to_worker_, -1));
  if (!reaped_within(grace)) kill();
  if (pid_ >= 0) return "does not end";
  if (WIFSIGNALED(status_)) {
    return fmt::format("was ended by signal {}{}", WTERMSIG(status_),
                       signal_name(WTERMSIG(status_)));
  }
  return fmt::format("ended with exit code {}", WEXITSTATUS(status_));
}

void WorkerProcess::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  reaped_within(kKillGrace);
}

bool WorkerProcess::reaped_within(std::chrono::milliseconds limit) {
  const auto give_up = Clock::now() + limit;
  while (pid_ >= 0) {
    const pid_t reaped = ::waitpid(pid_, &status_, WNOHANG);
    if (reaped == pid_ || (reaped < 0 && errno == ECHILD)) {
      pid_ = -1;
      break;
    }
    if (Clock::now() >= give_up) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void WorkerProcess::close_pipes() {
  if (to_worker_ >= 0) ::close(std::exchange(to_worker_, -1));
  if (from_worker_ >= 0) ::close(std::exchange(from_worker_, -1));
}

}  // namespace tilestep::app
