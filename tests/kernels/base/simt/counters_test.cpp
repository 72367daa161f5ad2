#include "kernels/base/simt/counters.hpp"

#include "kernels/base/simt/backends.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"
#include "tests/skip.hpp"

using namespace tilestep;
using tilestep::tests::contains;
using tilestep::tests::error_of;
using tilestep::tests::TimedEmulation;

TEST_CASE("the emulation says that it has no hardware counters", "[simt]") {
  const auto device = simt::make_emulated_device({});
  const simt::CounterStatus status = device->counters();
  REQUIRE_FALSE(status.available);
  REQUIRE(contains(status.reason, "GPU"));
  const std::string text =
      error_of([&] { simt::count(*device, {simt::metric::kLoadSectors}, [] {}); });
  REQUIRE(text == status.reason);
}

TEST_CASE("sectors per request of counted traffic", "[simt]") {
  simt::GlobalTraffic traffic;
  REQUIRE(traffic.load_sectors_per_request() == 0);
  traffic.load_requests = 8;
  traffic.load_sectors = 32;
  traffic.store_requests = 4;
  traffic.store_sectors = 4;
  REQUIRE(traffic.load_sectors_per_request() == 4);
  REQUIRE(traffic.store_sectors_per_request() == 1);
}

TEST_CASE("hardware counters of a GPU", "[gpu]") {
  if (!simt::cuda_status().available) return tests::skip(simt::cuda_status().reason);
  const auto device = simt::make_cuda_device();
  const simt::CounterStatus status = device->counters();
  if (!status.available) {
    REQUIRE_FALSE(status.reason.empty());
    return;
  }
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  simt::Buffer<unsigned char> from(*device, kBytes);
  simt::Buffer<unsigned char> to(*device, kBytes);
  from.fill(1);
  device->synchronize();
  // Reads at least what is read at least once, and only a copy's worth of noise above it.
  const auto counted = simt::count(*device, {simt::metric::kDramBytesRead}, [&] {
    device->copy_on_device(to.span().data, from.span().data, kBytes);
  });
  const double read = counted.at(simt::metric::kDramBytesRead);
  REQUIRE(read > 0.5 * static_cast<double>(kBytes));
  REQUIRE(read < 1.5 * static_cast<double>(kBytes));
  REQUIRE(contains(error_of([&] { simt::count(*device, {"no_such_metric.sum"}, [] {}); }),
                   "no_such_metric"));
}

TEST_CASE("what other programs add to the counters does not count", "[simt]") {
  TimedEmulation device;
  int counted = 0;
  device.counter = [&](const std::string& metric) {
    const bool alone = ++counted > 6;  // the first count, of six metrics, has others' work in it
    return (metric == simt::metric::kLoadSectors ? 256 : 32) + (alone ? 0 : 1000);
  };
  const simt::GlobalTraffic traffic = simt::count_global_traffic(device, [] {});
  CHECK(traffic.load_sectors == 256);
  CHECK(traffic.load_requests == 32);
  CHECK(counted == 18);  // the second counts, the third agrees
}
