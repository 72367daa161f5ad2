#pragma once

// Linear attention chunk by chunk: inside a chunk all tokens at once, on tensor cores; from chunk to chunk a state.
//
// With b_i the sum of ln α over a chunk's tokens 0 … i, and S the state that the chunk began with:
//
//   decays    b, one warp per chunk; without gates b = 0
//   prepare   of the delta rule, whose values u = β (v − S^Tk) depend on each other: all chunks at once, what of u is
//             known without S, and the rows w that S is to be read with, so that U = U₀ − W·S
//   states    a block per head and columns of S, chunk after chunk: S ← exp(b_last) S + Σ exp(b_last − b_j) k_j u_j^T
//   outputs   all chunks at once: O = exp(b) Q·S + (masked Q·K^T, each product times exp(b_i − b_j))·U
//
// A chunk of C tokens costs C² products within and dim² for its state: longer chunks make fewer steps in a row and
// more work. The result is the same, but for rounding.
//
// Tiles in shared memory have rows of dim numbers and 16 bytes more, so that eight rows of a matrix lie in all banks.
// Tokens past the end are zeros. Fragments as in simt/mma.hpp.

#include "kernels/attention/linear_attention/features.cu"

namespace tilestep::linear_attention::SIMT_BACKEND {

using Bits = std::uint16_t;
constexpr int kStrip = 16;  ///< rows of an mma
constexpr int kPadding = 8;
constexpr int kSolveRows = 4;  ///< padding of the rows of L, in numbers

/// The arrays of a launch as its kernels have them.
struct Chunked {
  simt::Global<const Bits> q, k, v;
  simt::Global<const float> log_gates, betas;
  simt::Global<Bits> o;
  simt::Global<float> state, decays;
  simt::Global<Bits> states, values, readers;
};
/// A launch's shape. `stale` and `undecayed` and `unmasked`: see Break.
struct Job {
  int tokens, chunk, chunks;
  bool gated, stale = false, undecayed = false, unmasked = false;
};

/// A lane's place in fragments: row `group` and eight rows below, columns `pair` and the next.
struct Lane {
  int lane = static_cast<int>(threadIdx.x) % 32;
  int group = lane / 4, pair = lane % 4 * 2;
  /// Its row of a 16 × 16 matrix for ldmatrix: eight rows below, then eight columns on …
  int down_row = lane % 16, down_column = lane / 16 * 8;
  /// … or eight columns on, then eight rows below.
  int across_row = lane / 16 * 8 + lane % 8, across_column = lane / 8 % 2 * 8;
};

/// Columns of S that a block of `states` has.
template <int kDim>
constexpr int kColumns = kDim < 32 ? kDim : 32;

/// Starts the copies of a chunk's rows, `kWidth` numbers of each from a row of `stride`; zeros past the end.
template <int kWidth>
__device__ void copy_rows(simt::Shared<Bits> to, simt::Global<const Bits> from, int stride,
                          int rows, int there) {
  constexpr int kPacks = kWidth / 8;
  for (int i = static_cast<int>(threadIdx.x); i < rows * kPacks;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / kPacks, pack = i % kPacks;
    const bool inside = row < there;
    const std::ptrdiff_t at = inside ? static_cast<std::ptrdiff_t>(row) * stride + pack * 8 : 0;
    simt::cp_async16(to + (row * (kWidth + kPadding) + pack * 8), from + at, inside);
  }
}

// ---- decays -------------------------------------------------------------------------------------------

/// Sums of ln α from each chunk's first token on. One warp per chunk and head.
__global__ void decays_kernel(Chunked a, Job job) {
  const int lane = static_cast<int>(threadIdx.x);
  const int first = static_cast<int>(blockIdx.x) * job.chunk;
  const std::ptrdiff_t from = static_cast<std::ptrdiff_t>(blockIdx.y) * job.tokens + first;
  const int count = min(job.chunk, job.tokens - first);
  float before = 0;
  for (int part = 0; part < count; part += 32) {
    const int i = part + lane;
    float sum = i < count ? a.log_gates[from + i] : 0;
    for (int apart = 1; apart < 32; apart *= 2) {
      const float other = __shfl_up_sync(0xFFFFFFFFu, sum, apart);
      if (lane >= apart) sum += other;
    }
    sum += before;
    if (i < count) a.decays[from + i] = sum;
    before = __shfl_sync(0xFFFFFFFFu, sum, 31);
  }
}

/// b of a token of the chunk; past the end that of the last one, so that nothing decays there.
__device__ inline float decay_at(const Chunked& a, const Job& job, std::ptrdiff_t from, int count,
                                 int i) {
  return job.gated ? a.decays[from + min(i, count - 1)] : 0.0f;
}
/// Starts the copies of all of them.
__device__ inline void copy_decays(simt::Shared<float> to, const Chunked& a, const Job& job,
                                   std::ptrdiff_t from, int count) {
  if (!job.gated) return;
  for (int i = static_cast<int>(threadIdx.x); i < job.chunk; i += static_cast<int>(blockDim.x))
    simt::cp_async4(to + i, simt::Global<const float>(a.decays) + (from + min(i, count - 1)), true);
}

// ---- prepare ------------------------------------------------------------------------------------------

/// Takes a solved row's part out of 16 rows, but for those up to `after`; `column`: of L, that row's.
__device__ __forceinline__ void take_out(float (&r)[kStrip], simt::Shared<const float> column,
                                         float solved, int after) {
#pragma unroll
  for (int e = 0; e < kStrip; e += 4) {
    const float4 four = simt::as<const float4>(column + e)[0];
    const float part[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (e + i > after) r[e + i] = fmaf(-part[i], solved, r[e + i]);
    }
  }
}

/// U₀ and W of a chunk: (I + L)·[U₀ | W] = diag(β)·[V | diag(exp(b))·K], where L_ij = β_i exp(b_i − b_j) k_i·k_j for
/// j < i. A thread per column of the right side substitutes from the first row on, 16 rows at a time. In FP32.
template <int kDim>
__global__ void prepare_kernel(Chunked a, Job job) {
  constexpr int kRow = kDim + kPadding, kSides = 2 * kDim;
  const int chunk = job.chunk, lower = chunk + kSolveRows;
  const auto keys = simt::dynamic_shared<Bits>(chunk * kRow, 0, "K tile");
  // L by columns, so that a column's 16 rows are neighbours.
  const auto l = simt::dynamic_shared<float>(chunk * lower, chunk * kRow * sizeof(Bits), "L");
  const auto solved = simt::dynamic_shared<float>(
      chunk * kSides, chunk * kRow * sizeof(Bits) + chunk * lower * sizeof(float), "U and W");
  const int first = static_cast<int>(blockIdx.x) * chunk;
  const int count = min(chunk, job.tokens - first);
  const std::ptrdiff_t from = static_cast<std::ptrdiff_t>(blockIdx.y) * job.tokens + first;
  copy_rows<kDim>(keys, a.k + from * kDim, kDim, chunk, count);
  simt::cp_async_commit();
  simt::cp_async_wait<0>();
  __syncthreads();  // all keys are there

  const Lane me;
  const int warp = static_cast<int>(threadIdx.x) / 32, warps = static_cast<int>(blockDim.x) / 32;
  const int strips = chunk / kStrip;
  for (int tile = warp; tile < strips * strips; tile += warps) {
    const int down = tile / strips * kStrip, across = tile % strips * kStrip;
    if (across > down) continue;
    float product[2][4] = {};
    for (int j = 0; j < kDim; j += kStrip) {
      unsigned rows[4], columns[4];
      simt::ldmatrix_x4(rows, keys + ((down + me.down_row) * kRow + j + me.down_column));
      simt::ldmatrix_x4(columns, keys + ((across + me.across_row) * kRow + j + me.across_column));
      simt::mma_m16n8k16_bf16(product[0], rows, columns[0], columns[1]);
      simt::mma_m16n8k16_bf16(product[1], rows, columns[2], columns[3]);
    }
    for (int half = 0; half < 2; ++half) {
      for (int e = 0; e < 4; ++e) {
        const int i = down + me.group + e / 2 * 8, j = across + half * 8 + me.pair + e % 2;
        const bool counts = j < i && i < count;
        l[j * lower + i] =
            counts ? a.betas[from + i] *
                         expf(decay_at(a, job, from, count, i) - decay_at(a, job, from, count, j)) *
                         product[half][e]
                   : 0.0f;  // [step: overlap]
      }
    }
  }
  __syncthreads();  // L is there

  // The first kDim threads have columns of V, the others of K.
  const int mine = static_cast<int>(threadIdx.x), column = mine % kDim;
  const bool of_values = mine < kDim;
  for (int strip = 0; strip < chunk; strip += kStrip) {
    float r[kStrip];
#pragma unroll
    for (int e = 0; e < kStrip; ++e) {
      const int i = strip + e;
      r[e] = 0;
      if (i >= count) continue;
      const float number =
          number_of(of_values ? a.v[(from + i) * kDim + column] : a.k[(from + i) * kDim + column]);
      const float size =
          a.betas[from + i] * (of_values ? 1.0f : expf(decay_at(a, job, from, count, i)));
      r[e] = size * number;
    }
    for (int j = 0; j < strip; ++j)
      take_out(r, l + (j * lower + strip), solved[j * kSides + mine], -1);
#pragma unroll
    for (int j = 0; j < kStrip; ++j)
      take_out(r, l + ((strip + j) * lower + strip), r[j], j);  // [step: solve]
#pragma unroll
    for (int e = 0; e < kStrip; ++e) {
      const int i = strip + e;
      solved[i * kSides + mine] = r[e];
      if (i < count) (of_values ? a.values : a.readers)[(from + i) * kDim + column] = bits_of(r[e]);
    }
  }
}

// ---- states -------------------------------------------------------------------------------------------

/// Shared memory of a block of `states`: stages of a chunk's K, U, b and, with the delta rule, W; and S in BF16.
template <int kDim, bool kCorrects>
struct StateTiles {
  static constexpr int kStages = 3;  ///< a copy has two chunks' time to come
  static constexpr int kRow = kDim + kPadding, kPart = kColumns<kDim> + kPadding;
  int chunk;

