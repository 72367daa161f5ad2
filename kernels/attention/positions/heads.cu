#pragma once

// From a projection to attention: the heads of a token are normed, turned by its position and stored.
//
//   norm    n = x · gain / √(mean of x² + ε), of queries and keys
//   rotate  (a, b) → (a·cos − b·sin, a·sin + b·cos), each pair by its own angle
//   store   keys and values, into the cache's page and slot of the token
//
// One source for the fused launch and for the four that it replaces. A row is a head of a token, the work of
// dim / 16 threads with 16 numbers each: as many from its first half as from its second, so that both numbers of a pair
// are one thread's in either layout. A block's heads are of one token, whose angles it computes once.

#include <cstddef>

#include "kernels/attention/positions/angles.hpp"
#include "kernels/base/simt/hopper.hpp"
#include "kernels/base/simt/mma.hpp"

namespace tilestep::positions::SIMT_BACKEND {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;
constexpr int kPairsEach = kNumbersEach / 2, kTwosEach = kPairsEach / 2;

/// The arrays of a launch as its kernel has them, in packs of eight numbers; rates in twos.
struct Arrays {
  simt::Global<const uint4> qkv;
  simt::Global<uint4> q, keys, k_cache, v_cache;
  simt::Global<const uint4> q_gain, k_gain;
  simt::Global<const int> positions, slots;
  simt::Global<const uint4> rates;
};
/// The shape of a launch.
struct Job {
  int heads, kv_heads, page_size;
  int first, rows;       ///< of a token's rows: queries, then keys, then values
  int lanes, lane_bits;  ///< threads of a row, a power of two
  float per_dim, size;
};
enum class Kind { query, key, value };

/// Whether a stage norms, turns, stores.
constexpr bool norms(Stage stage) {
  return stage <= Stage::norm_keys;
}
constexpr bool rotates(Stage stage) {
  return stage == Stage::fused || stage == Stage::rotate;
}
constexpr bool stores(Stage stage) {
  return stage == Stage::fused || stage == Stage::store;
}

__device__ inline void unpack(const uint4& words, float* numbers) {
  const unsigned word[4] = {words.x, words.y, words.z, words.w};
  for (int i = 0; i < 8; ++i) numbers[i] = simt::unpack_bf16(word[i / 2], i % 2);
}
__device__ inline uint4 pack(const float* n) {
  return make_uint4(simt::pack_bf16(n[0], n[1]), simt::pack_bf16(n[2], n[3]),
                    simt::pack_bf16(n[4], n[5]), simt::pack_bf16(n[6], n[7]));
}

/// Two angles of the four twos that a lane turns by. Half split, pair j is number j of both packs; interleaved, four pairs
/// are neighbours in the first pack and four in the second.
__device__ inline void make_two(const Arrays& a, const Job& job, Pairs pairs, int lane, int two,
                                int position, bool fp16, Turn (&turns)[2]) {
  const int first =
      pairs == Pairs::half_split ? 4 * lane + two : 2 * (lane + two / 2 * job.lanes) + two % 2;
  const uint4 words = a.rates[first];
  const std::uint64_t rates[2] = {words.x | static_cast<std::uint64_t>(words.y) << 32,
                                  words.z | static_cast<std::uint64_t>(words.w) << 32};
  for (int i = 0; i < 2; ++i) {
    turns[i] =
        fp16 ? turn_in_fp16(rates[i], position, job.size) : turn_at(rates[i], position, job.size);
  }
}
/// The angles of a token, each computed once for all heads of its block.
__device__ inline void make_turns(const Arrays& a, const Job& job, Pairs pairs, int lane,
                                  int position, bool fp16, Turn (&turns)[kPairsEach]) {
  const auto shared = simt::dynamic_shared<float4>(kTwosEach * job.lanes, 0, "angles");
  for (int i = threadIdx.x; i < kTwosEach * job.lanes; i += blockDim.x) {
    Turn both[2];
    make_two(a, job, pairs, i & (job.lanes - 1), i >> job.lane_bits, position, fp16, both);
    shared[i] = float4{both[0].cos, both[0].sin, both[1].cos, both[1].sin};
  }
  __syncthreads();  // the angles are there
#pragma unroll
  for (int two = 0; two < kTwosEach; ++two) {
    const float4 both = shared[two * job.lanes + lane];
    turns[2 * two] = {both.x, both.y};
    turns[2 * two + 1] = {both.z, both.w};
  }
}

/// Turns a thread's 16 numbers of a row.
__device__ inline void rotate(float (&n)[kNumbersEach], const Turn (&turns)[kPairsEach],
                              Pairs pairs) {
  for (int j = 0; j < kPairsEach; ++j) {
    const int first = pairs == Pairs::half_split ? j : 2 * j;
    const int second = pairs == Pairs::half_split ? j + kPairsEach : 2 * j + 1;
    const float a = n[first], b = n[second];
    n[first] = a * turns[j].cos - b * turns[j].sin;  // [step: pair]
    n[second] = a * turns[j].sin + b * turns[j].cos;
  }
}

/// A thread's part of the rows of a token: packs lane and lane + lanes of each.
template <Stage kStage, class Tape>
struct Rows {
  const Arrays& arrays;
  const Job& job;
  const Tape& tape;
  int token, lane;

