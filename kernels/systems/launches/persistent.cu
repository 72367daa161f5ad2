// A decode step as one kernel: as many blocks as fit at once walk through all layers and meet at a barrier where one needs
// what the others made. While a block waits there, the first weights of its next rows are on their way: those hang on
// nothing.

#include "kernels/systems/launches/device.hpp"

namespace tilestep::launches::SIMT_BACKEND {

/// Of a block. A thread then has 128 registers for what it asks for ahead.
inline constexpr int kPersistentThreads = 512;

/// What the persistent kernel is given, in packs.
struct Model {
  simt::Global<const int> tokens;
  simt::Global<const float> table, gains;
  simt::Global<const uint4> gate, up, down;
  simt::Global<float> h, a;
  simt::Global<unsigned> arrived;
};

/// h of all tokens to shared memory, normed. What other blocks wrote in this launch is not in this one's L1: __ldcg.
template <class X>
__device__ void norm_rows(const Model& model, const StepShape& shape, int layer, const X& n) {
  for (int token = 0; token < shape.batch; ++token) {
    const int first = token * shape.width;
    const auto number = [&](int i) {
      return layer == 0 ? model.table[model.tokens[token] * shape.width + i]
                        : __ldcg(&model.h[first + i]);
    };
    float squares = 0.0f;
    for (int i = threadIdx.x; i < shape.width; i += blockDim.x) {
      const float h = number(i);
      squares += h * h;
      n[first + i] = h;
    }
    squares = block_sum(squares);
    const float inverse = 1.0f / sqrtf(squares / static_cast<float>(shape.width) + kEpsilon);
    for (int i = threadIdx.x; i < shape.width; i += blockDim.x) {
      n[first + i] = n[first + i] * model.gains[layer * shape.width + i] * inverse;
    }
  }
}

template <int kTokens>
__device__ void warp_sums(float (&sums)[kTokens]) {
#pragma unroll
  for (int token = 0; token < kTokens; ++token) sums[token] = warp_sum(sums[token]);
}

template <int kTokens, class Clock, class Tape>
__global__ void __launch_bounds__(kPersistentThreads)
    persistent(Model model, StepShape shape, bool barriers, Clock clock, Tape tape) {
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  const int warp = blockIdx.x * warps + threadIdx.x / 32, all_warps = gridDim.x * warps;
  const int width = shape.width, inner = shape.inner;
  const int wide_packs = width / kPack, inner_packs = inner / kPack;
  const int most = width > inner ? width : inner;
  const auto x = simt::dynamic_shared<float>(static_cast<std::size_t>(shape.batch) * most,
                                             kSumBytes, "the tokens' numbers");
  const auto row_of = [](int layer, int rows, int row, int packs) {
    return (static_cast<std::ptrdiff_t>(layer) * rows + row) * packs;
  };
  Ahead gate, up;
  if (warp < inner) {
    gate.load(model.gate, row_of(0, inner, warp, wide_packs), lane, wide_packs);
    up.load(model.up, row_of(0, inner, warp, wide_packs), lane, wide_packs);
  }
  for (int layer = 0; layer < shape.layers; ++layer) {
    clock.begin(kPhases * layer);
    norm_rows(model, shape, layer, x);
    __syncthreads();  // the normed rows are there for all warps
    for (int row = warp; row < inner; row += all_warps) {
      float gates[kTokens] = {}, ups[kTokens] = {};
      for (int at = lane; at < wide_packs; at += 32 * kAhead) {
        if (row != warp || at != lane) {
          gate.load(model.gate, row_of(layer, inner, row, wide_packs), at, wide_packs);
          up.load(model.up, row_of(layer, inner, row, wide_packs), at, wide_packs);
        }
        gate.multiply(x, width, at, wide_packs, shape.batch, gates);
        up.multiply(x, width, at, wide_packs, shape.batch, ups);
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
    Ahead down;
    if (warp < width)
      down.load(model.down, row_of(layer, width, warp, inner_packs), lane, inner_packs);
    clock.end(kPhases * layer);
    if (barriers) simt::grid_barrier(model.arrived, 2 * layer);  // [step: first]
    clock.begin(kPhases * layer + 1);
    __syncthreads();  // every warp has read the normed rows
    for (int i = threadIdx.x; i < shape.batch * inner; i += blockDim.x) x[i] = __ldcg(&model.a[i]);
    __syncthreads();  // a is there for all warps
    for (int row = warp; row < width; row += all_warps) {
      float sums[kTokens] = {};
      for (int at = lane; at < inner_packs; at += 32 * kAhead) {
        if (row != warp || at != lane) {
          down.load(model.down, row_of(layer, width, row, inner_packs), at, inner_packs);
        }
        down.multiply(x, inner, at, inner_packs, shape.batch, sums);
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
    if (layer + 1 < shape.layers && warp < inner) {
      gate.load(model.gate, row_of(layer + 1, inner, warp, wide_packs), lane, wide_packs);
      up.load(model.up, row_of(layer + 1, inner, warp, wide_packs), lane, wide_packs);
    }
    clock.end(kPhases * layer + 1);
    if (layer + 1 < shape.layers)
      simt::grid_barrier(model.arrived, 2 * layer + 1);  // [step: second]
  }
}

}  // namespace tilestep::launches::SIMT_BACKEND
