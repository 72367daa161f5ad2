#pragma once

/// \file
/// What the lesson's kernels share: number formats, tiles in shared memory, how rows get there and back,
/// and the two products of a warp. A warp has strips of 16 queries; its lanes hold scores and O as mma's
/// accumulators lie (simt/mma.hpp): with group = lane / 4 and pair = 2 · (lane % 4), s[j][0], s[j][1] are
/// row `group`, columns 8j + pair and the next, s[j][2], s[j][3] eight rows below. FP32 keeps to the same
/// places, so that all but the products is the same code.

#include <cstddef>
#include <cstdint>

#include "kernels/attention/flash_attention/kernels.hpp"
#include "kernels/base/simt/mma.hpp"

namespace tilestep::flash_attention::SIMT_BACKEND {

// ---- numbers ------------------------------------------------------------------------------------------

/// On CUDA cores.
struct Fp32 {
  using Bits = float;
  static constexpr bool kTensor = false;
  static constexpr int kChunk = 4;  ///< numbers in 16 bytes

  __device__ static Bits of(float value) { return value; }
  /// Two neighbours.
  __device__ static void put(simt::Shared<Bits> at, float first, float second) {
    simt::as<float2>(at)[0] = make_float2(first, second);
  }
  __device__ static float2 pair(simt::Shared<const Bits> at) {
    return simt::as<const float2>(at)[0];
  }
};

/// On tensor cores.
struct Bf16 {
  using Bits = std::uint16_t;
  static constexpr bool kTensor = true;
  static constexpr int kChunk = 8;

  __device__ static unsigned pack(float low, float high) { return simt::pack_bf16(low, high); }
  __device__ static Bits of(float value) { return static_cast<Bits>(pack(value, 0) & 0xFFFFu); }
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

/// Whether what is being compiled can run a format's kernels, which begin by asking: elsewhere the compiler has nothing
/// else to do.
template <class N>
inline constexpr bool kRuns = !N::kTensor || simt::kHasMma;

// ---- sizes --------------------------------------------------------------------------------------------

/// Loops over a tile are unrolled as often: more often than any of them runs, or not at all, for kernels that need not
/// be fast but compiled soon.
inline constexpr int kFully = 1024, kNever = 1;

/// Chosen when the kernel runs, for what is explained: memory of a thread for the largest …
struct AnyTiles {
  int block_q, block_k, columns, head_dim, threads;
  static constexpr int strips = 1;  ///< of a warp
  static constexpr int kMostKeys = 128, kMostColumns = 256, kMostThreads = 256, kBlocks = 1;
  static constexpr int kUnroll = kNever;
};
/// … or when it is compiled, for what is timed; kB blocks a multiprocessor.
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

/// An array that counts the bytes that are asked of it: at [0] those loaded, at [1] those stored.
template <class T>
struct Counted {
  simt::Global<T> array;
  simt::Global<unsigned long long> asked;

