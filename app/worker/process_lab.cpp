#include "app/worker/process_lab.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/workbench/guarded.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

/// What our own worker is called in lists of processes, also where the program is /proc/self/exe.
constexpr const char* kName = "tilestep";
constexpr const char* kTriesAgain = "The next run tries again.";
/// Until it is looked whether there is memory again.
constexpr std::chrono::milliseconds kMemoryPause{10};

std::string text_of(std::chrono::milliseconds time) {
  const double seconds = std::chrono::duration<double>(time).count();
  return seconds < 120 ? fmt::format("{:g} seconds", seconds)
                       : fmt::format("{:g} minutes", seconds / 60);
}

/// The texts of a report go to terminals, too. Its nesting was limited before it was parsed.
void make_printable(nlohmann::json& value) {
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    text = lab::printable(text);
  } else if (value.is_structured()) {
    for (nlohmann::json& each : value) make_printable(each);
  }
}

}  // namespace

ProcessLab::ProcessLab(ProcessLabOptions options)
    : options_(std::move(options)), wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_fd_ < 0) {
    throw Error(fmt::format("the worker's event cannot be made: {}", std::strerror(errno)),
                ExitCode::unavailable);
  }
  try {
    io_ = std::thread([this] { run_io(); });
  } catch (const std::system_error& error) {
    ::close(wake_fd_);
    throw Error(fmt::format("no thread that talks to the worker can be started: {}",
                            error.code().message()),
                ExitCode::unavailable);
  }
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

// ---- the I/O thread -----------------------------------------------------------------------------

void ProcessLab::run_io() {
  // Writing to a worker that died must give an error here, not end the program.
  sigset_t pipe_signal;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);

  bool short_of_memory = false;
  while (!quitting()) {
    try {
      if (std::exchange(short_of_memory, false)) give_up_for_memory();
      look_at_times();
      start_next();
      wait_for_something();
      read_worker();
    } catch (const std::bad_alloc&) {
      short_of_memory = true;
      std::this_thread::sleep_for(kMemoryPause);
    }
  }
  if (!worker_) return;
  if (active_) {
    worker_->kill();
  } else {
    worker_->end(options_.stop_grace);
  }
  worker_.reset();
}

/// Where it ended, nobody knows what the worker and its order have come to.
void ProcessLab::give_up_for_memory() {
  forget_worker();
  if (active_) {
    fail(fmt::format("There is not enough memory to ask the worker for the {}.",
                     words_of(active_->kind)),
         kTriesAgain);
  }
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
  if (active_ || greeting_) {
    const auto next = greeting_ ? greeting_->deadline : times_.stop_by.value_or(times_.deadline);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
    timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
  }
  pollfd watched[] = {{wake_fd_, POLLIN, 0},
                      {worker_ ? worker_->messages_fd() : -1, POLLIN, 0},
                      {worker_ ? worker_->errors_fd() : -1, POLLIN, 0},
                      {worker_ ? worker_->requests_fd() : -1, POLLOUT, 0}};
  ::poll(watched, std::size(watched), timeout_ms);
  if (watched[2].revents != 0) worker_->read_errors();
  // A worker that does not take the rest is about to end, which is seen where it is read from.
  if (watched[3].revents != 0) worker_->send_rest();
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
    forget_worker();
  } else if (!open) {
    worker_ended();
  }
}

void ProcessLab::take_message(const std::string& line) {
  if (worker_spent_) return;
  if (greeting_) return take_greeting(line);
  if (!active_) return;
  try {
    std::visit([this](auto&& message) { take(std::move(message)); }, protocol::message_from(line));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    not_understood(error.what());
  }
}

/// The worker is no good any more: it is ended, and fails what it was asked.
void ProcessLab::not_understood(std::string_view why) {
  worker_spent_ = true;
  if (!active_) return;
  fail(fmt::format("The worker sent a message that is not understood: {}.", why),
       "It was ended; the next run starts another.");
}

/// The end of the active order, for which no worker is left.
void ProcessLab::fail(std::string sentence, std::string next) {
  finish(LabUpdate{active_->ticket, LabFailure{std::move(sentence), ExitCode::unavailable, true,
                                               std::nullopt, std::move(next)}});
}

/// The first lines of a worker elsewhere.
void ProcessLab::take_greeting(const std::string& line) {
  try {
    if (!greeting_->take(line)) return;
    const std::string request = std::move(greeting_->request);
    greeting_.reset();
    if (!active_) return;
    begin_times();
    if (worker_->send(request)) return;
    throw Error(fmt::format("The lab {} does not accept the run", options_.address.text));
  } catch (const Error& error) {
    worker_spent_ = true;
    if (active_) fail(fmt::format("{}.", error.what()), kTriesAgain);
  }
}

