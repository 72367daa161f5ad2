#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tilestep::app {

/// Writes all of `text` to `fd`, also where the system takes it in pieces. Returns false if the
/// other end is gone or, for a non-blocking `fd`, does not take it.
bool write_all(int fd, std::string_view text);

/// Puts lines together from the pieces that a pipe delivers.
class LineBuffer {
 public:
  /// Reads once from `fd`. Returns false at the end of input (or on an error, which ends it too).
  bool read_from(int fd);
  /// The next whole line without its newline; after the end of input also the unfinished last one.
  std::optional<std::string> next();

 private:
  std::string text_;
  std::size_t searched_ = 0;  ///< no newline before here, so that a long line is searched once
  bool ended_ = false;
};

}  // namespace tilestep::app
