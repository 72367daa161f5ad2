#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

/// The editor that the user has chosen for texts.
namespace tilestep::app {

/// The editor named by the environment; empty: none.
struct EditorChoice {
  std::string visual;    ///< $VISUAL
  std::string editor;    ///< $EDITOR
  std::string terminal;  ///< $TERMINAL
};
EditorChoice editor_choice();

/// The words that open `file`: $VISUAL, $EDITOR or xdg-open, in a terminal where the editor needs one. `is_there` tells
/// whether a program is in PATH. Throws Error (unavailable) with a sentence that says what to set.
std::vector<std::string> editor_command(const EditorChoice& choice,
                                        const std::filesystem::path& file,
                                        const std::function<bool(const std::string&)>& is_there);

/// A program that goes on without this one, in a session of its own. Throws Error (unavailable) if it cannot be started.
class DetachedProgram {
 public:
  explicit DetachedProgram(const std::vector<std::string>& words);
  DetachedProgram(DetachedProgram&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  DetachedProgram& operator=(DetachedProgram&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  /// Whether it has ended; ask now and then, so that the system may forget it.
  bool ended();

 private:
  pid_t pid_ = -1;
};

}  // namespace tilestep::app
