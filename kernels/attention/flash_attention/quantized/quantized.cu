// Attention whose scores come from 8-bit numbers: S = Q K^T by wgmma in E4M3 or INT8, which multiply at twice the
// rate of BF16, softmax in FP32, O += P V in BF16. The loop is flash-2's, on Hopper's instructions:
//
//   - a block owns a tile of queries and walks over the tiles of keys that any of them sees
//   - TMA fetches the next tile of K and V while the current one is multiplied
//   - a score is the product times the scales of both tiles, plus the part that K's mean took from it
//   - weights are rounded to BF16: they are between 0 and 1, and V in 8 bits would cost more than it saves
//
// Q, K [… × head_dim] in 8 bits and their scales come from quantize.cu; V, O [… × head_dim] BF16, log-sum-exp FP32.

#include "kernels/attention/flash_attention/quantized/quantize.cu"

namespace tilestep::flash_attention::SIMT_BACKEND {

namespace hopper = simt::hopper;

/// A kernel's compile-time constants, in the terms of tiles.hpp.
template <Format kF, int kDim, int kQ, int kK, int kB>
struct QuantizedTiles {
  static constexpr QuantizedSizes kSizes{kDim, kQ, kK};
  static constexpr Format kFormat = kF;
  static constexpr int block_q = kQ, block_k = kK, head_dim = kDim, columns = kDim;
  static constexpr int threads = kSizes.threads(), strips = 1;
  static constexpr int kMostKeys = kK, kMostColumns = kDim, kMostThreads = threads, kBlocks = kB;
  static constexpr int kUnroll = kFully;
  static constexpr int kPanels = kDim / 64;  ///< of V: 64 columns, 128 bytes
  static_assert((kDim == 64 || kDim == 128) && kQ % 64 == 0 && kK % 16 == 0);

  /// S8 accumulates in integers.
  using Sum = std::conditional_t<kF == Format::s8, int, float>;
};

/// Q and K [heads][length][head_dim] in bytes, V in BF16.
struct QuantizedMaps {
  hopper::TensorMap q, k, v;
};
/// q, k and v are read by TMA: they are here only to be counted.
template <class Tape>
struct QuantizedOperands {
  template <class T>
  using Array = ArrayOf<Tape, T>;

  Array<const std::uint8_t> q, k;
  Array<const std::uint16_t> v;
  Array<const float> q_scales, k_scales, q_mean;
  simt::Global<const int> begins;
  Array<std::uint16_t> o;
  Array<float> lse;
  bool smooth;  ///< q_mean exists
};

/// Addresses in shared memory. Rows of Q and K are as long as their swizzle; V is in panels of 64 columns.
template <class T>
struct QuantizedLayout {
  unsigned base;

