#include "app/worker/pipe_io.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "kernels/base/simt/error.hpp"

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
  append({piece.data(), static_cast<std::size_t>(count)});
  return true;
}

void LineBuffer::append(std::string_view piece) {
  if (skipping_) {
    const std::size_t newline = piece.find('\n');
    if (newline == std::string_view::npos) return;
    piece.remove_prefix(newline + 1);
    skipping_ = false;
  }
  text_.append(piece);
  const std::size_t newline = piece.rfind('\n');
  unended_ =
      newline == std::string_view::npos ? unended_ + piece.size() : piece.size() - newline - 1;
  if (unended_ <= longest_) return;
  text_.resize(text_.size() - std::exchange(unended_, 0));
  text_.shrink_to_fit();
  searched_ = 0;
  skipping_ = true;
  throw Error(fmt::format("a line is longer than {} bytes, the most that is allowed", longest_));
}

std::optional<std::string> LineBuffer::next() {
  const std::size_t newline = text_.find('\n', searched_);
  if (newline == std::string::npos) {
    searched_ = text_.size();
    if (!ended_ || text_.empty()) return std::nullopt;
    searched_ = unended_ = 0;
    return std::exchange(text_, {});
  }
  std::string line = text_.substr(0, newline);
  text_.erase(0, newline + 1);
  searched_ = 0;
  return line;
}

}  // namespace tilestep::app
