#pragma once

#include <cstdint>

/// \file
/// The records that probes leave in memory.
namespace tilestep::latency_hiding {

/// Sites of a tape: a record per warp, and kMostProbes of each warp.
enum Site : std::uint32_t { kWarpSite, kProbeSite };

/// A warp's record: totals of its probes, and where and when it ran.
struct WarpRecord {
  std::uint32_t sm, slot;         ///< %smid, %warpid
  std::uint32_t begin, end;       ///< clocks
  std::uint32_t cost;             ///< of an empty probe: two clocks and nothing between
  std::uint32_t probes;           ///< their count: the last one's number plus one
  std::uint32_t latency;          ///< their sum, from issue to use
  std::int64_t begin_ns, end_ns;  ///< of the device's timer, which all multiprocessors share
};
/// In a record that no warp wrote: memory is filled with set bits.
inline constexpr std::uint32_t kUnwritten = 0xFFFFFFFFu;

/// Clocks of a kept probe, and the lanes that were active between them.
struct ProbeRecord {
  std::uint32_t issue, use, active;

  bool written() const { return issue != kUnwritten || use != kUnwritten; }
};

}  // namespace tilestep::latency_hiding
