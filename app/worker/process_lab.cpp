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
#include "kernels/base/lab/json.hpp"

namespace tilestep::app {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

/// What a request is called in a sentence.
std::string_view kind_of(lab::Request::Action action) {
  return action == lab::Request::Action::run ? "run" : "measurement";
}

std::string text_of(std::chrono::milliseconds time) {
  const double seconds = std::chrono::duration<double>(time).count();
  return seconds < 120 ? fmt::format("{:g} seconds", seconds)
                       : fmt::format("{:g} minutes", seconds / 60);
}

/// The caller's side takes and gives plain data under a mutex; everything that may take time (the
/// process, its pipes, megabytes of JSON) happens in one I/O thread.
class ProcessLab final : public LabClient {
 public:
  explicit ProcessLab(ProcessLabOptions options);
  ~ProcessLab() override;

  Ticket submit(const lab::Request& request) override;
  std::optional<LabUpdate> poll() override;
  void cancel(Ticket ticket) override;
  bool busy() const override;

 private:
  struct Order {
    Ticket ticket = 0;
    lab::Request request;
  };
  /// The order that the worker has.
  struct Active {
    Ticket ticket = 0;
    std::string lesson;
    lab::Request::Action action;
    bool given_up = false;  ///< its last update was given; it only has to stop
  };
  struct Times {
    Clock::time_point deadline;
    std::optional<Clock::time_point> stop_by;  ///< set once it was asked to stop
  };

  // Under the mutex.
  template <class Which>
  void give_up(Which which, LabGivenUp why);
  void push(LabUpdate update);
  void push_waiting(const Order& order);

  // The I/O thread.
  void run_io();
  void wait_for_something();
  bool quitting();
  bool given_up();
  void read_worker();
  void take_message(const std::string& line);
  void take_message(const lab::Place& message);
  void not_understood(std::string_view why);
  void look_at_times();
  bool deadline_passed(Clock::time_point now);
  void start_next();
  std::optional<Order> take_next();
  void worker_ended();
  /// The worker has no order any more; `last` is its last update, unless it had one before.
  void finish(std::optional<LabUpdate> last);
  void wake_io() const;
  void wake_caller() const;

  const ProcessLabOptions options_;
  int wake_fd_ = -1;

  mutable std::mutex mutex_;
  Ticket last_ticket_ = 0;
  bool quit_ = false;
  std::deque<Order> waiting_;     ///< at most one of each kind
  std::optional<Active> active_;  ///< set and reset by the I/O thread alone
  std::deque<LabUpdate> updates_;

  std::unique_ptr<WorkerProcess> worker_;  ///< I/O thread only, as are the next ones
  Times times_;                            ///< of the active order
  bool worker_spent_ = false;              ///< it ends by itself, or talks nonsense

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

// ---- the caller's side --------------------------------------------------------------------------

Ticket ProcessLab::submit(const lab::Request& request) {
  Ticket ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    ticket = ++last_ticket_;
    give_up([&](const auto&, lab::Request::Action action) { return action == request.action; },
            LabGivenUp::replaced);
    waiting_.push_back({ticket, request});
    push_waiting(waiting_.back());
  }
  wake_io();
  wake_caller();
  return ticket;
}

std::optional<LabUpdate> ProcessLab::poll() {
  const std::lock_guard lock(mutex_);
  if (updates_.empty()) return std::nullopt;
  LabUpdate update = std::move(updates_.front());
  updates_.pop_front();
  return update;
}

void ProcessLab::cancel(Ticket ticket) {
  {
    const std::lock_guard lock(mutex_);
    give_up([&](Ticket each, lab::Request::Action) { return each == ticket; },
            LabGivenUp::cancelled);
  }
  wake_io();
  wake_caller();
}

bool ProcessLab::busy() const {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty() || (active_ && !active_->given_up);
}

/// Gives up every order for which `which(ticket, action)` is true.
template <class Which>
void ProcessLab::give_up(Which which, LabGivenUp why) {
  std::erase_if(waiting_, [&](const Order& order) {
    if (!which(order.ticket, order.request.action)) return false;
    push({order.ticket, why});
    return true;
  });
  if (!active_ || active_->given_up || !which(active_->ticket, active_->action)) return;
  push({active_->ticket, why});
  active_->given_up = true;
}

void ProcessLab::push(LabUpdate update) {
  if (std::holds_alternative<LabProgress>(update.what)) {
    // Of progress only the newest counts: the queue stays short, however much a worker talks.
    const auto older = std::find_if(updates_.begin(), updates_.end(), [&](const LabUpdate& each) {
      return each.ticket == update.ticket && std::holds_alternative<LabProgress>(each.what);
    });
    if (older != updates_.end()) {
      *older = std::move(update);
      return;
    }
  }
  updates_.push_back(std::move(update));
}

/// Says what an order waits for, if there is something.
void ProcessLab::push_waiting(const Order& order) {
  if (!active_ || active_->given_up) return;
  push({order.ticket, LabProgress{0,
                                  fmt::format("waits for the {} of {} to end",
                                              kind_of(active_->action), active_->lesson),
                                  true}});
}

void ProcessLab::wake_caller() const {
  if (options_.wake) options_.wake();
}

void ProcessLab::wake_io() const {
  const std::uint64_t one = 1;
  // Only a full counter makes this fail, and then the thread is awake anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_fd_, &one, sizeof one);
}

// ---- the I/O thread -----------------------------------------------------------------------------

void ProcessLab::run_io() {
  // Writing to a worker that died must give an error here, not end the program.
  sigset_t pipe_signal;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);