  /// In numbers of 16 bits, of which b has two for each of its own.
  __host__ __device__ int stage() const {
    return chunk * (kRow + kPart + (kCorrects ? kRow : 0) + 2);
  }
  __host__ __device__ std::size_t bytes() const {
    return sizeof(Bits) * static_cast<std::size_t>(kStages * stage() + kDim * kPart);
  }
  __device__ simt::Shared<Bits> all() const {
    return simt::dynamic_shared<Bits>(kStages * stage() + kDim * kPart, 0, "K, U, b, W and S");
  }
  __device__ simt::Shared<Bits> k(int number) const { return all() + number % kStages * stage(); }
  __device__ simt::Shared<Bits> u(int number) const { return k(number) + chunk * kRow; }
  __device__ simt::Shared<float> b(int number) const {
    return simt::as<float>(u(number) + chunk * kPart);
  }
  __device__ simt::Shared<Bits> w(int number) const { return u(number) + chunk * (kPart + 2); }
  __device__ simt::Shared<Bits> s() const { return all() + kStages * stage(); }
};

/// Starts the copies of a chunk: of U the block's columns, which of the other rules are V's.
template <int kDim, bool kCorrects>
__device__ void copy_chunk(const Chunked& a, const Job& job,
                           const StateTiles<kDim, kCorrects>& tiles, int number, int head,
                           int column) {
  const int first = number * job.chunk, there = job.tokens - first;
  if (there > 0) {
    const std::ptrdiff_t row = (static_cast<std::ptrdiff_t>(head) * job.tokens + first) * kDim;
    copy_rows<kDim>(tiles.k(number), a.k + row, kDim, job.chunk, there);
    const simt::Global<const Bits> values = kCorrects ? simt::Global<const Bits>(a.values) : a.v;
    copy_rows<kColumns<kDim>>(tiles.u(number), values + (row + column), kDim, job.chunk, there);
    copy_decays(tiles.b(number), a, job, static_cast<std::ptrdiff_t>(head) * job.tokens + first,
                min(job.chunk, there));
    if (kCorrects)
      copy_rows<kDim>(tiles.w(number), simt::Global<const Bits>(a.readers) + row, kDim, job.chunk,
                      there);
  }
  simt::cp_async_commit();  // a group for each chunk, also past the last
}

/// Two neighbours of a fragment, each times its own number.
__device__ inline unsigned scaled(unsigned two, float low, float high) {
  return simt::pack_bf16(simt::unpack_bf16(two, 0) * low, simt::unpack_bf16(two, 1) * high);
}

/// U = U₀ − W·S of a chunk, strip by strip, in place; kept for `outputs`.
template <int kDim>
__device__ void correct_values(const Chunked& a, const Job& job,
                               const StateTiles<kDim, true>& tiles, int number, int head,
                               int column) {
  constexpr int kPart = StateTiles<kDim, true>::kPart, kRow = kDim + kPadding;
  constexpr int kFragments = kColumns<kDim> / 8;
  const Lane me;
  const int first = number * job.chunk;
  const std::ptrdiff_t from = static_cast<std::ptrdiff_t>(head) * job.tokens + first;
  for (int strip = static_cast<int>(threadIdx.x) / 32 * kStrip; strip < job.chunk;
       strip += kDim) {  // there are kDim / 16 warps
    float said[kFragments][4] = {};
    for (int j = 0; j < kDim; j += kStrip) {
      unsigned rows[4];
      simt::ldmatrix_x4(rows,
                        tiles.w(number) + ((strip + me.down_row) * kRow + j + me.down_column));
#pragma unroll
      for (int n = 0; n < kFragments; n += 2) {
        unsigned s[4];
        simt::ldmatrix_x4_trans(s,
                                tiles.s() + ((j + me.down_row) * kPart + n * 8 + me.down_column));
        simt::mma_m16n8k16_bf16(said[n], rows, s[0], s[1]);
        simt::mma_m16n8k16_bf16(said[n + 1], rows, s[2], s[3]);
      }
    }
#pragma unroll
    for (int n = 0; n < kFragments; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = strip + me.group + half * 8, at = n * 8 + me.pair;
        const auto place = simt::as<unsigned>(tiles.u(number) + (i * kPart + at));
        const unsigned known = place[0];
        const unsigned u = simt::pack_bf16(simt::unpack_bf16(known, 0) - said[n][2 * half],
                                           simt::unpack_bf16(known, 1) - said[n][2 * half + 1]);
        place[0] = u;
        if (first + i < job.tokens)
          simt::as<unsigned>(a.values + ((from + i) * kDim + column + at))[0] = u;
      }
    }
  }
}

