// How flash-3's kernels that write down what happens are launched; the same text for both backends.

#include "kernels/attention/flash_attention_3/launch/launch.hpp"
#include "kernels/attention/flash_attention_3/launch/launches.hpp"

namespace tilestep::flash_attention_3::SIMT_BACKEND {

void explain_here(simt::Device& device, const Problem& problem, const Arrays<float>& arrays,
                  int keys, const simt::Tape& tape) {
  check(device.info(), problem, "flash-3");
  simt::with_constant<64, 128>("flash-3: head_dim", problem.head_dim, [&](auto head_dim) {
    simt::with_constant<64, 128>("flash-3: keys of a tile", keys, [&](auto width) {
      constexpr TileSizes kSizes =
          explained_sizes(decltype(head_dim)::value, decltype(width)::value);
      using T = Tile<kSizes.head_dim, kSizes.keys, kSizes.consumers, kSizes.stages>;
      start_rung<T>(device, problem, arrays, tape, nullptr);
    });
  });
}

}  // namespace tilestep::flash_attention_3::SIMT_BACKEND
