// Fusion: the launches of stream.cu.

#include <algorithm>

#include "kernels/base/simt/cluster_room.hpp"
#include "kernels/systems/fusion/launch.hpp"
#include "kernels/systems/fusion/stream/stream.cu"

namespace tilestep::fusion::SIMT_BACKEND {
namespace {

/// Whether a combination that the compiler knows is streamed; of the others, is_streamed has said so.
template <class Steps>
constexpr bool kStreams = true;
template <First kFirst, bool kNorm, bool kQuantize>
constexpr bool kStreams<Compiled<kFirst, kNorm, kQuantize>> =
    is_streamed({.stream = true}, {kFirst, kNorm, kQuantize});

}  // namespace

void start_stream(simt::Device& device, const RowShape& shape, const Parts& parts,
                  const RowArrays& arrays) {
  const int cluster = checked_cluster(shape);
  if (pack_of(shape.type, shape.width) == 1 || shape.packs == 0) {
    throw Error("fusion: rows of " + std::to_string(shape.width) + " numbers with " +
                std::to_string(shape.packs) +
                " packs in registers are not streamed; allowed: rows of whole packs, in registers");
  }
  if (arrays.turns.count != kTurns) throw Error("fusion: a stream needs RowArrays::turns");
  with_packs(shape, cluster, [&](auto pack, auto held) {
    using Pack = decltype(pack);
    using Held = decltype(held);
    if constexpr (Pack::kNumbers > 1 && !Held::kShared) {
      with_parts(parts, [&](auto chosen) {
        if constexpr (kStreams<decltype(chosen)>) {
          if (Held::kPacks == kManyPacks && shape.threads > kMostWithMany)
            throw Error("fusion: " + std::to_string(shape.threads) +
                        " threads with 8 packs each; allowed: up to 512");
          simt::Launch launch = launch_of("stream", shape, cluster);
          const int threads = static_cast<int>(launch.block.x * launch.block.y);
          launch.shared_bytes = static_cast<std::size_t>(
              Mail::bytes(threads / 32, cluster, static_cast<int>(launch.block.y)) +
              16 * slots_of(parts, Held::kPacks) * threads);
          const auto kernel = stream_kernel<Pack, Held::kPacks, decltype(chosen)>;
          const std::int64_t most = simt::clusters_at_once(device, launch, kernel, 2);
          launch.grid.x = std::min(launch.grid.x, static_cast<unsigned>(most) * launch.cluster);
          simt::launch(device, launch, kernel, arrays_of<Pack>(arrays),
                       simt::global(arrays.turns, "turns"), rows_of(shape, cluster), chosen);
        }
      });
    }
  });
}

}  // namespace tilestep::fusion::SIMT_BACKEND