/// A block per head and kColumns of S; a warp has 16 rows of S, in registers.
template <int kDim, bool kCorrects, class Tape>
__global__ void states_kernel(Chunked a, Job job, Tape tape) {
  using Tiles = StateTiles<kDim, kCorrects>;
  constexpr int kPart = Tiles::kPart, kRow = Tiles::kRow, kFragments = kColumns<kDim> / 8;
  const Tiles tiles{job.chunk};
  const Lane me;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int column = static_cast<int>(blockIdx.x) * kColumns<kDim>;
  const auto head = static_cast<int>(blockIdx.y);
  const int row = warp * kStrip + me.group;
  float s[kFragments][4] = {};

  for (int number = 0; number + 1 < Tiles::kStages; ++number)
    copy_chunk<kDim, kCorrects>(a, job, tiles, number, head, column);
  for (int number = 0; number < job.chunks; ++number) {
    copy_chunk<kDim, kCorrects>(a, job, tiles, number + Tiles::kStages - 1, head, column);
    // Hand out the state that the chunk begins with.
#pragma unroll
    for (int n = 0; n < kFragments; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        simt::as<unsigned>(tiles.s() + ((row + half * 8) * kPart + n * 8 + me.pair))[0] =
            simt::pack_bf16(s[n][2 * half], s[n][2 * half + 1]);
        if (Tape::kRecords && head == 0 && row + half * 8 < kShown && column + n * 8 < kShown) {
          for (int e = 0; e < 2; ++e)
            tape.note(kHanded, (number * kShown + row + half * 8) * kShown + n * 8 + me.pair + e,
                      s[n][2 * half + e]);
        }
      }
    }
    simt::cp_async_wait<Tiles::kStages - 1>();
    __syncthreads();  // S and the chunk's tiles are there
    constexpr int kPacks = kColumns<kDim> / 8;
    const std::ptrdiff_t begin = static_cast<std::ptrdiff_t>(head) * job.chunks + number;
    for (int i = static_cast<int>(threadIdx.x); i < kDim * kPacks; i += 2 * kDim) {
      simt::as<uint4>(a.states +
                      ((begin * kDim + i / kPacks) * kDim + column + i % kPacks * 8))[0] =
          simt::as<uint4>(tiles.s() + (i / kPacks * kPart + i % kPacks * 8))[0];
    }
    if constexpr (kCorrects) {
      correct_values<kDim>(a, job, tiles, number, head, column);
      __syncthreads();  // U is there
    }

    const simt::Shared<float> b = tiles.b(number);
    const float last = job.gated ? b[job.chunk - 1] : 0;
    const float carry = expf(job.undecayed ? 0.0f : last);
#pragma unroll
    for (int n = 0; n < kFragments; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) s[n][e] *= carry;  // [step: hand over]
    }
    for (int j = 0; j < job.chunk; j += kStrip) {
      unsigned keys[4];
      simt::ldmatrix_x4_trans(
          keys, tiles.k(number) + ((j + me.across_row) * kRow + warp * kStrip + me.across_column));
      if (job.gated) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int i = j + half * 8 + me.pair;
          const float low = expf(last - b[i]), high = expf(last - b[i + 1]);
          keys[2 * half] = scaled(keys[2 * half], low, high);
          keys[2 * half + 1] = scaled(keys[2 * half + 1], low, high);
        }
      }
