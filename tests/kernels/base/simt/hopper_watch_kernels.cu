// A ring of two stages, watched by a warp that has nothing else to do, for hopper_watch_test.cu.

#include "tests/kernels/base/simt/hopper_faults.hpp"

namespace tilestep::simt::SIMT_BACKEND {

constexpr int kWatchedStages = 2;
constexpr int kWatchedBytes = 256;  ///< of a box of 8 × 8 floats

/// What the three warps note of a tile: clocks, or whether the phase was seen to end.
struct WatchedTile {
  long long issued, waited, read, landed;
  int seen;
};

/// Warp 0 brings `tiles` boxes that lie side by side, warp 1 adds their numbers up, warp 2 watches `watched`
/// of them land.
__global__ void watched_ring(const __grid_constant__ hopper::TensorMap map, Global<float> sums,
                             Global<WatchedTile> notes, int tiles, int watched, Fault fault) {
  const unsigned shared = aligned_shared(kWatchedStages * (kWatchedBytes + 16));
  const auto stage = [&](int i) { return shared + static_cast<unsigned>(i) * kWatchedBytes; };
  const auto full = [&](int i) { return stage(kWatchedStages) + static_cast<unsigned>(i) * 8; };
  const auto empty = [&](int i) { return full(kWatchedStages + i); };
  for (int i = 0; i < kWatchedStages; ++i) hopper::name_shared(full(i), 8, "full", i);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kWatchedStages; ++i) {
      hopper::barrier_init(full(i), 1);
      hopper::barrier_init(empty(i), 32);
    }
    hopper::publish_barriers();
  }
  __syncthreads();  // nobody may use a barrier that is not there yet
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float sum = 0;
  for (int tile = 0; tile < (warp == 2 ? watched : tiles); ++tile) {
    const int at = tile % kWatchedStages;
    const auto parity = static_cast<unsigned>(tile / kWatchedStages % 2);
    if (warp == 0 && lane == 0) {
      hopper::wait_for(empty(at), parity ^ 1);
      hopper::arrive_expecting(full(at), kWatchedBytes);
      hopper::fetch(map, stage(at), full(at), tile * 8, 0);
      notes[tile].issued = hopper::cycles();
    } else if (warp == 1) {
      if (fault != Fault::full_wait) hopper::wait_for(full(at), parity);
      if (lane == 0) notes[tile].waited = hopper::cycles();
      const auto numbers = hopper::staged<float>(stage(at), kWatchedBytes / 4, "the tile");
      sum += numbers[lane] + numbers[lane + 32];
      hopper::arrive(empty(at));
      if (lane == 0) notes[tile].read = hopper::cycles();
    } else if (warp == 2 && lane == 0) {
      notes[tile].seen = hopper::watch(full(at), parity, 1000000) ? 1 : 0;
      notes[tile].landed = hopper::cycles();
      if (fault == Fault::half_waits) {  // who has only watched knows nothing of the bytes
        sum += hopper::staged<float>(stage(at), kWatchedBytes / 4, "the tile")[tile];
      }
    }
  }
  if (warp == 1) sums[lane] = sum;
}

}  // namespace tilestep::simt::SIMT_BACKEND
