// Small kernels by Hopper's words, for hopper_test.cu. Plain enough for both compilers: `nvcc
// -gencode=arch=compute_90a,code=sm_90a -ptx` takes this file as it is.

#include <cstdint>

#include "tests/kernels/base/simt/hopper_faults.hpp"

namespace tilestep::simt::SIMT_BACKEND {

constexpr int kStages = 3;

// ---- one copy -----------------------------------------------------------------------------------

/// Brings a box of floats to shared memory and copies it out, by 32 threads.
__global__ void load_box(const __grid_constant__ hopper::TensorMap map, Global<float> out,
                         int column, int row, int box_rows, int box_columns, int swizzle,
                         Fault fault) {
  const int bytes = box_rows * box_columns * 4;
  const unsigned tile = aligned_shared(bytes + 8);
  const unsigned full = tile + static_cast<unsigned>(bytes);
  if (threadIdx.x == 0) {
    hopper::barrier_init(full, 1);
    if (fault != Fault::no_publish) hopper::publish_barriers();
  }
  if (fault != Fault::no_meeting) __syncthreads();  // nobody may wait for what is not there yet
  if (threadIdx.x == 0) {
    const int wrong = fault == Fault::few_bytes ? -16 : fault == Fault::many_bytes ? 16 : 0;
    hopper::arrive_expecting(full, bytes + wrong);
    hopper::fetch(map, tile, full, column, row);
  }
  if (fault == Fault::no_use) return;
  if (fault != Fault::full_wait && !(fault == Fault::half_waits && threadIdx.x >= 16)) {
    hopper::wait_for(full, 0);
  }
  const auto staged = hopper::staged<float>(tile, static_cast<std::size_t>(bytes / 4), "the tile");
  for (int i = static_cast<int>(threadIdx.x); i < bytes / 4; i += 32) {
    const unsigned address = hopper::swizzled_address(tile + static_cast<unsigned>(i) * 4, swizzle);
    out[i] = staged[(address - tile) / 4];
  }
}

// ---- a store ------------------------------------------------------------------------------------

/// Writes 8 × 8 floats for two boxes one after the other, by 32 threads, and has TMA store them.
__global__ void store_boxes(const __grid_constant__ hopper::TensorMap map, int first_row,
                            Fault fault) {
  const unsigned tile = aligned_shared(256);
  const auto staged = hopper::staged<float>(tile, 64, "the tile");
  for (int box = 0; box < 2; ++box) {
    for (int i = static_cast<int>(threadIdx.x); i < 64; i += 32) {
      staged[i] = static_cast<float>(box * 64 + i);
    }
    if (fault != Fault::no_fence) hopper::publish_to_async_proxy();
    if (fault != Fault::no_meeting) __syncthreads();  // all must have written, and fenced
    if (threadIdx.x == 0) {
      hopper::store(map, tile, 0, first_row + box * 8);
      if (fault != Fault::no_store_commit) hopper::store_commit();
      if (fault != Fault::no_store_wait) hopper::store_wait<0>();
    }
    __syncthreads();  // the tile must be read before it is written again
  }
}

/// Brings 8 × 8 floats of one matrix of a map, and stores them to the same place of another map, by 32 threads.
__global__ void move_box(const __grid_constant__ hopper::TensorMap from,
                         const __grid_constant__ hopper::TensorMap to, int row, int matrix) {
  const unsigned tile = aligned_shared(256 + 8);
  const unsigned full = tile + 256;
  if (threadIdx.x != 0) return;
  hopper::barrier_init(full, 1);
  hopper::publish_barriers();
  hopper::arrive_expecting(full, 256);
  hopper::fetch(from, tile, full, 0, row, matrix);
  hopper::wait_for(full, 0);
  hopper::store(to, tile, 0, row, matrix);
  hopper::store_commit();
  hopper::store_wait<0>();
}

// ---- a ring of stages ---------------------------------------------------------------------------

/// C [64 × kN] = A [64 × k] · B [kN × k]ᵀ by a warpgroup, fed through three stages by one more warp. A
/// stage has as many bytes of k as the swizzle, 32 without one.
template <hopper::Format kFormat, int kN, int kSwizzle>
struct Ring {
  static constexpr int kRowBytes = kSwizzle == 0 ? 32 : kSwizzle;
  static constexpr int kElementBytes = kFormat == hopper::Format::e4m3 ? 1 : 2;
  static constexpr int kDepth = kRowBytes / kElementBytes;
  static constexpr int kABytes = 64 * kRowBytes;
  static constexpr int kStageBytes = kABytes + kN * kRowBytes;
  static constexpr int kBoxBytes = kSwizzle == 0 ? 16 : kSwizzle;  ///< along k
  static constexpr int kSharedBytes = kStages * kStageBytes + 2 * kStages * 8;
  static constexpr int kThreads = 128 + 32;
  static_assert(kStageBytes % kAlignment == 0 && kABytes % kAlignment == 0);

