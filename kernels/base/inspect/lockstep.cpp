#include "kernels/base/inspect/lockstep.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <utility>

namespace tilestep::inspect {
namespace {

/// Calls `take` with the number of each lane in the mask.
template <class Take>
void each_lane(std::uint32_t lanes, Take take) {
  for (; lanes != 0; lanes &= lanes - 1) take(static_cast<std::size_t>(std::countr_zero(lanes)));
}

}  // namespace

std::uint64_t LaneTimes::idle() const {
  return std::uint64_t{kLanes} * warp - std::accumulate(lane.begin(), lane.end(), std::uint64_t{0});
}

void Lockstep::begin_block(std::uint32_t block, int threads) {
  block_ = block;
  const auto warps = static_cast<std::size_t>((threads + kLanes - 1) / kLanes);
  lanes_.resize(warps * kLanes);
  for (Lane& lane : lanes_) lane.base = 0, lane.inside = false;
  splits_.assign(warps, 0);
  times_.clear();
}

std::uint32_t Lockstep::place_of(Code code, std::uint32_t depth) {
  // Frames are multiples of 16 bytes of stacks below 256 KB; addresses have 48 bits.
  const std::uint64_t key = reinterpret_cast<std::uintptr_t>(code) << 14 ^ depth >> 4;
  const auto [found, fresh] =
      number_of_place_.try_emplace(key, static_cast<std::uint32_t>(places_.size()));
  if (fresh) places_.push_back({code, depth});
  return found->second;
}

/// Makes room by running the other warps, which by now wait or have ended: the emulator runs one warp after the other.
bool Lockstep::has_room(int thread) {
  if (open_ < kMostOpen) return true;
  for (std::size_t warp = 0; warp < splits_.size(); ++warp) {
    if (warp != static_cast<std::size_t>(thread / kLanes)) run(warp);
  }
  if (open_ < kMostOpen) return true;
  ++trace_.left_out;
  return false;
}

void Lockstep::step(int thread, Code code, std::uintptr_t frame) {
  if (static_cast<std::size_t>(thread) >= lanes_.size() || !has_room(thread)) return;
  Lane& lane = lanes_[static_cast<std::size_t>(thread)];
  if (lane.base == 0) lane.base = frame;
  // Calls go down the stack.
  const std::uint32_t depth = frame < lane.base ? static_cast<std::uint32_t>(lane.base - frame) : 0;
  lane.place = place_of(code, depth);
  lane.inside = true;
  lane.visits.push_back({lane.place, static_cast<std::uint32_t>(lane.accesses.size())});
  ++open_;
}

void Lockstep::compare(int thread, Code code) {
  if (static_cast<std::size_t>(thread) >= lanes_.size()) return;
  Lane& lane = lanes_[static_cast<std::size_t>(thread)];
  if (!lane.visits.empty()) lane.visits.back().compared = code;
}

void Lockstep::access(int thread, std::uint32_t site, Space space, Use use, std::uintptr_t address,
                      std::uint32_t bytes) {
  if (static_cast<std::size_t>(thread) >= lanes_.size() || !has_room(thread)) return;
  Lane& lane = lanes_[static_cast<std::size_t>(thread)];
  if (lane.visits.empty()) {
    if (!lane.inside) lane.place = place_of(nullptr, 0);
    lane.visits.push_back({lane.place, 0, nullptr, true});
  }
  lane.accesses.push_back({address, site, bytes, space, use});
  ++open_;
}

void Lockstep::run(std::size_t warp) {
  std::array<std::size_t, kLanes> next{};
  Lane* const lanes = &lanes_[warp * kLanes];
  for (;;) {
    std::uint32_t group = 0;
    std::pair<std::uint32_t, Code> best;
    for (std::size_t i = 0; i < kLanes; ++i) {
      if (next[i] >= lanes[i].visits.size()) continue;
      const Place& place = places_[lanes[i].visits[next[i]].place];
      const bool first = group == 0 || place.depth > best.first ||
                         (place.depth == best.first && std::less<>()(place.code, best.second));
      if (first) {
        best = {place.depth, place.code};
        group = 0;
      }
      if (place.depth == best.first && place.code == best.second) group |= 1u << i;
    }
    if (group == 0) break;
    execute(warp, group, next);
  }
  for (std::size_t i = 0; i < kLanes; ++i) {
    open_ -= lanes[i].accesses.size();
    for (const Visit& each : lanes[i].visits) open_ -= each.continued ? 0 : 1;
    lanes[i].visits.clear();
    lanes[i].accesses.clear();
  }
}

void Lockstep::execute(std::size_t warp, std::uint32_t lanes,
                       std::array<std::size_t, kLanes>& next) {
  const Lane* const all = &lanes_[warp * kLanes];
  const auto first = static_cast<std::size_t>(std::countr_zero(lanes));
  const Visit& visit = all[first].visits[next[first]];
  if (!visit.continued) {
    const Code code = places_[visit.place].code;
    Block& block = trace_.blocks[code];
    block.warps += 1;
    block.threads += static_cast<std::uint64_t>(std::popcount(lanes));
    auto& times = times_[code];
    times.resize(splits_.size());
    ++times[warp].warp;
    each_lane(lanes, [&](std::size_t lane) { ++times[warp].lane[lane]; });
  }
  request(warp, lanes, next);
  decide(warp, lanes, next);
  each_lane(lanes, [&](std::size_t lane) { ++next[lane]; });
}

/// The k-th access of each lane at one place of the basic block is one request.
void Lockstep::request(std::size_t warp, std::uint32_t lanes,
                       const std::array<std::size_t, kLanes>& next) {
  struct Open {
    std::uint32_t site, time;
    const Access* access;
    Request request;
  };
  std::vector<Open> open;
  each_lane(lanes, [&](std::size_t i) {
    const Lane& lane = lanes_[warp * kLanes + i];
    const std::size_t begin = lane.visits[next[i]].accesses,
                      end = next[i] + 1 < lane.visits.size() ? lane.visits[next[i] + 1].accesses
                                                             : lane.accesses.size();
    for (std::size_t at = begin; at < end; ++at) {
      const Access& access = lane.accesses[at];
      const auto time = static_cast<std::uint32_t>(
          std::count_if(lane.accesses.begin() + static_cast<std::ptrdiff_t>(begin),
                        lane.accesses.begin() + static_cast<std::ptrdiff_t>(at),
                        [&](const Access& other) { return other.site == access.site; }));
      auto found = std::find_if(open.begin(), open.end(), [&](const Open& each) {
        return each.site == access.site && each.time == time;
      });
      if (found == open.end())
        found = open.insert(open.end(), {access.site, time, &access, Request()});
      found->request.lanes |= 1u << i;
      found->request.address[i] = access.address;
      found->request.bytes = std::max(found->request.bytes, access.bytes);
    }
  });
  for (const Open& each : open) {
    requests_.add(block_, static_cast<std::uint32_t>(warp), each.site, each.access->space,
                  each.access->use, each.request);
  }
}

/// The ways that lanes go after the last comparison of a basic block.
void Lockstep::decide(std::size_t warp, std::uint32_t lanes,
                      const std::array<std::size_t, kLanes>& next) {
  Code compared = nullptr, first = nullptr;
  bool split = false;
  Branch* branch = nullptr;
  each_lane(lanes, [&](std::size_t i) {
    const Lane& lane = lanes_[warp * kLanes + i];
    const Visit& visit = lane.visits[next[i]];
    if (visit.compared == nullptr || next[i] + 1 >= lane.visits.size()) return;
    const Code to = places_[lane.visits[next[i] + 1].place].code;
    if (branch == nullptr) {
      compared = visit.compared;
      branch = &ways_[compared];
      ++branch->warps;
      first = to;
    }
    split = split || to != first;
    if (branch->one == nullptr) branch->one = to;
    if (branch->one != to) branch->other = to;
  });
  if (!split) return;
  ++branch->split;
  ++splits_[warp];
}

void Lockstep::close() {
  for (std::size_t warp = 0; warp < splits_.size(); ++warp) run(warp);
}

void Lockstep::end_block() {
  close();
  const auto most = std::max_element(splits_.begin(), splits_.end());
  if (most == splits_.end() || *most <= trace_.warp.splits) return;
  const auto warp = static_cast<std::size_t>(most - splits_.begin());
  trace_.warp = {block_, static_cast<std::uint32_t>(warp), *most, {}};
  for (const auto& [code, times] : times_) trace_.warp.times[code] = times[warp];
}

LaunchTrace Lockstep::take() {
  close();
  for (const auto& [code, branch] : ways_) {
    if (branch.other != nullptr) trace_.branches[code] = branch;
  }
  ways_.clear();
  trace_.traffic = requests_.take();
  return std::exchange(trace_, {});
}

}  // namespace tilestep::inspect