void ProcessLab::take(protocol::Progressed message) {
  if (message.ticket != active_->ticket) return;
  // Others have the GPU, or a compiler is at work: that is no time of this run.
  const bool compiled =
      std::exchange(active_->compiles, message.progress.note == workbench::kCompiling);
  // On a GPU it has failed, and is run again for its line.
  const bool sanitizes = message.progress.note == workbench::kSanitizing;
  const bool again = sanitizes || message.progress.note == workbench::kEmulating;
  if (again) active_->sanitizes = sanitizes;
  if (message.progress.waiting || active_->compiles || compiled || again) {
    times_.deadline = std::min(Clock::now() + deadline_of(*active_), times_.last);
  }
  {
    const std::lock_guard lock(mutex_);
    if (!active_->given_up) push({message.ticket, std::move(message.progress)});
  }
  wake_caller();
}

void ProcessLab::take(protocol::Answered message) {
  if (message.ticket != active_->ticket) return;
  worker_spent_ = message.worker_ends;
  std::optional<LabUpdate> last;  // a report that nobody waits for is not parsed
  if (!given_up()) {
    if (options_.address.elsewhere()) make_printable(*message.report);
    lab::Report report = lab::report_from_json(message.report);
    check_answer(report);
    last = LabUpdate{message.ticket, std::move(report), std::move(message.evidence)};
  }
  finish(std::move(last));
}

void ProcessLab::take(protocol::AssemblyAnswered message) {
  if (message.ticket != active_->ticket) return;
  std::optional<LabUpdate> last;
  if (!given_up()) {
    if (options_.address.elsewhere()) make_printable(*message.assembly);
    last = LabUpdate{message.ticket, std::make_shared<const workbench::Assembly>(
                                         workbench::assembly_from_json(message.assembly))};
  }
  finish(std::move(last));
}

/// A kernel that has taken a worker over can say what it likes, but not about something else. Throws Error.
void ProcessLab::check_answer(const lab::Report& report) const {
  if (report.lesson != active_->lesson) {
    throw Error(fmt::format("its report is of the lesson '{}', not '{}'",
                            lab::shown_value(report.lesson), active_->lesson));
  }
  if (active_->kind == Kind::bench) return;
  const lab::Knobs& knobs = lesson(active_->lesson).knobs();
  if (active_->kind == Kind::run &&
      knobs.completed(report.params) != knobs.completed(active_->params)) {
    throw Error("its report has other settings than requested");
  }
  if ((report.kernel ? report.kernel->hash : std::string()) != active_->kernel_hash) {
    throw Error("its report is of a kernel it was not given");
  }
}

void ProcessLab::take(protocol::Failed message) {
  if (message.ticket != active_->ticket) return;
  worker_spent_ = message.failure.worker_died;
  if (worker_spent_) message.failure.next = "The worker has ended; the next run starts another.";
  finish(LabUpdate{message.ticket, std::move(message.failure)});
}

void ProcessLab::begin_times() {
  const auto now = Clock::now();
  times_ = {now + deadline_of(*active_), now + options_.whole_deadline, {}};
}

void ProcessLab::look_at_times() {
  const auto now = Clock::now();
  if (greeting_ && active_ && given_up()) finish(std::nullopt);  // it was not asked anything yet
  if (greeting_ && now >= greeting_->deadline) {
    const std::string sentence = greeting_->why_none(
        fmt::format("did not start a worker within {}", text_of(greeting_deadline())),
        worker_->last_error(), -1);
    forget_worker();
    if (active_) fail(sentence, kTriesAgain);
  }
  if (!active_ || greeting_) return;
  if (times_.stop_by) {
    if (now < *times_.stop_by) return;
    // It was asked to stop and did not: a kernel that hangs. The next request gets a new worker.
    forget_worker();
    finish(std::nullopt);
    return;
  }
  if (!deadline_passed(now) && !given_up()) return;
  times_.stop_by = now + options_.stop_grace;
  worker_->send(protocol::line_of(protocol::Cancel{active_->ticket}));
}

