// A decode step as one kernel: as many blocks as fit at once walk through all layers and meet at a barrier where one needs
// what the others made. Weights hang on nothing, so they flow on while a block waits there: each warp copies its own to
// shared memory in the order in which it needs them, as far ahead as there is room.

#include <type_traits>

#include "kernels/base/simt/mma.hpp"
#include "kernels/systems/launches/device.hpp"

namespace tilestep::launches::SIMT_BACKEND {

inline constexpr int kPersistentThreads = 512;  ///< of a block
/// Packs of a lane in a unit of a warp's stream, from one row; and the packs of such a unit.
inline constexpr int kUnit = 4, kUnitPacks = 32 * kUnit;
/// Units on their way for each warp: as many as fit beside the numbers of that many tokens, 8192 each.
template <int kTokens>
inline constexpr int kDepth = kTokens == 1   ? 6
                              : kTokens == 2 ? 5
                              : kTokens == 4 ? 3
                                             : 2;

/// What the persistent kernel is given, in packs.
struct Model {
  simt::Global<const int> tokens;
  simt::Global<const float> table, gains;
  simt::Global<const uint4> gate, up, down;
  simt::Global<float> h, a;
  simt::Global<unsigned> arrived;
};

/// Where a token's four numbers i of 4·fours lie in shared memory: the first halves of all packs, then the second halves.
/// So the lanes of a warp, each at a pack of its own, read from different banks.
__device__ __forceinline__ int place_of(int token, int fours, int i) {
  return token * fours + i % 2 * (fours / 2) + i / 2;
}

/// h of all tokens to shared memory, normed. What other blocks wrote in this launch is not in this one's L1: __ldcg.
template <class X>
__device__ void norm_rows(const Model& model, const StepShape& shape, int layer, const X& n) {
  const int fours = shape.width / 4;
  const auto table = simt::as<const float4>(model.table);
  const auto h = simt::as<const float4>(model.h), gains = simt::as<const float4>(model.gains);
  for (int token = 0; token < shape.batch; ++token) {
    float squares = 0.0f;
#pragma unroll 4  // the loads are in flight together
    for (int i = threadIdx.x; i < fours; i += blockDim.x) {
      const float4 four =
          layer == 0 ? table[model.tokens[token] * fours + i] : __ldcg(&h[token * fours + i]);
      const float4 gain = gains[layer * fours + i];
      squares += four.x * four.x + four.y * four.y + four.z * four.z + four.w * four.w;
      n[place_of(token, fours, i)] =
          float4{four.x * gain.x, four.y * gain.y, four.z * gain.z, four.w * gain.w};
    }
    squares = block_sum(squares);
    const float inverse = 1.0f / sqrtf(squares / static_cast<float>(shape.width) + kEpsilon);
    for (int i = threadIdx.x; i < fours; i += blockDim.x) {
      const int at = place_of(token, fours, i);
      const float4 four = n[at];
      n[at] = float4{four.x * inverse, four.y * inverse, four.z * inverse, four.w * inverse};
    }
  }
}

template <int kTokens>
__device__ void warp_sums(float (&sums)[kTokens]) {
#pragma unroll
  for (int token = 0; token < kTokens; ++token) sums[token] = warp_sum(sums[token]);
}

/// The weights of a step's rows in the order in which a warp needs them: of each layer gate and up in turn, then down. A lane
/// reads what it copied itself, so no lane waits for another.
template <int kDepth, class Ring>
struct Stream {
  const Model& model;
  const StepShape& shape;
  const Ring ring;  ///< kDepth units of each thread
  const int lane, warp, all_warps;
  enum Matrix : int { gate, up, down } matrix = gate;
  int layer = 0, row = warp, at = 0;  ///< of the unit that is asked for next
  int last = 0, first = 0;            ///< its slot, and that of the unit that is used next