#pragma unroll
      for (int n = 0; n < kFragments; n += 2) {
        unsigned u[4];
        simt::ldmatrix_x4_trans(
            u, tiles.u(number) + ((j + me.down_row) * kPart + n * 8 + me.down_column));
        simt::mma_m16n8k16_bf16(s[n], keys, u[0], u[1]);
        simt::mma_m16n8k16_bf16(s[n + 1], keys, u[2], u[3]);
      }
    }
    __syncthreads();  // the tiles are free for a later chunk, and S for the next
  }
#pragma unroll
  for (int n = 0; n < kFragments; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e)
      a.state[(static_cast<std::ptrdiff_t>(head) * kDim + row + e / 2 * 8) * kDim + column + n * 8 +
              me.pair + e % 2] = s[n][e];
  }
}

// ---- outputs ------------------------------------------------------------------------------------------

/// Shared memory of a block of `outputs`: Q, K, U and b of a chunk, and S.
template <int kDim>
struct OutputTiles {
  static constexpr int kRow = kDim + kPadding;
  int chunk;

  __host__ __device__ int numbers() const { return (3 * chunk + kDim) * kRow + 2 * chunk; }
  __host__ __device__ std::size_t bytes() const {
    return sizeof(Bits) * static_cast<std::size_t>(numbers());
  }
  __device__ simt::Shared<Bits> q() const {
    return simt::dynamic_shared<Bits>(numbers(), 0, "Q, K, U, S and b");
  }
  __device__ simt::Shared<Bits> k() const { return q() + chunk * kRow; }
  __device__ simt::Shared<Bits> u() const { return q() + 2 * chunk * kRow; }
  __device__ simt::Shared<Bits> s() const { return q() + 3 * chunk * kRow; }
  __device__ simt::Shared<float> b() const { return simt::as<float>(s() + kDim * kRow); }
};

