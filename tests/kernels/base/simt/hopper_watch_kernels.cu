// A ring of two stages, watched by a warp that has nothing else to do, for hopper_watch_test.cu.

#include "kernels/base/simt/ring.hpp"
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
  const hopper::Ring<hopper::Count<kWatchedStages>> ring{stage(kWatchedStages)};
  ring.name("full", "empty");
  if (threadIdx.x == 0) {
    ring.init(1);
    hopper::publish_barriers();
  }
  __syncthreads();  // nobody may use a barrier that is not there yet
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float sum = 0;
  for (int tile = 0; tile < (warp == 2 ? watched : tiles); ++tile) {
    const hopper::Turn turn{tile};
    const int at = ring.stage(turn);
    if (warp == 0 && lane == 0) {
      ring.producer_acquire(turn);
      hopper::arrive_expecting(ring.full(at), kWatchedBytes);
      hopper::fetch(map, stage(at), ring.full(at), tile * 8, 0);
      notes[tile].issued = hopper::cycles();
    } else if (warp == 1) {
      if (fault != Fault::full_wait) ring.consumer_wait(turn);
      if (lane == 0) notes[tile].waited = hopper::cycles();
      const auto numbers = hopper::staged<float>(stage(at), kWatchedBytes / 4, "the tile");
      sum += numbers[lane] + numbers[lane + 32];
      __syncwarp();  // all lanes have read
      ring.consumer_release(at);
      if (lane == 0) notes[tile].read = hopper::cycles();
    } else if (warp == 2 && lane == 0) {
      notes[tile].seen = hopper::watch(ring.full(at), ring.parity(turn), 1000000) ? 1 : 0;
      notes[tile].landed = hopper::cycles();
      if (fault == Fault::half_waits) {  // who has only watched knows nothing of the bytes
        sum += hopper::staged<float>(stage(at), kWatchedBytes / 4, "the tile")[tile];
      }
    }
  }
  if (warp == 1) sums[lane] = sum;
}

}  // namespace tilestep::simt::SIMT_BACKEND
