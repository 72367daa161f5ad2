#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "app/worker/lab_client.hpp"
#include "app/worker/worker_process.hpp"

namespace tilestep::app {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

/// The caller's side takes and gives plain data under a mutex; everything that may take time (the
/// process, its pipes, megabytes of JSON) happens in one I/O thread.
class ProcessLab final : public LabClient {
 public:
  explicit ProcessLab(ProcessLabOptions options);
  ~ProcessLab() override;

  Ticket submit(const lab::Request& request) override;
  std::optional<LabUpdate> poll() override;
  void cancel() override;
  bool busy() const override;

 private:
  struct Order {
    Ticket ticket = 0;
    lab::Request request;
  };
  struct Running {
    Ticket ticket = 0;
    std::string lesson;
    Clock::time_point deadline;
    std::optional<Clock::time_point> stop_by;  ///< set once it was asked to stop
  };

  // The I/O thread.
  void run_io();
  void wait_for_something();
  bool quitting();
  void read_worker();
  void take_message(const std::string& line);
  void take_message(const json& message);
  void look_at_times();
  void start_wanted();
  void worker_ended();
  void fail(Ticket ticket, LabFailure failure);
  /// Hands an update to the caller, unless its ticket is no longer the one that is waited for.
  void deliver(LabUpdate update);
  bool stale(Ticket ticket);
  void wake_io() const;

  const ProcessLabOptions options_;
  int wake_fd_ = -1;

  mutable std::mutex mutex_;
  Ticket newest_ = 0;  ///< the ticket of the last submit
  bool busy_ = false;  ///< the newest one is waited for
  bool quit_ = false;
  std::optional<Order> wanted_;  ///< submitted, not yet sent
  std::deque<LabUpdate> updates_;

  std::unique_ptr<WorkerProcess> worker_;  ///< I/O thread only, as is the next one
  std::optional<Running> running_;

  std::thread io_;
};

ProcessLab::ProcessLab(ProcessLabOptions options)
    : options_(std::move(options)), wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_fd_ < 0) {
    throw Error(fmt::format("the worker's event cannot be made: {}", std::strerror(errno)),
                ExitCode::unavailable);
  }
  io_ = std::thread([this] { run_io(); });
}

ProcessLab::~ProcessLab() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  wake_io();
  io_.join();
  ::close(wake_fd_);
}

Ticket ProcessLab::submit(const lab::Request& request) {
  Ticket ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    ticket = ++newest_;
    busy_ = true;
    wanted_ = Order{ticket, request};
    updates_.clear();
  }
  wake_io();
  return ticket;
}

std::optional<LabUpdate> ProcessLab::poll() {
  const std::lock_guard lock(mutex_);
  if (updates_.empty()) return std::nullopt;
  LabUpdate update = std::move(updates_.front());
  updates_.pop_front();
  return update;
}

void ProcessLab::cancel() {
  {
    const std::lock_guard lock(mutex_);
    busy_ = false;
    wanted_.reset();
    updates_.clear();
  }
  wake_io();
}

bool ProcessLab::busy() const {
  const std::lock_guard lock(mutex_);
  return busy_;
}

void ProcessLab::wake_io() const {
  const std::uint64_t one = 1;
  // Only a full counter makes this fail, and then the thread is awake anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_fd_, &one, sizeof one);
}

void ProcessLab::run_io() {
  // Writing to a worker that died must give an error here, not end the program.
  sigset_t pipe_signal;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);

  while (!quitting()) {
    look_at_times();
    start_wanted();
    wait_for_something();
    read_worker();
  }
  if (!worker_) return;
  if (running_) {
    worker_->kill();
  } else {
    worker_->end(options_.stop_grace);
  }
  worker_.reset();
}

bool ProcessLab::quitting() {
  const std::lock_guard lock(mutex_);
  return quit_;
}

void ProcessLab::wait_for_something() {
  int timeout_ms = -1;
  if (running_) {
    const auto next = running_->stop_by.value_or(running_->deadline);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
    timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
  }
  pollfd watched[] = {{wake_fd_, POLLIN, 0}, {worker_ ? worker_->messages_fd() : -1, POLLIN, 0}};
  ::poll(watched, 2, timeout_ms);
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t drained = ::read(wake_fd_, &count, sizeof count);
}

void ProcessLab::read_worker() {
  if (!worker_) return;
  if (!worker_->read([this](const std::string& line) { take_message(line); })) worker_ended();
}