/// A block per chunk and head; a warp has 16 tokens.
template <int kDim, bool kCorrects, class Tape>
__global__ void outputs_kernel(Chunked a, Job job, Tape tape) {
  constexpr int kRow = kDim + kPadding, kFragments = kDim / 8;
  const OutputTiles<kDim> tiles{job.chunk};
  const Lane me;
  const auto number = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y);
  const int first = number * job.chunk, count = min(job.chunk, job.tokens - first);
  const std::ptrdiff_t from = static_cast<std::ptrdiff_t>(head) * job.tokens + first;
  copy_rows<kDim>(tiles.q(), a.q + from * kDim, kDim, job.chunk, count);
  const int begin = job.stale ? max(number - 1, 0) : number;
  const std::ptrdiff_t state = static_cast<std::ptrdiff_t>(head) * job.chunks + begin;
  copy_rows<kDim>(tiles.s(), simt::Global<const Bits>(a.states) + state * kDim * kDim, kDim, kDim,
                  kDim);
  copy_decays(tiles.b(), a, job, from, count);
  simt::cp_async_commit();
  copy_rows<kDim>(tiles.k(), a.k + from * kDim, kDim, job.chunk, count);
  const simt::Global<const Bits> values = kCorrects ? simt::Global<const Bits>(a.values) : a.v;
  copy_rows<kDim>(tiles.u(), values + from * kDim, kDim, job.chunk, count);
  simt::cp_async_commit();
  simt::cp_async_wait<1>();
  __syncthreads();  // Q, S and b are there

  // What the state says: Q·S, of what has decayed since.
  const int strip = static_cast<int>(threadIdx.x) / 32 * kStrip;
  unsigned q[kDim / kStrip][4];
  float o[kFragments][4] = {};