  while (!quitting()) {
    look_at_times();
    start_next();
    wait_for_something();
    read_worker();
  }
  if (!worker_) return;
  if (active_) {
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

bool ProcessLab::given_up() {
  const std::lock_guard lock(mutex_);
  return active_->given_up;
}

void ProcessLab::wait_for_something() {
  int timeout_ms = -1;
  if (active_) {
    const auto next = times_.stop_by.value_or(times_.deadline);
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
  bool open = true;
  try {
    open = worker_->read([this](const std::string& line) { take_message(line); });
  } catch (const Error& error) {
    not_understood(error.what());
  }
  if (worker_spent_) {
    worker_.reset();
    worker_spent_ = false;
  } else if (!open) {
    worker_ended();
  }
}

void ProcessLab::take_message(const std::string& line) {
  if (!active_ || worker_spent_) return;
  try {
    const json message = json::parse(line);
    take_message(lab::Place(message, "message"));
  } catch (const std::exception& error) {
    not_understood(error.what());
  }
}

/// The worker is no good any more: it is ended, and fails what it was asked.
void ProcessLab::not_understood(std::string_view why) {
  worker_spent_ = true;
  if (!active_) return;
  finish(LabUpdate{
      active_->ticket,
      LabFailure{fmt::format("The worker sent a message that is not understood: {}.", why),
                 ExitCode::unavailable, true}});
}

void ProcessLab::take_message(const lab::Place& message) {
  const Ticket mine = active_->ticket;
  const lab::Place ticket = message.at("ticket");
  // Null: about a line that was no request.
  if (ticket.json().is_null() || ticket.whole<Ticket>(0) != mine) return;
  const std::string type = message.at("type").text();
  if (type == "progress") {
    LabProgress progress{message.at("fraction").real<double>(), message.at("note").text()};
    {
      const std::lock_guard lock(mutex_);
      if (!active_->given_up) push({mine, std::move(progress)});
    }
    wake_caller();
  } else if (type == "report") {
    std::optional<LabUpdate> last;  // a report that nobody waits for is not parsed
    if (!given_up()) last = LabUpdate{mine, lab::report_from_json(message.at("report").json())};
    finish(std::move(last));
  } else if (type == "error") {
    const auto ends = message.find("worker_ends");
    const int code = message.at("code").whole(static_cast<int>(ExitCode::check_failed),
                                              static_cast<int>(ExitCode::unavailable));
    LabFailure failure{message.at("message").text(), static_cast<ExitCode>(code),
                       ends && ends->flag()};
    if (const auto fix = message.find("fix")) {
      failure.fix = {fix->at("label").text(), lab::settings_from_json(fix->at("settings"))};
    }
    worker_spent_ = failure.worker_died;
    finish(LabUpdate{mine, std::move(failure)});
  } else {
    message.at("type").refuse("progress, report, error");
  }
}

void ProcessLab::look_at_times() {
  if (!active_) return;
  const auto now = Clock::now();
  if (times_.stop_by) {
    if (now < *times_.stop_by) return;
    // It was asked to stop and did not: a kernel that hangs. The next request gets a new worker.
    worker_.reset();
    finish(std::nullopt);
    return;
  }
  if (!deadline_passed(now) && !given_up()) return;
  times_.stop_by = now + options_.stop_grace;
  worker_->send(json{{"cancel", active_->ticket}}.dump());
}

/// Tells the caller, too.
bool ProcessLab::deadline_passed(Clock::time_point now) {
  if (now < times_.deadline) return false;
  {
    const std::lock_guard lock(mutex_);
    if (active_->given_up) return true;
    const bool run = active_->action == lab::Request::Action::run;
    push({active_->ticket,
          LabFailure{fmt::format("The {} took longer than {} and was ended; {}, or try again.",
                                 kind_of(active_->action),
                                 text_of(run ? options_.run_deadline : options_.bench_deadline),
                                 run ? "choose smaller values" : "end what else uses the GPU"),
                     ExitCode::unavailable, false}});
    active_->given_up = true;
  }
  wake_caller();
  return true;
}

/// Takes what is next out of the queue and makes it the active order.
std::optional<ProcessLab::Order> ProcessLab::take_next() {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) return std::nullopt;
  auto next = std::find_if(waiting_.begin(), waiting_.end(), [](const Order& order) {
    return order.request.action == lab::Request::Action::run;
  });
  if (next == waiting_.end()) next = waiting_.begin();
  Order order = std::move(*next);
  waiting_.erase(next);
  active_ = Active{order.ticket, order.request.lesson, order.request.action, false};
  for (const Order& each : waiting_) push_waiting(each);
  return order;
}

void ProcessLab::start_next() {
  if (active_) return;
  const std::optional<Order> order = take_next();
  if (!order) return;
  wake_caller();
  json line = lab::to_json(order->request);
  line["ticket"] = order->ticket;
  const std::string text = line.dump(-1, ' ', false, json::error_handler_t::replace);
  const bool run = order->request.action == lab::Request::Action::run;
  try {
    // A worker that died while idle shows itself here: then another one is started, once.
    if (!worker_ || !worker_->send(text)) {
      worker_ = std::make_unique<WorkerProcess>(options_.program, options_.longest_message);
      worker_->send(text);
    }
    times_ = {Clock::now() + (run ? options_.run_deadline : options_.bench_deadline), {}};
  } catch (const Error& error) {
    worker_.reset();
    std::string sentence = error.what();
    sentence.front() = static_cast<char>(std::toupper(sentence.front()));
    finish(LabUpdate{order->ticket, LabFailure{sentence + ".", error.code(), true}});
  }
}

void ProcessLab::worker_ended() {
  const std::string how = worker_->end(options_.stop_grace);
  worker_.reset();
  LabFailure failure{"", ExitCode::unavailable, true};
  if (active_) {
    failure.sentence = fmt::format(
        "The worker process {} while it {} {}.", how,
        active_->action == lab::Request::Action::run ? "ran" : "measured", active_->lesson);
    finish(LabUpdate{active_->ticket, std::move(failure)});
    return;
  }
  failure.sentence = fmt::format("The worker process {} between two runs.", how);
  {
    const std::lock_guard lock(mutex_);
    push({0, std::move(failure)});
  }
  wake_caller();
}

void ProcessLab::finish(std::optional<LabUpdate> last) {
  {
    const std::lock_guard lock(mutex_);
    if (last && !active_->given_up) push(std::move(*last));
    active_.reset();
  }
  wake_caller();
}

}  // namespace

std::unique_ptr<LabClient> make_process_lab(ProcessLabOptions options) {
  return std::make_unique<ProcessLab>(std::move(options));
}

}  // namespace tilestep::app
