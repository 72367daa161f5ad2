#pragma once

/// \file
/// Shared by the lesson's kernels: number formats, tiles in shared memory, copies of rows there and back,
/// and the two products of a warp. A warp has strips of 16 queries; its lanes hold scores and O in mma's
/// accumulator layout (simt/mma.hpp): with group = lane / 4 and pair = 2 · (lane % 4), s[j][0], s[j][1] are
/// row `group`, columns 8j + pair and the next, s[j][2], s[j][3] eight rows below.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/attention/shared/task.hpp"
#include "kernels/base/simt/mma.hpp"

namespace tilestep::attention::SIMT_BACKEND {

// ---- numbers ------------------------------------------------------------------------------------------

/// Of a number in memory.
using Bits = std::uint16_t;
struct Bf16 {
  static constexpr int kChunk = 8;  ///< numbers in 16 bytes

  __device__ static unsigned pack(float low, float high) { return simt::pack_bf16(low, high); }
  __device__ static Bits of(float value) { return static_cast<Bits>(pack(value, 0) & 0xFFFFu); }
  /// Two neighbours.
  __device__ static void put(simt::Shared<Bits> at, float first, float second) {
    simt::as<unsigned>(at)[0] = pack(first, second);
  }
  __device__ static float2 pair(simt::Shared<const Bits> at) {
    const unsigned both = simt::as<const unsigned>(at)[0];
    return make_float2(simt::unpack_bf16(both, 0), simt::unpack_bf16(both, 1));
  }
  __device__ static void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    simt::mma_m16n8k16_bf16(d, a, b0, b1);
  }
};

// ---- sizes --------------------------------------------------------------------------------------------

/// Unroll factor of loops over a tile: larger than any trip count, or none at all, for kernels that should compile
/// quickly rather than run fast.
inline constexpr int kFully = 1024, kNever = 1;

/// Chosen at run time, for explained kernels: a thread has room for the largest …
struct AnyTiles {
  int block_q, block_k, columns, head_dim, threads;
  static constexpr int strips = 1;  ///< of a warp
  static constexpr int kMostKeys = 128, kMostColumns = 256, kMostThreads = 256, kBlocks = 1;
  static constexpr int kUnroll = kNever;
};
/// … or at compile time, for timed kernels; kB blocks per multiprocessor.
template <int kQ, int kK, int kD, int kWarps, int kB>
struct FixedTiles {
  static constexpr int block_q = kQ, block_k = kK, head_dim = kD, threads = 32 * kWarps;
  static constexpr int columns = filled_columns(kD);
  static constexpr int strips = kQ / kWarps / kStrip;
  static constexpr int kMostKeys = kK, kMostColumns = columns, kMostThreads = threads, kBlocks = kB;
  static constexpr int kUnroll = kFully;
  static_assert(strips * kWarps * kStrip == kQ && kK % kStrip == 0 && columns % 32 == 0);
};

/// Registers of a lane: scores or weights of a tile, and O.
template <class T>
using Scores = float[T::strips][T::kMostKeys / 8][4];
template <class T>
using Outputs = float[T::strips][T::kMostColumns / 8][4];

// ---- memory -------------------------------------------------------------------------------------------

/// An array that counts the bytes requested from it: loads at [0], stores at [1].
template <class T>
struct Counted {
  simt::Global<T> array;
  simt::Global<unsigned long long> asked;

  __host__ __device__ Counted operator+(std::ptrdiff_t offset) const {
    return {array + offset, asked};
  }
};

/// An array of a kernel with such a tape.
template <class Tape, class T>
using ArrayOf = std::conditional_t<Tape::kRecords, Counted<T>, simt::Global<T>>;

template <class T>
__device__ __forceinline__ simt::Global<T> array_of(const Counted<T>& counted) {
  return counted.array;
}
template <class T>
__device__ __forceinline__ T* array_of(T* array) {
  return array;
}
template <class T>
__device__ __forceinline__ void ask(const Counted<T>& counted, int kind, int bytes) {
  atomicAdd(&counted.asked[kind], static_cast<unsigned long long>(bytes));
}
template <class T>
__device__ __forceinline__ void ask(T*, int, int) {}
#if !defined(__CUDACC__)
template <class T>
simt::Global<T> array_of(const simt::Global<T>& array) {
  return array;
}
template <class T>
void ask(const simt::Global<T>&, int, int) {}
#endif

/// Copies 16 bytes to shared memory asynchronously; zeros where `inside` is false.
template <class Bits, class From>
__device__ __forceinline__ void copy16(simt::Shared<Bits> to, const From& from, bool inside) {
  if (inside) ask(from, 0, 16);
  const simt::Global<const Bits> source = array_of(from);
  simt::cp_async16(to, source, inside);
}
/// 16 bytes from shared memory.
template <class Bits, class To>
__device__ __forceinline__ void store16(const To& to, simt::Shared<Bits> from) {
  ask(to, 1, 16);
  simt::as<uint4>(array_of(to))[0] = simt::as<const uint4>(from)[0];
}
/// One number.
template <class To, class Value>
__device__ __forceinline__ void store(const To& to, Value value) {
  ask(to, 1, static_cast<int>(sizeof(Value)));
  array_of(to)[0] = value;
}
/// Bypasses L1: data that another thread of the block stored before a barrier is in L2.
template <class From>
__device__ __forceinline__ float load(const From& from) {
  ask(from, 0, 4);
  return __ldcg(&array_of(from)[0]);
}

