#include "app/worker/worker_loop.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "app/worker/lab_client.hpp"
#include "app/worker/pipe_io.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr std::chrono::milliseconds kProgressInterval{50};
/// How often the reader looks whether the loop has finished, once there is no more input.
constexpr int kIdlePollMs = 20;
/// A run that nobody waits for and that does not stop (a kernel that hangs) is left behind after
/// this.
constexpr std::chrono::seconds kAbandonAfter{5};

/// Bytes of a request; longer than any that a knob allows.
constexpr std::size_t kLongestRequest = std::size_t{1} << 20;

constexpr std::string_view kAllowedLines =
    R"(send one JSON object a line: {"ticket": n, "lesson": "…", "params": {…}, "action": "run|bench", )"
    R"("backend": "auto|cuda|emulated|recorded"} or {"cancel": n}, with n a whole number from 0)";

struct Job {
  Ticket ticket = 0;
  lab::Request request;
};

/// Writes messages, one line each, from the loop and from its reader.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}

  void send(const json& message) {
    // Device names and error texts come from outside: bytes that are no UTF-8 are replaced.
    const std::string line = message.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
    const std::lock_guard lock(mutex_);
    if (!gone_ && !write_all(fd_, line)) gone_ = true;
  }
  void error(const json& ticket, std::string_view sentence, ExitCode code,
             const std::optional<lab::Fix>& fix = std::nullopt) {
    json message = error_message(ticket, sentence, code);
    if (fix) message["fix"] = {{"label", fix->label}, {"settings", lab::to_json(fix->settings)}};
    send(message);
  }
  void last_error(const json& ticket, std::string_view sentence, ExitCode code) {
    json message = error_message(ticket, sentence, code);
    message["worker_ends"] = true;
    send(message);
  }
  /// True once nobody reads any more.
  bool gone() const { return gone_; }
  void mark_gone() { gone_ = true; }

 private:
  static json error_message(const json& ticket, std::string_view sentence, ExitCode code) {
    return {{"type", "error"},
            {"ticket", ticket},
            {"message", lab::shown(sentence)},
            {"code", static_cast<int>(code)}};
  }

  int fd_;
  std::mutex mutex_;
  std::atomic<bool> gone_{false};
};

class SentProgress final : public lab::Progress {
 public:
  SentProgress(Output& output, Ticket ticket, const std::atomic<bool>& cancelled)
      : output_(output), ticket_(ticket), cancelled_(cancelled) {}

  void report(double fraction, std::string_view note) override {
    const auto now = Clock::now();
    if (sent_at_ && now - *sent_at_ < kProgressInterval) return;
    sent_at_ = now;
    output_.send(
        {{"type", "progress"}, {"ticket", ticket_}, {"fraction", fraction}, {"note", note}});
  }
  bool cancelled() const override { return cancelled_ || output_.gone(); }

 private:
  Output& output_;
  Ticket ticket_;
  const std::atomic<bool>& cancelled_;
  std::optional<Clock::time_point> sent_at_;
};

/// TILESTEP_WORKER_FAULT, see worker_loop.hpp.
void obey_fault(const lab::Request& request, lab::Progress& progress) {
  const char* set = std::getenv("TILESTEP_WORKER_FAULT");
  const std::string_view fault = set == nullptr ? "" : set;
  if (fault == "crash") std::abort();
  while (fault == "hang") ::pause();
  if (fault == "lost") {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // so that others wait behind it
    throw DeviceLost("some_kernel: the kernel failed on the GPU");
  }
  if (fault != "slow-bench" || request.action != lab::Request::Action::bench) return;
  for (int i = 0; i < 100; ++i) {
    progress.check();
    progress.report(i / 100.0, "slowly");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

bool is_ticket(const json& value) {
  return value.is_number_unsigned();
}

class WorkerLoop {
 public:
  WorkerLoop(int input_fd, int output_fd)
      : input_fd_(input_fd), output_fd_(output_fd), output_(output_fd) {}

  int run();

 private:
  std::thread start_reader();
  void read_or_end() noexcept;
  void read_requests();
  void take_line(const std::string& line);
  void take_cancel(const json& message);
  void see_to_the_end();
  void give_up_all();
  void answer_one(const Job& job);
  [[noreturn]] void end_without_device();

  int input_fd_;
  int output_fd_;
  Output output_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::optional<Ticket> running_;
  bool input_ended_ = false;
  std::atomic<bool> cancel_running_{false};
  std::atomic<bool> finished_{false};
};

int WorkerLoop::run() {
  std::thread reader = start_reader();
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !jobs_.empty() || input_ended_; });
      if (jobs_.empty()) break;
      job = std::move(jobs_.front());
      jobs_.pop_front();
      running_ = job.ticket;
      cancel_running_ = false;
    }
    answer_one(job);
    const std::lock_guard lock(mutex_);
    running_.reset();
  }
  finished_ = true;
  reader.join();
  return static_cast<int>(ExitCode::good);
}

std::thread WorkerLoop::start_reader() {
  try {
    return std::thread([this] { read_or_end(); });
  } catch (const std::system_error& error) {
    throw Error(fmt::format("the thread that reads requests cannot be started: {}; end other "
                            "programs, or raise the limit (`ulimit -u`)",
                            error.code().message()),
                ExitCode::unavailable);
  }
}

