#include "kernels/base/inspect/run.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "kernels/base/simt/emulator/fault_guard.hpp"
#include "kernels/base/simt/emulator/shared_races.hpp"
#include "kernels/base/simt/emulator/shared_variables.hpp"

namespace tilestep::inspect {
namespace {

/// The program of this process.
struct Running {
  const RunOptions* options = nullptr;
  const std::function<void(const lab::Report&)>* told = nullptr;
  std::unique_ptr<Session> session;
  std::unique_ptr<simt::FaultGuard> guard;
  int printed = -1;  ///< the file that takes what it prints
  std::atomic<bool> ends{false};
};
Running running;

/// A file that nobody else sees takes both streams.
int redirect_output() {
  char name[] = "/tmp/tilestep-printed-XXXXXX";
  const int file = ::mkstemp(name);
  if (file < 0) {
    throw Error(fmt::format("there is no room in /tmp for what the program prints: {}",
                            std::strerror(errno)),
                ExitCode::unavailable);
  }
  ::unlink(name);
  ::dup2(file, STDOUT_FILENO);
  ::dup2(file, STDERR_FILENO);
  return file;
}

std::string printed() {
  std::fflush(nullptr);
  std::string text(kMostPrinted, '\0');
  const ssize_t bytes = ::pread(running.printed, text.data(), text.size(), 0);
  text.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  return text;
}

[[noreturn]] void finish(int status) {
  if (running.ends.exchange(true)) ::pause();  // another thread is at it
  simt::emulated::watch_window.listener = nullptr;
  const std::string text = printed();
  running.session->conclude(status == 0);
  (*running.told)(report_of(*running.session, running.options->module, status, text));
  ::_exit(0);
}

/// Of the host: a kernel's are the guard's.
void on_signal(int number) {
  const char* what =
      number == SIGSEGV || number == SIGBUS
          ? "the host uses an address outside all allocations: a null or wild pointer"
      : number == SIGFPE ? "the host divides by zero"
                         : "the program ends by a signal";
  ::signal(number, SIG_DFL);
  if (running.ends) ::_exit(1);
  running.session->find({Kind::crash, 0, 0, simt::emulated::place_here().callers, {}, 0, what});
  finish(-1);
}

using Main = int (*)(int, char**, char**);

Main load(const RunOptions& options) {
  void* handle = ::dlopen(options.module.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    throw Error(
        fmt::format("the program cannot be loaded: {}", why == nullptr ? "unknown reason" : why),
        ExitCode::check_failed);
  }
  const auto entry = reinterpret_cast<Main>(::dlsym(handle, "main"));
  if (entry == nullptr)
    throw Error("the file has no main; to call a kernel by itself use --call", ExitCode::bad_input);
  simt::emulated::know_variables(options.module, reinterpret_cast<const void*>(entry));
  return entry;
}

}  // namespace

void end_program(int status) {
  finish(status);
}

void run_program(const RunOptions& options, const std::function<void(const lab::Report&)>& told) {
  running.options = &options;
  running.told = &told;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::signal(number, on_signal);
  running.guard = std::make_unique<simt::FaultGuard>(options.deadline);
  running.session = std::make_unique<Session>(options.session, finish);
  running.printed = redirect_output();
  std::thread([limit = options.deadline + std::chrono::seconds(1)] {
    std::this_thread::sleep_for(limit);
    running.session->find(
        {Kind::crash,
         0,
         0,
         {},
         {},
         0,
         fmt::format("the program still runs after {} seconds",
                     std::chrono::duration_cast<std::chrono::seconds>(limit).count())});
    finish(-1);
  }).detach();
  int status = 0;
  try {
    const Main entry = load(options);
    std::vector<std::string> words = options.arguments;
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    char* none[] = {nullptr};
    simt::emulated::watch_window.listener = running.session.get();
    status = entry(static_cast<int>(words.size()), pointers.data(), none);
  } catch (const std::exception& error) {
    running.session->find(
        {Kind::crash, 0, 0, {}, {}, 0, fmt::format("the program throws: {}", error.what())});
    status = -1;
  }
  finish(status);
}

}  // namespace tilestep::inspect
