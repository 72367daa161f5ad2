#pragma once

// The k largest of a stream of scores, which are never stored. A score and its token make one whole number, so that no
// two are equal: the score's bits in an order that integers have too, above them the earlier token counts more. Numbers
// above a floor are kept; when the room is full the k largest stay, and the smallest of them is the new floor.

#include "kernels/attention/sparse_attention/kernels.hpp"

namespace tilestep::sparse_attention::SIMT_BACKEND {

using Entry = unsigned long long;

__device__ inline Entry entry_of(float score, int token, bool later_first) {
  const unsigned bits = __float_as_uint(score + 0.0f);  // −0 is 0
  const unsigned ordered = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  const auto low = static_cast<unsigned>(later_first ? token : ~token);  // [step: tie]
  return static_cast<Entry>(ordered) << 32 | low;
}
__device__ inline int token_of(Entry entry, bool later_first) {
  const auto low = static_cast<unsigned>(entry);
  return static_cast<int>(later_first ? low : ~low);
}

/// Threads that keep entries together: those of a block. All of them call all of TopK.
struct WholeBlock {
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int threads() { return static_cast<int>(blockDim.x); }
  __device__ static void sync() { __syncthreads(); }  // what for is said where it is called
};

/// At least a warp of threads.
template <class Team>
struct TopK {
  static constexpr int kDigits = 256;
  static constexpr int kCounts = kDigits + 8;  ///< ints that it needs beside the entries
  enum : int { kCount = kDigits, kDigit, kLeft, kAlike, kLow, kHigh };

  simt::Shared<Entry> kept;  ///< [room]
  simt::Shared<int> counts;  ///< [kCounts]
  int k, room;
  Entry floor = 0;

  __device__ void begin() {
    if (Team::thread() == 0) counts[kCount] = 0;
    Team::sync();  // the count is 0 before anyone adds to it
  }
  /// An entry of the calling thread's.
  __device__ void push(Entry entry) {
    if (entry > floor) kept[atomicAdd(&counts[kCount], 1)] = entry;  // [step: offer]
  }
  /// By a whole warp whose lanes work for two of these in turn: up to two entries of a lane, for its `own`. A lane of
  /// each adds for all.
  __device__ __forceinline__ static void push_two(TopK (&both)[2], int own,
                                                  const Entry (&entries)[2],
                                                  const bool (&there)[2]) {
    const Entry floor = own == 0 ? both[0].floor : both[1].floor;
    const bool first = there[0] && entries[0] > floor, second = there[1] && entries[1] > floor;
    unsigned firsts = __ballot_sync(0xFFFFFFFFu, first),
             seconds = __ballot_sync(0xFFFFFFFFu, second);
    if ((firsts | seconds) == 0) return;
    const unsigned alike = 0x55555555u << own, lane = static_cast<unsigned>(Team::thread()) % 32;
    firsts &= alike;
    seconds &= alike;
    const auto counts = own == 0 ? both[0].counts : both[1].counts;
    const auto kept = own == 0 ? both[0].kept : both[1].kept;
    int at = 0;
    if (lane < 2) at = atomicAdd(&counts[kCount], __popc(firsts) + __popc(seconds));
    at = __shfl_sync(0xFFFFFFFFu, at, own);
    const unsigned before = (1u << lane) - 1;
    if (first) kept[at + __popc(firsts & before)] = entries[0];
    if (second) kept[at + __popc(firsts) + __popc(seconds & before)] = entries[1];
  }
  /// After pushes to two of these: the same as `settle` of both.
  __device__ __forceinline__ static void settle_two(TopK (&both)[2], int most, int slack) {
    Team::sync();  // all entries are there …
    const int counts[2] = {both[0].counts[kCount], both[1].counts[kCount]};
    Team::sync();  // … and all have seen how many, before the next ones come
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      if (counts[which] > both[which].room - most) both[which].prune(counts[which], slack);
    }
  }
  /// After pushes: makes room for `most` more entries.
  __device__ void settle(int most) {
    Team::sync();  // all entries are there …
    const int count = counts[kCount];
    Team::sync();  // … and all have seen how many, before the next ones come
    if (count > room - most) prune(count, 0);
  }
  /// Leaves the k largest. Returns how many there are.
  __device__ int finish() {
    const int count = counts[kCount];
    Team::sync();  // all have seen it
    if (count > k) prune(count, 0);
    return count < k ? count : k;
  }

