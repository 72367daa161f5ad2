// What a warp's request costs, against a count by hand that knows nothing of how it is counted.

#include "kernels/base/inspect/requests.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "kernels/base/simt/emulator/block_runner.hpp"
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
    std::map<std::uintptr_t, std::set<std::uintptr_t>> banks;
    for (int lane = 0; lane < 32; ++lane) {
      if ((request.lanes >> lane & 1u) == 0) continue;
      for (std::uint32_t byte = 0; byte < request.bytes; ++byte) {
        const std::uintptr_t at = request.address[static_cast<std::size_t>(lane)] + byte;
        bytes.insert(at);
        sectors.insert(at / 32);
        banks[at / 4 % 32].insert(at / 4);
      }
    }
    std::size_t turns = 0;
    for (const auto& [bank, words] : banks) turns = std::max(turns, words.size());
    const Cost global = sectors_of(request), shared = turns_of(request);
    CHECK(global.moved == static_cast<int>(sectors.size()));
    CHECK(global.wanted == bytes.size());
    CHECK(global.least == static_cast<int>((bytes.size() + 31) / 32));
    if (request.bytes <= 4) CHECK(shared.moved == static_cast<int>(turns));
    CHECK(shared.moved >= static_cast<int>(turns));
    CHECK(shared.moved >= shared.least);
  }
}

/// Which element each lane loads, in 40 ways: all the same, in order, in pairs, strided, at random.
int element_of(int pattern, int lane, unsigned& seed) {
  seed = seed * 1664525u + 1013904223u;
  const auto random = static_cast<int>(seed >> 8);
  const int elements[] = {0,
                          lane,
                          lane / 2,
                          lane / 4,
                          lane / 8,
                          lane / 16,
                          lane % 2,
                          lane % 4,
                          lane % 8,
                          lane % 16,
                          lane ^ 1,
                          lane * 2,
                          lane * 4,
                          lane * 16,
                          lane & ~2,
                          lane & ~4,
                          lane & ~16,
                          lane / 2 * 8,
                          lane / 2 * 16,
                          lane % 2 * 16,
                          lane % 4 * 16,
                          lane / 8 * 16,
                          lane / 16 * 8 + lane % 2,
                          lane / 2 * 2,
                          lane / 4 * 4 + lane % 2,
                          lane == 0 ? 1 : 0,
                          lane < 16 ? 0 : 1,
                          lane % 8 < 4 ? 0 : 16,
                          lane / 2 * 3,
                          random % 2,
                          random % 4,
                          random % 8,
                          random % 16,
                          random % 32,
                          random % 64,
                          random % 512,
                          lane / 2 * 7 % 512,
                          lane / 2 * 37 % 16,
                          (lane & ~2) * 5 % 64,
                          (lane & ~2) * 16 % 512};
  return elements[pattern];
}

// Wavefronts of a load from shared memory (l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld), counted on an NVIDIA H200
// on 2026-11-28 with a kernel that loads so, 8 and 16 bytes a lane.
constexpr int kCounted8[] = {1, 2, 1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 8, 32, 2, 2, 2, 8, 16, 2,
                             8, 4, 1, 2, 2, 2, 1, 2, 1, 2, 2, 2, 2, 4,  4, 5, 1, 1, 2,  16};
constexpr int kCounted16[] = {2,  4, 2, 2, 2, 2, 2, 4, 4, 4, 4, 8, 16, 32, 4,  4, 4, 16, 16, 4,
                              16, 4, 2, 4, 4, 4, 2, 4, 2, 4, 4, 4, 8,  8,  10, 8, 2, 2,  4,  16};

TEST_CASE("inspect: turns of wide loads are those that an H200 counts", "[simt]") {
  unsigned seed = 1;
  for (int pattern = 0; pattern < 40; ++pattern) {
    INFO("pattern " << pattern);
    Request wide, wider;
    wide.lanes = wider.lanes = ~0u;
    wide.bytes = 8;
    wider.bytes = 16;
    for (int lane = 0; lane < 32; ++lane) {
      const auto element = static_cast<std::uintptr_t>(element_of(pattern, lane, seed));
      wide.address[static_cast<std::size_t>(lane)] = 8 * element;
      wider.address[static_cast<std::size_t>(lane)] = 16 * element;
    }
    CHECK(turns_of(wide).moved == kCounted8[pattern]);
    CHECK(turns_of(wider).moved == kCounted16[pattern]);
  }
}

TEST_CASE("inspect: structures move in pieces that their alignment allows", "[simt]") {
  const auto pieces = [](std::uint32_t bytes, std::uintptr_t first, std::uintptr_t apart) {
    Request request;
    request.lanes = ~0u;
    request.bytes = bytes;
    for (std::size_t lane = 0; lane < 32; ++lane) request.address[lane] = first + lane * apart;
    Requests requests;
    requests.add(0, 0, 1, Space::global, Use::read, request);
    const auto all = requests.take();
    return std::pair(all.at(1).bytes, all.at(1).requests);
  };
  CHECK(pieces(12, 1024, 12) == std::pair(4u, std::uint64_t{3}));
  CHECK(pieces(16, 1024, 16) == std::pair(16u, std::uint64_t{1}));
  CHECK(pieces(16, 1028, 20) == std::pair(4u, std::uint64_t{4}));
  CHECK(pieces(64, 1024, 64) == std::pair(16u, std::uint64_t{4}));
  CHECK(pieces(3, 1024, 3) == std::pair(1u, std::uint64_t{3}));
}

}  // namespace
}  // namespace tilestep::inspect
