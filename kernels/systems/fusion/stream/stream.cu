#pragma once

// Fusion: rows.cu's chain for many rows in a stream. A block, or a cluster, is resident and takes one row after another.
// What keeps memory busy:
//
//   landing   a pack that a thread has taken into registers makes room for its pack of the next row, which is on its way
//             from then on
//   rows      while a row's sums are on their way between warps and blocks, the next row is taken and summed
//   turns     the row after those is the next that is free: multiprocessors come to memory unequally fast, and with
//             rows dealt out beforehand all would wait for the slowest
//   gain      read once for all rows: kept on the chip
//
// A thread's slots of shared memory are its own: its copies need no barrier, only its wait.

#include "kernels/base/simt/warp_rounds.hpp"
#include "kernels/systems/fusion/rows.cu"

namespace tilestep::fusion::SIMT_BACKEND {

using Mail = simt::Exchange<float2>;  // a sum and a largest magnitude

/// Whether the gain has registers; otherwise shared memory.
__host__ __device__ constexpr bool gain_in_registers(int packs) {
  return packs <= 2;
}
/// Packs that a thread has in shared memory.
__host__ __device__ constexpr int slots_of(const Parts& parts, int packs) {
  return packs * (1 + (parts.first == First::add ? 1 : 0) +
                  (parts.norm && !gain_in_registers(packs) ? 1 : 0));
}

/// As row_chain. Rows are whole packs, of which a thread has at most kPacks; blocks that are neighbours share a row.
template <class Pack, int kPacks, class Steps>
__global__ void __launch_bounds__(kPacks > 4 ? kMostThreads / 2 : kMostThreads)
    stream_kernel(Arrays<Pack> arrays, simt::Global<int> turns, Rows rows, Steps parts) {
  using Memory = typename Pack::Memory;
  constexpr int kNumbers = Pack::kNumbers;
  constexpr bool kGainHere = gain_in_registers(kPacks);
  const bool adds = parts.first == First::add;
  const Place place = place_of(rows.cluster);
  const int packs = rows.width / kNumbers;
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  const int streams =
      static_cast<int>(gridDim.x >> (__ffs(rows.cluster) - 1)) * static_cast<int>(blockDim.y);
  const int slots = slots_of({parts.first, parts.norm, parts.quantize}, kPacks);
  const auto slot =
      simt::dynamic_shared<Memory>(static_cast<std::size_t>(slots * threads),
                                   static_cast<std::size_t>(Mail::bytes(
                                       threads / 32, rows.cluster, static_cast<int>(blockDim.y)))) +
      static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const auto gain_slot = slot + (parts.norm && !kGainHere ? (adds ? 2 : 1) * kPacks * threads : 0);

  const auto fetch = [&](int row, int k) {
    const std::ptrdiff_t start = static_cast<std::ptrdiff_t>(row) * packs;
    const int i = place.first + k * place.apart;
    if (row < rows.rows && i < packs) {
      simt::cp_async16(slot + k * threads, arrays.first + (start + i));
      if (adds) simt::cp_async16(slot + (kPacks + k) * threads, arrays.second + (start + i));
    }
    simt::cp_async_commit();  // of none too: the wait counts
  };
#pragma unroll
  for (int k = 0; k < kPacks; ++k) fetch(place.row, k);
  Memory gains[kGainHere ? kPacks : 1];
  if (parts.norm) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int i = place.first + k * place.apart;
      if (i >= packs) continue;
      if constexpr (kGainHere) {
        gains[k] = arrays.gain[i];
      } else {
        gain_slot[k * threads] = arrays.gain[i];
      }
    }
  }

  const int warps = static_cast<int>(blockDim.x / 32),
            rank = static_cast<int>(blockIdx.x) & (rows.cluster - 1);
  Mail mail(rows.cluster * warps, rank * warps + static_cast<int>(threadIdx.x / 32), rows.cluster,
            0);
  mail.begin();

  // Into registers, with the sum of the squares and the largest magnitude of the warp's part.
  const auto take = [&](int row, int after, Memory(&held)[kPacks]) {
    const std::ptrdiff_t start = static_cast<std::ptrdiff_t>(row) * packs;
    Reduced mine = {0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int i = place.first + k * place.apart;
      simt::cp_async_wait<kPacks - 1>();
      Memory other = {};
      if (i < packs) {
        held[k] = slot[k * threads];
        if (adds) other = slot[(kPacks + k) * threads];
      }
      fetch(after, k);  // into slots that this thread has just read
      if (i >= packs) continue;
      typename Pack::Numbers h, b, g;
      Pack::unpack(held[k], h);
      if (adds) {
        Pack::unpack(other, b);
        for (int j = 0; j < kNumbers; ++j) h[j] += b[j];
        held[k] = Pack::pack(h);  // rounded as if it had been stored and read back
        Pack::unpack(held[k], h);
        arrays.sum[start + i] = held[k];
      }
      if (parts.norm) mine.sum = squares_added<Pack>(mine.sum, h);
      if (!parts.quantize) continue;
      if (parts.norm) {
        Pack::unpack(kGainHere ? gains[kGainHere ? k : 0] : gain_slot[k * threads], g);
        for (int j = 0; j < kNumbers; ++j) h[j] *= g[j];
      }
      for (int j = 0; j < kNumbers; ++j) mine.most = fmaxf(mine.most, fabsf(h[j]));
    }
    mine = over_lanes(mine, 32, Break::none);
    return make_float2(mine.sum, mine.most);
  };
  const auto finish = [&](int row, const Memory(&held)[kPacks], const Reduced& all) {
    const std::ptrdiff_t start = static_cast<std::ptrdiff_t>(row) * packs;
    const float mean = fmaf(all.sum, rows.per_width, kEpsilon);
    const float inverse = parts.norm ? 1.0f / sqrtf(mean) : 1.0f;
    typename Pack::Numbers largest = {};
    largest[0] = all.most * inverse;
    const Memory rounded = Pack::pack(largest);
    Pack::unpack(rounded, largest);
    const float to_code = largest[0] > 0.0f ? kLargestCode / largest[0] : 0.0f;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int i = place.first + k * place.apart;
      if (i >= packs) continue;
      typename Pack::Numbers n, g;
      Pack::unpack(held[k], n);
      if (parts.norm) {
        Pack::unpack(kGainHere ? gains[kGainHere ? k : 0] : gain_slot[k * threads], g);
        for (int j = 0; j < kNumbers; ++j) {
          n[j] *= g[j];
          n[j] *= inverse;
        }
      }
      const Memory result = Pack::pack(n);
      if (!parts.quantize) {
        arrays.out[start + i] = result;
        continue;
      }
      Pack::unpack(result, n);
      for (int j = 0; j < kNumbers; ++j) n[j] *= to_code;
      arrays.codes[start + i] = Pack::codes(n);
    }
    if (parts.quantize && place.first == 0) {
      arrays.scale[row] = largest[0] * (1.0f / kLargestCode);
    }
  };
  const auto add = [](Reduced a, float2 b) { return Reduced{a.sum + b.x, fmaxf(a.most, b.y)}; };
  // A row's sums go out with the number of a row: the first warp takes the turn.
  const bool deals = rank == 0 && threadIdx.x == 0;
  int row = place.row, next = row + streams, after = next + streams;
  const auto dealt = [&] { return deals ? 3 * streams + atomicAdd(&turns[0], 1) : 0; };
  const auto note_of = [](int turn) {
    return make_float2(__int_as_float(__shfl_sync(kAllLanes, turn, 0)), 0.0f);
  };
  const auto step = [&](const Memory(&held)[kPacks], Memory(&of_next)[kPacks]) {
    const int turn = dealt();
    float2 part = {}, note;
    if (next < rows.rows) part = take(next, after, of_next);
    const Reduced all = over_lanes(mail.receive(Reduced{0.0f, 0.0f}, add, note), 32, Break::none);
    if (next < rows.rows) mail.send(part, note_of(turn));
    finish(row, held, all);
    row = next;
    next = after;
    after = __float_as_int(note.x);
  };
  Memory even[kPacks], odd[kPacks];
  if (row < rows.rows) {
    const int turn = dealt();
    mail.send(take(row, next, even), note_of(turn));
  }
  while (row < rows.rows) {
    step(even, odd);
    if (row < rows.rows) step(odd, even);
  }
  if (deals && atomicAdd(&turns[1], 1) == streams - 1) {  // for the next launch
    atomicAdd(&turns[0], -atomicAdd(&turns[0], 0));
    atomicAdd(&turns[1], -streams);
  }
}

}  // namespace tilestep::fusion::SIMT_BACKEND
