// The persistent kernel's launch: as many blocks as the device has room for at once.

#include <algorithm>

#include "kernels/base/simt/resources.hpp"
#include "kernels/systems/launches/launch.hpp"
#include "kernels/systems/launches/persistent.cu"

namespace tilestep::launches::SIMT_BACKEND {
namespace {

// Emulated, blocks that wait for each other are those of a cluster.
#if defined(__CUDACC__)
constexpr int kThreads = kPersistentThreads;
#else
constexpr int kThreads = 64, kBlocks = 4;
#endif

template <class Kernel>
simt::Launch shape_of_launch([[maybe_unused]] const simt::Device& device, std::size_t shared,
                             [[maybe_unused]] Kernel kernel) {
#if defined(__CUDACC__)
  simt::Launch launch = simt::row_of_blocks("persistent", 1, kThreads, shared);
  const int each = simt::resources_of(launch, kernel).blocks_per_multiprocessor;
  if (each < 1) {
    throw Error("persistent: a block with " + std::to_string(shared) +
                " bytes of shared memory does not fit on a multiprocessor");
  }
  launch.grid = dim3(static_cast<unsigned>(device.info().multiprocessors));
#else
  simt::Launch launch = simt::row_of_blocks("persistent", kBlocks, kThreads, shared);
  launch.cluster = kBlocks;
#endif
  return launch;
}

}  // namespace

void start_persistent(simt::Device& device, const StepShape& shape, const ModelArrays& arrays,
                      const Stamps& stamps, bool barriers, const simt::Tape& tape) {
  simt::require_within("persistent: layers", shape.layers, 1, 1024);
  simt::require_multiple("persistent: width", shape.width, kPack);
  simt::require_multiple("persistent: inner", shape.inner, kPack);
  const auto packs = [](simt::Span<const std::uint16_t> span, const char* name) {
    return simt::as<const uint4>(simt::global(span, name));
  };
  const Model model{simt::global(arrays.tokens, "tokens"),
                    simt::global(arrays.table, "table"),
                    simt::global(arrays.gains, "gains"),
                    packs(arrays.gate, "gate"),
                    packs(arrays.up, "up"),
                    packs(arrays.down, "down"),
                    simt::global(arrays.h, "h"),
                    simt::global(arrays.a, "a"),
                    simt::global(arrays.arrived, "arrived")};
  with_tokens(shape.batch, [&](auto tokens) {
    constexpr int kTokens = decltype(tokens)::value;
    const std::size_t shared =
        kSumBytes +
        sizeof(float) * static_cast<std::size_t>(shape.batch * std::max(shape.width, shape.inner)) +
        sizeof(uint4) * static_cast<std::size_t>(kDepth<kTokens> * kUnit * kThreads);
    const auto start = [&](auto clock, auto its_tape) {
      const auto kernel = SIMT_BACKEND::persistent<kTokens, decltype(clock), decltype(its_tape)>;
      simt::launch(device, shape_of_launch(device, shared, kernel), kernel, model, shape, barriers,
                   clock, its_tape);
    };
    if (tape) return start(NoClock{}, tape);
    with_clock(stamps, [&](auto clock) { start(clock, simt::NoTape{}); });
  });
}

}  // namespace tilestep::launches::SIMT_BACKEND
