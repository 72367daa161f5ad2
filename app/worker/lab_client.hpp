#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "kernels/base/lab/lesson.hpp"

namespace tilestep::app {

using Ticket = std::uint64_t;

/// What a lab tells of a request.
struct LabProgress {
  double fraction = 0;
  std::string note;
};
struct LabFailure {
  std::string sentence;  ///< for the user
  ExitCode code = ExitCode::bad_input;
  bool worker_died = false;  ///< another one is started for the next request
};
struct LabUpdate {
  Ticket ticket = 0;
  std::variant<LabProgress, lab::Report, LabFailure> what;
};

/// Runs requests somewhere else. Never blocks its caller. The newest request of an action wins: one
/// that is superseded is stopped, and no update of it is delivered any more.
class LabClient {
 public:
  virtual ~LabClient() = default;
  virtual Ticket submit(const lab::Request& request) = 0;
  /// The next update, if there is one.
  virtual std::optional<LabUpdate> poll() = 0;
  /// Stops whatever runs.
  virtual void cancel() = 0;
  /// True while a request is under way.
  virtual bool busy() const = 0;
};

struct ProcessLabOptions {
  std::string program;                        ///< path of tilestep itself; run as `program worker`
  std::chrono::milliseconds deadline{60000};  ///< a run that takes longer is ended
  std::chrono::milliseconds stop_grace{500};  ///< how long a cancelled run may take to stop
  std::function<void()> wake;  ///< called from another thread when `poll` has something new
};

/// A lab in a child process of this machine. A kernel that crashes takes only the worker with it.
std::unique_ptr<LabClient> make_process_lab(ProcessLabOptions options);

/// A lab that answers inside `submit`, for pictures and tests (no process, no thread).
std::unique_ptr<LabClient> make_inline_lab();

}  // namespace tilestep::app
