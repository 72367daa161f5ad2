#include "app/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "kernels/base/simt/error.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, std::string_view reason) {
  throw Error(fmt::format("the file '{}' cannot be written: {}", path.string(), reason),
              ExitCode::unavailable);
}

/// A file beside the one to be written. Removed again unless it was put in its place.
class Part {
 public:
  explicit Part(const fs::path& target) : target_(target) {
    // A part of the same name was left by a process that was killed.
    for (int n = 0; fd_ < 0; ++n) {
      path_ = target.parent_path() / fmt::format(".tilestep-{}-{}.part", ::getpid(), n);
      fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (fd_ < 0 && (errno != EEXIST || n == kMostNames)) refuse(target, std::strerror(errno));
    }
  }
  ~Part() {
    if (fd_ >= 0) ::close(fd_);
    if (!placed_) ::unlink(path_.c_str());
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(fd_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) refuse(target_, std::strerror(errno));
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  /// Some file systems say only at the close that there was no room.
  void put_in_place(mode_t mode) {
    if (mode != 0 && ::fchmod(fd_, mode) != 0) refuse(target_, std::strerror(errno));
    if (::close(std::exchange(fd_, -1)) != 0) refuse(target_, std::strerror(errno));
    if (::rename(path_.c_str(), target_.c_str()) != 0) refuse(target_, std::strerror(errno));
    placed_ = true;
  }

 private:
  static constexpr int kMostNames = 100;
  fs::path target_, path_;
  int fd_ = -1;
  bool placed_ = false;
};

/// The permissions of the file that is there, 0 if there is none. Throws Error where it may not be
/// replaced: renaming onto a device would take the device away.
mode_t mode_to_keep(const fs::path& path) {
  struct ::stat there {};
  if (::stat(path.c_str(), &there) != 0) {
    if (errno == ENOENT) return 0;
    refuse(path, std::strerror(errno));
  }
  if (S_ISDIR(there.st_mode)) refuse(path, "it is a folder");
  if (!S_ISREG(there.st_mode)) refuse(path, "it is a device or a pipe, not a file");
  if (::access(path.c_str(), W_OK) != 0) refuse(path, std::strerror(errno));
  return there.st_mode & 07777;
}

/// A link stays a link: what it leads to is written, also where that is not there yet.
fs::path link_target(const fs::path& path) {
  constexpr int kMostLinks = 40;  // as the kernel follows
  fs::path target = path;
  std::error_code failed;
  for (int n = 0; n < kMostLinks && fs::is_symlink(target, failed); ++n) {
    target = target.parent_path() / fs::read_symlink(target, failed);
    if (failed) refuse(path, failed.message());
  }
  return target;
}

/// What a file begins with, if it is of the kind that `path` names or `bytes` are; empty: any will do.
std::string_view beginning_of(const fs::path& path, std::string_view bytes) {
  constexpr std::pair<std::string_view, std::string_view> kBegins[] = {
      {".png", "\x89PNG\r\n\x1a\n"},
      {".apng", "\x89PNG\r\n\x1a\n"},
      {".svg", "<svg "},
      {".html", kPageBegins},
      {".gif", "GIF8"},
      {".webm", "\x1a\x45\xdf\xa3"}};
  constexpr std::size_t kEnough = 16, kBracket = 2;  // a text's first member or column
  const std::string ending = path.extension().string();
  for (const auto& [of, begins] : kBegins) {
    if (ending == of) return begins;
  }
  return bytes.substr(0, std::min(bytes.find('\n', kBracket), kEnough));
}

std::string first_bytes(const fs::path& path, std::size_t count) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes(count, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  return bytes;
}

[[noreturn]] void refuse_output(const fs::path& path, std::string_view why) {
  throw Error(fmt::format("'{}' is not written: {}", path.string(), why));
}

}  // namespace

void require_output(const fs::path& path, bool force, std::string_view bytes) {
  std::error_code failed;
  if (fs::equivalent(path, "/proc/self/exe", failed)) refuse_output(path, "it is tilestep itself");
  std::error_code none;
  if (fs::exists(path, none)) mode_to_keep(path);
  if (force) return;
  if (fs::is_symlink(path, failed)) {
    refuse_output(path, fmt::format("it is a link to '{}'; name that, or write there by --force",
                                    fs::read_symlink(path, failed).string()));
  }
  const std::string_view begins = beginning_of(path, bytes);
  const std::string is = first_bytes(path, begins.size());
  if (is.empty() || is == begins) return;
  refuse_output(path, "another kind of file is there; --force replaces it");
}

void write_output(const fs::path& path, std::string_view bytes, bool force) {
  require_output(path, force, bytes);
  write_file(path, bytes);
}

void write_file(const fs::path& path, std::string_view bytes) {
  if (path.has_parent_path()) make_folder(path.parent_path());
  const fs::path target = link_target(path);
  const mode_t mode = mode_to_keep(target);
  Part part(target);
  part.write(bytes);
  part.put_in_place(mode);
}

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code failed;
  if (fs::equivalent(a, b, failed)) return true;
  const auto place = [&failed](const fs::path& path) {
    // A link that leads to nothing yet is written through all the same.
    const fs::path whole = fs::weakly_canonical(fs::absolute(link_target(path), failed), failed);
    return failed ? path.lexically_normal() : whole;
  };
  return place(a) == place(b);
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  std::error_code unknown;
  if (!fs::is_directory(path, unknown)) {
    throw Error(fmt::format("the folder '{}' cannot be made: {}", path.string(),
                            error ? error.message() : "something else has this name"),
                ExitCode::unavailable);
  }
}

ScratchFolder::ScratchFolder() {
  std::error_code error;
  const fs::path all = fs::temp_directory_path(error);
  std::string name = ((error ? fs::path("/tmp") : all) / "tilestep-scratch-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw Error(fmt::format("no folder can be made in {}: {}", all.string(),
                            std::error_code(errno, std::generic_category()).message()),
                ExitCode::unavailable);
  }
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

}  // namespace tilestep::app
