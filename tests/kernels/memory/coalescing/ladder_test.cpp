#include <numeric>

#include "kernels/base/lab/result.hpp"
#include "kernels/memory/coalescing/kernels.hpp"
#include "kernels/memory/coalescing/reference.hpp"
#include "kernels/memory/coalescing/report.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::coalescing;
using namespace tilestep::tests;

namespace {

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

std::vector<float> copied(simt::Device& device, CopyRung rung, const CopyConfig& config,
                          const std::vector<float>& host) {
  const simt::Buffer<float> in(device, host);
  simt::Buffer<float> out(device, host.size());
  return lab::result_of(device, out, [&] {
    coalescing::kernels_of(device).copy(device, rung, config, in.span(), out.span());
  });
}

/// Elements of the transpose that are in the wrong place.
int wrong_in_transpose(simt::Device& device, TransposeRung rung, const TransposeShape& shape) {
  const auto rows = static_cast<std::size_t>(shape.rows);
  const auto columns = static_cast<std::size_t>(shape.columns);
  const std::vector<float> host = counting(rows * columns);
  const simt::Buffer<float> in(device, host);
  simt::Buffer<float> out(device, host.size());
  const std::vector<float> got = lab::result_of(device, out, [&] {
    coalescing::kernels_of(device).transpose(device, rung, shape, in.span(), out.span());
  });
  int wrong = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      wrong += got[column * rows + row] != host[row * columns + column];
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("every copy in every configuration copies", "[coalescing]") {
  const auto device = test_device(simt::ThreadOrder::shuffled, 2);
  for (const std::size_t count : {1, 2, 3, 31, 1000, 4096, 4099, 20001}) {
    const std::vector<float> host = counting(count);
    for (const CopyRung rung : kCopyRungs) {
      for (const int threads : {128, 1024}) {
        for (const int packs : {1, 2, 4, 8}) {
          if (rung != CopyRung::vectorized && packs > 1) continue;
          for (const int blocks : {0, 1, 3}) {
            INFO(name_of(rung) << " " << count << " " << threads << " " << packs << " " << blocks);
            REQUIRE(copied(*device, rung, {threads, packs, blocks == 3, blocks}, host) == host);
          }
        }
      }
    }
  }
  REQUIRE(contains(error_of([&] {
                     copied(*device, CopyRung::vectorized, {256, 3, false, 0}, counting(64));
                   }),
                   "1, 2, 4, 8"));
}

TEST_CASE("a sweep moves what its pattern says, however it is launched", "[coalescing]") {
  const auto device = test_device(simt::ThreadOrder::shuffled, 5);
  const auto wrong = [&](const Params& params, const SweepConfig& config) {
    const PatternShape shape = shape_of(params);
    Arrays arrays(*device, shape, 1);
    coalescing::kernels_of(*device).sweep(*device, shape, config, arrays.in.span(),
                                          arrays.out.span());
    return wrong_elements(shape, shape.elements, arrays.host_in, arrays.out.download(),
                          Arrays::kUntouched);
  };
  for (const Pattern pattern : kPatterns) {
    for (const ElementSize size : {ElementSize::bytes_1, ElementSize::bytes_16}) {
      for (const Access access : {Access::load, Access::store}) {
        // Less than a warp, a part of each load's threads, whole chunks of 4 × 256, and one more.
        for (const std::int64_t elements : {7, 700, 2048, 2049}) {
          for (const SweepConfig config : {SweepConfig{4}, {4, 1}, {4, 2}, {1}, {1, 3}}) {
            if (config.loads == 1 && pattern != Pattern::strided) continue;
            INFO(name_of(pattern) << " " << name_of(access) << " " << elements << " "
                                  << config.loads << " " << config.blocks);
            REQUIRE(wrong({.pattern = pattern,
                           .stride = 3,
                           .element_size = size,
                           .access = access,
                           .elements = elements},
                          config) == 0);
          }
        }
      }
    }
  }
  REQUIRE(contains(error_of([&] { wrong({}, {2}); }), "4 loads a thread"));
  REQUIRE(contains(error_of([&] { wrong({.pattern = Pattern::soa}, {1}); }), "4 loads a thread"));
}

TEST_CASE("every transpose turns matrices of all shapes", "[coalescing]") {
  for (const auto order : {simt::ThreadOrder::ascending, simt::ThreadOrder::shuffled}) {
    const auto device = test_device(order, 7);
    for (const auto& [rows, columns] : {std::pair{1, 1}, {1, 70}, {33, 31}, {64, 64}, {100, 37}}) {
      for (const TransposeRung rung : kTransposeRungs) {
        for (const int tile : {32, 64}) {
          for (const int thread_rows : {4, 8, 16}) {
            for (const bool down : {false, true}) {
              INFO(name_of(rung) << " " << rows << " x " << columns << ", tile " << tile << ", "
                                 << thread_rows);
              REQUIRE(wrong_in_transpose(*device, rung, {rows, columns, tile, thread_rows, down}) ==
                      0);
            }
          }
        }
      }
    }
  }
  const auto device = test_device();
  REQUIRE(contains(error_of([&] {
                     wrong_in_transpose(*device, TransposeRung::naive, {8, 8, 48, 8, false});
                   }),
                   "32, 64"));
}

TEST_CASE("bank conflicts of the tiles as their accesses were traced", "[coalescing]") {
  const auto device = test_device();
  std::int64_t wrong = 0;
  const std::vector<TileRequest> requests = traced_tiles(*device, wrong);
  REQUIRE(wrong == 0);
  REQUIRE(requests.size() == 4);
  for (const TileRequest& request : requests) {
    INFO(request.rung << " " << name_of(request.kind));
    const bool column_without_padding =
        request.rung == "shared-tile" && request.kind == Access::load;
    REQUIRE(request.ways == (column_without_padding ? 32 : 1));
    const int distance = request.byte_offset[1] - request.byte_offset[0];
    if (request.kind == Access::store) REQUIRE(distance == 4);
    if (request.kind == Access::load) REQUIRE(distance == (column_without_padding ? 128 : 132));
  }
}

TEST_CASE("ways of a request to shared memory", "[coalescing]") {
  std::array<std::int32_t, kLanes> bytes{};
  REQUIRE(bank_ways(bytes) == 1);  // all lanes the same word: a broadcast
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    bytes[lane] = static_cast<std::int32_t>(lane * 8);
  }
  REQUIRE(bank_ways(bytes) == 2);
}

TEST_CASE("random words are found again, and wrong ones counted", "[coalescing]") {
  const auto device = test_device();
  const auto& kernels = coalescing::kernels_of(*device);
  simt::Buffer<unsigned> words(*device, 35);
  simt::Buffer<unsigned long long> wrong(*device, 1);
  wrong.fill(0);
  kernels.fill_random(*device, words.span(), 4);
  kernels.count_wrong(*device, 1, 35, 4, words.span(), wrong.span());
  REQUIRE(wrong.download().front() == 0);
  std::vector<unsigned> host = words.download();
  host[3] ^= 1U;
  words.upload(host);
  kernels.count_wrong(*device, 1, 35, 4, words.span(), wrong.span());
  REQUIRE(wrong.download().front() == 1);
  kernels.count_wrong(*device, 5, 7, 4, words.span(), wrong.span());
  REQUIRE(wrong.download().front() > 20);
}
