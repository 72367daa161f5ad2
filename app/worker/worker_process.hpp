#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "app/worker/pipe_io.hpp"

namespace tilestep::app {

/// A running `tilestep worker`: its process and the two pipes to it. Its standard error is ours.
/// One thread uses it, with SIGPIPE blocked.
class WorkerProcess {
 public:
  /// Starts `program worker`, whose messages are at most `longest_message` bytes long. Throws Error
  /// (unavailable) naming the program and the reason.
  WorkerProcess(const std::string& program, std::size_t longest_message);
  /// Kills it, if it still runs.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Sends one line. Returns false if the worker does not take it any more.
  bool send(std::string_view line);
  /// The descriptor to wait on for messages.
  int messages_fd() const { return from_worker_; }
  /// Reads what is there and gives each whole line to `take`. Returns false once the worker closed
  /// its end, which means that it died. Throws Error for a message that is too long.
  bool read(const std::function<void(const std::string&)>& take);

  /// Closes its input, waits up to `grace` for it to end by itself, then kills it. Returns how it
  /// ended, to go after "the worker process": "was ended by signal 9 (SIGKILL)".
  std::string end(std::chrono::milliseconds grace);
  /// Kills it at once.
  void kill();

 private:
  bool reaped_within(std::chrono::milliseconds limit);
  void close_pipes();

  pid_t pid_ = -1;  ///< −1 once it is reaped
  int status_ = 0;
  int to_worker_ = -1;
  int from_worker_ = -1;
  LineBuffer lines_;
};

}  // namespace tilestep::app
