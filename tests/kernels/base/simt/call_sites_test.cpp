#include "kernels/base/simt/emulator/call_sites.hpp"

#include <set>
#include <vector>

#include "tests/catch.hpp"

namespace tilestep::simt::emulated {
namespace {

TEST_CASE("places of many edits are told apart in one process", "[simt]") {
  std::vector<char> code(100'000);  // its bytes stand for instructions that called
  std::set<std::uint32_t> all;
  for (char& caller : code) {
    void* frame[2] = {nullptr, &caller + 1};
    const std::uint32_t site = call_site(frame, frame + 2);
    REQUIRE(site != 0);
    REQUIRE(callers_of(site) == std::vector<const void*>{&caller});
    all.insert(site);
  }
  CHECK(all.size() == code.size());
}

}  // namespace
}  // namespace tilestep::simt::emulated