void ProcessLab::take_message(const std::string& line) {
  if (!running_) return;
  try {
    take_message(json::parse(line));
  } catch (const std::exception& error) {
    const Ticket ticket = running_->ticket;
    running_.reset();
    fail(ticket,
         {fmt::format("The worker sent a message that is not understood: {}.", error.what()),
          ExitCode::unavailable, false});
  }
}

void ProcessLab::take_message(const json& message) {
  const json& ticket = message.at("ticket");
  if (!ticket.is_number_unsigned() || ticket.get<Ticket>() != running_->ticket) return;
  const std::string type = message.at("type").get<std::string>();
  const Ticket mine = running_->ticket;
  if (type == "progress") {
    deliver({mine, LabProgress{message.at("fraction").get<double>(),
                               message.at("note").get<std::string>()}});
  } else if (type == "report") {
    // A report that nobody waits for is not parsed.
    if (!stale(mine)) deliver({mine, lab::report_from_json(message.at("report"))});
    running_.reset();
  } else if (type == "error") {
    running_.reset();
    fail(mine, {message.at("message").get<std::string>(),
                static_cast<ExitCode>(message.at("code").get<int>()), false});
  }
}

void ProcessLab::look_at_times() {
  if (!running_) return;
  const auto now = Clock::now();
  if (running_->stop_by) {
    if (now < *running_->stop_by) return;
    // It was asked to stop and did not: a kernel that hangs. The next run gets a new worker.
    worker_->kill();
    worker_.reset();
    running_.reset();
    return;
  }
  if (now >= running_->deadline) {
    fail(running_->ticket,
         {fmt::format("The run took longer than {:g} seconds and was ended; choose smaller values, "
                      "or try again.",
                      std::chrono::duration<double>(options_.deadline).count()),
          ExitCode::unavailable, false});
  }
  if (stale(running_->ticket)) {
    running_->stop_by = now + options_.stop_grace;
    worker_->send(json{{"cancel", running_->ticket}}.dump());
  }
}

void ProcessLab::start_wanted() {
  if (running_) return;
  Order order;
  {
    const std::lock_guard lock(mutex_);
    if (!wanted_) return;
    order = std::move(*wanted_);
    wanted_.reset();
  }
  json line = lab::to_json(order.request);
  line["ticket"] = order.ticket;
  const std::string text = line.dump(-1, ' ', false, json::error_handler_t::replace);
  try {
    // A worker that died while idle shows itself here: then another one is started, once.
    if (!worker_ || !worker_->send(text)) {
      worker_ = std::make_unique<WorkerProcess>(options_.program);
      worker_->send(text);
    }
    running_ = Running{order.ticket, order.request.lesson, Clock::now() + options_.deadline, {}};
  } catch (const Error& error) {
    worker_.reset();
    std::string sentence = error.what();
    sentence.front() = static_cast<char>(std::toupper(sentence.front()));
    fail(order.ticket, {sentence + ".", error.code(), true});
  }
}

void ProcessLab::worker_ended() {
  const std::string how = worker_->end(options_.stop_grace);
  worker_.reset();
  const auto was = std::exchange(running_, std::nullopt);
  LabFailure failure;
  failure.code = ExitCode::unavailable;
  failure.worker_died = true;
  if (was) {
    failure.sentence = fmt::format("The worker process {} while it ran {}.", how, was->lesson);
    fail(was->ticket, std::move(failure));
    return;
  }
  failure.sentence = fmt::format("The worker process {} between two runs.", how);
  {
    const std::lock_guard lock(mutex_);
    if (busy_) return;  // the next run is on its way and starts one
    updates_.push_back({newest_, std::move(failure)});
  }
  if (options_.wake) options_.wake();
}

void ProcessLab::fail(Ticket ticket, LabFailure failure) {
  deliver({ticket, std::move(failure)});
}

void ProcessLab::deliver(LabUpdate update) {
  {
    const std::lock_guard lock(mutex_);
    if (update.ticket != newest_ || !busy_) return;
    if (!std::holds_alternative<LabProgress>(update.what)) busy_ = false;
    updates_.push_back(std::move(update));
  }
  if (options_.wake) options_.wake();
}

bool ProcessLab::stale(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  return ticket != newest_ || !busy_;
}

}  // namespace

std::unique_ptr<LabClient> make_process_lab(ProcessLabOptions options) {
  return std::make_unique<ProcessLab>(std::move(options));
}

}  // namespace tilestep::app
