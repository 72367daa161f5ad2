#pragma once

#include <array>
#include <string>
#include <string_view>

#include "kernels/base/lab/report.hpp"
#include "kernels/base/simt/device.hpp"

namespace tilestep::lab {

/// How far a run is, told to whoever waits for it.
class Progress {
 public:
  virtual ~Progress() = default;
  /// `fraction` in 0–1; `note` says what happens now, in a few words.
  virtual void report(double fraction, std::string_view note) = 0;
  /// True once the caller gave the run up. `check()` throws Cancelled then.
  virtual bool cancelled() const = 0;
  void check() const {
    if (cancelled()) throw Cancelled();
  }
};

/// A Progress that nobody watches.
class NoProgress final : public Progress {
 public:
  void report(double, std::string_view) override {}
  bool cancelled() const override { return false; }
};

struct LessonInfo {
  std::string id;        ///< "online-softmax"
  std::string title;     ///< "Online softmax"
  std::string chapter;   ///< "Attention"
  std::string takeaway;  ///< one sentence, shown beside the title
};

/// One lesson, without any UI. Stateless; every call is independent.
class Lesson {
 public:
  virtual ~Lesson() = default;
  virtual const LessonInfo& info() const = 0;
  virtual const Knobs& knobs() const = 0;
  /// Runs the traced kernel with `settings` (defaults for what is absent) and checks it against the
  /// reference. Throws Error for settings that are not allowed; calls `progress.check()` often.
  virtual Report run(const Settings& settings, simt::Device& device, Progress& progress) const = 0;
  /// Times the lesson's ladder of kernels beside the device's own peer. Needs device.can_time();
  /// throws Error (unavailable) otherwise.
  virtual Report bench(simt::Device& device, Progress& progress) const = 0;
};

/// What a lab is asked to do.
struct Request {
  enum class Action { run, bench };
  std::string lesson;
  Settings params;
  Action action = Action::run;
  std::string backend = "auto";  ///< auto, cuda, emulated or recorded
};
constexpr auto names_of(Request::Action) {
  return std::to_array<std::string_view>({"run", "bench"});
}
nlohmann::json to_json(const Request& request);
/// Throws Error naming the allowed values.
Request request_from_json(const nlohmann::json& json);

}  // namespace tilestep::lab
