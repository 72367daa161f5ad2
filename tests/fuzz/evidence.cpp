// Evidence of a run, as a stranger's kernel may have written it. The first bytes say what is asked of it.
#include "kernels/base/simt/emulator/evidence.hpp"

#include <algorithm>

#include "tests/fuzz/fuzz.hpp"

namespace tilestep::fuzz {
namespace {

void read(std::string_view bytes) {
  constexpr std::size_t kMostAsked = 16;
  Choices asked(bytes.substr(0, kMostAsked));
  simt::EvidenceReader reader(bytes.substr(std::min(bytes.size(), kMostAsked)));
  std::vector<simt::AsyncEvent> log;
  while (!asked.empty()) {
    const std::size_t what = asked.below(3);
    std::vector<char> host(asked.byte());
    if (what == 0) {
      require(reader.allocated(host.size()) != nullptr, "memory has an address");
    } else if (what == 1) {
      reader.copied_out(host.data(), host.size());
    } else {
      reader.catch_up(&log);
    }
  }
  for (const simt::AsyncEvent& event : log) {
    require(event.kind <= simt::AsyncEvent::Kind::product_done, "an event is of a kind");
  }
  reader.require_end();
}

const Target kTarget("evidence", read);

}  // namespace
}  // namespace tilestep::fuzz
