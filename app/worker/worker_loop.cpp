#include "app/worker/worker_loop.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
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
#include <utility>
#include <variant>
#include <vector>

#include "app/worker/lab_client.hpp"
#include "app/worker/pipe_io.hpp"
#include "app/worker/protocol.hpp"
#include "kernels/answer.hpp"
#include "kernels/base/workbench/guarded.hpp"
#include "kernels/catalog.hpp"
#include "kernels/evidence.hpp"

namespace tilestep::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kProgressInterval{50};
/// How often the reader looks whether the loop has finished, once there is no more input.
constexpr int kIdlePollMs = 20;
/// A run that nobody waits for and that does not stop (a kernel that hangs) is left behind after
/// this.
constexpr std::chrono::seconds kAbandonAfter{5};

constexpr std::string_view kDeviceLost =
    "after the previous error the device does no more work for this worker, which now ends";

/// Writes messages, one line each, from the loop and from its reader.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}

  void send(const protocol::Message& message) {
    const std::string line = protocol::line_of(message) + '\n';
    const std::lock_guard lock(mutex_);
    if (!gone_ && !write_all(fd_, line)) gone_ = true;
  }
  void error(Ticket ticket, const Error& error) {
    send(protocol::Failed{
        ticket,
        {error.what(), error.code(), false, lab::fix_of(error), {}, lab::diagnostics_of(error)}});
  }
  void last_error(Ticket ticket, std::string_view sentence, ExitCode code,
                  std::vector<lab::Diagnostic> diagnostics = {}) {
    LabFailure failure{std::string(sentence), code, true};
    failure.diagnostics = std::move(diagnostics);
    send(protocol::Failed{ticket, std::move(failure)});
  }
  /// True once nobody reads any more.
  bool gone() const { return gone_; }
  void mark_gone() { gone_ = true; }

 private:
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
    // By these the other side measures its deadline.
    // The same of a compiler that is at work for assembly: nothing else is told until it is through.
    const bool begins = note.starts_with("compiling ") || note == workbench::kRunning ||
                        note == workbench::kEmulating || note == workbench::kSanitizing;
    if (sent_at_ && now - *sent_at_ < kProgressInterval && !begins) return;
    sent_at_ = now;
    output_.send(
        protocol::Progressed{ticket_, {std::clamp(fraction, 0.0, 1.0), std::string(note), false}});
  }
  void wait(std::string_view note) override {
    output_.send(protocol::Progressed{ticket_, {0, std::string(note), true}});
    sent_at_.reset();  // that it goes on is told at once
  }
  bool cancelled() const override { return cancelled_ || output_.gone(); }

 private:
  Output& output_;
  Ticket ticket_;
  const std::atomic<bool>& cancelled_;
  std::optional<Clock::time_point> sent_at_;
};

