// How flash-3's timed kernels are launched; the same text for both backends.

#include "kernels/attention/flash_attention_3/launch/launch.hpp"
#include "kernels/attention/flash_attention_3/launch/launches.hpp"

namespace tilestep::flash_attention_3::SIMT_BACKEND {
namespace {

/// The timed kernel of `problem`.
void start_timed(simt::Device& device, const Problem& problem, const Arrays<std::uint16_t>& arrays,
                 simt::Resources* resources) {
  check(device.info(), problem, "flash-3");
  simt::with_constant<64, 128>("flash-3: head_dim", problem.head_dim, [&](auto head_dim) {
    constexpr TileSizes kSizes = timed_sizes(decltype(head_dim)::value);
    using T = Tile<kSizes.head_dim, kSizes.keys, kSizes.consumers, kSizes.stages>;
    start_rung<T>(device, problem, arrays, simt::NoTape{}, resources);
  });
}

}  // namespace

void run_here(simt::Device& device, const Problem& problem, const Arrays<std::uint16_t>& arrays) {
  start_timed(device, problem, arrays, nullptr);
}
simt::Resources resources_here(simt::Device& device, const Problem& problem) {
  simt::Resources resources;
  start_timed(device, problem, {}, &resources);
  return resources;
}

}  // namespace tilestep::flash_attention_3::SIMT_BACKEND