 private:
  /// The highest bit in which entries differ. They do: no two are equal.
  __device__ int top_bit(int count) {
    if (Team::thread() == 0) counts[kLow] = counts[kHigh] = 0;
    Team::sync();  // before any bit is added
    const Entry first = kept[0];
    Entry differ = 0;
    for (int i = Team::thread(); i < count; i += Team::threads()) differ |= kept[i] ^ first;
    auto low = static_cast<unsigned>(differ), high = static_cast<unsigned>(differ >> 32);
    for (int apart = 16; apart > 0; apart /= 2) {
      low |= __shfl_xor_sync(0xFFFFFFFFu, low, apart);
      high |= __shfl_xor_sync(0xFFFFFFFFu, high, apart);
    }
    if (Team::thread() % 32 == 0) {
      atomicOr(&counts[kLow], static_cast<int>(low));
      atomicOr(&counts[kHigh], static_cast<int>(high));
    }
    Team::sync();  // all bits are there
    high = static_cast<unsigned>(counts[kHigh]);
    low = static_cast<unsigned>(counts[kLow]);
    return high != 0 ? 63 - __clz(static_cast<int>(high)) : 31 - __clz(static_cast<int>(low));
  }
  /// The k-th largest, eight bits at a time from the top: how many have larger ones? With a slack it ends as soon as no
  /// more than k + slack entries have the bits that are known or larger ones, with zeros for the others.
  __device__ Entry kth(int count, int slack) {
    int above = top_bit(count) + 1;  // from here on up the bits are known
    Entry prefix = above < 64 ? kept[0] >> above << above : 0;
    int left = k;
    while (above > 0) {
      const int shift = above > 8 ? above - 8 : 0;
      const unsigned digits = 1u << (above - shift);
      const auto alike = [&](Entry its) { return above >= 64 || its >> above == prefix >> above; };
      for (int i = Team::thread(); i < kDigits; i += Team::threads()) counts[i] = 0;
      Team::sync();  // before any is counted
      for (int i = Team::thread(); i < count; i += Team::threads()) {
        const Entry its = kept[i];
        if (alike(its)) atomicAdd(&counts[static_cast<int>(its >> shift) & (digits - 1)], 1);
      }
      Team::sync();  // all are counted
      if (Team::thread() < 32) find_digit(left);
      Team::sync();  // the digit is there
      prefix |= static_cast<Entry>(counts[kDigit]) << shift;
      left = counts[kLeft];
      above = shift;
      if (counts[kAlike] == 1) break;
      if (counts[kAlike] - left <= slack && slack > 0) return prefix;
    }
    if (above == 0) return prefix;
    // One has these bits: it is the one.
    for (int i = Team::thread(); i < count; i += Team::threads()) {
      const Entry its = kept[i];
      if (its >> above != prefix >> above) continue;
      counts[kLow] = static_cast<int>(static_cast<unsigned>(its));
      counts[kHigh] = static_cast<int>(static_cast<unsigned>(its >> 32));
    }
    Team::sync();  // it is there
    return static_cast<Entry>(static_cast<unsigned>(counts[kHigh])) << 32 |
           static_cast<unsigned>(counts[kLow]);
  }
  /// By a warp, lane 0 with the largest eight digits: which has the `left`-th from the top, and the how-many-th is it
  /// among those with the same?
  __device__ void find_digit(int left) {
    const int lane = Team::thread(), first = kDigits - 8 * (lane + 1);
    int mine = 0;
    for (int i = 0; i < 8; ++i) mine += counts[first + i];
    int more = mine;
    for (int apart = 1; apart < 32; apart *= 2) {
      const int other = __shfl_up_sync(0xFFFFFFFFu, more, static_cast<unsigned>(apart));
      if (lane >= apart) more += other;
    }
    more -= mine;  // with larger digits than this lane's
    if (more >= left || more + mine < left) return;
    for (int i = 7; i >= 0; --i) {
      const int its = counts[first + i];
      if (more + its >= left) {
        counts[kDigit] = first + i;
        counts[kLeft] = left - more;
        counts[kAlike] = its;
        return;
      }
      more += its;
    }
  }
  /// Leaves the k largest, or with a slack up to so many more, for fewer looks at all of them.
  __device__ void prune(int count, int slack) {
    const Entry found = kth(count, slack);      // [step: floor]
    const Entry least = found > 0 ? found : 1;  // 0 is no entry
    floor = slack > 0 ? least - 1 : least;  // none is kept twice, but `least` itself may yet come
    if (Team::thread() == 0) counts[kCount] = 0;
    constexpr int kHeld = 4;
    for (int first = 0; first < count; first += kHeld * Team::threads()) {
      Entry its[kHeld];
#pragma unroll
      for (int i = 0; i < kHeld; ++i) {
        const int at = first + i * Team::threads() + Team::thread();
        its[i] = at < count ? kept[at] : 0;
      }
      Team::sync();  // read, before others move to where they were; and the count is 0
#pragma unroll
      for (int i = 0; i < kHeld; ++i) {
        const unsigned lanes = __ballot_sync(0xFFFFFFFFu, its[i] >= least);
        const unsigned lane = static_cast<unsigned>(Team::thread()) % 32;
        int at = 0;
        if (lane == 0) at = atomicAdd(&counts[kCount], __popc(lanes));
        at = __shfl_sync(0xFFFFFFFFu, at, 0);
        if (its[i] >= least) kept[at + __popc(lanes & ((1u << lane) - 1))] = its[i];
      }
    }
    Team::sync();  // all that stay are there
  }
};

}  // namespace tilestep::sparse_attention::SIMT_BACKEND