  __device__ __forceinline__ unsigned q() const { return base; }
  __device__ __forceinline__ unsigned k(int stage) const {
    return base + static_cast<unsigned>(T::kSizes.query_bytes() +
                                        stage * (T::kSizes.key_bytes() + T::kSizes.value_bytes()));
  }
  __device__ __forceinline__ unsigned v(int stage) const {
    return k(stage) + static_cast<unsigned>(T::kSizes.key_bytes());
  }
  __device__ __forceinline__ unsigned full(int stage) const {
    return k(2) + static_cast<unsigned>(8 * stage);
  }
};

template <class T>
__device__ __forceinline__ QuantizedLayout<T> lay_out_tiles() {
  constexpr unsigned kAlignment = 1024;  // required by the swizzle pattern
  const unsigned raw = simt::shared_address(simt::dynamic_shared<std::uint8_t>(
      T::kSizes.tile_bytes(), T::kSizes.output_bytes(), "tiles"));
  const QuantizedLayout<T> at{(raw + kAlignment - 1) / kAlignment * kAlignment};
  hopper::name_shared(at.q(), T::kSizes.query_bytes(), "Q", 0);
  for (int stage = 0; stage < 2; ++stage) {
    hopper::name_shared(at.k(stage), T::kSizes.key_bytes(), "K", stage);
    hopper::name_shared(at.v(stage), T::kSizes.value_bytes(), "V", stage);
    hopper::name_shared(at.full(stage), 8, "full", stage);
  }
  return at;
}

/// Counts the bytes requested from TMA: rows past the end are not read.
template <class Array>
__device__ __forceinline__ void ask_rows(const Array& array, int rows, int row_bytes) {
  ask(array, 0, rows * row_bytes);
}

/// Requests a tile of K and V from TMA; Q comes with the first one. Called by one thread.
template <class T, class Tape>
__device__ __forceinline__ void fetch_tile(const QuantizedMaps& maps,
                                           const QuantizedOperands<Tape>& arrays,
                                           const Setting& set, const QuantizedLayout<T>& at,
                                           const QueryTile& mine, int tile, int stage,
                                           bool with_q) {
  const int head = set.kv_head(mine.head);
  const int key = tile * T::block_k;
  const int bytes = T::kSizes.key_bytes() + T::kSizes.value_bytes();
  hopper::arrive_expecting(at.full(stage), bytes + (with_q ? T::kSizes.query_bytes() : 0));
  if (with_q) {
    hopper::fetch(maps.q, at.q(), at.full(stage), 0, mine.first, mine.head);
    ask_rows(arrays.q, mine.last - mine.first + 1, T::head_dim);
  }
  hopper::fetch(maps.k, at.k(stage), at.full(stage), 0, key, head);
  for (int panel = 0; panel < T::kPanels; ++panel) {
    hopper::fetch(maps.v, at.v(stage) + static_cast<unsigned>(panel * T::block_k * 128),
                  at.full(stage), panel * 64, key, head);
  }
  const int there = min(T::block_k, set.length() - key);
  ask_rows(arrays.k, there, T::head_dim);
  ask_rows(arrays.v, there, 2 * T::head_dim);
}

/// A number that all lanes of a warp need: one lane loads it.
template <class From>
__device__ __forceinline__ float load_for_warp(const From& from) {
  float number = 0;
  if (threadIdx.x % 32 == 0) number = load(from);
  return __shfl_sync(kAllLanes, number, 0);
}
/// The part that K's mean took from the scores of a lane's two rows: q · mean.
template <class Tape>
__device__ __forceinline__ void load_means(float (&means)[2], const QuantizedOperands<Tape>& arrays,
                                           const QueryTile& mine, int length) {
  const Lane me;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = mine.first + me.row(1, 0, half);
    float number = 0;
    if (arrays.smooth && me.lane % 4 == 0 && query < length) {
      number = load(arrays.q_mean + (static_cast<std::ptrdiff_t>(mine.head) * length + query));
    }
    means[half] = __shfl_sync(kAllLanes, number, me.lane / 4 * 4);
  }
}

/// S = Q K^T of a warpgroup's 64 queries, in the units of Q and K.
template <class T>
__device__ __forceinline__ void multiply_bytes(Scores<T>& s, unsigned q, unsigned k, float scale,
                                               const float (&means)[2]) {
  typename T::Sum sums[T::block_k / 2];
  const std::uint64_t a = hopper::descriptor<T::head_dim>(q);
  const std::uint64_t b = hopper::descriptor<T::head_dim>(k);
  hopper::wgmma_begin();
#pragma unroll
  for (int step = 0; step < T::head_dim / hopper::kWgmmaBytes; ++step) {
    const auto further = static_cast<std::uint64_t>(step * hopper::kWgmmaBytes / 16);
    hopper::wgmma<T::kFormat, T::block_k>(sums, a + further, b + further, step == 0);
  }
  hopper::wgmma_commit();
  hopper::wgmma_wait<0>();
  hopper::settle(sums);
#pragma unroll
  for (int i = 0; i < T::block_k / 2; ++i) {
    s[0][i / 4][i % 4] = fmaf(static_cast<float>(sums[i]), scale, means[i / 2 % 2]);
  }
}