  __device__ Kind kind_of(int row) const {
    return row < job.heads ? Kind::query : row < job.heads + job.kv_heads ? Kind::key : Kind::value;
  }
  __device__ int packs() const { return 2 * job.lanes; }
  __device__ std::ptrdiff_t query_at(int row) const {
    return (static_cast<std::ptrdiff_t>(token) * job.heads + row) * packs() + lane;
  }
  __device__ std::ptrdiff_t key_at(int row) const {
    return (static_cast<std::ptrdiff_t>(token) * job.kv_heads + row - job.heads) * packs() + lane;
  }

  /// Where the launch before has left a row, or the projection.
  __device__ void load(int row, uint4 (&held)[2], uint4 (&gains)[2]) const {
    const Kind kind = kind_of(row);
    const std::ptrdiff_t all = job.heads + 2 * job.kv_heads;
    for (int half = 0; half < 2; ++half) {
      const int apart = half * job.lanes;
      if (kStage == Stage::rotate && kind == Kind::query) {
        held[half] = tape.traced(arrays.q, kQ)[query_at(row) + apart];
      } else if ((kStage == Stage::rotate || kStage == Stage::store) && kind == Kind::key) {
        held[half] = tape.traced(arrays.keys, kKeys)[key_at(row) + apart];
      } else {
        held[half] = tape.traced(arrays.qkv, kQkv)[(token * all + row) * packs() + lane + apart];
      }
      if (norms(kStage) && kind != Kind::value)
        gains[half] = (kind == Kind::query ? arrays.q_gain : arrays.k_gain)[lane + apart];
    }
  }

  /// All threads of a warp take part, also those without a row.
  __device__ void norm(float (&n)[kNumbersEach], const uint4 (&gains)[2], bool changes) const {
    float squares = 0;
    for (int j = 0; j < kNumbersEach; ++j) squares = fmaf(n[j], n[j], squares);
    for (int apart = job.lanes / 2; apart > 0; apart /= 2)
      squares += __shfl_xor_sync(kAllLanes, squares, apart);
    if (!changes) return;
    const float inverse = rsqrtf(fmaf(squares, job.per_dim, kEpsilon));  // [step: norm]
    float gain[kNumbersEach];
    unpack(gains[0], gain);
    unpack(gains[1], gain + 8);
    for (int j = 0; j < kNumbersEach; ++j) n[j] *= inverse * gain[j];
  }

  /// Queries go on to attention, keys and values to their place in the cache.
  __device__ void store(int row, int slot, const float (&n)[kNumbersEach]) const {
    const Kind kind = kind_of(row);
    const int head = row - job.heads - (kind == Kind::value ? job.kv_heads : 0);
    const int page = slot / job.page_size;
    const std::ptrdiff_t line =
        (static_cast<std::ptrdiff_t>(page) * job.kv_heads + head) * job.page_size +
        (slot - page * job.page_size);
    for (int half = 0; half < 2; ++half) {
      const int apart = half * job.lanes;
      const uint4 result = pack(n + 8 * half);
      if (kind == Kind::query) {
        tape.traced(arrays.q, kQ)[query_at(row) + apart] = result;
      } else if (!stores(kStage)) {
        tape.traced(arrays.keys, kKeys)[key_at(row) + apart] = result;
      } else if (slot >= 0) {
        const std::ptrdiff_t at = line * packs() + lane + apart;
        if (kind == Kind::key) tape.traced(arrays.k_cache, kKCache)[at] = result;  // [step: store]
        if (kind == Kind::value) tape.traced(arrays.v_cache, kVCache)[at] = result;
      }
    }
  }