/// Tells the caller, too.
bool ProcessLab::deadline_passed(Clock::time_point now) {
  if (now < times_.deadline) return false;
  {
    const std::lock_guard lock(mutex_);
    if (active_->given_up) return true;
    const char* advice = active_->kind == Kind::assembly ? "close other programs here, or try again"
                         : active_->edited && !active_->compiles
                             ? "an endless loop of the edited kernel is the likely reason"
                         : active_->kind == Kind::run
                             ? "choose smaller values, or try again"
                             : "close other programs that use the GPU, or try again";
    push({active_->ticket,
          LabFailure{fmt::format("The {} took longer than {} and was ended; {}.",
                                 words_of(active_->kind), text_of(deadline_of(*active_)), advice),
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
  auto next = std::find_if(waiting_.begin(), waiting_.end(),
                           [](const Order& order) { return order.kind() == Kind::run; });
  if (next == waiting_.end()) next = waiting_.begin();
  active_ = Active{next->ticket, next->lesson(), next->kind()};
  Order order = std::move(*next);
  waiting_.erase(next);
  for (const Order& each : waiting_) push_waiting(each);
  return order;
}

/// Nothing would wake the thread for an order behind one for which no worker can be started.
void ProcessLab::start_next() {
  while (!active_) {
    const std::optional<Order> order = take_next();
    if (!order) return;
    start(*order);
  }
}

void ProcessLab::start(const Order& order) {
  wake_caller();
  // Not before the order is active: where there is no memory for it, that is told of this order.
  if (const auto* asked = std::get_if<lab::Request>(&order.request)) {
    active_->params = asked->params;
    active_->edited = asked->kernel.has_value();
    if (asked->kernel) active_->kernel_hash = lab::hash_of(asked->kernel->text);
  }
  // JSON would stand something in for what is no UTF-8, and another kernel would run than was written.
  const std::string why = lab::why_no_source(order.source());
  if (!why.empty()) {
    return finish(LabUpdate{
        order.ticket, LabFailure{fmt::format("The kernel source {}.", why), ExitCode::bad_input}});
  }
  std::string text = order.line();
  if (greeting_) {
    greeting_->request = std::move(text);
    return say_that_it_waits();
  }
  begin_times();
  // A worker that died while idle shows itself here: then another one is started, once.
  if (!worker_ || !worker_->send(text)) start_worker(std::move(text));
}

void ProcessLab::start_worker(std::string request) {
  WorkerCommand command{options_.program, {kName, "worker"}};
  if (options_.address.elsewhere()) {
    command = {options_.address.arguments.front(), options_.address.arguments, true};
  }
  forget_worker();
  try {
    worker_ = std::make_unique<WorkerProcess>(command, options_.longest_message);
  } catch (const Error& error) {
    fail(options_.address.elsewhere()
             ? fmt::format("The lab {} cannot be reached: {}.", options_.address.text, error.what())
             : fmt::format("The worker process {}.", error.what()),
         kTriesAgain);
    return;
  }
  if (!options_.address.elsewhere()) {
    worker_->send(request);
    return;
  }
  greeting_.emplace(options_.address, Clock::now() + greeting_deadline(), std::move(request));
  worker_->send(protocol::line_of(protocol::Request(protocol::own_hello())));
  say_that_it_waits();
}

void ProcessLab::worker_ended() {
  std::string how = worker_->end(options_.stop_grace);
  if (greeting_) {
    const std::string sentence =
        greeting_->why_none(how, worker_->last_error(), worker_->exit_code());
    forget_worker();
    if (active_) fail(sentence, kTriesAgain);
    return;
  }
  std::string who = "worker process";
  if (options_.address.elsewhere()) {
    who = fmt::format("worker of {}", options_.address.text);
    if (const std::string said = worker_->last_error(); !said.empty()) how += ": " + said;
  }
  forget_worker();
  constexpr const char* kNext = "The next run starts another.";
  if (active_) {
    const char* why =
        active_->edited ? " with an edited kernel, which may have written to memory it does not own"
                        : "";
    fail(fmt::format("The {} {} while it {} {}{}.", who, how, doing_of(active_->kind),
                     active_->lesson, why),
         kNext);
    return;
  }
  LabFailure failure{fmt::format("The {} {} between two runs.", who, how), ExitCode::unavailable,
                     true};
  failure.next = kNext;
  {
    const std::lock_guard lock(mutex_);
    push({0, std::move(failure)});
  }
  wake_caller();
}

/// Says that an order waits for its worker.
void ProcessLab::say_that_it_waits() {
  {
    const std::lock_guard lock(mutex_);
    if (active_->given_up) return;
    push({active_->ticket,
          LabProgress{0, fmt::format("waits for {} to answer", options_.address.text), true}});
  }
  wake_caller();
}

std::chrono::milliseconds ProcessLab::greeting_deadline() const {
  return options_.address.kind == LabAddress::Kind::ssh ? options_.ssh_deadline
                                                        : options_.command_deadline;
}

std::chrono::milliseconds ProcessLab::deadline_of(const Active& order) const {
  if (order.kind == Kind::bench) return options_.bench_deadline;
  if (order.kind == Kind::assembly) return options_.compile_deadline;
  if (!order.edited) return options_.run_deadline;
  // A compiler has a limit of its own.
  if (order.compiles) return options_.compile_deadline;
  if (order.kind == Kind::trials) return options_.run_deadline;
  return order.sanitizes ? options_.sanitizer_deadline : options_.edited_deadline;
}

void ProcessLab::forget_worker() {
  worker_.reset();
  greeting_.reset();
  worker_spent_ = false;
}

void ProcessLab::finish(std::optional<LabUpdate> last) {
  {
    const std::lock_guard lock(mutex_);
    if (last && !active_->given_up) push(std::move(*last));
    active_.reset();
  }
  wake_caller();
}

std::unique_ptr<LabClient> make_process_lab(ProcessLabOptions options) {
  return std::make_unique<ProcessLab>(std::move(options));
}

}  // namespace tilestep::app
