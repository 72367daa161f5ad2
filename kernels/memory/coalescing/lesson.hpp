#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/lessons.hpp"
#include "kernels/memory/coalescing/patterns.hpp"

/// The coalescing lesson: which 32-byte sectors of memory one warp's request touches, what share of
/// their bytes is used, and the effect on bandwidth. CUDA C++ Best Practices Guide, "Coalesced
/// Access to Global Memory"; CUDA C++ Programming Guide, "Device Memory Accesses".
namespace tilestep::coalescing {

/// The kernel source that the picture shows.
inline constexpr std::string_view kSourcePath = "kernels/memory/coalescing/access.cu";

struct Params {
  Pattern pattern = Pattern::strided;
  int stride = 2;
  int offset = 1;
  ElementSize element_size = ElementSize::bytes_4;
  Access access = Access::load;
  int fields = 4;
  std::int64_t elements = 1024;  ///< that the launch accesses, one per thread
  std::int64_t seed = 1;
  /// "0:5,3:0": in custom lane 0 takes element 5 of its warp's, lane 3 element 0; all others the one of their own
  /// number. If a lane is listed twice, the later entry counts.
  std::string lanes = {};

  constexpr int element_bytes() const { return 1 << static_cast<int>(element_size); }
  std::int64_t blocks() const { return (elements + kThreadsPerBlock - 1) / kThreadsPerBlock; }
  std::int64_t warps() const { return (elements + kLanes - 1) / kLanes; }
};

/// The knobs, bound to Params: pattern stride offset element_bytes access fields elements seed lanes. The
/// pattern's array must not be larger than 512 MiB.
const lab::KnobTable<Params>& knob_table();
/// Which of its warp's elements each lane takes in custom.
std::array<int, kLanes> lane_elements(const Params& params);
/// The value of the knob `lanes` for such a choice.
std::string lanes_text(const std::array<int, kLanes>& elements);
/// The value of the pattern's own knob; nothing for a pattern that has none.
std::optional<lab::KnobValue> setting_of(const Params& params);
/// 1-based lines of kSourcePath, as this build has it.
struct SourceLines {
  int access = 0;  ///< the statement that loads and stores
  int index = 0;   ///< the pattern's arithmetic; the same line if it is part of the statement
};
SourceLines source_lines(Pattern pattern, Access access);
/// The statement as the kernel executes it, with the numbers of `params`: "out[i] = in[i × 2]".
std::string statement(const Params& params);
/// The launch that `params` describe; `array_elements` is the size of the array that the pattern
/// indexes (the other array has `elements`).
PatternShape shape_of(const Params& params);

/// Which of a warp's two requests: the one whose addresses the pattern chooses, or the plain one
/// ([i]) on the other array. A warp that loads by pattern then stores in order; a warp that stores
/// by pattern has loaded in order before.
enum class Site { pattern, plain };
constexpr auto names_of(Site) {
  return std::to_array<std::string_view>({"pattern", "plain"});
}

/// One request: the accesses of a warp's lanes for one instruction, as the kernel recorded them.
struct WarpRequest {
  int block = 0;
  int warp = 0;  ///< in its block
  Site site = Site::pattern;
  Access kind = Access::load;
  std::uint32_t active_lanes = 0;  ///< bit l: lane l took part
  /// Of the first byte that each lane touches, from the start of the array (which is aligned to
  /// 256 bytes); −1 for a lane that took no part.
  std::array<std::int64_t, kLanes> byte_offset{};

  bool active(int lane) const { return (active_lanes >> lane & 1U) != 0; }
  bool operator==(const WarpRequest&) const = default;
};

/// A 32-byte sector that a request touches.
struct Sector {
  std::int64_t index = 0;        ///< byte offset / 32
  std::uint32_t used_bytes = 0;  ///< bit b: byte b of the sector is touched by some lane
  std::uint32_t lanes = 0;       ///< bit l: lane l touches it

