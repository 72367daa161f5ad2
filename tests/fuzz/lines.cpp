// Lines from a pipe that delivers them in pieces: a zero byte ends a piece.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "app/worker/pipe_io.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tilestep::fuzz {
namespace {

constexpr std::size_t kMostBytes = 4096;  // a pipe takes them without anybody reading

struct Pipe {
  Pipe() {
    if (::pipe(ends) != 0) std::abort();
  }
  ~Pipe() {
    ::close(ends[0]);
    if (ends[1] >= 0) ::close(ends[1]);
  }
  int ends[2];
};

void read(std::string_view bytes) {
  Choices choices(bytes);
  const std::size_t longest = choices.byte();
  std::string_view rest = choices.rest().substr(0, kMostBytes);
  app::LineBuffer buffer(longest);
  Pipe pipe;
  std::string all;
  std::size_t lines = 0, refused = 0, taken = 0;
  bool open = true;
  const auto take = [&] {
    try {
      open = buffer.read_from(pipe.ends[0]);
    } catch (const Error&) {
      ++refused;
    }
    while (const auto line = buffer.next()) {
      require(line->find('\n') == line->npos, "a line has no newline in it");
      require(all.find(*line) != all.npos, "a line was sent");
      ++lines;
      taken += line->size();
    }
  };
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    const std::string_view piece = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (piece.empty()) continue;
    all += piece;
    require(app::write_all(pipe.ends[1], piece), "a pipe takes a piece");
    take();
  }
  ::close(std::exchange(pipe.ends[1], -1));
  while (open) take();
  const auto newlines = static_cast<std::size_t>(std::count(all.begin(), all.end(), '\n'));
  require(lines + refused <= newlines + 1, "no line comes twice");
  require(lines + refused >= newlines, "no line is lost");
  if (refused == 0) require(taken + newlines == all.size(), "no byte is lost");
}

const Target kTarget("lines", read);

}  // namespace
}  // namespace tilestep::fuzz