  __device__ void settle() {
    while (layer < shape.layers && row >= (matrix == down ? shape.width : shape.inner)) {
      row = warp;
      layer += matrix == down ? 1 : 0;
      matrix = matrix == down ? gate : down;
    }
  }
  __device__ __forceinline__ auto pack(int slot, int i) const {
    return ring + (slot * kUnit + i) * blockDim.x + threadIdx.x;
  }
  __device__ __forceinline__ int following(int slot) const {
    return slot + 1 == kDepth ? 0 : slot + 1;
  }
  /// Copies the next unit, if one is left. It is a group either way.
  __device__ __forceinline__ void ask() {
    if (layer < shape.layers) {
      const int rows = matrix == down ? shape.width : shape.inner;
      const int packs = (matrix == down ? shape.inner : shape.width) / kPack;
      const auto w = matrix == gate ? model.gate : matrix == up ? model.up : model.down;
      const std::ptrdiff_t begin = (static_cast<std::ptrdiff_t>(layer) * rows + row) * packs;
#pragma unroll
      for (int i = 0; i < kUnit; ++i) {
        const int its = at + lane + 32 * i;
        if (its < packs) simt::cp_async16(pack(last, i), w + (begin + its));
      }
      if (matrix == gate) {
        matrix = up;
      } else {
        if (matrix == up) matrix = gate;
        at += kUnitPacks;
        if (at >= packs) {
          at = 0;
          row += all_warps;
          settle();
        }
      }
    }
    simt::cp_async_commit();
    last = following(last);
  }
  /// The slot of the unit that is used next.
  __device__ __forceinline__ int next() {
    const int slot = first;
    first = following(first);
    return slot;
  }
};

template <int kTokens, class Clock, class Tape>
__global__ void __launch_bounds__(kPersistentThreads)
    persistent(Model model, StepShape shape, bool barriers, Clock clock, Tape tape) {
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  const int warp = blockIdx.x * warps + threadIdx.x / 32, all_warps = gridDim.x * warps;
  const int width = shape.width, inner = shape.inner;
  const int wide_packs = width / kPack, inner_packs = inner / kPack;
  const int numbers = shape.batch * (width > inner ? width : inner);
  const auto x =
      simt::as<float4>(simt::dynamic_shared<float>(numbers, kSumBytes, "the tokens' numbers"));
  const auto ring = simt::dynamic_shared<uint4>(kDepth<kTokens> * kUnit * blockDim.x,
                                                kSumBytes + sizeof(float) * numbers, "weights");
  Stream<kDepth<kTokens>, std::decay_t<decltype(ring)>> weights{model, shape, ring,
                                                                lane,  warp,  all_warps};
  weights.settle();
  for (int i = 0; i < kDepth<kTokens>; ++i) weights.ask();
  for (int layer = 0; layer < shape.layers; ++layer) {
    clock.begin(kPhases * layer);
    norm_rows(model, shape, layer, x);
    __syncthreads();  // the normed rows are there for all warps
    for (int row = warp; row < inner; row += all_warps) {
      float gates[kTokens] = {}, ups[kTokens] = {};
      for (int at = lane; at < wide_packs + lane; at += kUnitPacks) {
        simt::cp_async_wait<kDepth<kTokens> - 2>();
        const int gate = weights.next(), up = weights.next();
#pragma unroll
        for (int i = 0; i < kUnit; ++i) {
          const int pack = at + 32 * i;
          if (pack >= wide_packs) continue;
          const uint4 of_gate = *weights.pack(gate, i), of_up = *weights.pack(up, i);
#pragma unroll
          for (int token = 0; token < kTokens; ++token) {
            if (token >= shape.batch) continue;
            const int place = 2 * token * wide_packs + pack;
            const float4 low = x[place], high = x[place + wide_packs];
            add_pack(of_gate, low, high, gates[token]);
            add_pack(of_up, low, high, ups[token]);
          }
        }
        weights.ask();
        weights.ask();
      }
      warp_sums(gates);
      warp_sums(ups);
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        if (lane != 0 || token >= shape.batch) continue;
        const float made = swiglu(gates[token], ups[token]);
        model.a[token * inner + row] = made;
        if (row == 0 && token == 0) tape.note(kPhaseSite, kPhases * layer, made);
      }
    }
    clock.end(kPhases * layer);
    if (barriers) simt::grid_barrier(model.arrived, 2 * layer);  // [step: first]
    clock.begin(kPhases * layer + 1);
    __syncthreads();  // every warp has read the normed rows
    const int fours = inner / 4;
    const auto a = simt::as<const float4>(model.a);
#pragma unroll 4
    for (int i = threadIdx.x; i < shape.batch * fours; i += blockDim.x)
      x[place_of(i / fours, fours, i % fours)] = __ldcg(&a[i]);
    __syncthreads();  // a is there for all warps
    for (int row = warp; row < width; row += all_warps) {
      float sums[kTokens] = {};
      for (int at = lane; at < inner_packs + lane; at += kUnitPacks) {
        simt::cp_async_wait<kDepth<kTokens> - 1>();
        const int down = weights.next();
#pragma unroll
        for (int i = 0; i < kUnit; ++i) {
          const int pack = at + 32 * i;
          if (pack >= inner_packs) continue;
          const uint4 of_down = *weights.pack(down, i);
#pragma unroll
          for (int token = 0; token < kTokens; ++token) {
            if (token >= shape.batch) continue;
            const int place = 2 * token * inner_packs + pack;
            add_pack(of_down, x[place], x[place + inner_packs], sums[token]);
          }
        }
        weights.ask();
      }
      warp_sums(sums);
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        if (lane != 0 || token >= shape.batch) continue;
        const int i = token * width + row;
        const float before =
            layer == 0 ? model.table[model.tokens[token] * width + row] : __ldcg(&model.h[i]);
        model.h[i] = before + sums[token];
        if (i == 0) tape.note(kPhaseSite, kPhases * layer + 1, before + sums[token]);
      }
    }
    clock.end(kPhases * layer + 1);
    if (layer + 1 < shape.layers)
      simt::grid_barrier(model.arrived, 2 * layer + 1);  // [step: second]
  }
}

}  // namespace tilestep::launches::SIMT_BACKEND
