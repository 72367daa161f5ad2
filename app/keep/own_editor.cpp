#include "app/keep/own_editor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "kernels/base/simt/error.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;

/// Editors that draw in the terminal that they are started in.
constexpr std::array<std::string_view, 14> kInTerminal = {"vi",    "vim", "nvim",   "nano", "pico",
                                                          "micro", "hx",  "helix",  "joe",  "ne",
                                                          "ed",    "kak", "mcedit", "jed"};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool wants_terminal(const std::vector<std::string>& words) {
  const std::string name = fs::path(words[0]).filename().string();
  if (name == "emacs" || name == "emacsclient") {
    return std::any_of(words.begin() + 1, words.end(), [](const std::string& word) {
      return word == "-nw" || word == "-t" || word == "-tty" || word == "--no-window-system";
    });
  }
  return std::find(kInTerminal.begin(), kInTerminal.end(), name) != kInTerminal.end();
}

}  // namespace

EditorChoice editor_choice() {
  return {variable("VISUAL"), variable("EDITOR"), variable("TERMINAL")};
}

std::vector<std::string> editor_command(const EditorChoice& choice, const fs::path& file,
                                        const std::function<bool(const std::string&)>& is_there) {
  for (const auto& [name, value] :
       {std::pair("VISUAL", choice.visual), std::pair("EDITOR", choice.editor)}) {
    std::vector<std::string> words = words_of(value);
    if (words.empty()) continue;
    if (!is_there(words[0])) {
      throw Error(fmt::format("${} names '{}', which is not in PATH; the draft is '{}'", name,
                              words[0], file.string()),
                  ExitCode::unavailable);
    }
    words.push_back(file.string());
    if (!wants_terminal(words)) return words;
    const std::string terminal =
        choice.terminal.empty() ? "x-terminal-emulator" : words_of(choice.terminal).at(0);
    if (!is_there(terminal)) {
      throw Error(fmt::format("'{}' needs a terminal, and there is no {}: open '{}' in one of "
                              "yours, and it runs here whenever it is saved",
                              words[0], terminal, file.string()),
                  ExitCode::unavailable);
    }
    words.insert(words.begin(), {terminal, "-e"});
    return words;
  }
  if (is_there("xdg-open")) return {"xdg-open", file.string()};
  throw Error(fmt::format("no editor is named: set VISUAL or EDITOR, or install xdg-utils; the "
                          "draft is '{}', and it runs here whenever it is saved",
                          file.string()),
              ExitCode::unavailable);
}

DetachedProgram::DetachedProgram(const std::vector<std::string>& words) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  std::vector<std::string> copy = words;
  std::vector<char*> arguments;
  for (std::string& word : copy) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int failed =
      ::posix_spawnp(&pid_, copy.at(0).c_str(), &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed == 0) return;
  pid_ = -1;
  throw Error(fmt::format("'{}' cannot be started: {}", words[0], std::strerror(failed)),
              ExitCode::unavailable);
}

bool DetachedProgram::ended() {
  if (pid_ >= 0 && ::waitpid(pid_, nullptr, WNOHANG) == 0) return false;
  pid_ = -1;
  return true;
}

}  // namespace tilestep::app
