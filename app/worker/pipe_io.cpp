#include "app/worker/pipe_io.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace tilestep::app {

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool LineBuffer::read_from(int fd) {
  std::array<char, 65536> piece;
  const ssize_t count = ::read(fd, piece.data(), piece.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (count <= 0) {
    ended_ = true;
    return false;
  }
  text_.append(piece.data(), static_cast<std::size_t>(count));
  return true;
}

std::optional<std::string> LineBuffer::next() {
  const std::size_t newline = text_.find('\n', searched_);
  if (newline == std::string::npos) {
    searched_ = text_.size();
    if (!ended_ || text_.empty()) return std::nullopt;
    searched_ = 0;
    return std::exchange(text_, {});
  }
  std::string line = text_.substr(0, newline);
  text_.erase(0, newline + 1);
  searched_ = 0;
  return line;
}

}  // namespace tilestep::app
