#include "app/keep/place.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sstream>

#include "kernels/base/lab/edit.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;

/// An environment variable that names a folder from the root, as the XDG standard asks.
std::optional<fs::path> folder_in(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || value[0] != '/') return std::nullopt;
  return fs::path(value);
}

/// XDG_DOCUMENTS_DIR="$HOME/Documents" of user-dirs.dirs.
std::optional<fs::path> documents_in(const std::string& user_dirs, const fs::path& home) {
  constexpr std::string_view kBefore = "XDG_DOCUMENTS_DIR=\"";
  std::istringstream lines(user_dirs);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kBefore)) continue;
    std::string value = line.substr(kBefore.size());
    value = value.substr(0, value.find('"'));
    if (value.starts_with("$HOME/")) return home / value.substr(6);
    if (value.starts_with("/")) return fs::path(value);
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const fs::path& path, std::string_view reason) {
  throw Error(fmt::format("the file '{}' cannot be read: {}", path.string(), reason),
              ExitCode::unavailable);
}

/// An open file, closed at the end.
class Reading {
 public:
  explicit Reading(const fs::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {  // a pipe would wait
    if (fd_ < 0) refuse(path, std::strerror(errno));
  }
  ~Reading() { ::close(fd_); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

std::optional<fs::path> config_folder() {
  if (const auto named = folder_in("XDG_CONFIG_HOME")) return *named / "tilestep";
  if (const auto home = folder_in("HOME")) return *home / ".config" / "tilestep";
  return std::nullopt;
}

std::optional<fs::path> state_folder() {
  if (const auto named = folder_in("XDG_STATE_HOME")) return *named / "tilestep";
  if (const auto home = folder_in("HOME")) return *home / ".local" / "state" / "tilestep";
  return std::nullopt;
}

fs::path documents_folder() {
  std::error_code failed;
  const auto there = [&failed](const fs::path& path) { return fs::is_directory(path, failed); };
  if (const auto home = folder_in("HOME")) {
    const auto config = folder_in("XDG_CONFIG_HOME");
    const fs::path list = config.value_or(*home / ".config") / "user-dirs.dirs";
    try {
      if (const auto named = documents_in(read_file(list, 1 << 16), *home)) {
        if (there(*named) && *named != *home) return *named;  // "$HOME/" means: there is none
      }
    } catch (const Error&) {  // most machines without a desktop have no such list
    }
    if (there(*home / "Documents")) return *home / "Documents";
  }
  const fs::path here = fs::current_path(failed);
  return failed ? fs::path(".") : here;
}

fs::path free_name(const fs::path& folder, std::string_view stem, std::string_view ending) {
  std::error_code failed;
  for (int n = 1;; ++n) {
    const fs::path path = folder / fmt::format("{}-{}-{}{}", stem, day_of_today(), n, ending);
    if (!fs::exists(fs::symlink_status(path, failed))) return path;
  }
}

fs::path aside_name(const fs::path& file) {
  constexpr int kMost = 3;
  std::error_code failed;
  fs::path oldest;
  for (int n = 1; n <= kMost; ++n) {
    const fs::path name = file.string() + fmt::format(".damaged-{}", n);
    if (!fs::exists(fs::symlink_status(name, failed))) return name;
    const auto when = fs::last_write_time(name, failed);
    if (oldest.empty() || when < fs::last_write_time(oldest, failed)) oldest = name;
  }
  return oldest;
}

std::string day_of_today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

std::string read_file(const fs::path& path, std::size_t most) {
  const Reading file(path);
  struct ::stat about {};
  if (::fstat(file.fd(), &about) != 0) refuse(path, std::strerror(errno));
  if (S_ISDIR(about.st_mode)) refuse(path, "it is a folder");
  if (!S_ISREG(about.st_mode)) refuse(path, "it is a device or a pipe, not a file");
  std::string bytes;
  for (;;) {
    char part[1 << 16];
    const ssize_t count = ::read(file.fd(), part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(path, std::strerror(errno));
    if (count == 0) return bytes;
    bytes.append(part, static_cast<std::size_t>(count));
    if (bytes.size() > most) {
      throw Error(
          fmt::format("the file '{}' is larger than the {} bytes allowed", path.string(), most));
    }
  }
}

std::string read_source(const fs::path& path) {
  std::string text = read_file(path, lab::kMostKernelBytes);
  if (const std::string why = lab::why_no_source(text); !why.empty()) {
    throw Error(fmt::format("the file '{}' {}", path.string(), why));
  }
  return text;
}

}  // namespace tilestep::app
