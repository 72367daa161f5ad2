#include "tests/app/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "tests/paths.hpp"
#include "tests/skip.hpp"

namespace tilestep::tests {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kLongest{240};

std::vector<std::string> environment_with(const Environment& extra) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!extra.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (const auto& [name, value] : extra) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// Reads once; closes and forgets the descriptor at its end.
void take(int& fd, std::string& into) {
  std::array<char, 65536> piece;
  const ssize_t count = ::read(fd, piece.data(), piece.size());
  if (count > 0) {
    into.append(piece.data(), static_cast<std::size_t>(count));
  } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
    ::close(std::exchange(fd, -1));
  }
}

}  // namespace

Child::Child(const std::vector<std::string>& arguments, const Environment& extra) {
  ::signal(SIGPIPE, SIG_IGN);
  int in[2], out[2], err[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipes");
  }
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> words = arguments;
  std::vector<std::string> environment = environment_with(extra);
  const int error = ::posix_spawnp(&pid_, words.front().c_str(), &files, &attributes,
                                   pointers(words).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  ::close(in[0]);
  ::close(out[1]);
  ::close(err[1]);
  in_ = in[1];
  out_fd_ = out[0];
  err_fd_ = err[0];
  if (error != 0) throw std::runtime_error("cannot start " + words.front());
}

Child::~Child() {
  if (alive()) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
  }
  close_input();
  close_output();
  if (err_fd_ >= 0) ::close(err_fd_);
}

void Child::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(in_, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Child::close_input() {
  if (in_ >= 0) ::close(std::exchange(in_, -1));
}

void Child::close_output() {
  if (out_fd_ >= 0) ::close(std::exchange(out_fd_, -1));
}

bool Child::pump(std::chrono::milliseconds limit) {
  pollfd watched[] = {{out_fd_, POLLIN, 0}, {err_fd_, POLLIN, 0}};
  if (out_fd_ < 0 && err_fd_ < 0) return false;
  ::poll(watched, 2, static_cast<int>(std::max<std::int64_t>(0, limit.count())));
  if (watched[0].revents != 0) take(out_fd_, out_);
  if (watched[1].revents != 0) take(err_fd_, err_);
  return true;
}

std::optional<std::string> Child::read_line(std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  for (;;) {
    const std::size_t newline = out_.find('\n', read_);
    if (newline != std::string::npos) {
      std::string line = out_.substr(read_, newline - read_);
      read_ = newline + 1;
      return line;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0 || out_fd_ < 0) return std::nullopt;
    pump(left);
  }
}

int Child::finish(std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  while (Clock::now() < end &&
         pump(std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()))) {
  }
  if (!eventually([this] { return !alive(); }, std::chrono::seconds(5))) {
    throw std::runtime_error("the program does not end; its errors so far: " + err_);
  }
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

bool Child::alive() {
  if (pid_ < 0) return false;
  if (::waitpid(pid_, &status_, WNOHANG) == 0) return true;
  pid_ = -1;
  return false;
}

Outcome run_tilestep(const std::vector<std::string>& arguments, const std::string& input,
                     const Environment& extra) {
  const char* other = std::getenv("TILESTEP_TEST_PROGRAM");
  std::vector<std::string> words = {other == nullptr ? tilestep::tests::paths::kProgram : other};
  words.insert(words.end(), arguments.begin(), arguments.end());
  Child child(words, extra);
  child.write(input);
  child.close_input();
  Outcome outcome;
  outcome.code = child.finish(kLongest);
  outcome.out = child.out();
  outcome.err = child.err();
  return outcome;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    // "pid (name) state parent …", where the name may hold anything but ends at the last ')'.
    const std::string text = file_text(entry.path() / "stat");
    const std::size_t end = text.rfind(')');
    if (end == std::string::npos) continue;
    std::istringstream rest(text.substr(end + 1));
    std::string state;
    pid_t its_parent = 0;
    rest >> state >> its_parent;
    if (its_parent == parent && state != "Z") children.push_back(std::stoi(name));
  }
  return children;
}

bool has_program(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((std::filesystem::path(folder) / name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();  // of a process that ends meanwhile: what there was until then
  return text.str();
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "tilestep-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

bool pictures_work() {
  const auto parts = run_tilestep({"doctor", "--json"}).json().at("parts");
  const bool there = std::any_of(parts.begin(), parts.end(), [](const auto& part) {
    return part.at("id") == "pictures" && part.at("ok") == true;
  });
  if (!there) skip("no pictures can be drawn here (see `tilestep doctor`)");
  return there;
}

}  // namespace tilestep::tests
