#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

#include "app/worker/greeting.hpp"
#include "app/worker/lab_client.hpp"
#include "app/worker/protocol.hpp"
#include "app/worker/worker_process.hpp"

/// The inside of make_process_lab: process_lab_orders.cpp has the caller's side, process_lab.cpp the I/O thread's.
namespace tilestep::app {

/// The kind of a request to a lab.
enum class Kind { run, bench, assembly, trials };
/// The name of a request in a sentence.
inline std::string_view words_of(Kind kind) {
  constexpr std::string_view kWords[] = {"run", "measurement", "compilation", "trial"};
  return kWords[static_cast<std::size_t>(kind)];
}
inline std::string_view doing_of(Kind kind) {
  constexpr std::string_view kWords[] = {"ran", "measured", "compiled", "tried the kernel of"};
  return kWords[static_cast<std::size_t>(kind)];
}

/// The caller's side takes and gives plain data under a mutex; everything that may take time (the
/// process, its pipes, megabytes of JSON) happens in one I/O thread.
class ProcessLab final : public LabClient {
 public:
  explicit ProcessLab(ProcessLabOptions options);
  ~ProcessLab() override;

  Ticket submit(const lab::Request& request) override;
  Ticket submit_assembly(std::size_t, const workbench::AssemblyRequest& request) override;
  Ticket submit_evidence(const lab::Request& request, std::string evidence) override;
  std::optional<LabUpdate> poll() override;
  void cancel(Ticket ticket) override;
  bool busy() const override;

 private:
  using Clock = std::chrono::steady_clock;

  struct Order {
    Ticket ticket = 0;
    std::variant<lab::Request, workbench::AssemblyRequest> request;
    std::optional<std::string> evidence = std::nullopt;  ///< as protocol::Work has it

    Kind kind() const;
    const std::string& lesson() const;
    std::string line() const;
    std::string_view source() const;  ///< of a user's kernel; empty: there is none
  };
  /// The order that the worker has.
  struct Active {
    Ticket ticket = 0;
    std::string lesson;
    Kind kind = Kind::run;
    lab::Settings params = {};
    std::string kernel_hash = {};  ///< of the source that was sent; empty: none
    bool edited = false;           ///< it has a kernel that the user wrote
    bool compiles = false;         ///< that kernel, just now
    bool sanitizes = false;        ///< it runs under compute-sanitizer, just now
    bool given_up = false;         ///< its last update was delivered; it only needs to stop
  };
  struct Times {
    Clock::time_point deadline;
    Clock::time_point last;                    ///< beyond which no deadline moves
    std::optional<Clock::time_point> stop_by;  ///< set once it was asked to stop
  };

  Ticket submit(Order order);

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
  void give_up_for_memory();
  void read_worker();
  void take_message(const std::string& line);
  void take(protocol::Progressed message);
  void take(protocol::Answered message);
  void check_answer(const lab::Report& report) const;
  void take(protocol::AssemblyAnswered message);
  void take(protocol::Failed message);
  void take(const protocol::NotTaken&) {}
  void take(const protocol::Hello&) {}
  void take_greeting(const std::string& line);
  void say_that_it_waits();
  void start_worker(std::string request);
  void forget_worker();
  std::chrono::milliseconds greeting_deadline() const;
  std::chrono::milliseconds deadline_of(const Active& order) const;
  void not_understood(std::string_view why);
  void fail(std::string sentence, std::string next);
  void look_at_times();
  bool deadline_passed(Clock::time_point now);
  void begin_times();
  void start_next();
  void start(const Order& order);
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
  std::optional<Greeting> greeting_;       ///< while a worker elsewhere has not said what it is

  std::thread io_;
};

}  // namespace tilestep::app
