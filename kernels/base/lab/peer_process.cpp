#include "kernels/base/lab/peer_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/simt/error.hpp"

extern char** environ;

namespace tilestep::lab {

using namespace std::chrono_literals;

namespace {

std::string from_environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

}  // namespace

std::vector<std::string> peer_command(const std::string& script, const std::string& folder) {
  const std::string python = from_environment("TILESTEP_PYTHON", "python3");
  if (const std::string named = from_environment("TILESTEP_PEERS", ""); !named.empty()) {
    const std::filesystem::path path = std::filesystem::path(named) / script;
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored)) return {python, path.string()};
    throw Error(
        "TILESTEP_PEERS is '" + named + "', which has no " + script +
            "; allowed: a folder that has it, or nothing, which stands for the one built in",
        ExitCode::unavailable);
  }
  const std::string_view text = asset("assets/peers/" + script);
  if (folder.empty()) return {python, "-c", std::string(text)};
  const std::string path = (std::filesystem::path(folder) / script).string();
  if (!(std::ofstream(path) << text).flush())
    throw Error("'" + path + "' cannot be written", ExitCode::unavailable);
  return {python, path};
}

ScriptPeer::ScriptPeer(const std::string& script)
    : folder_((std::filesystem::temp_directory_path() / "tilestep-peer-XXXXXX").string()) {
  if (mkdtemp(folder_.data()) == nullptr)
    throw Error("'" + folder_ + "': " + std::strerror(errno), ExitCode::unavailable);
  try {
    process_ = std::make_unique<PeerProcess>(peer_command(script, folder_));
  } catch (...) {
    std::filesystem::remove_all(folder_);
    throw;
  }
}

ScriptPeer::~ScriptPeer() {
  process_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::vector<double> numbers_of(const nlohmann::json& answer, const std::string& key,
                               std::size_t count) {
  const auto list = answer.find(key);
  bool good = list != answer.end() && list->is_array() &&
              (count == 0 ? !list->empty() : list->size() == count);
  std::vector<double> numbers;
  for (std::size_t i = 0; good && i < list->size(); ++i) {
    good = (*list)[i].is_number();
    if (good) numbers.push_back((*list)[i].get<double>());
  }
  if (good) return numbers;
  throw Error("the peer answered without '" + key + "'; allowed: a list of " +
                  (count == 0 ? "at least one number" : std::to_string(count) + " numbers"),
              ExitCode::unavailable);
}

PeerProcess::PeerProcess(const std::vector<std::string>& command) : name_(command.front()) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail(std::strerror(errno));
  std::vector<char*> arguments;
  for (const std::string& one : command) arguments.push_back(const_cast<char*>(one.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const int result =
      posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  socket_ = ends[0];
  if (result == 0) return;
  pid_ = -1;
  close(socket_);
  fail(std::strerror(result));
}

PeerProcess::~PeerProcess() {
  if (socket_ >= 0) close(socket_);
  if (pid_ < 0) return;
  for (int tries = 0; tries < 50; ++tries) {
    if (waitpid(pid_, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(20ms);
  }
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void PeerProcess::fail(const std::string& why) const {
  throw Error("the peer " + name_ + ": " + why, ExitCode::unavailable);
}

nlohmann::json PeerProcess::ask(const nlohmann::json& request, double most_seconds) {
  const std::string line = request.dump() + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t now = send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) fail("it has ended");
    sent += static_cast<std::size_t>(now);
  }
  const std::string said = read_line(most_seconds);
  const nlohmann::json answer = nlohmann::json::parse(said, nullptr, false);
  if (!answer.is_object()) fail("it says '" + said.substr(0, 200) + "', which is no answer");
  const auto error = answer.find("error");
  if (error != answer.end()) fail(error->is_string() ? error->get<std::string>() : error->dump());
  return answer;
}

std::string PeerProcess::read_line(double most_seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(most_seconds);
  for (;;) {
    if (const std::size_t at = rest_.find('\n'); at != std::string::npos) {
      std::string line = rest_.substr(0, at);
      rest_.erase(0, at + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left <= 0ms) fail("it does not answer");
    pollfd waits{socket_, POLLIN, 0};
    const int ready = poll(&waits, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) fail(std::strerror(errno));
    if (ready <= 0) continue;
    char some[4096];
    const ssize_t count = recv(socket_, some, sizeof(some), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail("it has ended");
    rest_.append(some, static_cast<std::size_t>(count));
  }
}

}  // namespace tilestep::lab
