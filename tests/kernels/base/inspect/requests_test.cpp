// What a warp's request costs, against a count by hand that knows nothing of how it is counted.

#include "kernels/base/inspect/requests.hpp"

#include <map>
#include <set>

#include "kernels/base/simt/block_runner.hpp"
#include "tests/catch.hpp"

namespace tilestep::inspect {
namespace {

Request random_request(std::uint64_t& state) {
  Request request;
  const std::uint32_t sizes[] = {1, 2, 4, 8, 16};
  request.bytes = sizes[simt::emulated::split_mix(state) % 5];
  request.lanes = static_cast<std::uint32_t>(simt::emulated::split_mix(state));
  if (simt::emulated::split_mix(state) % 2 == 0) request.lanes = ~0u;
  const std::uint64_t spread = std::uint64_t{1} << (simt::emulated::split_mix(state) % 12);
  for (auto& address : request.address)
    address = 4096 + simt::emulated::split_mix(state) % spread * request.bytes;
  return request;
}

TEST_CASE("inspect: sectors and turns are those that a count by hand gives", "[simt]") {
  std::uint64_t state = 7;
  for (int i = 0; i < 4000; ++i) {
    const Request request = random_request(state);
    if (request.lanes == 0) continue;
    std::set<std::uintptr_t> bytes, sectors;
    std::size_t turns = 0;
    const int parts = request.bytes == 16 ? 4 : request.bytes == 8 ? 2 : 1;
    for (int part = 0; part < parts; ++part) {
      std::map<std::uintptr_t, std::set<std::uintptr_t>> banks;
      for (int lane = part * 32 / parts; lane < (part + 1) * 32 / parts; ++lane) {
        if ((request.lanes >> lane & 1u) == 0) continue;
        for (std::uint32_t byte = 0; byte < request.bytes; ++byte) {
          const std::uintptr_t at = request.address[static_cast<std::size_t>(lane)] + byte;
          bytes.insert(at);
          sectors.insert(at / 32);
          banks[at / 4 % 32].insert(at / 4);
        }
      }
      std::size_t most = 0;
      for (const auto& [bank, words] : banks) most = std::max(most, words.size());
      turns += most;
    }
    const Cost global = sectors_of(request), shared = turns_of(request);
    CHECK(global.moved == static_cast<int>(sectors.size()));
    CHECK(global.wanted == bytes.size());
    CHECK(global.least == static_cast<int>((bytes.size() + 31) / 32));
    CHECK(shared.moved == static_cast<int>(turns));
  }
}

TEST_CASE("inspect: what threads do one after the other is put together by warp, place and time",
          "[simt]") {
  Requests requests;
  requests.begin_block(3);
  for (int thread = 0; thread < 64; ++thread) {
    for (int time = 0; time < 2; ++time) {
      if (time == 1 && thread % 2 == 1) continue;  // half of them come twice
      requests.add(thread, 5, Space::global, Use::read,
                   1024 + 4u * static_cast<unsigned>(thread + 64 * time), 4);
    }
  }
  requests.close();
  requests.add(0, 5, Space::global, Use::read, 0, 4);  // after a barrier: a request of its own
  requests.close();
  const auto traffic = requests.take();
  REQUIRE(traffic.size() == 1);
  const Traffic& of = traffic.at(5);
  CHECK(of.requests == 5);
  CHECK(of.lanes == 64 + 32 + 1);
  CHECK(of.moved == 2 * 4 + 2 * 4 + 1);
  CHECK(of.least == 2 * 4 + 2 * 2 + 1);
  CHECK(of.worst_block == 3);
  CHECK(requests.take().empty());
}

TEST_CASE("inspect: what would take too much memory is left out, and counted", "[simt]") {
  Requests requests;
  for (std::size_t i = 0; i < Requests::kMostOpen + 10; ++i)
    requests.add(0, 1, Space::global, Use::write, 4 * i, 4);
  CHECK(requests.left_out() == 10);
  requests.close();
  CHECK(requests.take().at(1).requests == Requests::kMostOpen);
}

}  // namespace
}  // namespace tilestep::inspect