  __host__ __device__ Counted operator+(std::ptrdiff_t offset) const {
    return {array + offset, asked};
  }
};

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

/// 16 bytes to shared memory, beside the thread; zeros where `inside` is false.
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
/// Passes by L1: what another thread of the block has stored before a barrier is in L2.
template <class From>
__device__ __forceinline__ float load(const From& from) {
  ask(from, 0, 4);
  return __ldcg(&array_of(from)[0]);
}

// ---- tiles in shared memory ---------------------------------------------------------------------------

/// Chunk c (16 bytes) of row r lies at chunk c ^ key(r), so that the eight rows of an 8 × 8 matrix, which
/// ldmatrix reads at once, lie in all 32 banks. Rows of less than 128 bytes, or of 192, share a line of the
/// banks by twos or fours.
__device__ constexpr int chunk_key(int row, int chunks) {
  return chunks % 8 == 0 ? row & 7 : chunks % 4 == 0 ? row >> 1 & 3 : row >> 2 & 1;
}
/// Where a chunk lies, in numbers.
template <class N>
__device__ constexpr int chunk_at(int row, int chunk, int columns) {
  return row * columns + (chunk ^ chunk_key(row, columns / N::kChunk)) * N::kChunk;
}
template <class N>
__device__ constexpr int number_at(int row, int column, int columns) {
  return chunk_at<N>(row, column / N::kChunk, columns) + column % N::kChunk;
}

/// Rows of an array in memory.
template <class From>
struct Rows {
  From first;   ///< the first row of the tile
  int there;    ///< rows from that on
  int pitch;    ///< numbers from a row to the next
  int columns;  ///< of them those that are there
};
template <class From>
__device__ __forceinline__ Rows<From> rows_of(const From& array, std::int64_t first_row, int there,
                                              int pitch, int columns) {
  return {array + static_cast<std::ptrdiff_t>(first_row * pitch), there, pitch, columns};
}

/// Starts the copies of `rows` × `columns` to a tile, by all `threads` of the block; zeros for what is not there.
template <class N, int kUnroll, class From>
__device__ __forceinline__ void copy_tile(simt::Shared<typename N::Bits> to, const Rows<From>& from,
                                          int rows, int columns, int threads) {
  // A thread keeps to its chunks, rows come by so many at once: whole ones, or four chunks of them.
  const int chunks = columns / N::kChunk;
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
      const bool inside = row < from.there && chunk * N::kChunk < from.columns;
      copy16(to + chunk_at<N>(row, chunk, columns),
             from.first + (row * from.pitch + chunk * N::kChunk), inside);
    }
  }
}
/// Stores `rows` of a tile, from its row `first` on, by one warp, all of whose lanes see them.
template <class N, class To>
__device__ __forceinline__ void store_rows(const Rows<To>& to, simt::Shared<typename N::Bits> tile,
                                           int first, int rows, int columns) {
  const int chunks = columns / N::kChunk;
  for (int i = static_cast<int>(threadIdx.x) % 32; i < rows * chunks; i += 32) {
    const int row = first + i / chunks;
    const int chunk = i % chunks;
    if (row < to.there && chunk * N::kChunk < to.columns) {
      store16(to.first + (row * to.pitch + chunk * N::kChunk),
              tile + chunk_at<N>(row, chunk, columns));
    }
  }
}

// ---- who has what -------------------------------------------------------------------------------------

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

/// Numbers of a strip, in fragments of 8 columns, to rows of a tile; `factors` of its two rows.
template <class N, int kUnroll, int kFragments>
__device__ __forceinline__ void put_strip(simt::Shared<typename N::Bits> tile, int first_row,
                                          int columns, const float (&values)[kFragments][4],
                                          float upper, float lower) {
  const Lane me;
  const int row = first_row + me.lane / 4;
#pragma unroll kUnroll
  for (int j = 0; j < columns / 8; ++j) {
    N::put(tile + number_at<N>(row, me.column(j, 0), columns), values[j][0] * upper,
           values[j][1] * upper);
    N::put(tile + number_at<N>(row + 8, me.column(j, 0), columns), values[j][2] * lower,
           values[j][3] * lower);
  }
}

// ---- the two products ---------------------------------------------------------------------------------

/// Chunk 2 · step further along a row, for the chunk of a lane that stands in the first of eight: XOR takes the
/// place of adding, and beyond eight chunks nothing is swizzled.
__device__ __forceinline__ constexpr int further(int chunk, int step) {
  return (chunk ^ step % 4 * 16) + step / 4 * 64;
}

/// Adds Q·K^T to the scores of a warp's strips, which begin at `first_row` of the tile of queries; of keys
/// those from `first_key` on, `keys` of them.
template <class N, class T, int kStrips, int kFragments>
__device__ __forceinline__ void multiply_scores(float (&s)[kStrips][kFragments][4],
                                                simt::Shared<typename N::Bits> q_tile,
                                                int first_row,
                                                simt::Shared<typename N::Bits> k_tile,
                                                int first_key, int keys, const T& tiles) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int columns = tiles.columns;
  if constexpr (N::kTensor) {
    // Lane l names a row and a chunk to ldmatrix.
    const int key = chunk_key(lane % 8, columns / N::kChunk);
    const int q_row = (first_row + lane % 16) * columns;
    const int q_chunk = (lane / 16 ^ key) * N::kChunk;
    const int k_row = (first_key + lane / 16 * 8 + lane % 8) * columns;
    const int k_chunk = (lane / 8 % 2 ^ key) * N::kChunk;
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
          N::multiply(s[i][2 * j], a[i], b[0], b[1]);
          N::multiply(s[i][2 * j + 1], a[i], b[2], b[3]);
        }
      }
    }
  } else {
    const auto four = [&](simt::Shared<const float> tile, int row, int chunk) {
      return simt::as<const float4>(tile + chunk_at<N>(row, chunk, columns))[0];
    };
    const auto add = [](float& sum, const float4& x, const float4& y) {
      sum = fmaf(x.w, y.w, fmaf(x.z, y.z, fmaf(x.y, y.y, fmaf(x.x, y.x, sum))));
    };
#pragma unroll 1
    for (int chunk = 0; chunk < columns / 4; ++chunk) {
      const float4 upper = four(q_tile, first_row + lane / 4, chunk);
      const float4 lower = four(q_tile, first_row + lane / 4 + 8, chunk);
#pragma unroll T::kUnroll
      for (int j = 0; j < keys / 8; ++j) {
        const float4 left = four(k_tile, first_key + j * 8 + lane % 4 * 2, chunk);
        const float4 right = four(k_tile, first_key + j * 8 + lane % 4 * 2 + 1, chunk);
        add(s[0][j][0], upper, left);
        add(s[0][j][1], upper, right);
        add(s[0][j][2], lower, left);
        add(s[0][j][3], lower, right);
      }
    }
  }
}