// ---- tiles in shared memory ---------------------------------------------------------------------------

/// Chunk c (16 bytes) of row r is stored at chunk c ^ key(r), so that the eight rows of an 8 × 8 matrix, which
/// ldmatrix reads together, cover all 32 banks. Rows shorter than 128 bytes, or of 192, share a line of the
/// banks in twos or fours.
__device__ constexpr int chunk_key(int row, int chunks) {
  return chunks % 8 == 0 ? row & 7 : chunks % 4 == 0 ? row >> 1 & 3 : row >> 2 & 1;
}
/// A chunk's place, in numbers.
__device__ constexpr int chunk_at(int row, int chunk, int columns) {
  return row * columns + (chunk ^ chunk_key(row, columns / Bf16::kChunk)) * Bf16::kChunk;
}
__device__ constexpr int number_at(int row, int column, int columns) {
  return chunk_at(row, column / Bf16::kChunk, columns) + column % Bf16::kChunk;
}

/// Rows of an array in memory.
template <class From>
struct Rows {
  From first;   ///< the first row of the tile
  int there;    ///< rows from that on
  int pitch;    ///< numbers from one row to the next
  int columns;  ///< those of them that exist
};
template <class From>
__device__ __forceinline__ Rows<From> rows_of(const From& array, std::int64_t first_row, int there,
                                              int pitch, int columns) {
  return {array + static_cast<std::ptrdiff_t>(first_row * pitch), there, pitch, columns};
}

/// Starts the copies of `rows` × `columns` to a tile, by all `threads` of the block; zeros outside the array.
template <int kUnroll, class From>
__device__ __forceinline__ void copy_tile(simt::Shared<Bits> to, const Rows<From>& from, int rows,
                                          int columns, int threads) {
  // A thread keeps its chunk columns and steps over rows: whole rows, or four chunks of them.
  const int chunks = columns / Bf16::kChunk;
  const int across = threads % chunks == 0 ? chunks : 4;
  const int at_once = threads / across;
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll kUnroll
  for (int i = 0; i < (rows + at_once - 1) / at_once; ++i) {
    const int row = thread / across + i * at_once;
    if (rows % at_once != 0 && row >= rows) break;
#pragma unroll kUnroll
    for (int panel = 0; panel < chunks / across; ++panel) {
      const int chunk = thread % across + panel * across;
      const bool inside = row < from.there && chunk * Bf16::kChunk < from.columns;
      copy16(to + chunk_at(row, chunk, columns),
             from.first + (row * from.pitch + chunk * Bf16::kChunk), inside);
    }
  }
}
/// The same for rows of Q, K or V, from `first_row` on; `there` of them exist.
template <class T, class From>
__device__ __forceinline__ void copy_rows(simt::Shared<Bits> to, const From& array,
                                          std::int64_t first_row, int there, int rows,
                                          const T& tiles) {
  copy_tile<T::kUnroll>(to, rows_of(array, first_row, there, tiles.head_dim, tiles.head_dim), rows,
                        tiles.columns, tiles.threads);
}
/// Stores `rows` of a tile, from its row `first` on, by one warp, to all of whose lanes they are visible.
template <class To>
__device__ __forceinline__ void store_rows(const Rows<To>& to, simt::Shared<Bits> tile, int first,
                                           int rows, int columns) {
  const int chunks = columns / Bf16::kChunk;
  for (int i = static_cast<int>(threadIdx.x) % 32; i < rows * chunks; i += 32) {
    const int row = first + i / chunks;
    const int chunk = i % chunks;
    if (row < to.there && chunk * Bf16::kChunk < to.columns) {
      store16(to.first + (row * to.pitch + chunk * Bf16::kChunk),
              tile + chunk_at(row, chunk, columns));
    }
  }
}

// ---- lanes --------------------------------------------------------------------------------------------

/// The calling lane's places in its warp's strips.
struct Lane {
  int warp = static_cast<int>(threadIdx.x) / 32;
  int lane = static_cast<int>(threadIdx.x) % 32;

  /// In a tile of queries whose warps have `strips` each.
  __device__ __forceinline__ int row(int strips, int strip, int half) const {
    return (warp * strips + strip) * kStrip + half * 8 + lane / 4;
  }
  /// Of register e of fragment j.
  __device__ __forceinline__ int column(int j, int e) const { return j * 8 + lane % 4 * 2 + e % 2; }
};

