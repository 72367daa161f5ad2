#pragma once

#include <cstddef>
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
  /// `longest`: the bytes that are kept of a line whose end has not come, so that who never ends one
  /// does not fill the memory.
  explicit LineBuffer(std::size_t longest) : longest_(longest) {}

  /// Reads once from `fd`. Returns false at the end of input (or on an error, which ends it too).
  /// Throws Error, naming the limit, when a line becomes longer than that: the line is left out, and
  /// reading may go on.
  bool read_from(int fd);
  /// The next whole line without its newline; after the end of input also the unfinished last one.
  std::optional<std::string> next();

 private:
  void append(std::string_view piece);

  const std::size_t longest_;
  std::string text_;
  std::size_t searched_ = 0;  ///< no newline before here, so that a long line is searched once
  std::size_t unended_ = 0;   ///< bytes of text_ after its last newline
  bool skipping_ = false;     ///< inside a line that is being skipped
  bool ended_ = false;
};

}  // namespace tilestep::app
