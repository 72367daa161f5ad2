#pragma once

#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/profile/numbers.hpp"
#include "scenes/picture/timeline.hpp"
#include "scenes/ui/timeline.hpp"

namespace tilestep::app {

/// A trace of another profiler, with all that is said of it.
struct Profiled {
  std::filesystem::path file;
  profile::Trace trace;
  profile::Numbers numbers;
  std::vector<profile::Answer> answers;
  std::string summary;
  /// Lanes of the host's threads (steps, operators, calls), then of the devices' streams. Spans have their event's number.
  picture::Timeline timeline;
  std::vector<std::pair<int, int>> places;  ///< lane and span of each event; −1: it has none
  int lanes_left_out = 0;

  /// Events of one name light up together, with a tone of their own for the longest kernels.
  std::uint8_t tone_of(int name) const;
  /// Two lines: what an event is and how long it took; how it was launched, and by whom.
  std::string said_of(int event) const;
};
/// Throws Error as profile::read_trace and numbers_of do.
std::shared_ptr<const Profiled> open_profile(const std::filesystem::path& file,
                                             std::optional<profile::Stretch> stretch = {});
/// The same of a trace that travels inside the program: "decode". Throws Error naming those that there are.
std::shared_ptr<const Profiled> open_profile_example(const std::string& name);
std::vector<std::string> profile_examples();
/// The text of an example's file.
std::string_view profile_example_text(const std::string& name);
/// Whether a file of a JSON or SQLite name holds a trace rather than a capsule, from its beginning.
bool holds_trace(const std::filesystem::path& file);

/// The trace on show in the window, which is read in a thread of its own.
class Profiling {
 public:
  void open(const std::filesystem::path& file);
  void open_example(const std::string& name);
  void show(std::shared_ptr<const Profiled> profiled);
  void close();
  /// Looks whether it was read. Returns whether something changed.
  bool update();

  bool reading() const { return read_.valid(); }
  const std::filesystem::path& file() const { return file_; }
  const Profiled* shown() const { return shown_.get(); }
  const std::string& failure() const { return failure_; }

  // ---- what is looked at ----
  ui::TimelineView view;
  int question = -1;     ///< that the timeline shows; −1: none
  int lit = -1;          ///< name of the kernel that is lit; −1: none
  int scrolls = 0;       ///< frames in which the question may still be scrolled into sight
  bool kernels = false;  ///< they are in front of the questions, where both have no room
  /// To what a question's answer is about.
  void ask(int which);
  /// All of the trace.
  void show_all();
  /// To the next stretch in which a device waited for the host; around and around.
  void next_gap();
  /// Lights all launches of a kernel; again, none.
  void light(int name);
  /// Pins an event, and lights those of its name.
  void pin(int lane, int span);

 private:
  std::filesystem::path file_;
  std::shared_ptr<const Profiled> shown_;
  std::future<std::shared_ptr<const Profiled>> read_;
  std::string failure_;
};

}  // namespace tilestep::app
