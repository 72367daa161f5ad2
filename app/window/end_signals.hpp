#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <thread>

namespace tilestep::app {

/// Waits for SIGTERM and SIGHUP in place of the program's end: `told` is called once, on a thread of this object's own, and
/// the loop that it wakes has the time to save what is kept. A second one ends the program as ever. To be made before any
/// other thread, since those inherit what is blocked.
class EndSignals {
 public:
  explicit EndSignals(std::function<void()> told);
  ~EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  /// The signal that came; 0: none yet.
  int got() const { return got_; }

 private:
  void wait(const sigset_t& set, const std::function<void()>& told);

  sigset_t before_{};
  std::atomic<bool> quits_{false};
  std::atomic<int> got_{0};
  std::thread thread_;
};

}  // namespace tilestep::app
