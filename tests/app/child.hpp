#pragma once

#include <sys/types.h>
#include <time.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Other programs as a test runs them: with real arguments, pipes, exit codes and signals.
namespace tilestep::tests {

using Environment = std::map<std::string, std::string>;

/// A running program with pipes to its three standard descriptors.
class Child {
 public:
  /// `arguments[0]` is the program, looked up in PATH. `extra` is added to the environment.
  explicit Child(const std::vector<std::string>& arguments, const Environment& extra = {});
  /// Kills it.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void write(std::string_view text);
  void close_input();
  /// Stops reading, as a parent that is gone does.
  void close_output();
  /// The next line of its standard output; nothing at the end or after `limit`.
  std::optional<std::string> read_line(std::chrono::milliseconds limit);
  /// Reads both outputs to their end and waits. Returns the exit code; 128 + n for signal n.
  int finish(std::chrono::milliseconds limit);
  /// True while it runs.
  bool alive();
  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }

 private:
  bool pump(std::chrono::milliseconds limit);

  pid_t pid_ = -1;
  int status_ = 0;
  int in_ = -1, out_fd_ = -1, err_fd_ = -1;
  std::string out_, err_;
  std::size_t read_ = 0;  ///< how much of out_ was given as lines
};

struct Outcome {
  int code = 0;
  std::string out, err;
  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

/// Runs tilestep, or the program that TILESTEP_TEST_PROGRAM names in the environment, with `arguments`
/// to its end.
Outcome run_tilestep(const std::vector<std::string>& arguments, const std::string& input = "",
                     const Environment& extra = {});

/// Processes whose parent is `parent`.
std::vector<pid_t> children_of(pid_t parent);

/// True if a program of this name is in PATH.
bool has_program(std::string_view name);

/// Whether OpenGL draws here; where it does not, the test's group counts as skipped.
bool pictures_work();

std::string file_text(const std::filesystem::path& path);

/// A folder that is gone when the test is.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Asks `what` again and again until it answers true or `limit` has passed.
template <class What>
bool eventually(What&& what, std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!what()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::timespec pause{0, 5'000'000};
    ::nanosleep(&pause, nullptr);
  }
  return true;
}

}  // namespace tilestep::tests