/// Writes a strip, in fragments of 8 columns, to rows of a tile; `factors` for its two rows.
template <int kUnroll, int kFragments>
__device__ __forceinline__ void put_strip(simt::Shared<Bits> tile, int first_row, int columns,
                                          const float (&values)[kFragments][4], float upper,
                                          float lower) {
  const Lane me;
  const int row = first_row + me.lane / 4;
#pragma unroll kUnroll
  for (int j = 0; j < columns / 8; ++j) {
    Bf16::put(tile + number_at(row, me.column(j, 0), columns), values[j][0] * upper,
              values[j][1] * upper);
    Bf16::put(tile + number_at(row + 8, me.column(j, 0), columns), values[j][2] * lower,
              values[j][3] * lower);
  }
}

// ---- the two products ---------------------------------------------------------------------------------

/// Moves 2 · step chunks along a row, for a lane whose chunk is in the first group of eight: XOR replaces the
/// addition, and beyond eight chunks nothing is swizzled.
__device__ __forceinline__ constexpr int further(int chunk, int step) {
  return (chunk ^ step % 4 * 16) + step / 4 * 64;
}

/// Adds Q·K^T to the scores of a warp's strips, which begin at `first_row` of the tile of queries, for `keys`
/// keys from `first_key` on.
template <class T, int kStrips, int kFragments>
__device__ __forceinline__ void multiply_scores(float (&s)[kStrips][kFragments][4],
                                                simt::Shared<Bits> q_tile, int first_row,
                                                simt::Shared<Bits> k_tile, int first_key, int keys,
                                                const T& tiles) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int columns = tiles.columns;
  // Lane l names a row and a chunk to ldmatrix.
  const int key = chunk_key(lane % 8, columns / Bf16::kChunk);
  const int q_row = (first_row + lane % 16) * columns;
  const int q_chunk = (lane / 16 ^ key) * Bf16::kChunk;
  const int k_row = (first_key + lane / 16 * 8 + lane % 8) * columns;
  const int k_chunk = (lane / 8 % 2 ^ key) * Bf16::kChunk;
#pragma unroll T::kUnroll
  for (int step = 0; step < columns / 16; ++step) {
    unsigned a[kStrips][4];
#pragma unroll T::kUnroll
    for (int i = 0; i < kStrips; ++i) {
      simt::ldmatrix_x4(a[i], q_tile + (q_row + i * 16 * columns + further(q_chunk, step)));
    }
#pragma unroll T::kUnroll
    for (int j = 0; j < keys / 16; ++j) {
      unsigned b[4];  // two fragments of 8 keys
      simt::ldmatrix_x4(b, k_tile + (k_row + j * 16 * columns + further(k_chunk, step)));
#pragma unroll T::kUnroll
      for (int i = 0; i < kStrips; ++i) {
        Bf16::multiply(s[i][2 * j], a[i], b[0], b[1]);
        Bf16::multiply(s[i][2 * j + 1], a[i], b[2], b[3]);
      }
    }
  }
}

/// Adds weights · V to O, for `keys` keys of the tile of V from `first_key` on. Tensor cores
/// take the weights from registers: the accumulators of two fragments are A's fragment of the next product.
template <class T, int kStrips, int kKeys, int kColumns>
__device__ __forceinline__ void multiply_values(float (&o)[kStrips][kColumns][4],
                                                const float (&p)[kStrips][kKeys][4],
                                                simt::Shared<Bits> v_tile, int first_key, int keys,
                                                const T& tiles) {
  const Lane me;
  const int columns = tiles.columns;
  const int key = chunk_key(me.lane % 8, columns / Bf16::kChunk);
  const int row = (first_key + me.lane % 16) * columns;
  const int chunk = (me.lane / 16 ^ key) * Bf16::kChunk;
#pragma unroll T::kUnroll
  for (int step = 0; step < keys / 16; ++step) {
    unsigned a[kStrips][4];
#pragma unroll T::kUnroll
    for (int i = 0; i < kStrips; ++i) {
      const auto& left = p[i][2 * step];
      const auto& right = p[i][2 * step + 1];
      a[i][0] = Bf16::pack(left[0], left[1]);
      a[i][1] = Bf16::pack(left[2], left[3]);
      a[i][2] = Bf16::pack(right[0], right[1]);
      a[i][3] = Bf16::pack(right[2], right[3]);
    }
#pragma unroll T::kUnroll
    for (int j = 0; j < columns / 16; ++j) {
      unsigned b[4];  // two fragments of 8 columns
      simt::ldmatrix_x4_trans(b, v_tile + (row + step * 16 * columns + further(chunk, j)));
#pragma unroll T::kUnroll
      for (int i = 0; i < kStrips; ++i) {
        Bf16::multiply(o[i][2 * j], a[i], b[0], b[1]);
        Bf16::multiply(o[i][2 * j + 1], a[i], b[2], b[3]);
      }
    }
  }
}

}  // namespace tilestep::attention::SIMT_BACKEND
