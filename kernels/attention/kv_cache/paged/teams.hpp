#pragma once

/// \file
/// How the teams of a block merge their m, ℓ and O of an item, and how blocks merge the parts of a request.

#include "kernels/attention/kv_cache/paged/merge.cu"

namespace tilestep::kv_cache::paged::SIMT_BACKEND {

/// Maximum and sum of a lane's rows so far, `group` and eight below; m in units of log2, l of the lane's own tokens.
template <class T>
struct RowStats {
  float m[T::kEights], l[T::kEights];

  __device__ __forceinline__ RowStats() {
#pragma unroll
    for (int half = 0; half < T::kEights; ++half) {
      m[half] = -INFINITY;
      l[half] = 0;
    }
  }
};

/// O^T has heads across: a lane has columns of heads 2 · place and the next, not of its own row. By whole warps.
template <class T>
__device__ __forceinline__ void scale_outputs(Outputs<T>& o, const float (&factor)[T::kEights],
                                              int place) {
#pragma unroll
  for (int half = 0; half < T::kEights; ++half) {
    const float even = __shfl_sync(kAllLanes, factor[half], 8 * place);
    const float odd = __shfl_sync(kAllLanes, factor[half], 8 * place + 4);
#pragma unroll
    for (int f = 0; f < T::kSums; ++f) {
#pragma unroll
      for (int e = 0; e < 4; ++e) o[half][f][e] *= e % 2 == 0 ? even : odd;
    }
  }
}

/// The teams' shares of a row, in shared memory.
template <class T>
struct Meeting {
  simt::Shared<float> m, l;   ///< [warps × rows of a warp]
  simt::Shared<float> parts;  ///< [warps × rows of a warp × T::kPartPitch]

  /// Index of row `row` of a team's strip.
  __device__ __forceinline__ static int at(const Who& me, int team, int strip, int row) {
    return (team * me.strips + strip) * T::kRows + row;
  }
};

/// Maximum and sum of a row over all teams; m in units of log2.
template <class T>
__device__ __forceinline__ Merged sum_of_teams(const Meeting<T>& meeting, const Who& me, int strip,
                                               int row) {
  Merged all;
#pragma unroll
  for (int team = 0; team < me.teams; ++team) {
    all.m = fmaxf(all.m, meeting.m[Meeting<T>::at(me, team, strip, row)]);
  }
#pragma unroll
  for (int team = 0; team < me.teams; ++team) {
    const int at = Meeting<T>::at(me, team, strip, row);
    const float m = meeting.m[at];
    if (m > -INFINITY) all.l = fmaf(meeting.l[at], simt::exp2_approx(m - all.m), all.l);
  }
  return all;
}

/// Stores a lane's part of O^T where whole rows can be read: columns of part `part`.
template <class T>
__device__ __forceinline__ void put_part(const Meeting<T>& meeting, const Outputs<T>& o, int part,
                                         const Who& me) {
  constexpr int kStepsOfPart = T::kPartColumns / 16;
#pragma unroll
  for (int half = 0; half < T::kEights; ++half) {
#pragma unroll
    for (int i = 0; i < kStepsOfPart; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        // The steps of a part have only columns of that part, whatever the format.
        const int column = T::Format::column_of_output(i, e / 2, me.group());
        const int row = Meeting<T>::at(me, me.team, me.strip, half * 8 + me.place() * 2 + e % 2);
        float value = 0;
#pragma unroll
        for (int p = 0; p < T::kHeadDim / T::kPartColumns; ++p) {
          if (p == part) value = output_of<T>(o, half, p * kStepsOfPart + i, e);
        }
        meeting.parts[row * T::kPartPitch + column] = value;
      }
    }
  }
}

/// Four columns of a row that all teams have added up: to O, or to the item's slot.
template <class T, class Tape>
__device__ __forceinline__ void store_row(const float4& sum, const Merged& all, int row, int column,
                                          const WorkItem& item, const Task& task,
                                          const Memory& memory, const Tape& tape) {
  if (is_split(item)) {
    const std::ptrdiff_t at = part_of(item, row, task.most_rows);
    simt::as<float4>(memory.part_o + (at * T::kHeadDim + column))[0] = sum;
    stores(tape, kParts, 16);
    if (column != 0) return;
    memory.part_m[at] = all.m * kLn2;
    memory.part_l[at] = all.l;
    stores(tape, kParts, 8);
    return;
  }
  const float inverse = all.l > 0 ? 1 / all.l : 0;
  const std::ptrdiff_t head = query_of(item, row, task.heads);
  store_four(memory.o + (head * T::kHeadDim + column),
             make_float4(sum.x * inverse, sum.y * inverse, sum.z * inverse, sum.w * inverse));
  stores(tape, kO, 8);
  if (column != 0) return;
  memory.lse[head] = all.l > 0 ? fmaf(all.m, kLn2, logf(all.l)) : -INFINITY;
  stores(tape, kLse, 4);
}