/// Without memory a request would be lost or half read: the worker ends, and whoever asks gets another.
void WorkerLoop::read_or_end() noexcept {
  try {
    read_requests();
  } catch (const std::bad_alloc&) {
    constexpr std::string_view kSentence =
        "tilestep: there is not enough memory to read a request; the worker ends\n";
    write_all(STDERR_FILENO, kSentence);
    ::_exit(static_cast<int>(ExitCode::unavailable));
  }
}

void WorkerLoop::answer_one(const Job& job) {
  SentProgress progress(output_, job.ticket, cancel_running_);
  try {
    progress.report(0, "starting");
    obey_fault(job.request, progress);
    const lab::Report report = answer(job.request, progress);
    output_.send({{"type", "report"}, {"ticket", job.ticket}, {"report", lab::to_json(report)}});
  } catch (const DeviceLost& error) {
    output_.last_error(job.ticket, error.what(), error.code());
    end_without_device();
  } catch (const Error& error) {
    output_.error(job.ticket, error.what(), error.code(), lab::fix_of(error));
  } catch (const std::bad_alloc&) {
    output_.error(job.ticket, "there is not enough memory for this run; choose smaller values",
                  ExitCode::unavailable);
  } catch (const std::exception& error) {
    output_.error(job.ticket, error.what(), ExitCode::unavailable);
  }
}

/// Ends the process at once: with such a device even its own clean-up at exit may hang.
void WorkerLoop::end_without_device() {
  const std::lock_guard lock(mutex_);
  for (const Job& job : jobs_) {
    output_.last_error(job.ticket,
                       "not run: after the error before it the device does no more work for this "
                       "worker, which ends",
                       ExitCode::unavailable);
  }
  ::_exit(static_cast<int>(ExitCode::unavailable));
}

void WorkerLoop::read_requests() {
  LineBuffer lines(kLongestRequest);
  bool open = true;
  while (open && !output_.gone()) {
    // The output is watched too: an error there means that nobody reads any more.
    pollfd watched[] = {{input_fd_, POLLIN, 0}, {output_fd_, 0, 0}};
    if (::poll(watched, 2, -1) < 0) continue;
    if ((watched[1].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) output_.mark_gone();
    if (watched[0].revents == 0) continue;
    try {
      open = lines.read_from(input_fd_);
    } catch (const Error& error) {
      output_.error(nullptr, error.what(), error.code());
    }
    while (const auto line = lines.next()) take_line(*line);
  }
  {
    const std::lock_guard lock(mutex_);
    input_ended_ = true;
  }
  changed_.notify_all();
  see_to_the_end();
}

/// After the last request: waits for its answer, but only while somebody reads it.
void WorkerLoop::see_to_the_end() {
  std::optional<Clock::time_point> abandon_at;
  while (!finished_) {
    pollfd watched[] = {{output_fd_, 0, 0}};
    if (::poll(watched, 1, output_.gone() ? 0 : kIdlePollMs) > 0) output_.mark_gone();
    if (!output_.gone()) continue;
    if (!abandon_at) {
      give_up_all();
      abandon_at = Clock::now() + kAbandonAfter;
    }
    if (Clock::now() > *abandon_at) ::_exit(static_cast<int>(ExitCode::unavailable));
    std::this_thread::sleep_for(std::chrono::milliseconds(kIdlePollMs));
  }
}

void WorkerLoop::give_up_all() {
  const std::lock_guard lock(mutex_);
  jobs_.clear();
  cancel_running_ = true;
}

void WorkerLoop::take_line(const std::string& line) {
  if (line.find_first_not_of(" \t\r") == std::string::npos) return;
  // The parser takes a NUL for the end, and would leave what follows it unread.
  json message = line.find('\0') == std::string::npos ? json::parse(line, nullptr, false)
                                                      : json(json::value_t::discarded);
  if (message.is_discarded() || !message.is_object()) {
    output_.error(
        nullptr,
        fmt::format("this line is {}; {}",
                    message.is_discarded() ? "not JSON" : "not a JSON object", kAllowedLines),
        ExitCode::bad_input);
    return;
  }
  if (message.contains("cancel")) return take_cancel(message);
  if (!message.contains("ticket") || !is_ticket(message["ticket"])) {
    const char* what = message.contains("ticket") ? "the \"ticket\" of this request is none"
                                                  : "this request has no \"ticket\"";
    output_.error(nullptr, fmt::format("{}; {}", what, kAllowedLines), ExitCode::bad_input);
    return;
  }
  const Ticket ticket = message["ticket"].get<Ticket>();
  message.erase("ticket");
  try {
    Job job{ticket, lab::request_from_json(message)};
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  } catch (const Error& error) {
    output_.error(ticket, error.what(), error.code());
  }
  changed_.notify_all();
}

void WorkerLoop::take_cancel(const json& message) {
  if (message.size() != 1 || !is_ticket(message["cancel"])) {
    output_.error(nullptr, fmt::format("this cancel is not understood; {}", kAllowedLines),
                  ExitCode::bad_input);
    return;
  }
  const Ticket ticket = message["cancel"].get<Ticket>();
  bool was_waiting = false;
  {
    const std::lock_guard lock(mutex_);
    if (running_ == ticket) cancel_running_ = true;
    was_waiting = std::erase_if(jobs_, [&](const Job& job) { return job.ticket == ticket; }) > 0;
  }
  if (was_waiting) output_.error(ticket, Cancelled().what(), Cancelled().code());
}

}  // namespace

int worker_loop(int input_fd, int output_fd) {
  // Ctrl-C in a terminal reaches the whole process group; the worker ends when its parent does.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  return WorkerLoop(input_fd, output_fd).run();
}

}  // namespace tilestep::app
