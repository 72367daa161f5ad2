// A product by one warpgroup in each form that wgmma has, for wgmma_test.cu.

#include "tests/kernels/base/simt/hopper_faults.hpp"

namespace tilestep::simt::SIMT_BACKEND {

/// Where A comes from, and what of B is fastest in memory.
enum class Form : int { plain, registers, turned, both };

/// D [64 × kN] = A [64 × k] · B, of which k is a row of 128 bytes, and one tile. B is [kN × k], or turned
/// [k × kN], in boxes of 64 columns. `a` is A as in memory.
template <hopper::Format kFormat, int kN, Form kForm, class Sum>
__global__ void __launch_bounds__(128, 1)
    one_tile(const __grid_constant__ hopper::TensorMap a_map,
             const __grid_constant__ hopper::TensorMap b_map, Global<const std::uint8_t> a,
             Global<Sum> d, Fault fault) {
  constexpr bool kBytes = kFormat == hopper::Format::e4m3 || kFormat == hopper::Format::s8;
  constexpr int kDepth = kBytes ? 128 : 64;
  constexpr bool kTurned = kForm == Form::turned || kForm == Form::both;
  constexpr bool kInRegisters = kForm == Form::registers || kForm == Form::both;
  constexpr int kBBytes = kN * 128;
  const unsigned shared = aligned_shared(64 * 128 + kBBytes + 8);
  const unsigned b_tile = shared + 64 * 128;
  const unsigned full = b_tile + kBBytes;
  if (threadIdx.x == 0) {
    hopper::prefetch(b_map);
    hopper::barrier_init(full, 1);
    hopper::publish_barriers();
  }
  __syncthreads();  // nobody may use a barrier that is not there yet
  if (threadIdx.x == 0) {
    hopper::arrive_expecting(full, 64 * 128 + kBBytes);
    hopper::fetch(a_map, shared, full, 0, 0);
    if constexpr (kTurned) {
      for (int n = 0; n < kN; n += 64) {
        hopper::fetch(b_map, b_tile + static_cast<unsigned>(n * 128), full, n, 0);
      }
    } else {
      hopper::fetch(b_map, b_tile, full, 0, 0);
    }
  }
  // A's copy is waited for by all, used or not: the block's memory may not end before it.
  if (fault != Fault::full_wait) hopper::wait_for(full, 0);
  Sum sums[kN / 2];
  for (int i = 0; i < kN / 2; ++i) sums[i] = 0;
  const int thread = static_cast<int>(threadIdx.x);
  unsigned fragments[4][4];
  if constexpr (kInRegisters) {
    for (int step = 0; step < 4; ++step) {
      for (int i = 0; i < 4; ++i) {
        const int row = thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8;
        const int byte = step * 32 + i / 2 * 16 + thread % 4 * 4;
        fragments[step][i] = *as<const unsigned>(a + (row * 128 + byte));
      }
    }
  }
  hopper::wgmma_begin();
  for (int step = 0; step < kDepth * (kBytes ? 1 : 2) / 32; ++step) {
    const auto further = static_cast<std::uint64_t>(step * 32 / 16);
    const std::uint64_t b = kTurned ? hopper::turned_descriptor(b_tile, 64 * 128) +
                                          static_cast<std::uint64_t>(step) * 128
                                    : hopper::descriptor(b_tile) + further;
    constexpr auto kMajor = kTurned ? hopper::Major::n : hopper::Major::k;
    if constexpr (kInRegisters) {
      hopper::wgmma<kFormat, kN, kMajor>(sums, fragments[step], b, step == 0);
    } else {
      hopper::wgmma<kFormat, kN, kMajor>(sums, hopper::descriptor(shared) + further, b, step == 0);
    }
  }
  hopper::wgmma_commit();
  hopper::wgmma_wait<0>();
  hopper::settle(sums);
  for (int i = 0; i < kN / 2; ++i) {
    const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
    const int column = i / 4 * 8 + thread % 4 * 2 + i % 2;
    d[row * kN + column] = sums[i];
  }
}

/// Every block adds 8 × 16 bytes of its numbers to the matrix, by 32 threads.
template <class T>
__global__ void add_boxes(const __grid_constant__ hopper::TensorMap map, Global<const T> numbers) {
  constexpr int kColumns = 16 / sizeof(T);
  const unsigned tile = aligned_shared(128);
  const auto staged = hopper::staged<T>(tile, 8 * kColumns, "the tile");
  for (int i = static_cast<int>(threadIdx.x); i < 8 * kColumns; i += 32) staged[i] = numbers[i];
  hopper::publish_to_async_proxy();
  __syncthreads();  // all must have written, and fenced
  if (threadIdx.x != 0) return;
  hopper::reduce_add(map, tile, 0, 0);
  hopper::store_commit();
  hopper::store_wait<0>();
}

}  // namespace tilestep::simt::SIMT_BACKEND