  unsigned tiles, barriers;
  __device__ unsigned a(int stage) const {
    return tiles + static_cast<unsigned>(stage * kStageBytes);
  }
  __device__ unsigned b(int stage) const { return a(stage) + kABytes; }
  __device__ unsigned full(int stage) const { return barriers + static_cast<unsigned>(stage) * 8; }
  __device__ unsigned empty(int stage) const { return full(stage) + kStages * 8; }
};

template <class R>
__device__ inline void produce(const R& ring, const hopper::TensorMap& a,
                               const hopper::TensorMap& b, int tiles, int rows_of_b, Fault fault) {
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % kStages;
    const auto parity = static_cast<unsigned>(tile / kStages % 2);
    if (fault != Fault::empty_wait) hopper::wait_for(ring.empty(stage), parity ^ 1);
    const int wrong = fault == Fault::few_bytes ? -16 : fault == Fault::many_bytes ? 16 : 0;
    hopper::arrive_expecting(ring.full(stage), R::kStageBytes + wrong);
    for (int part = 0; part < R::kRowBytes / R::kBoxBytes; ++part) {
      const int column = tile * R::kDepth + part * R::kBoxBytes / R::kElementBytes;
      const auto rows = static_cast<unsigned>(part * R::kBoxBytes);
      hopper::fetch(a, ring.a(stage) + rows * 64, ring.full(stage), column, 0);
      hopper::fetch(b, ring.b(stage) + rows * static_cast<unsigned>(rows_of_b), ring.full(stage),
                    column, 0);
    }
  }
}

template <hopper::Format kFormat, int kN, int kSwizzle>
__device__ inline void consume(const Ring<kFormat, kN, kSwizzle>& ring, float (&sums)[kN / 2],
                               int tiles, Fault fault) {
  using R = Ring<kFormat, kN, kSwizzle>;
  const bool speaks = threadIdx.x % 32 == 0;
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % kStages;
    const auto parity = static_cast<unsigned>(tile / kStages % 2);
    const bool waits =
        fault != Fault::full_wait && !(fault == Fault::half_waits && threadIdx.x >= 64);
    if (waits) hopper::wait_for(ring.full(stage), parity);
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    if constexpr (kSwizzle == 0) {
      a = hopper::plain_descriptor(ring.a(stage), 64 * 16);
      b = hopper::plain_descriptor(ring.b(stage), kN * 16);
    } else {
      a = hopper::descriptor<kSwizzle>(ring.a(stage));
      b = hopper::descriptor<kSwizzle>(ring.b(stage));
    }
    if (fault != Fault::no_begin) hopper::wgmma_begin();
    for (int step = 0; step < R::kRowBytes / 32; ++step) {
      const auto further = static_cast<std::uint64_t>(step * 32 / 16);
      hopper::wgmma<kFormat, kN>(sums, a + further, b + further, tile == 0 && step == 0);
    }
    if (fault != Fault::no_commit) hopper::wgmma_commit();
    if (fault == Fault::early_release) {
      if (speaks) hopper::arrive(ring.empty(stage));
      hopper::wgmma_wait<1>();
      continue;
    }
    hopper::wgmma_wait<1>();
    // The stage before is read to its end once no more than this one's products are under way.
    if (speaks && tile > 0) hopper::arrive(ring.empty((tile - 1) % kStages));
  }
  if (fault == Fault::touched_sums) sums[1] = 7;
  if (fault != Fault::no_wait) hopper::wgmma_wait<0>();
  hopper::settle(sums);
}