/// O += P V. A thread's accumulators are already where wgmma wants A's fragments: two neighbours of a row per register.
template <class T>
__device__ __forceinline__ void add_values(Outputs<T>& o, const Scores<T>& p, unsigned v) {
  unsigned weights[T::block_k / 16][4];
#pragma unroll
  for (int i = 0; i < T::block_k / 4; ++i) {
    const float* two = &p[0][i / 2][i % 2 * 2];
    weights[i / 4][i % 4] = hopper::pack_bf16(two[0], two[1]);
  }
  // The same registers, in one row.
  auto& sums = reinterpret_cast<float(&)[T::head_dim / 2]>(o);
  const std::uint64_t b = hopper::turned_descriptor(v, T::block_k * 128);
  hopper::wgmma_begin();
#pragma unroll
  for (int step = 0; step < T::block_k / 16; ++step) {
    hopper::wgmma<Format::bf16, T::head_dim, hopper::Major::n>(
        sums, weights[step], b + static_cast<std::uint64_t>(step * 16 * 128 / 16), false);
  }
  hopper::wgmma_commit();
  hopper::wgmma_wait<0>();
  hopper::settle(sums);
}

template <class T, class Tape>
__global__ void __launch_bounds__(T::kMostThreads, T::kBlocks)
    quantized_attention(const __grid_constant__ QuantizedMaps maps, QuantizedOperands<Tape> arrays,
                        Setting set, Tape tape) {
  const T tiles;
  const auto o_tile = simt::dynamic_shared<std::uint16_t>(T::block_q * T::head_dim, 0, "O tile");
  const QuantizedLayout<T> at = lay_out_tiles<T>();
  const bool speaks = threadIdx.x == 0;
  if (speaks) {
    hopper::barrier_init(at.full(0), 1);
    hopper::barrier_init(at.full(1), 1);
    hopper::publish_barriers();
  }
  const QueryTile mine = query_tile(set, T::block_q, static_cast<int>(blockIdx.x));
  const KeyTiles seen = set.rule.tiles(mine.first, mine.last, T::block_k, arrays.begins);
  const unsigned my_q =
      at.q() + static_cast<unsigned>(static_cast<int>(threadIdx.x) / 128 * 64 * T::head_dim);
  const int k_tiles = (set.length() + T::block_k - 1) / T::block_k;
  const std::ptrdiff_t first_scale = static_cast<std::ptrdiff_t>(set.kv_head(mine.head)) * k_tiles;

  Outputs<T> o = {};
  RowStats<1> stats;
  float means[2] = {};
  float q_scale = 0;
  int tile = seen.next(0), visits = 0;
  if (tile < seen.end) {
    if (speaks) fetch_tile<T>(maps, arrays, set, at, mine, tile, 0, true);
    const int q_tiles = (set.length() + T::block_q - 1) / T::block_q;
    q_scale = load_for_warp(arrays.q_scales +
                            (static_cast<std::ptrdiff_t>(mine.head) * q_tiles + mine.tile));
    load_means(means, arrays, mine, set.length());
  }
  for (int turn = 0; tile < seen.end; ++turn) {
    const int stage = turn % 2;
    const int next = seen.next(tile + 1);
    // All threads must see the barriers, and be done with the other stage.
    __syncthreads();
    if (speaks && next < seen.end) {
      fetch_tile<T>(maps, arrays, set, at, mine, next, stage ^ 1, false);  // [step: copy]
    }
    const float scale = q_scale * load_for_warp(arrays.k_scales + (first_scale + tile));
    const int first_key = tile * T::block_k;
    const bool full = seen.full(tile);
    const Place here = begin_visit(tape, set, tiles, mine, tile, visits++,
                                   full ? TileKind::full : TileKind::partial);
    hopper::wait_for(at.full(stage), static_cast<unsigned>(turn / 2 % 2));
    Scores<T> s;
    multiply_bytes<T>(s, my_q, at.k(stage), scale, means);  // [step: scores]
    const Lane me;
    modify_and_mask(s, set, arrays, mine.head, mine.first + me.warp * kStrip, first_key, T::block_k,
                    full, tape);                          // [step: mask]
    online_softmax(s, o, stats, set, tiles, tape, here);  // [step: softmax]
    add_values<T>(o, s, at.v(stage));                     // [step: values]
    tile = next;
    note_outputs(tape, here, o);
    end_visit(tape, here, 0, tile < seen.end ? 0 : mine.last - mine.first + 1);
  }
  finish(o, stats, o_tile, mine, set, arrays, tiles);  // [step: output]
}

}  // namespace tilestep::flash_attention::SIMT_BACKEND
