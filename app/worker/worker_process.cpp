#include "app/worker/worker_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::app {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a killed process may take to vanish. Only a process stuck inside the system takes
/// longer; it is then left to the system, because nobody may wait for it.
constexpr std::chrono::milliseconds kKillGrace{500};
/// Bytes that are kept of what is written on standard error.
constexpr std::size_t kMostErrors = 4096;

struct Pipe {
  int read = -1, write = -1;

  void close() const {
    if (read >= 0) ::close(read);
    if (write >= 0) ::close(write);
  }
};

Error no_pipe(const std::string& program, int error) {
  return Error(fmt::format("'{}' cannot be given a pipe: {}", program, std::strerror(error)),
               ExitCode::unavailable);
}

/// Both ends stay out of other children, and above the standard three: a program started with its
/// standard input closed would otherwise get 0 here, which the child's own set-up then overwrites.
Pipe make_pipe(const std::string& program) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw no_pipe(program, errno);
  for (int& end : ends) {
    if (end > STDERR_FILENO) continue;
    const int moved = ::fcntl(end, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno;
    ::close(end);
    end = moved;
    if (moved >= 0) continue;
    Pipe{ends[0], ends[1]}.close();
    throw no_pipe(program, error);
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

/// A child with `input`, `output` and, unless it is −1, `errors` as its standard ones, every signal at
/// its default and a process group of its own, which ends with it. Returns the error number of
/// posix_spawn.
int spawn(const WorkerCommand& command, int input, int output, int errors, pid_t& pid) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  if (errors >= 0) posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> words = command.arguments;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int error =
      ::posix_spawnp(&pid, command.program.c_str(), &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

/// Reads without waiting.
void set_nonblocking(int fd) {
  if (fd >= 0) ::fcntl(fd, F_SETFL, O_NONBLOCK);
}

}  // namespace

WorkerProcess::WorkerProcess(const WorkerCommand& command, std::size_t longest_message)
    : lines_(longest_message) {
  Pipe in, out, errors;
  int failed = 0;
  try {
    in = make_pipe(command.program);
    out = make_pipe(command.program);
    if (command.keeps_errors) errors = make_pipe(command.program);
    failed = spawn(command, in.read, out.write, errors.write, pid_);
  } catch (...) {
    for (const Pipe& pipe : {in, out, errors}) pipe.close();
    throw;
  }
  for (const int fd : {in.read, out.write, errors.write}) {
    if (fd >= 0) ::close(fd);
  }
  to_worker_ = in.write;
  from_worker_ = out.read;
  errors_ = errors.read;
  if (failed != 0) {
    pid_ = -1;
    close_pipes();
    throw Error(fmt::format("'{}' cannot be started: {}", command.program, std::strerror(failed)),
                ExitCode::unavailable);
  }
  // A worker that stopped reading must not block us: it is then killed instead.
  for (const int fd : {to_worker_, from_worker_, errors_}) set_nonblocking(fd);
}

WorkerProcess::~WorkerProcess() {
  kill();
  close_pipes();
}

bool WorkerProcess::send(std::string_view line) {
  unsent_.append(line);
  unsent_ += '\n';
  return send_rest();
}

bool WorkerProcess::send_rest() {
  std::size_t sent = 0;
  bool taken = to_worker_ >= 0;
  while (taken && sent < unsent_.size()) {
    const ssize_t count = ::write(to_worker_, unsent_.data() + sent, unsent_.size() - sent);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      taken = false;
    }
  }
  unsent_.erase(0, taken ? sent : unsent_.size());
  if (!taken && to_worker_ >= 0) ::close(std::exchange(to_worker_, -1));
  return taken;
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

void WorkerProcess::read_errors() {
  if (errors_ < 0) return;
  std::array<char, 4096> piece;
  const ssize_t count = ::read(errors_, piece.data(), piece.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) {
    ::close(std::exchange(errors_, -1));
    return;
  }
  error_text_.append(piece.data(), static_cast<std::size_t>(count));
  if (error_text_.size() > kMostErrors) error_text_.erase(0, error_text_.size() - kMostErrors);
}

std::string WorkerProcess::last_error() const {
  constexpr const char* kBlank = " \t\r\n";
  const std::size_t end = error_text_.find_last_not_of(kBlank);
  if (end == std::string::npos) return {};
  const std::size_t newline = error_text_.find_last_of("\r\n", end);
  const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
  return lab::shown_value(std::string_view(error_text_).substr(begin, end + 1 - begin));
}

int WorkerProcess::exit_code() const {
  return pid_ < 0 && WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
}

std::string WorkerProcess::end(std::chrono::milliseconds grace) {
  if (to_worker_ >= 0) ::close(std::exchange(to_worker_, -1));
  if (!reaped_within(grace)) kill();
  // What it said last is still in the pipe.
  for (std::size_t before = 0; errors_ >= 0; before = error_text_.size()) {
    read_errors();
    if (error_text_.size() == before) break;
  }
  if (pid_ >= 0) return "does not end";
  if (WIFSIGNALED(status_)) {
    return fmt::format("was ended by signal {}{}", WTERMSIG(status_),
                       signal_name(WTERMSIG(status_)));
  }
  return fmt::format("ended with exit code {}", WEXITSTATUS(status_));
}

void WorkerProcess::kill() {
  if (pid_ < 0) return;
  // The group: what a command started to reach the worker must not outlive it. It may not be one yet.
  if (::kill(-pid_, SIGKILL) != 0) ::kill(pid_, SIGKILL);
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
  if (errors_ >= 0) ::close(std::exchange(errors_, -1));
}

}  // namespace tilestep::app