  /// The last token's first query and key, as they are before they turn.
  __device__ void note(int row, const float (&n)[kNumbersEach]) const {
    if (!norms(kStage) || token + 1 != static_cast<int>(gridDim.x)) return;
    if (row != 0 && row != job.heads) return;
    for (int j = 0; j < kNumbersEach; ++j) {
      const int number = 8 * (lane + j / 8 * job.lanes) + j % 8;
      tape.note(kNormed, (row == 0 ? 0 : 8 * packs()) + number, n[j]);
    }
  }
};

template <Stage kStage, Pairs kPairs, int kRows, class Tape>
__device__ void turn_heads(const Arrays& arrays, const Job& job, Break broken, const Tape& tape) {
  const int lane = static_cast<int>(threadIdx.x) & (job.lanes - 1);
  const int groups = static_cast<int>(blockDim.x) >> job.lane_bits;
  const int start = static_cast<int>(blockIdx.y) * groups * kRows +
                    (static_cast<int>(threadIdx.x) >> job.lane_bits);
  const Rows<kStage, Tape> rows{arrays, job, tape, static_cast<int>(blockIdx.x), lane};
  const auto is_mine = [&](int k) { return start + k * groups < job.rows; };
  const auto row_at = [&](int k) { return job.first + start + k * groups; };

  // All loads of a thread are in flight together: they need nothing but its place.
  uint4 held[kRows][2], gains[kRows][2];
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    if (is_mine(k)) rows.load(row_at(k), held[k], gains[k]);
  }
  const int position = rotates(kStage) ? arrays.positions[rows.token] : 0;
  const int slot = stores(kStage) ? arrays.slots[rows.token] : 0;
  Turn turns[kPairsEach];
  const bool fp16 = Tape::kRecords && broken == Break::fp16_angles;
  if (rotates(kStage)) make_turns(arrays, job, kPairs, lane, position, fp16, turns);

#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    const int row = row_at(k);
    const Kind kind = rows.kind_of(row);
    float n[kNumbersEach] = {};
    if (is_mine(k)) {
      unpack(held[k][0], n);
      unpack(held[k][1], n + 8);
    }
    if (norms(kStage)) rows.norm(n, gains[k], is_mine(k) && kind != Kind::value);
    if (!is_mine(k)) continue;
    if constexpr (Tape::kRecords) rows.note(row, n);
    if (rotates(kStage)) {
      if (Tape::kRecords && broken == Break::swapped_pairs && kind == Kind::key) {
        constexpr Pairs kOther =
            kPairs == Pairs::half_split ? Pairs::interleaved : Pairs::half_split;
        Turn wrong[kTwosEach][2], turned[kPairsEach];
        for (int two = 0; two < kTwosEach; ++two) {
          make_two(arrays, job, kOther, lane, two, position, fp16, wrong[two]);
          for (int i = 0; i < 2; ++i) turned[2 * two + i] = wrong[two][i];
        }
        rotate(n, turned, kOther);
      } else if (kind != Kind::value || (Tape::kRecords && broken == Break::rotate_values)) {
        rotate(n, turns, kPairs);
      }
    }
    rows.store(row, slot, n);
  }
}

/// The timed kernel.
template <Stage kStage, Pairs kPairs, int kRows>
__global__ void heads_kernel(Arrays arrays, Job job, bool early) {
  if (early) {
    simt::hopper::others_may_begin();
    simt::hopper::await_launch_before();  // which may have written what this one reads
  }
  turn_heads<kStage, kPairs, kRows>(arrays, job, Break::none, simt::NoTape{});
}

/// The explained one.
template <Stage kStage, Pairs kPairs>
__global__ void explained_kernel(Arrays arrays, Job job, Break broken, simt::Tape tape) {
  turn_heads<kStage, kPairs, 1>(arrays, job, broken, tape);
}

__global__ void nothing_kernel() {}

}  // namespace tilestep::positions::SIMT_BACKEND