  std::int64_t line() const { return index / (kLineBytes / kSectorBytes); }
  bool operator==(const Sector&) const = default;
};
/// The sectors that `request` touches with accesses of `element_bytes`, in ascending order.
std::vector<Sector> touched_sectors(const WarpRequest& request, int element_bytes);

/// The cost of a request, counted from its lanes' addresses.
struct RequestStats {
  int lanes = 0;
  int sectors = 0;        ///< different 32-byte sectors with at least one touched byte
  int lines = 0;          ///< different 128-byte lines
  int bytes_used = 0;     ///< different bytes touched
  int bytes_fetched = 0;  ///< sectors × 32
  int best_sectors = 0;   ///< the fewest that can hold bytes_used: ⌈bytes_used / 32⌉
  /// bytes_used / bytes_fetched, in percent.
  double efficiency() const { return bytes_fetched == 0 ? 0 : 100.0 * bytes_used / bytes_fetched; }
};
RequestStats request_stats(const WarpRequest& request, int element_bytes);

/// The cost of many requests.
struct RequestTotals {
  std::int64_t requests = 0, sectors = 0, lines = 0, bytes_used = 0;
  std::int64_t best_sectors = 0, best_lines = 0;

  void add(const RequestStats& one);
  double per_request(std::int64_t count) const {
    return static_cast<double>(count) / static_cast<double>(requests);
  }
  std::int64_t bytes_fetched() const { return sectors * kSectorBytes; }
  /// In percent.
  double efficiency() const {
    return 100.0 * static_cast<double>(bytes_used) / static_cast<double>(bytes_fetched());
  }
};
/// Of the pattern's requests.
RequestTotals pattern_totals(const std::vector<WarpRequest>& requests, int element_bytes);

/// One warp's request to shared memory, recorded by a transpose that stages a 32 × 32 tile of
/// 4-byte elements. Shared memory has 32 banks of 4 bytes; different words of one bank take turns.
struct TileRequest {
  std::string rung;  ///< "shared-tile" or "shared-tile-padded"
  Access kind = Access::store;
  std::array<std::int32_t, kLanes> byte_offset{};  ///< from the start of the tile
  int ways = 0;  ///< the most different words that one bank has to deliver; 1: no conflict

  bool operator==(const TileRequest&) const = default;
};
inline constexpr int kBanks = 32;
inline constexpr int kBankBytes = 4;
/// Ways of a request with these byte offsets (4-byte accesses).
int bank_ways(const std::array<std::int32_t, kLanes>& byte_offset);

/// All data that the picture is drawn from: the requests of the first blocks, in the order block, warp,
/// and the order of execution within the warp (two requests per warp).
struct Trace {
  Pattern pattern = Pattern::strided;
  Access access = Access::load;
  int element_bytes = 4;
  std::int64_t elements = 0;
  std::int64_t pattern_array_bytes = 0;  ///< size of the array that the pattern indexes
  std::int64_t warps = 0;                ///< of the launch
  std::int64_t traced_warps = 0;         ///< of them, those whose requests are below
  int access_line = 0;                   ///< as `source_lines` gives it, whatever a recording says
  int index_line = 0;                    ///< the same
  std::string statement;                 ///< as the function of this name gives it
  bool counters_available = false;       ///< the device counted the launch in hardware too
  std::string counters_reason;           ///< why not and what to do, one sentence
  std::vector<WarpRequest> requests;

  /// One request to shared memory of each kind, by the transposes with a tile.
  std::vector<TileRequest> tile_requests;

  /// Requests of the first warp: they are shown in full, one step each. The rest, which repeats them, is one
  /// more step, with one phase per warp.
  std::size_t requests_in_full() const;
  /// The step, from 1, and its phase in which a request is shown.
  std::pair<int, int> shown_at(std::size_t request) const;
  bool operator==(const Trace&) const = default;
};

/// Compact: a request is {"block", "warp", "site": "pattern"|"plain", "kind": "load"|"store",
/// "bytes": [one offset per lane, null for an inactive lane]}. Statistics are not written;
/// they follow from the addresses.
nlohmann::json to_json(const Trace& trace);
/// Throws Error saying which member is missing or wrong.
Trace trace_from_json(const nlohmann::json& json);

/// The report's tables that follow from a trace.
std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::coalescing