/// TILESTEP_WORKER_FAULT, see worker_loop.hpp.
bool has_fault(std::string_view fault) {
  const char* set = std::getenv("TILESTEP_WORKER_FAULT");
  return set != nullptr && fault == set;
}
void obey_fault(const lab::Request& request, lab::Progress& progress) {
  if (has_fault("crash")) std::abort();
  while (has_fault("hang")) ::pause();
  if (has_fault("lost")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // so that others wait behind it
    throw DeviceLost("some_kernel: the kernel failed on the GPU");
  }
  if (!has_fault("slow-bench") || request.action != lab::Request::Action::bench) return;
  for (int i = 0; i < 100; ++i) {
    progress.check();
    progress.report(i / 100.0, "slowly");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

class WorkerLoop {
 public:
  WorkerLoop(int input_fd, int output_fd, Answerer answerer)
      : answerer_(std::move(answerer)),
        input_fd_(input_fd),
        output_fd_(output_fd),
        output_(output_fd) {}

  int run();

 private:
  using Job = std::variant<protocol::Work, protocol::AssemblyWork>;
  static Ticket ticket_of(const Job& job) {
    return std::visit([](const auto& work) { return work.ticket; }, job);
  }

  std::thread start_reader();
  void read_or_end() noexcept;
  void read_requests();
  void take_line(const std::string& line);
  void take(protocol::Work work) { enqueue(std::move(work)); }
  void take(protocol::AssemblyWork work) { enqueue(std::move(work)); }
  void take(const protocol::Cancel& cancel);
  void take(const protocol::Hello& hello);
  void see_to_the_end();
  void give_up_all();
  void enqueue(Job job);
  void answer_one(const Job& job);
  /// Returns true if the device is lost by it.
  bool answer(const protocol::Work& work, SentProgress& progress);
  bool answer(const protocol::AssemblyWork& work, SentProgress& progress);
  bool answer_evidence(const protocol::Work& work, SentProgress& progress);
  [[noreturn]] void end_now(std::string_view why);

  const Answerer answerer_;
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
      running_ = ticket_of(job);
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
    throw Error(fmt::format("the thread that reads requests cannot be started: {}; close other "
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

bool WorkerLoop::answer(const protocol::Work& work, SentProgress& progress) {
  obey_fault(work.request, progress);
  if (work.evidence) return answer_evidence(work, progress);
  lab::Report report = answerer_(work.request, progress);
  report.device_lost |= has_fault("lost-after");
  output_.send(protocol::Answered{work.ticket, lab::to_json(report), report.device_lost});
  return report.device_lost;
}

bool WorkerLoop::answer_evidence(const protocol::Work& work, SentProgress& progress) {
  Witnessed answer;
  if (work.evidence->empty()) {
    answer = answer_with_evidence(work.request, progress);
  } else {
    const std::string evidence = protocol::bytes_of_base64(*work.evidence);
    answer.report = answer_from_evidence(work.request, evidence, progress);
  }
  output_.send(protocol::Answered{work.ticket, lab::to_json(answer.report), false,
                                  protocol::base64_of(answer.evidence)});
  return false;
}

bool WorkerLoop::answer(const protocol::AssemblyWork& work, SentProgress& progress) {
  lesson(work.request.lesson);  // throws, naming the lessons
  const workbench::Assembly assembly = workbench::answer_assembly(work.request, progress);
  output_.send(protocol::AssemblyAnswered{work.ticket, workbench::to_json(assembly)});
  return false;
}

void WorkerLoop::answer_one(const Job& job) {
  const Ticket ticket = ticket_of(job);
  SentProgress progress(output_, ticket, cancel_running_);
  try {
    progress.report(0, "starting");
    if (std::visit([&](const auto& work) { return answer(work, progress); }, job)) {
      end_now(kDeviceLost);
    }
  } catch (const DeviceLost& error) {
    output_.last_error(ticket, error.what(), error.code());
    end_now(kDeviceLost);
  } catch (const workbench::KernelStopped& error) {
    output_.last_error(ticket, error.what(), error.code(), error.diagnostics());
    end_now("the previous edited kernel was stopped midway, so the worker ends");
  } catch (const Error& error) {
    output_.error(ticket, error);
  } catch (const std::bad_alloc&) {
    output_.error(ticket, Error("there is not enough memory for this run; choose smaller values",
                                ExitCode::unavailable));
  } catch (const std::exception& error) {
    output_.error(ticket, Error(error.what(), ExitCode::unavailable));
  }
}

/// Ends the process at once, without the clean-up at exit, which may hang.
void WorkerLoop::end_now(std::string_view why) {
  const std::lock_guard lock(mutex_);
  for (const Job& job : jobs_) {
    output_.last_error(ticket_of(job), fmt::format("not run: {}", why), ExitCode::unavailable);
  }
  ::_exit(static_cast<int>(ExitCode::unavailable));
}

void WorkerLoop::read_requests() {
  LineBuffer lines(protocol::kLongestRequest);
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
      output_.send(protocol::NotTaken{error.what()});
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
  try {
    auto request = protocol::request_from(line);
    if (request) std::visit([this](auto& each) { take(std::move(each)); }, *request);
  } catch (const protocol::BadRequest& error) {
    if (error.ticket()) {
      output_.error(*error.ticket(), error);
    } else {
      output_.send(protocol::NotTaken{error.what()});
    }
  }
}

void WorkerLoop::enqueue(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
}

void WorkerLoop::take(const protocol::Cancel& cancel) {
  bool was_waiting = false;
  {
    const std::lock_guard lock(mutex_);
    if (running_ == cancel.ticket) cancel_running_ = true;
    was_waiting =
        std::erase_if(jobs_, [&](const auto& job) { return ticket_of(job) == cancel.ticket; }) > 0;
  }
  if (was_waiting) output_.error(cancel.ticket, Cancelled());
}

void WorkerLoop::take(const protocol::Hello&) {
  output_.send(protocol::own_hello());
}

}  // namespace

int worker_loop(int input_fd, int output_fd, Answerer answerer) {
  // Ctrl-C in a terminal reaches the whole process group; the worker ends when its parent does.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  return WorkerLoop(input_fd, output_fd, std::move(answerer)).run();
}

int worker_loop(int input_fd, int output_fd) {
  return worker_loop(input_fd, output_fd, [](const lab::Request& request, lab::Progress& progress) {
    return answer(request, progress);
  });
}

}  // namespace tilestep::app
