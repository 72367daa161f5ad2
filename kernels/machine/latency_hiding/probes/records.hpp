#pragma once

#include <cstdint>

/// \file
/// What probes leave in memory.
namespace tilestep::latency_hiding {

/// What a warp leaves: of all its probes, and where and when it ran.
struct WarpRecord {
  std::uint32_t sm, slot;         ///< %smid, %warpid
  std::uint32_t begin, end;       ///< clocks
  std::uint32_t cost;             ///< of an empty probe: two clocks and nothing between
  std::uint32_t probes;           ///< how many there were: the last one's number, and one
  std::uint32_t latency;          ///< their sum, from issue to use
  std::int64_t begin_ns, end_ns;  ///< of the device's timer, which all multiprocessors share
};
/// Of a record that no warp wrote, into memory filled with set bits.
inline constexpr std::uint32_t kUnwritten = 0xFFFFFFFFu;

/// Clocks of a probe that is kept, and the lanes that were active between them.
struct ProbeRecord {
  std::uint32_t issue, use, active;

  bool written() const { return issue != kUnwritten || use != kUnwritten; }
};

}  // namespace tilestep::latency_hiding
