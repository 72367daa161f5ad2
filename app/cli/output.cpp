#include "app/cli/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>

#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/simt/backends.hpp"

namespace tilestep::app {

namespace {

/// Why standard output did not take something; 0 while it takes everything.
int output_error = 0;

void note_output(bool written) {
  if (!written && output_error == 0) output_error = errno != 0 ? errno : EIO;
}

/// Standard error is the last resort: where it is gone too, nobody is left to be told.
void print_error(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

/// Without any of what may be out of memory.
void write_raw(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

/// The last resort, where an exception meets nobody who could take it (a thread's end, a clean-up): what is
/// said needs no memory. Our own mistakes end as they always did, with a core for whoever looks for them.
[[noreturn]] void end_for_want() noexcept {
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
    write_raw(
        "tilestep: there is not enough memory left to go on; close other programs, or choose "
        "smaller values\n");
    ::_exit(static_cast<int>(ExitCode::unavailable));
  } catch (...) {
  }
  std::abort();
}

/// Before anything else of the program: what is made at its start may want memory, too.
[[gnu::constructor(101)]] void prepare_the_end() {
  std::set_terminate(end_for_want);
}

}  // namespace

void prepare_output() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // Lowest numbers are given out first. Read-only: what is written there fails, as it should.
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", O_RDONLY);
  }
}

void print(std::string_view text) {
  errno = 0;
  note_output(std::fwrite(text.data(), 1, text.size(), stdout) == text.size());
}

void print_line(std::string_view text) {
  print(text);
  print("\n");
}

void remark(std::string_view sentence) {
  print_error(fmt::format("tilestep: {}\n", lab::shown(sentence)));
}

void remark_refused_cuda(std::string_view backend) {
  if (backend != "auto") return;
  const std::string why = simt::why_cuda_refused();
  if (!why.empty()) remark(why + "; kernels run under CPU emulation instead");
}

void remark_refused_turn(const lab::Report& report) {
  if (!report.turn || report.turn->refused.empty()) return;
  remark(report.turn->refused + "; other programs may have used the GPU during these timings");
}

std::string json_text(const nlohmann::json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

void flush_output() {
  errno = 0;
  note_output(std::fflush(stdout) == 0);
  if (output_error == 0) return;
  if (output_error == EPIPE) {  // whoever reads has enough, as `head` has: no failure of ours
    ::signal(SIGPIPE, SIG_DFL);
    ::raise(SIGPIPE);
  }
  throw Error(fmt::format("the result cannot be written to standard output: {}",
                          std::strerror(output_error)),
              ExitCode::unavailable);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

std::string slug(std::string_view name) {
  std::string slug;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      slug += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug.empty() ? "gpu" : slug;
}

TerminalProgress::TerminalProgress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

TerminalProgress::~TerminalProgress() {
  if (shown_) print_error("\r\x1b[K");
}

void TerminalProgress::report(double fraction, std::string_view note) {
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || (shown_ && now - shown_at_ < std::chrono::milliseconds(100))) return;
  shown_ = true;
  shown_at_ = now;
  print_error(fmt::format("\r\x1b[K{:3.0f} %  {}", fraction * 100, note));
}

}  // namespace tilestep::app
