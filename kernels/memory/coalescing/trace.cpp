#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <set>

#include "kernels/base/lab/fields.hpp"
#include "kernels/memory/coalescing/lesson.hpp"

namespace tilestep::coalescing {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;  ///< of an array

/// One offset a lane, null for a lane that took no part.
nlohmann::json bytes_to_json(const WarpRequest& request) {
  nlohmann::json bytes = nlohmann::json::array();
  for (int lane = 0; lane < kLanes; ++lane) {
    bytes.push_back(request.active(lane) ? nlohmann::json(request.byte_offset[lane])
                                         : nlohmann::json());
  }
  return bytes;
}

void read_bytes(const lab::Place& bytes, int element_bytes, WarpRequest& request) {
  bytes.require_size(kLanes);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const lab::Place byte = bytes.at(lane);
    request.byte_offset[lane] = -1;
    if (byte.json().is_null()) continue;
    request.byte_offset[lane] = byte.whole<std::int64_t>(0, kMostBytes);
    request.active_lanes |= 1U << lane;
    if (request.byte_offset[lane] % element_bytes != 0) {
      byte.refuse(fmt::format("offsets aligned to an element of {} bytes", element_bytes));
    }
  }
}

lab::Fields<WarpRequest> request_fields(const Trace& trace) {
  return lab::Fields<WarpRequest>()
      .from_here(lab::kAhead)
      .whole("block", &WarpRequest::block, 0, lab::kMostCount)
      .whole("warp", &WarpRequest::warp, 0, kWarpsPerBlock - 1)
      .name(TILESTEP_MEMBERS(WarpRequest, site, kind))
      .from_here({})
      .custom("bytes", bytes_to_json,
              [size = trace.element_bytes](const lab::Place& bytes, WarpRequest& request) {
                read_bytes(bytes, size, request);
              });
}

lab::Fields<TileRequest> tile_request_fields() {
  return lab::Fields<TileRequest>()
      .text("rung", &TileRequest::rung)
      .name("kind", &TileRequest::kind)
      .wholes("bytes", &TileRequest::byte_offset, kLanes, 0, lab::kMostCount)
      .whole("ways", &TileRequest::ways, 1, kLanes);
}

std::string element_size(const Trace& trace) {
  if (std::has_single_bit(static_cast<unsigned>(trace.element_bytes))) return {};
  return fmt::format("'element_bytes' is {}; allowed: 1, 2, 4, 8, 16", trace.element_bytes);
}

lab::Fields<Trace> trace_fields() {
  return lab::Fields<Trace>()
      .name(TILESTEP_MEMBERS(Trace, pattern, access))
      .whole("element_bytes", &Trace::element_bytes, 1, 16)
      .check(element_size)
      .whole(TILESTEP_MEMBERS(Trace, elements, pattern_array_bytes, warps), 1, kMostBytes)
      .whole("traced_warps", &Trace::traced_warps, 0, &Trace::warps)
      .constant("source", kSourcePath)
      .whole(TILESTEP_MEMBERS(Trace, access_line, index_line), 0, lab::kMostCount)
      .derive([](Trace& trace) {  // a recording may number another source
        const SourceLines lines = source_lines(trace.pattern, trace.access);
        trace.access_line = lines.access;
        trace.index_line = lines.index;
      })
      .text("statement", &Trace::statement)
      .group("counters", lab::Fields<Trace>()
                             .flag("available", &Trace::counters_available)
                             .text("reason", &Trace::counters_reason))
      .list("requests", &Trace::requests, request_fields)
      .known_each([](const Trace& t, std::size_t request) {
        const auto [step, phase] = t.shown_at(request);
        return lab::When{step, phase};
      })
      .list("tile_requests", &Trace::tile_requests, tile_request_fields());
}

}  // namespace

std::vector<Sector> touched_sectors(const WarpRequest& request, int element_bytes) {
  std::vector<Sector> sectors;
  sectors.reserve(kLanes);
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!request.active(lane)) continue;
    const std::int64_t first = request.byte_offset[lane];
    // An element is aligned to its own size, which divides 32: it never crosses a sector.
    assert(element_bytes <= kSectorBytes && first % element_bytes == 0);
    const std::uint32_t bytes = ((1U << element_bytes) - 1) << (first % kSectorBytes);
    sectors.push_back({first / kSectorBytes, bytes, 1U << lane});
  }
  std::sort(sectors.begin(), sectors.end(),
            [](const Sector& a, const Sector& b) { return a.index < b.index; });
  std::size_t kept = 0;
  for (const Sector& sector : sectors) {
    if (kept > 0 && sectors[kept - 1].index == sector.index) {
      sectors[kept - 1].used_bytes |= sector.used_bytes;
      sectors[kept - 1].lanes |= sector.lanes;
    } else {
      sectors[kept++] = sector;
    }
  }
  sectors.resize(kept);
  return sectors;
}

RequestStats request_stats(const WarpRequest& request, int element_bytes) {
  RequestStats stats;
  stats.lanes = std::popcount(request.active_lanes);
  std::int64_t last_line = -1;
  for (const Sector& sector : touched_sectors(request, element_bytes)) {
    ++stats.sectors;
    stats.bytes_used += std::popcount(sector.used_bytes);
    if (sector.line() != last_line) ++stats.lines;
    last_line = sector.line();
  }
  stats.bytes_fetched = stats.sectors * kSectorBytes;
  stats.best_sectors = (stats.bytes_used + kSectorBytes - 1) / kSectorBytes;
  return stats;
}

void RequestTotals::add(const RequestStats& one) {
  ++requests;
  sectors += one.sectors;
  lines += one.lines;
  bytes_used += one.bytes_used;
  best_sectors += one.best_sectors;
  best_lines += (one.bytes_used + kLineBytes - 1) / kLineBytes;
}

RequestTotals pattern_totals(const std::vector<WarpRequest>& requests, int element_bytes) {
  RequestTotals totals;
  for (const WarpRequest& request : requests) {
    if (request.site == Site::pattern) totals.add(request_stats(request, element_bytes));
  }
  return totals;
}

int bank_ways(const std::array<std::int32_t, kLanes>& byte_offset) {
  std::array<std::set<std::int32_t>, kBanks> words;
  for (const std::int32_t byte : byte_offset) {
    const std::int32_t word = byte / kBankBytes;
    words[word % kBanks].insert(word);
  }
  std::size_t ways = 0;
  for (const auto& bank : words) ways = std::max(ways, bank.size());
  return static_cast<int>(ways);
}

std::size_t Trace::requests_in_full() const {
  std::size_t count = 0;
  while (count < requests.size() && requests[count].block == requests[0].block &&
         requests[count].warp == requests[0].warp) {
    ++count;
  }
  return count;
}

std::pair<int, int> Trace::shown_at(std::size_t request) const {
  const std::size_t full = requests_in_full();
  if (request < full) return {static_cast<int>(request) + 1, 0};
  return {static_cast<int>(full) + 1, static_cast<int>((request - full) / full)};
}

TILESTEP_TRACE_JSON("coalescing trace", trace_fields())

}  // namespace tilestep::coalescing
