// A run on a GPU that does not end is left to itself, and the one who waits for it goes on.
#include "kernels/base/workbench/leash.hpp"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "kernels/base/workbench/guarded.hpp"
#include "tests/catch.hpp"

namespace tilestep::workbench {
namespace {

using namespace std::chrono_literals;

/// What stands for a kernel that ends when it is let go, and heeds nothing before.
class Kernel {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return free_; });
    lock.unlock();
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    free_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool free_ = false;
};

class Told final : public lab::Progress {
 public:
  void report(double, std::string_view note) override {
    const std::lock_guard lock(mutex_);
    notes_ += std::string(note) + ";";
  }
  bool cancelled() const override { return given_up; }
  std::string notes() const {
    const std::lock_guard lock(mutex_);
    return notes_;
  }
  std::atomic<bool> given_up{false};

 private:
  mutable std::mutex mutex_;
  std::string notes_;
};

const LeashLimits kShort{.deadline = 150ms, .anew = false, .grace = 50ms};

lab::Report named(const std::string& name) {
  lab::Report report;
  report.lesson = name;
  return report;
}

}  // namespace

TEST_CASE("leash: what ends in time is answered, and its errors are its own", "[workbench]") {
  Told told;
  const lab::Report report = on_leash(
      [](lab::Progress& progress) {
        progress.report(0, kRunning);
        return named("a");
      },
      told, kShort);
  CHECK(report.lesson == "a");
  CHECK(told.notes() == std::string(kRunning) + ";");
  const auto fails = [](lab::Progress&) -> lab::Report { throw DeviceLost("lost"); };
  CHECK_THROWS_AS(on_leash(fails, told, kShort), DeviceLost);
}

TEST_CASE("leash: a kernel that does not end is left, and what it tells later is not heard",
          "[workbench]") {
  const auto kernel = std::make_shared<Kernel>();
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  {
    Told told;
    const auto start = std::chrono::steady_clock::now();
    try {
      on_leash(
          [kernel, ended](lab::Progress& progress) {
            progress.report(0, kRunning);
            kernel->wait();
            progress.report(1, "late");  // of a caller that has gone
            progress.wait("late");
            *ended = progress.cancelled();
            return named("late");
          },
          told, kShort);
      FAIL("it was waited for");
    } catch (const Overdue& overdue) {
      CHECK(std::string(overdue.what()) == "it had not ended after 0.15 seconds");
    }
    CHECK(std::chrono::steady_clock::now() - start >= 150ms);
    CHECK(told.notes() == std::string(kRunning) + ";");
  }
  kernel->let_go();
  for (int i = 0; i < 1000 && !*ended; ++i) std::this_thread::sleep_for(2ms);
  CHECK(*ended);
}

TEST_CASE("leash: neither compiling nor a turn of others is time of the run", "[workbench]") {
  Told told;
  const auto slow = [](lab::Progress& progress) {
    progress.report(0, kCompiling);
    std::this_thread::sleep_for(250ms);
    progress.report(0, kRunning);
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(60ms);
      progress.wait("second in line for the GPU");
    }
    return named("slow");
  };
  CHECK(on_leash(slow, told, kShort).lesson == "slow");
}

TEST_CASE("leash: a bench has its deadline for each thing that it tells", "[workbench]") {
  const auto busy = [](lab::Progress& progress) {
    progress.report(0, kRunning);
    for (int i = 0; i < 5 && !progress.cancelled(); ++i) {
      std::this_thread::sleep_for(60ms);
      progress.report(0, "timing");
    }
    return named("busy");
  };
  Told told;
  LeashLimits anew = kShort;
  anew.anew = true;
  CHECK(on_leash(busy, told, anew).lesson == "busy");
  CHECK_THROWS_AS(on_leash(busy, told, kShort), Overdue);
}

TEST_CASE("leash: a run that is given up ends at once, with or without its kernel", "[workbench]") {
  Told told;
  told.given_up = true;
  const auto heeds = [](lab::Progress& progress) -> lab::Report {
    for (;;) {
      std::this_thread::sleep_for(1ms);
      progress.check();
    }
  };
  CHECK_THROWS_AS(on_leash(heeds, told, kShort), Cancelled);
  const auto kernel = std::make_shared<Kernel>();
  const auto hangs = [kernel](lab::Progress&) {
    kernel->wait();
    return named("late");
  };
  CHECK_THROWS_AS(on_leash(hangs, told, kShort), DeviceLost);
  kernel->let_go();
}

}  // namespace tilestep::workbench
