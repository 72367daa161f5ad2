// A line to a worker. What is taken says the same when it is written again.
#include "app/worker/protocol.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tilestep::fuzz {
namespace {

namespace protocol = app::protocol;

void read(std::string_view bytes) {
  const auto request = protocol::request_from(bytes);
  if (!request) return;
  const std::string line = protocol::line_of(*request);
  require(line.find('\n') == line.npos, "a request is one line");
  const auto again = protocol::request_from(line);
  require(again && protocol::line_of(*again) == line, "a request reads as it was written");
}

const Target kTarget("request", read);

}  // namespace
}  // namespace tilestep::fuzz
