#include "app/window/end_signals.hpp"

#include <pthread.h>
#include <unistd.h>

#include <system_error>
#include <utility>

namespace tilestep::app {
namespace {

/// Those that end this program: one that was started with a hangup ignored (nohup) goes on.
sigset_t end_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGHUP}) {
    struct ::sigaction now {};
    ::sigaction(number, nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  return set;
}

}  // namespace

EndSignals::EndSignals(std::function<void()> told) {
  const sigset_t set = end_signals();
  if (sigismember(&set, SIGTERM) == 0 && sigismember(&set, SIGHUP) == 0) return;
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  try {
    thread_ = std::thread([this, set, told = std::move(told)] { wait(set, told); });
  } catch (const std::system_error&) {  // they end the program as ever
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
}

EndSignals::~EndSignals() {
  if (!thread_.joinable()) return;
  quits_ = true;
  const sigset_t set = end_signals();
  ::pthread_kill(thread_.native_handle(), sigismember(&set, SIGTERM) == 1 ? SIGTERM : SIGHUP);
  thread_.join();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void EndSignals::wait(const sigset_t& set, const std::function<void()>& told) {
  int number = 0;
  while (::sigwait(&set, &number) != 0) {
  }
  if (quits_) return;
  got_ = number;
  told();
  // The next one ends the program, but for that by which the thread itself is ended.
  while (!quits_) {
    while (::sigwait(&set, &number) != 0) {
    }
    if (!quits_) ::_exit(128 + number);
  }
}

}  // namespace tilestep::app
