#pragma once

// Merges the parts of a row that several blocks have computed. Each part is a softmax over some of the tokens: a
// maximum m, a sum ℓ = Σ e^(s − m), and O = Σ e^(s − m) v. The merge is online softmax again, from part to part instead
// of tile to tile: with M the highest m, a part's ℓ and O are multiplied by e^(m − M).
//
//   merge_rows      by a block's threads, four columns each: called by the block that finishes last
//   merge           the same as a separate kernel, some blocks per item; only those of the first part have work
//
// Dao et al., "Flash-Decoding for long-context inference", 2023.

#include "kernels/attention/kv_cache/paged/tiles.hpp"

namespace tilestep::kv_cache::paged::SIMT_BACKEND {

/// Common to all parts: M, and ℓ relative to it.
struct Merged {
  float m = -INFINITY, l = 0;
};
/// The weight of a part.
__device__ __forceinline__ float weight_of(float m, const Merged& all, Merging how, int split) {
  if (how == Merging::first_only) return split == 0 ? 1.0f : 0.0f;
  return m == -INFINITY ? 0.0f : simt::exp2_approx((m - all.m) * kLog2e);
}

__device__ __forceinline__ void store_four(simt::Global<std::uint16_t> to, const float4& from) {
  simt::as<uint2>(to)[0] = make_uint2(Bf16::pack(from.x, from.y), Bf16::pack(from.z, from.w));
}

/// A row's maximum and sum over its parts, which begin at `first` and are `pitch` apart.
__device__ __forceinline__ Merged merge_sums(const Memory& memory, int first, int pitch, int splits,
                                             Merging how) {
  Merged all;
  // Unrolled, here and below: loads of many parts are in flight at a time.
#pragma unroll 8
  for (int i = 0; i < splits; ++i) all.m = fmaxf(all.m, __ldcg(&memory.part_m[first + i * pitch]));
#pragma unroll 8
  for (int i = 0; i < splits; ++i) {
    const float m = __ldcg(&memory.part_m[first + i * pitch]);
    all.l = fmaf(__ldcg(&memory.part_l[first + i * pitch]), weight_of(m, all, how, i), all.l);
  }
  return all;
}

/// The parts of a request's heads; an item is one of them.
struct RowParts {
  int request, first_head, heads;
  int first_slot, count;

  /// For the item's request number `which`.
  __device__ __forceinline__ RowParts(const WorkItem& item, int which, const Memory& memory)
      : request(item.request + which),
        first_head(item.first_head),
        heads(item.heads),
        first_slot(item.first_slot + which * item.slot_stride),
        count(which == 0 ? item.splits : memory.parts[first_slot]) {}
};

/// The share of thread `thread` of `threads`.
template <class T, class Tape>
__device__ __forceinline__ void merge_rows(const RowParts& parts, const Task& task,
                                           const Memory& memory, const Tape& tape, int thread,
                                           int threads) {
  constexpr int kFours = T::kHeadDim / 4;  // of a row
  for (int i = thread; i < parts.heads * kFours; i += threads) {
    const int row = i / kFours;
    const int column = i % kFours * 4;
    const int first = parts.first_slot * task.most_rows + row;
    const Merged all = merge_sums(memory, first, task.most_rows, parts.count, task.merging);
    float4 o = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int split = 0; split < parts.count; ++split) {
      const int at = first + split * task.most_rows;
      const float weight =
          weight_of(__ldcg(&memory.part_m[at]), all, task.merging, split);  // [step: weigh]
      const auto part = memory.part_o + (static_cast<std::ptrdiff_t>(at) * T::kHeadDim + column);
      const float4 v = __ldcg(&simt::as<float4>(part)[0]);
      o.x = fmaf(v.x, weight, o.x);  // [step: merge]
      o.y = fmaf(v.y, weight, o.y);
      o.z = fmaf(v.z, weight, o.z);
      o.w = fmaf(v.w, weight, o.w);
      loads(tape, kParts, 16);
      if (column == 0) {
        loads(tape, kParts, 8);
        tape.put(kWeights, at, weight);
      }
    }
    const float inverse = all.l > 0 ? 1 / all.l : 0;
    const std::ptrdiff_t head =
        static_cast<std::ptrdiff_t>(parts.request) * task.heads + parts.first_head + row;
    store_four(memory.o + (head * T::kHeadDim + column),
               make_float4(o.x * inverse, o.y * inverse, o.z * inverse, o.w * inverse));
    stores(tape, kO, 8);
    if (column == 0) {
      memory.lse[head] = all.l > 0 ? all.m + logf(all.l) : -INFINITY;
      stores(tape, kLse, 4);
    }
  }
}

template <class T, class Tape>
__global__ void merge(Memory memory, Task task, Tape tape) {
  const WorkItem item = memory.items[static_cast<int>(blockIdx.x)];
  if (item.split != 0 || !is_split(item)) return;
  for (int i = 0; i < item.requests; ++i) {
    merge_rows<T>(RowParts(item, i, memory), task, memory, tape,
                  static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x),
                  static_cast<int>(gridDim.y * blockDim.x));
  }
}

}  // namespace tilestep::kv_cache::paged::SIMT_BACKEND