/// The teams' m, ℓ and O become the item's.
template <class T, class Tape>
__device__ __forceinline__ void finish(Outputs<T>& o, const RowStats<T>& stats,
                                       const Meeting<T>& meeting, const WorkItem& item,
                                       const Task& task, const Memory& memory, const Who& me,
                                       const Tape& tape) {
  float factor[T::kEights];
#pragma unroll
  for (int half = 0; half < T::kEights; ++half) {
    const float l = sum_of_row(stats.l[half]);
    if (me.place() == 0) {
      const int at = Meeting<T>::at(me, me.team, me.strip, half * 8 + me.group());
      meeting.m[at] = stats.m[half];
      meeting.l[at] = l;
    }
  }
  __syncthreads();  // all teams' m and ℓ are ready
#pragma unroll
  for (int half = 0; half < T::kEights; ++half) {
    const float m = sum_of_teams(meeting, me, me.strip, half * 8 + me.group()).m;
    factor[half] = stats.m[half] == -INFINITY ? 0.0f : simt::exp2_approx(stats.m[half] - m);
  }
  scale_outputs<T>(o, factor, me.place());
#pragma unroll 1
  for (int part = 0; part < T::kHeadDim / T::kPartColumns; ++part) {
    put_part(meeting, o, part, me);
    __syncthreads();  // all teams' parts are ready
    constexpr int kFours = T::kPartColumns / 4;
    for (int i = static_cast<int>(threadIdx.x); i < rows_of(item) * kFours;
         i += static_cast<int>(blockDim.x)) {
      const int row = i / kFours;
      const int strip = row / T::kRows;
      float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
      for (int team = 0; team < me.teams; ++team) {
        const int from = Meeting<T>::at(me, team, strip, row % T::kRows) * T::kPartPitch;
        const float4 x = simt::as<float4>(meeting.parts)[from / 4 + i % kFours];
        sum = make_float4(sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w);
      }
      const Merged all = sum_of_teams(meeting, me, strip, row % T::kRows);
      store_row<T>(sum, all, row, part * T::kPartColumns + i % kFours * 4, item, task, memory,
                   tape);
    }
    __syncthreads();  // all are read before the next ones, or the next item's, overwrite them
  }
}

/// At its end a block announces the requests whose parts it has left in memory, all requests of an item together. The
/// last block to do so merges them. `last`: room for kMostRows numbers that all threads of the block share.
template <class T, class Tape>
__device__ __forceinline__ void merge_where_last(const Pieces& pieces, simt::Shared<int> last,
                                                 const Tape& tape) {
  const Memory& memory = pieces.memory;
  const int thread = static_cast<int>(threadIdx.x);
  __threadfence();  // a thread that sees the count sees this thread's stores
  __syncthreads();  // all threads of the block have got here
  for (int number = pieces.first; number < pieces.end; ++number) {
    const WorkItem item = pieces[number].item;
    if (!is_split(item)) continue;
    bool any = false;
    if (thread < item.requests) {
      const RowParts parts(item, thread, memory);
      any = atomicAdd(&memory.arrived[parts.first_slot], 1) == parts.count - 1;
      if (any) atomicAdd(&memory.arrived[parts.first_slot], -parts.count);  // for the next launch
      last[thread] = any ? 1 : 0;
    }
    if (__syncthreads_or(any) == 0) continue;  // all know what those threads saw
    __threadfence();
    for (int i = 0; i < item.requests; ++i) {
      if (last[i] == 0) continue;
      merge_rows<T>(RowParts(item, i, memory), pieces.task, memory, tape, thread,
                    static_cast<int>(blockDim.x));
    }
    __syncthreads();  // all are read before the next item's
  }
}

}  // namespace tilestep::kv_cache::paged::SIMT_BACKEND