/// Adds weights · V to O, for the keys of the tile of V from `first_key` on, `keys` of them. Tensor cores
/// take the weights from registers: the accumulators of two fragments are A's fragment of the next product.
/// FP32 puts them to `staging`, 16 rows of `keys` numbers for each warp.
template <class N, class T, int kStrips, int kKeys, int kColumns>
__device__ __forceinline__ void multiply_values(float (&o)[kStrips][kColumns][4],
                                                const float (&p)[kStrips][kKeys][4],
                                                simt::Shared<typename N::Bits> v_tile,
                                                int first_key, int keys,
                                                simt::Shared<typename N::Bits> staging,
                                                const T& tiles) {
  const Lane me;
  const int columns = tiles.columns;
  if constexpr (N::kTensor) {
    const int key = chunk_key(me.lane % 8, columns / N::kChunk);
    const int row = (first_key + me.lane % 16) * columns;
    const int chunk = (me.lane / 16 ^ key) * N::kChunk;
#pragma unroll T::kUnroll
    for (int step = 0; step < keys / 16; ++step) {
      unsigned a[kStrips][4];
#pragma unroll T::kUnroll
      for (int i = 0; i < kStrips; ++i) {
        const auto& left = p[i][2 * step];
        const auto& right = p[i][2 * step + 1];
        a[i][0] = N::pack(left[0], left[1]);
        a[i][1] = N::pack(left[2], left[3]);
        a[i][2] = N::pack(right[0], right[1]);
        a[i][3] = N::pack(right[2], right[3]);
      }
#pragma unroll T::kUnroll
      for (int j = 0; j < columns / 16; ++j) {
        unsigned b[4];  // two fragments of 8 columns
        simt::ldmatrix_x4_trans(b, v_tile + (row + step * 16 * columns + further(chunk, j)));
#pragma unroll T::kUnroll
        for (int i = 0; i < kStrips; ++i) {
          N::multiply(o[i][2 * j], a[i], b[0], b[1]);
          N::multiply(o[i][2 * j + 1], a[i], b[2], b[3]);
        }
      }
    }
  } else {
    const int first_row = me.warp * kStrip;
    __syncwarp();  // all lanes are done with the weights that lie there
    put_strip<N, T::kUnroll>(staging, first_row, keys, p[0], 1, 1);
    __syncwarp();  // the weights of all lanes are there
#pragma unroll 1
    for (int key = 0; key < keys; ++key) {
      const float upper = staging[number_at<N>(first_row + me.lane / 4, key, keys)];
      const float lower = staging[number_at<N>(first_row + me.lane / 4 + 8, key, keys)];
#pragma unroll T::kUnroll
      for (int j = 0; j < columns / 8; ++j) {
        const float2 v = N::pair(v_tile + number_at<N>(first_key + key, me.column(j, 0), columns));
        o[0][j][0] = fmaf(upper, v.x, o[0][j][0]);
        o[0][j][1] = fmaf(upper, v.y, o[0][j][1]);
        o[0][j][2] = fmaf(lower, v.x, o[0][j][2]);
        o[0][j][3] = fmaf(lower, v.y, o[0][j][3]);
      }
    }
  }
}

}  // namespace tilestep::flash_attention::SIMT_BACKEND
