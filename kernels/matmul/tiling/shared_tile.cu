// C = A·B, the first three rungs of the ladder: the kernels that the picture shows. A [m × k],
// B [k × n], C [m × n], all FP32 and row-major; a block has tile × tile threads, each computes one
// element of C.
//
//   naive        a thread walks along its row of A and down its column of B; neighbours in a warp
//                have neighbouring rows, so their loads of A are k elements apart
//   coalesced    neighbours have neighbouring columns: the warp's loads of B, and its stores to C,
//                are next to each other
//   shared_tile  the block loads a tile of A and one of B once, into shared memory, where every
//                element is read `tile` times
//
// The rungs above are in register_tile.cu, double_buffered.cu, warp_tile.cu and tensor_core.cu. The
// accessors are defined in simt/simt.hpp: compiled by nvcc, an accessor is a plain pointer. A tape
// records the picture's data and compiles to nothing when a kernel is timed.

#include "kernels/matmul/tiling/rungs.hpp"

namespace tilestep::tiling::SIMT_BACKEND {

/// Notes a thread's sum at the end of a k-tile. A block has tile × tile threads.
template <class Tape>
__device__ void note_sum(const Tape& tape, int kk, int k, float sum) {
  const int tile = static_cast<int>(blockDim.x);
  if ((kk + 1) % tile != 0 && kk + 1 != k) return;
  const int thread = static_cast<int>(threadIdx.y) * tile + static_cast<int>(threadIdx.x);
  tape.note(kSumSite, kk / tile * tile * tile + thread, sum);
}

/// Number of the launch's first block in C: the picture runs one block alone.
struct FirstBlock {
  int row = 0, column = 0;
};

template <class In, class Tape>
__global__ void __launch_bounds__(1024)
    naive(In a, In b, Out c, GemmShape shape, FirstBlock first, Tape tape) {
  const int block_row = first.row + static_cast<int>(blockIdx.y);
  const int block_column = first.column + static_cast<int>(blockIdx.x);
  // threadIdx.x runs down the rows: this is what makes it slow.
  const int row = block_row * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x);
  const int column = block_column * static_cast<int>(blockDim.y) + static_cast<int>(threadIdx.y);
  if (row >= shape.m || column >= shape.n) return;
  float sum = 0.0f;
  for (int kk = 0; kk < shape.k; ++kk) {
    sum += a[row * shape.k + kk] * b[kk * shape.n + column];  // [step: naive multiply]
    note_sum(tape, kk, shape.k, sum);
  }
  c[row * shape.n + column] = sum;
}

template <class In, class Tape>
__global__ void __launch_bounds__(1024)
    coalesced(In a, In b, Out c, GemmShape shape, FirstBlock first, Tape tape) {
  const int block_row = first.row + static_cast<int>(blockIdx.y);
  const int block_column = first.column + static_cast<int>(blockIdx.x);
  const int row = block_row * static_cast<int>(blockDim.y) + static_cast<int>(threadIdx.y);
  // threadIdx.x runs across the columns: a warp's loads of B fall into few memory sectors.
  const int column = block_column * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x);
  if (row >= shape.m || column >= shape.n) return;
  float sum = 0.0f;
  for (int kk = 0; kk < shape.k; ++kk) {
    sum += a[row * shape.k + kk] * b[kk * shape.n + column];  // [step: coalesced multiply]
    note_sum(tape, kk, shape.k, sum);
  }
  c[row * shape.n + column] = sum;
}

/// The tile's edge and the pitch of the A tile (floats from one of its rows to the next): compile-time
/// constants in the timed kernel, run-time values for the picture.
struct TileSize {
  int edge = 0, pitch = 0;
};
template <int kEdge, int kPitch>
struct FixedTileSize {
  static constexpr int edge = kEdge;
  static constexpr int pitch = kPitch;
};

/// A thread loads one element of each tile; A's tile is stored transposed in shared memory (k down,
/// rows across), as the faster rungs keep it. So a warp's stores go down a column: without padding
/// they hit few banks.
template <RemovedBarrier kRemoved, class Size, class In, class Tape>
__global__ void __launch_bounds__(1024)
    shared_tile(In a, In b, Out c, GemmShape shape, Size size, FirstBlock first, Tape tape) {
  const auto a_tile = tape.traced(
      simt::dynamic_shared<float>(static_cast<std::size_t>(size.edge * size.pitch), 0, "A tile"),
      kSiteTileA);
  const auto b_tile =
      tape.traced(simt::dynamic_shared<float>(
                      static_cast<std::size_t>(size.edge * size.edge),
                      static_cast<std::size_t>(size.edge * size.pitch) * sizeof(float), "B tile"),
                  kSiteTileB);
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const int row = (first.row + static_cast<int>(blockIdx.y)) * size.edge + y;
  const int column = (first.column + static_cast<int>(blockIdx.x)) * size.edge + x;
  float sum = 0.0f;
  for (int k0 = 0; k0 < shape.k; k0 += size.edge) {
    // Beyond the edges of A and B the tiles hold zeros, which add nothing.
    a_tile[x * size.pitch + y] =  // [step: load]
        row < shape.m && k0 + x < shape.k ? a[row * shape.k + k0 + x] : 0.0f;
    b_tile[y * size.edge + x] =
        column < shape.n && k0 + y < shape.k ? b[(k0 + y) * shape.n + column] : 0.0f;

    if constexpr (kRemoved != RemovedBarrier::after_load) {
      // Every element must be stored before any thread reads it.
      __syncthreads();  // [step: barrier after load]
    }
    for (int kk = 0; kk < size.edge; ++kk) {
      sum += a_tile[kk * size.pitch + y] * b_tile[kk * size.edge + x];  // [step: multiply]
    }
    note_sum(tape, k0 + size.edge - 1, shape.k, sum);

    if constexpr (kRemoved != RemovedBarrier::after_multiply) {
      // Every thread must have read before the next tile overwrites this one.
      __syncthreads();  // [step: barrier after multiply]
    }
  }
  if (row < shape.m && column < shape.n) tape.traced(c, kSiteC)[row * shape.n + column] = sum;
}

}  // namespace tilestep::tiling::SIMT_BACKEND