#pragma unroll
  for (int j = 0; j < kDim / kStrip; ++j) {
    simt::ldmatrix_x4(q[j],
                      tiles.q() + ((strip + me.down_row) * kRow + j * kStrip + me.down_column));
#pragma unroll
    for (int n = 0; n < kFragments; n += 2) {
      unsigned s[4];
      simt::ldmatrix_x4_trans(
          s, tiles.s() + ((j * kStrip + me.down_row) * kRow + n * 8 + me.down_column));
      simt::mma_m16n8k16_bf16(o[n], q[j], s[0], s[1]);
      simt::mma_m16n8k16_bf16(o[n + 1], q[j], s[2], s[3]);
    }
  }
  const simt::Shared<float> b = tiles.b();
  float decay[2];  // b of the lane's two rows
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    decay[half] = job.gated ? b[strip + me.group + half * 8] : 0.0f;
    const float since = expf(decay[half]);
#pragma unroll
    for (int n = 0; n < kFragments; ++n) {
      o[n][2 * half] *= since;
      o[n][2 * half + 1] *= since;
    }
  }
  const auto note = [&](std::uint32_t site) {
    for (int e = 0; e < 8 && head == 0; ++e) {
      const int i = strip + me.group + e / 2 % 2 * 8, n = e / 4;
      if (i < count) tape.note(site, (first + i) * kShown + n * 8 + me.pair + e % 2, o[n][e % 4]);
    }
  };
  if constexpr (Tape::kRecords) note(kInter);
  simt::cp_async_wait<0>();
  __syncthreads();  // K and U are there

  // What the chunk's own tokens say: strips of keys up to the tokens' own.
  const int end = job.unmasked ? job.chunk : strip + kStrip;
  for (int other = 0; other < end; other += kStrip) {
    float product[2][4] = {};
#pragma unroll
    for (int j = 0; j < kDim / kStrip; ++j) {
      unsigned keys[4];
      simt::ldmatrix_x4(
          keys, tiles.k() + ((other + me.across_row) * kRow + j * kStrip + me.across_column));
      simt::mma_m16n8k16_bf16(product[0], q[j], keys[0], keys[1]);
      simt::mma_m16n8k16_bf16(product[1], q[j], keys[2], keys[3]);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int i = strip + me.group + e / 2 * 8, j = other + half * 8 + me.pair + e % 2;
        if (job.gated) product[half][e] *= expf(decay[e / 2] - b[j]);
        if (j > i && !job.unmasked) product[half][e] = 0;  // [step: mask]
        if (Tape::kRecords && head == 0 && i < count && j < count)
          tape.note(kProduct, (first + i) * job.chunk + j, product[half][e]);
      }
    }
    const unsigned rows[4] = {simt::pack_bf16(product[0][0], product[0][1]),
                              simt::pack_bf16(product[0][2], product[0][3]),
                              simt::pack_bf16(product[1][0], product[1][1]),
                              simt::pack_bf16(product[1][2], product[1][3])};
#pragma unroll
    for (int n = 0; n < kFragments; n += 2) {
      unsigned u[4];
      simt::ldmatrix_x4_trans(u,
                              tiles.u() + ((other + me.down_row) * kRow + n * 8 + me.down_column));
      simt::mma_m16n8k16_bf16(o[n], rows, u[0], u[1]);  // [step: within]
      simt::mma_m16n8k16_bf16(o[n + 1], rows, u[2], u[3]);
    }
  }
  if constexpr (Tape::kRecords) note(kOut);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = strip + me.group + half * 8;
    if (i >= count) continue;
#pragma unroll
    for (int n = 0; n < kFragments; ++n)
      simt::as<unsigned>(a.o + ((from + i) * kDim + n * 8 + me.pair))[0] =
          simt::pack_bf16(o[n][2 * half], o[n][2 * half + 1]);
  }
}

}  // namespace tilestep::linear_attention::SIMT_BACKEND
