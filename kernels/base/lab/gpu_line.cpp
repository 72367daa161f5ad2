#include "kernels/base/lab/gpu_line.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "kernels/base/simt/error.hpp"

namespace tilestep::lab {
namespace {

/// The polling interval for our turn: short compared with a timing, long compared with a system call.
constexpr std::chrono::milliseconds kLook{20};
/// Any user may queue; a file that another user made private is refused below.
constexpr mode_t kMode = 0666;

[[noreturn]] void refuse(const std::string& path, std::string_view why) {
  throw Error(fmt::format("the line for the GPU ({}) cannot be used: {}; remove that file, or name "
                          "another folder in TILESTEP_LINES",
                          path, why),
              ExitCode::unavailable);
}

/// In a folder like /tmp the system refuses O_CREAT on another user's file: first try without it.
int open_line(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  for (int tries = 0; tries < 100; ++tries) {
    int fd = ::open(path.c_str(), kFlags);
    if (fd >= 0 || errno != ENOENT) return fd;
    fd = ::open(path.c_str(), kFlags | O_CREAT | O_EXCL, kMode);
    if (fd >= 0) {
      ::fchmod(fd, kMode);  // whatever the umask is
      return fd;
    }
    if (errno != EEXIST) return fd;
  }
  return -1;
}

struct flock bytes(short type, long from, long count) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = from;
  range.l_len = count;  // 0: to the end
  return range;
}

/// Another process's lock on `count` bytes from `from` on, or one of type F_UNLCK.
struct flock held(int fd, long from, long count) {
  struct flock range = bytes(F_WRLCK, from, count);
  while (::fcntl(fd, F_OFD_GETLK, &range) != 0) {
    if (errno != EINTR) {
      throw Error(fmt::format("the line for the GPU cannot be read: {}", std::strerror(errno)),
                  ExitCode::unavailable);
    }
  }
  return range;
}

void set_lock(int fd, short type, long from, long count, bool waits) {
  struct flock range = bytes(type, from, count);
  while (::fcntl(fd, waits ? F_OFD_SETLKW : F_OFD_SETLK, &range) != 0) {
    if (errno != EINTR) {
      throw Error(
          fmt::format("no place in the line for the GPU can be taken: {}", std::strerror(errno)),
          ExitCode::unavailable);
    }
  }
}

}  // namespace

std::string line_file(std::string_view gpu) {
  const char* folder = std::getenv("TILESTEP_LINES");
  std::string name;
  for (const char c : gpu) {
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  }
  return fmt::format("{}/tilestep-{}.line", folder != nullptr && *folder != '\0' ? folder : "/tmp",
                     name);
}

std::string place_in_line(int before) {
  constexpr std::array kWords = {"first", "second",  "third",  "fourth", "fifth",
                                 "sixth", "seventh", "eighth", "ninth",  "tenth"};
  const auto at = static_cast<std::size_t>(before);
  if (at < kWords.size()) return fmt::format("{} in line", kWords[at]);
  return fmt::format("{} before it in line", before);
}

GpuLine::GpuLine(std::string_view gpu) {
  const std::string path = line_file(gpu);
  fd_ = open_line(path);
  if (fd_ < 0) refuse(path, std::strerror(errno));
  struct ::stat there {};
  if (::fstat(fd_, &there) != 0 || !S_ISREG(there.st_mode)) {
    ::close(fd_);
    refuse(path, "it is no file");
  }
}

GpuLine::~GpuLine() {
  ::close(fd_);  // and with it all locks
}

void GpuLine::take(const std::function<void(int before)>& waits) {
  if (place_ == 0) take_place();
  while (!first_) {
    const int others = before();
    first_ = others == 0;
    if (first_) break;
    waits(others);
    std::this_thread::sleep_for(kLook);
  }
}

void GpuLine::take_place() {
  set_lock(fd_, F_WRLCK, 0, 1, true);  // held only for a few system calls
  long last = 0;
  for (struct flock lock = held(fd_, 1, 0); lock.l_type != F_UNLCK; lock = held(fd_, last + 1, 0)) {
    last = lock.l_start;
  }
  place_ = last + 1;
  set_lock(fd_, F_WRLCK, place_, 1, false);
  set_lock(fd_, F_UNLCK, 0, 1, false);
}

int GpuLine::before() const {
  int count = 0;
  // The system names any one lock in a range, so the ones on both sides of it are counted too.
  const auto count_in = [&](const auto& self, long from, long end) -> void {
    if (from >= end) return;
    const struct flock lock = held(fd_, from, end - from);
    if (lock.l_type == F_UNLCK) return;
    ++count;
    self(self, from, lock.l_start);
    self(self, lock.l_start + 1, end);
  };
  count_in(count_in, 1, place_);
  return count;
}

}  // namespace tilestep::lab
