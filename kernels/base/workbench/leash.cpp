#include "kernels/base/workbench/leash.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "kernels/base/workbench/guarded.hpp"

namespace tilestep::workbench {
namespace {

using Clock = std::chrono::steady_clock;
/// How often it is asked whether the run was given up.
constexpr std::chrono::milliseconds kAsk{5};

/// What the two threads share: the work's progress, its clock and what came of it.
class Leash final : public lab::Progress {
 public:
  Leash(lab::Progress& progress, const LeashLimits& limits)
      : progress_(&progress), limits_(limits) {}

  // ---- the work's side --------------------------------------------------------------------------

  void report(double fraction, std::string_view note) override {
    const std::lock_guard lock(mutex_);
    if (progress_ == nullptr) return;
    if (note == kRunning || (since_ && limits_.anew)) since_ = Clock::now();
    progress_->report(fraction, note);
  }
  void wait(std::string_view note) override {
    const std::lock_guard lock(mutex_);
    if (progress_ == nullptr) return;
    if (since_) since_ = Clock::now();
    progress_->wait(note);
  }
  bool cancelled() const override {
    const std::lock_guard lock(mutex_);
    return told_ || progress_ == nullptr || progress_->cancelled();
  }
  void done(std::optional<lab::Report> report, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    report_ = std::move(report);
    error_ = std::move(error);
    done_ = true;
    changed_.notify_all();
  }

  // ---- the side that waits ----------------------------------------------------------------------

  lab::Report result() {
    std::unique_lock lock(mutex_);
    bool late = false;
    while (!changed_.wait_for(lock, kAsk, [this] { return done_; })) {
      late = since_ && Clock::now() - *since_ > limits_.deadline;
      if (late || progress_->cancelled()) break;
    }
    if (!done_) {
      told_ = true;
      changed_.wait_for(lock, limits_.grace, [this] { return done_; });
    }
    progress_ = nullptr;  // from here on it is not the work's any more
    if (late) throw Overdue(limits_.deadline);
    if (!done_) throw DeviceLost("the run was cancelled, and its kernel has not ended on the GPU");
    if (error_) std::rethrow_exception(error_);
    return std::move(*report_);
  }
  bool done() const {
    const std::lock_guard lock(mutex_);
    return done_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  lab::Progress* progress_;
  const LeashLimits limits_;
  std::optional<Clock::time_point> since_;  ///< nothing: it does not run yet
  bool told_ = false;                       ///< to end
  bool done_ = false;
  std::optional<lab::Report> report_;
  std::exception_ptr error_;
};

}  // namespace

Overdue::Overdue(std::chrono::milliseconds deadline)
    : Error(fmt::format("it had not ended after {:g} seconds",
                        std::chrono::duration<double>(deadline).count()),
            ExitCode::check_failed),
      deadline_(deadline) {}

lab::Report on_leash(std::function<lab::Report(lab::Progress& progress)> work,
                     lab::Progress& progress, const LeashLimits& limits) {
  const auto leash = std::make_shared<Leash>(progress, limits);
  std::thread worker;
  try {
    worker = std::thread([leash, work = std::move(work)] {
      std::optional<lab::Report> report;
      std::exception_ptr error;
      try {
        report = work(*leash);
      } catch (...) {
        error = std::current_exception();
      }
      leash->done(std::move(report), std::move(error));
    });
  } catch (const std::system_error& error) {
    throw Error(fmt::format("the thread that waits for the GPU cannot be started: {}; close other "
                            "programs, or raise the limit (`ulimit -u`)",
                            error.code().message()),
                ExitCode::unavailable);
  }
  const auto let_go = [&] { leash->done() ? worker.join() : worker.detach(); };
  try {
    lab::Report report = leash->result();
    let_go();
    return report;
  } catch (...) {
    let_go();
    throw;
  }
}

}  // namespace tilestep::workbench
