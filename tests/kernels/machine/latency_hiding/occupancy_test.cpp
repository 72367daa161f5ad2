#include "kernels/base/lab/occupancy.hpp"

#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/machine/latency_hiding/lesson.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#define TILESTEP_HAS_CUDA_OCCUPANCY 1
#endif

using namespace tilestep;
using namespace tilestep::latency_hiding;
using namespace tilestep::tests;

namespace {

std::array<int, kLimits> blocks_of(const Demand& demand) {
  return occupancy_of(demand).blocks;
}

}  // namespace

TEST_CASE("each limit of occupancy, reckoned by hand", "[latency_hiding]") {
  // 64 warps in blocks of 8; 32 registers × 32 lanes = 1024 of a warp, 64 of them.
  CHECK(blocks_of({.threads = 256, .registers = 32})[0] == 8);
  CHECK(blocks_of({.threads = 256, .registers = 32})[1] == 8);
  // 33 registers take 1280: twelve warps of a sub-partition's 16384, 48 in all.
  CHECK(blocks_of({.threads = 256, .registers = 33})[1] == 6);
  // 255 registers: two warps of a sub-partition; a block of 16 does not start at all.
  CHECK(blocks_of({.threads = 256, .registers = 255})[1] == 1);
  CHECK(blocks_of({.threads = 512, .registers = 255})[1] == 0);
  CHECK(blocks_of({.threads = 32, .registers = 32})[3] == 32);
  // 1 KB is reserved of each block, and 128 bytes are the least that is given.
  CHECK(blocks_of({.threads = 32, .dynamic_shared_bytes = 56 * 1024})[2] == 4);
  CHECK(blocks_of({.threads = 32, .dynamic_shared_bytes = 56 * 1024 + 1})[2] == 3);
  CHECK(blocks_of({.threads = 32, .dynamic_shared_bytes = 227 * 1024})[2] == 1);
  CHECK(blocks_of({.threads = 32, .dynamic_shared_bytes = 227 * 1024 + 1})[2] == 0);
  // With a carve-out of 25 % (57 KB, so 64) there is room for one such block, and one always starts.
  CHECK(blocks_of({.threads = 32, .dynamic_shared_bytes = 40 * 1024, .carveout = 25})[2] == 1);
  CHECK(blocks_of({.threads = 32, .dynamic_shared_bytes = 100 * 1024, .carveout = 0})[2] == 1);

  const Occupancy all = occupancy_of({.threads = 1024, .registers = 40});
  CHECK(all.resident == 1);
  CHECK(all.binding == Limit::registers);
  CHECK(all.warps == 32);
  CHECK(all.share() == 0.5);
  CHECK(occupancy_of({.threads = 0}).resident == 0);
  CHECK(occupancy_of({.threads = 1025}).resident == 0);
}

#if defined(TILESTEP_HAS_CUDA_OCCUPANCY)
TEST_CASE("occupancy as the toolkit's own calculator has it", "[latency_hiding]") {
  cudaOccDeviceProp device{};
  device.computeMajor = 9;
  device.maxThreadsPerBlock = 1024;
  device.maxThreadsPerMultiprocessor = 2048;
  device.regsPerBlock = 65536;
  device.regsPerMultiprocessor = 65536;
  device.warpSize = 32;
  device.sharedMemPerBlock = 48 * 1024;
  device.sharedMemPerMultiprocessor = 228 * 1024;
  device.numSms = 132;
  device.sharedMemPerBlockOptin = 227 * 1024;
  device.reservedSharedMemPerBlock = 1024;
  std::mt19937 random = lab::generator_of(17);
  const auto below = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most));
  };
  int different = 0, none = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Demand demand{.threads = 1 + below(1024),
                        .registers = 1 + below(255),
                        .static_shared_bytes = below(3) == 0 ? below(4096) : 0,
                        .dynamic_shared_bytes = below(below(3) == 0 ? 228 * 1024 : 16 * 1024),
                        .carveout = below(102) - 1};
    cudaOccFuncAttributes kernel{};
    kernel.maxThreadsPerBlock = 1024;
    kernel.numRegs = demand.registers;
    kernel.sharedSizeBytes = static_cast<std::size_t>(demand.static_shared_bytes);
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = static_cast<std::size_t>(demand.dynamic_shared_bytes);
    cudaOccDeviceState state{};
    state.carveoutConfig = demand.carveout;
    cudaOccResult result{};
    REQUIRE(cudaOccMaxActiveBlocksPerMultiprocessor(
                &result, &device, &kernel, &state, demand.threads,
                kernel.maxDynamicSharedSizeBytes) == CUDA_OCC_SUCCESS);
    CAPTURE(demand.threads, demand.registers, demand.static_shared_bytes,
            demand.dynamic_shared_bytes, demand.carveout);
    const int blocks = occupancy_of(demand).resident;
    none += blocks == 0 ? 1 : 0;
    if (blocks != result.activeBlocksPerMultiprocessor) {
      ++different;
      CHECK(blocks == result.activeBlocksPerMultiprocessor);
    }
  }
  CHECK(different == 0);
  CHECK(none < 10'000);
}
#endif

TEST_CASE("occupancy as an H200's runtime answered", "[latency_hiding]") {
  const lab::Recording* recording = lab::recording(kLessonId);
  if (recording == nullptr) return;
  const lab::Table& answers = table_in(recording->bench, "occupancy_answers");
  REQUIRE(answers.rows.size() >= 500);
  const auto whole = [&](std::size_t row, std::string_view column) {
    return static_cast<int>(number_in(answers, row, column));
  };
  for (std::size_t row = 0; row < answers.rows.size(); ++row) {
    const Demand demand{.threads = whole(row, "block"),
                        .registers = whole(row, "registers"),
                        .static_shared_bytes = whole(row, "static_shared"),
                        .dynamic_shared_bytes = whole(row, "dynamic_shared"),
                        .carveout = whole(row, "carveout")};
    CAPTURE(row, demand.threads, demand.registers, demand.dynamic_shared_bytes, demand.carveout);
    CHECK(occupancy_of(demand).resident == whole(row, "blocks"));
  }
}
