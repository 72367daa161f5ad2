#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/worker/pipe_io.hpp"

namespace tilestep::app {

/// How a worker is started.
struct WorkerCommand {
  std::string program;                 ///< a path, or a name that is looked up in PATH
  std::vector<std::string> arguments;  ///< its name and arguments
  /// What it writes on its standard error is kept, to say why it ended; else that is ours.
  bool keeps_errors = false;
};

/// A running worker, or what brings us one: its process and the two pipes to it. One thread uses it, with
/// SIGPIPE blocked.
///
/// It is ours and not Boost.Process: Debian 12's (1.74) forks, which copies the page tables of a window
/// with a GL driver for every worker and gives the child whatever descriptors the driver left open,
/// and 1.88 has another interface. posix_spawn does neither, and resets signals and their mask as well.
class WorkerProcess {
 public:
  /// Starts it; its messages are at most `longest_message` bytes long. Throws Error (unavailable) naming
  /// the program and the reason.
  WorkerProcess(const WorkerCommand& command, std::size_t longest_message);
  /// Kills it, if it still runs.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Sends one line, now as much of it as the pipe takes, which may be 64 KiB; `send_rest` sends what is left. Returns
  /// false if the worker does not take it any more: its input is closed then, so that it ends and what it said last is
  /// read.
  bool send(std::string_view line);
  bool send_rest();
  /// The descriptor to wait on until it can be written to; −1 if nothing is left to send.
  int requests_fd() const { return unsent_.empty() ? -1 : to_worker_; }
  /// The descriptor to wait on for messages.
  int messages_fd() const { return from_worker_; }
  /// The descriptor to wait on for `read_errors`; −1 if they are not kept.
  int errors_fd() const { return errors_; }
  /// Takes what it has written on its standard error so far.
  void read_errors();
  /// The last line of that which is not blank, as it may be shown.
  std::string last_error() const;
  /// Reads what is there and gives each whole line to `take`. Returns false once the worker closed
  /// its end, which means that it died. Throws Error for a message that is too long.
  bool read(const std::function<void(const std::string&)>& take);

  /// Closes its input, waits up to `grace` for it to end by itself, then kills it. Returns how it
  /// ended, to go after "the worker process": "was ended by signal 9 (SIGKILL)".
  std::string end(std::chrono::milliseconds grace);
  /// After `end`: its exit code, −1 if it had none.
  int exit_code() const;
  /// Kills it at once, with what it has started itself.
  void kill();

 private:
  bool reaped_within(std::chrono::milliseconds limit);
  void close_pipes();

  pid_t pid_ = -1;  ///< −1 once it is reaped
  int status_ = 0;
  int to_worker_ = -1;
  int from_worker_ = -1;
  int errors_ = -1;
  std::string unsent_;
  std::string error_text_;  ///< the end of it
  LineBuffer lines_;
};

}  // namespace tilestep::app
