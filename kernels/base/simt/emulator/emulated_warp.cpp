// Warp collectives, and the report of threads that wait for what never comes.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>

#include "kernels/base/simt/emulator/block_runner.hpp"

namespace tilestep::simt::emulated {
namespace {

std::string_view words(WarpOp op) {
  switch (op) {
    case WarpOp::sync:
      return "__syncwarp()";
    case WarpOp::shuffle:
      return "a shuffle";
    case WarpOp::ballot:
      return "a vote";
    case WarpOp::matrix:
      return "a matrix operation";
    case WarpOp::coalesce:
      return "coalesced_threads()";
    default:
      return "a reduction";
  }
}

unsigned reduced(WarpOp op, unsigned a, unsigned b) {
  const int signed_a = static_cast<int>(a);
  const int signed_b = static_cast<int>(b);
  switch (op) {
    case WarpOp::add:
      return a + b;
    case WarpOp::min_signed:
      return static_cast<unsigned>(std::min(signed_a, signed_b));
    case WarpOp::max_signed:
      return static_cast<unsigned>(std::max(signed_a, signed_b));
    case WarpOp::min_unsigned:
      return std::min(a, b);
    case WarpOp::max_unsigned:
      return std::max(a, b);
    case WarpOp::bit_and:
      return a & b;
    case WarpOp::bit_or:
      return a | b;
    case WarpOp::bit_xor:
      return a ^ b;
    default:
      __builtin_unreachable();
  }
}

// Calls `visit` with each lane that `mask` names, lowest first.
template <class Visit>
void for_each_lane(unsigned mask, Visit visit) {
  for (unsigned left = mask; left != 0; left &= left - 1) visit(std::countr_zero(left));
}

// Where the lanes of `mask` meet for `op`; of tiles and of the whole warp lanes may wait at the same time. One is free
// for whoever comes first: a lane that runs waits in none of the 32.
template <class Meetings>
auto& meeting_of(Meetings& meetings, unsigned mask, WarpOp op) {
  auto& usual = meetings[static_cast<std::size_t>(std::countr_zero(mask))];
  const auto fits = [&](const auto& each) {
    return each.arrived != 0 && each.mask == mask && each.op == op;
  };
  if (fits(usual)) return usual;
  const auto found = std::find_if(meetings.begin(), meetings.end(), fits);
  if (found != meetings.end()) return *found;
  if (usual.arrived == 0) return usual;
  return *std::find_if(meetings.begin(), meetings.end(),
                       [](const auto& each) { return each.arrived == 0; });
}

}  // namespace

std::string line_of(const Location& at) {
  std::string_view file = at.file_name();
  file.remove_prefix(file.find_last_of('/') + 1);
  return fmt::format("line {} of {}", at.line(), file);
}

std::uint64_t BlockRunner::warp_collective(WarpOp op, unsigned mask, std::uint64_t value,
                                           int source, Location at) {
  const int me = current_;
  const int my_lane = me % kWarp;
  if ((mask >> my_lane & 1u) == 0) {
    fail(fmt::format("calls {} in {} with mask 0x{:08x}, which does not name its own lane {}",
                     words(op), line_of(at), mask, my_lane));
  }
  Warp& warp = warps_[me / kWarp];
  warps_used_ = true;
  warp.values[my_lane] = value;
  warp.sources[my_lane] = source;
  warp.masks[my_lane] = mask;
  warp.ops[my_lane] = op;
  threads_[me].place = at;
  threads_[me].state = State::at_warp;

  Meeting& meeting = meeting_of(warp.meetings, mask, op);
  // Who comes with another mask or operation waits elsewhere, and for ever if a lane is in both masks and comes to
  // one; the stall report tells it from the rest.
  meeting = {mask, meeting.arrived | 1u << my_lane, op};
  if (meeting.arrived == mask) {
    complete(warp, me - my_lane, meeting);
    return warp.results[my_lane];
  }
  const Pause waiting = pause();
  if (waiting.to != nullptr) Fibers::switch_to(*waiting.from, *waiting.to);
  resume();
  return warp.results[my_lane];
}

unsigned BlockRunner::coalesced_lanes(Location at) {
  Warp& warp = warps_[current_ / kWarp];
  const int my_lane = current_ % kWarp;
  warp.masks[my_lane] = 1u << my_lane;
  warp.ops[my_lane] = WarpOp::coalesce;
  threads_[current_].place = at;
  threads_[current_].state = State::at_warp;
  ++coalescing_;
  const Pause waiting = pause();
  if (waiting.to != nullptr) Fibers::switch_to(*waiting.from, *waiting.to);
  resume();
  return static_cast<unsigned>(warp.results[my_lane]);
}

/// When nothing can run: the lanes of a warp that wait in coalesced_lanes at one place continue as a
/// group. All such groups continue at the same time, so they are the same in any order of the threads.
bool BlockRunner::coalesce() {
  if (coalescing_ == 0) return false;
  coalescing_ = 0;
  std::vector<int> released;
  for (int thread = 0; thread < count_; ++thread) {
    const Warp& warp = warps_[thread / kWarp];
    if (threads_[thread].state == State::at_warp && warp.ops[thread % kWarp] == WarpOp::coalesce)
      released.push_back(thread);
  }
  for (const int thread : released) {
    unsigned lanes = 0;
    for (const int other : released) {
      if (other / kWarp == thread / kWarp &&
          same_place(threads_[other].place, threads_[thread].place))
        lanes |= 1u << other % kWarp;
    }
    warps_[thread / kWarp].results[thread % kWarp] = lanes;
  }
  wake(released);
  return true;
}

// All lanes have come: works out what each gets, and lets all but the last one (which runs) go on.
void BlockRunner::complete(Warp& warp, int first_thread, Meeting& meeting) {
  const unsigned mask = meeting.mask;
  if (meeting.op == WarpOp::shuffle) {
    for_each_lane(mask, [&](int lane) {
      const int source = warp.sources[lane];
      // CUDA leaves undefined what a lane outside the mask gives: let it be seen.
      warp.results[lane] = (mask >> source & 1u) != 0 ? warp.values[source] : ~std::uint64_t{0};
    });
  } else {
    const int first = std::countr_zero(mask);
    unsigned result = 0;
    if (meeting.op == WarpOp::ballot) {
      for_each_lane(mask, [&](int lane) { result |= (warp.values[lane] != 0 ? 1u : 0u) << lane; });
    } else if (meeting.op != WarpOp::sync && meeting.op != WarpOp::matrix) {
      result = static_cast<unsigned>(warp.values[first]);
      for_each_lane(mask & (mask - 1), [&](int lane) {
        result = reduced(meeting.op, result, static_cast<unsigned>(warp.values[lane]));
      });
    }
    for_each_lane(mask, [&](int lane) { warp.results[lane] = result; });
  }
  meeting.arrived = 0;
  if (races_ && meeting.op == WarpOp::sync) races_->lanes_met(first_thread, mask);
  if (meeting.op == WarpOp::sync && async_ && async_->active()) {
    async_->lanes_met(first_thread, mask);
  }

  std::array<int, kWarp> released;
  int size = 0;
  for_each_lane(mask & ~(1u << current_ % kWarp),
                [&](int lane) { released[size++] = first_thread + lane; });
  wake(std::span(released).first(static_cast<std::size_t>(size)));
}

void BlockRunner::wake(std::span<int> threads) {
  if (options_.order == ThreadOrder::descending) {
    std::reverse(threads.begin(), threads.end());
  } else if (options_.order == ThreadOrder::shuffled) {
    for (std::size_t i = threads.size(); i > 1; --i) {
      std::swap(threads[i - 1], threads[random() % i]);
    }
  }
  for (const int thread : threads) {
    ready_[(ready_head_ + ready_size_) % count_] = thread;
    ++ready_size_;
  }
}

void BlockRunner::reset_warps() {
  for (Warp& warp : warps_) {
    for (Meeting& meeting : warp.meetings) meeting.arrived = 0;
  }
  warps_used_ = false;
}

/// Whose wait the report is about.
int BlockRunner::stalled_thread() const {
  // A warp collective first: those who wait at the barrier may be waiting for its lanes.
  for (const State state : {State::at_warp, State::asleep, State::at_barrier}) {
    for (int thread = 0; thread < count_; ++thread) {
      if (threads_[thread].state == state) return thread;
    }
  }
  __builtin_unreachable();
}

std::string BlockRunner::stall_report() const {
  const int thread = stalled_thread();
  if (threads_[thread].state == State::at_warp) return warp_stall(thread);
  if (threads_[thread].state == State::at_barrier) return barrier_stall(thread);
  return fmt::format("{} waits in {} for {}", position(thread), line_of(threads_[thread].place),
                     async_->why_asleep(thread));
}

// The first lane that `thread` waits for in vain; it may lie beyond the end of the block.
int BlockRunner::missing_lane(int thread) const {
  const int first_thread = thread - thread % kWarp;
  const Warp& warp = warps_[thread / kWarp];
  const int my_lane = thread % kWarp;
  int missing = kNone;
  for_each_lane(warp.masks[my_lane], [&](int lane) {
    const int other = first_thread + lane;
    const bool there = other < count_ && threads_[other].state == State::at_warp &&
                       warp.masks[lane] == warp.masks[my_lane] &&
                       warp.ops[lane] == warp.ops[my_lane];
    if (!there && missing == kNone) missing = lane;
  });
  return missing;
}

std::string BlockRunner::warp_stall(int thread) const {
  const Warp& warp = warps_[thread / kWarp];
  const unsigned mask = warp.masks[thread % kWarp];
  const int lane = missing_lane(thread);
  const int other = thread - thread % kWarp + lane;
  std::string why;
  if (other >= count_) {
    why = fmt::format("lane {}, which the mask names, does not exist: the block has {} threads",
                      lane, count_);
  } else if (threads_[other].state == State::ended) {
    why = fmt::format("lane {}, which the mask names, has ended", lane);
  } else if (threads_[other].state == State::at_barrier) {
    why = fmt::format("lane {}, which the mask names, waits at __syncthreads() in {}", lane,
                      line_of(threads_[other].place));
  } else {
    why = fmt::format("lane {}, which the mask names, waits at {} in {} with mask 0x{:08x}", lane,
                      words(warp.ops[lane]), line_of(threads_[other].place), warp.masks[lane]);
  }
  return fmt::format(
      "{} waits at {} in {} with mask 0x{:08x}, but {}; all lanes of a mask must come together",
      position(thread), words(warp.ops[thread % kWarp]), line_of(threads_[thread].place), mask,
      why);
}

std::string BlockRunner::barrier_stall(int thread) const {
  std::string why = "another thread never arrives";
  const int first = thread / block_threads_ * block_threads_;
  for (int other = first; other < first + block_threads_; ++other) {
    const uint3 index = threads_[other].index;
    const std::string name = fmt::format("thread ({},{},{})", index.x, index.y, index.z);
    if (threads_[other].state == State::ended) {
      why = name + " has ended without reaching it";
      break;
    }
    if (threads_[other].place.line() != threads_[thread].place.line() ||
        threads_[other].place.column() != threads_[thread].place.column()) {
      why = fmt::format("{} waits at another one, in {}", name, line_of(threads_[other].place));
      break;
    }
  }
  return fmt::format(
      "{} waits at __syncthreads() in {}, but {}; all threads of a block must reach the same one",
      position(thread), line_of(threads_[thread].place), why);
}

}  // namespace tilestep::simt::emulated