template <hopper::Format kFormat, int kN, int kSwizzle>
__global__ void __launch_bounds__(160, 1) ring_gemm(const __grid_constant__ hopper::TensorMap a,
                                                    const __grid_constant__ hopper::TensorMap b,
                                                    Global<float> c, int tiles, Fault fault) {
  using R = Ring<kFormat, kN, kSwizzle>;
  const unsigned shared = aligned_shared(R::kSharedBytes);
  const R ring{shared, shared + kStages * R::kStageBytes};
  for (int stage = 0; stage < kStages; ++stage) {
    hopper::name_shared(ring.a(stage), R::kStageBytes, "stage", stage);
    hopper::name_shared(ring.full(stage), 8, "full", stage);
    hopper::name_shared(ring.empty(stage), 8, "empty", stage);
  }
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      hopper::barrier_init(ring.full(stage), 1);
      hopper::barrier_init(ring.empty(stage), 4);
    }
    if (fault != Fault::no_publish) hopper::publish_barriers();
  }
  if (fault != Fault::no_meeting)
    __syncthreads();  // nobody may use a barrier that is not there yet
  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128) produce(ring, a, b, tiles, kN, fault);
    return;
  }
  float sums[kN / 2];
  for (int i = 0; i < kN / 2; ++i) sums[i] = 0;
  consume<kFormat, kN, kSwizzle>(ring, sums, tiles, fault);
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = 0; i < kN / 2; ++i) {
    const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
    const int column = i / 4 * 8 + thread % 4 * 2 + i % 2;
    c[row * kN + column] = sums[i];
  }
}

// ---- barriers with names, fragments -------------------------------------------------------------

/// Warp 1 writes, warp 0 reads; they meet at barrier 3, where warp 1 only arrives. Warp 2 does not.
__global__ void hand_over(Global<int> out, int threads) {
  const auto cells = hopper::staged<int>(aligned_shared(128), 32, "the cells");
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (threadIdx.x / 32 == 1) {
    cells[lane] = lane * 3;
    hopper::named_barrier_arrive(3, 64);
  } else if (threadIdx.x / 32 == 0) {
    hopper::named_barrier_sync(3, threads);
    out[lane] = cells[31 - lane];
  }
}

/// Warp 1 writes 8 × 8 floats, warp 0 has TMA store them; they meet at barrier 2.
__global__ void store_of_others(const __grid_constant__ hopper::TensorMap map) {
  const unsigned tile = aligned_shared(256);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (threadIdx.x / 32 == 1) {
    const auto staged = hopper::staged<float>(tile, 64, "the tile");
    for (int i = lane; i < 64; i += 32) staged[i] = static_cast<float>(i);
    hopper::publish_to_async_proxy();
    hopper::named_barrier_arrive(2, 64);
    return;
  }
  hopper::named_barrier_sync(2, 64);
  if (lane != 0) return;
  hopper::store(map, tile, 0, 0);
  hopper::store_commit();
  hopper::store_wait<0>();
}

/// Four matrices of 8 × 8 through stmatrix and ldmatrix, plain and transposed.
__global__ void round_trip(Global<const unsigned> in, Global<unsigned> plain,
                           Global<unsigned> turned, Global<unsigned> turned_twice) {
  const unsigned tile = aligned_shared(512);
  const int lane = static_cast<int>(threadIdx.x);
  const unsigned row = tile + static_cast<unsigned>(lane) * 16;
  unsigned r[4];
  for (int i = 0; i < 4; ++i) r[i] = in[lane * 4 + i];
  hopper::stmatrix_x4(row, r);
  __syncwarp();  // all rows must be there
  hopper::ldmatrix_x4(r, row);
  for (int i = 0; i < 4; ++i) plain[lane * 4 + i] = r[i];
  hopper::ldmatrix_x4_trans(r, row);
  for (int i = 0; i < 4; ++i) turned[lane * 4 + i] = r[i];
  __syncwarp();  // all must have read
  for (int i = 0; i < 4; ++i) r[i] = in[lane * 4 + i];
  hopper::stmatrix_x4_trans(row, r);
  __syncwarp();
  hopper::ldmatrix_x4_trans(r, row);
  for (int i = 0; i < 4; ++i) turned_twice[lane * 4 + i] = r[i];
}

}  // namespace tilestep::simt::SIMT_BACKEND
