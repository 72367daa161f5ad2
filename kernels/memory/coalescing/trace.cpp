#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <set>
#include <string>

#include "kernels/base/lab/json.hpp"
#include "kernels/memory/coalescing/lesson.hpp"

namespace tilestep::coalescing {
namespace {

using nlohmann::json;

constexpr std::string_view kWhere = "coalescing trace";

std::string_view to_text(Site site) {
  return site == Site::pattern ? "pattern" : "plain";
}

/// The value of `Enum` that `name` names, among `values`.
template <class Enum, class Values>
Enum named(const json& from, std::string_view name, const Values& values) {
  const auto text = lab::member<std::string>(from, name, kWhere);
  std::string allowed;
  for (const Enum value : values) {
    if (to_text(value) == text) return value;
    allowed += (allowed.empty() ? "" : ", ") + std::string(to_text(value));
  }
  throw Error(fmt::format("{}: '{}' is '{}'; allowed: {}", kWhere, name, text, allowed));
}

constexpr std::array kSites = {Site::pattern, Site::plain};
constexpr std::array kKinds = {Access::load, Access::store};

json request_to_json(const WarpRequest& request) {
  json bytes = json::array();
  for (int lane = 0; lane < kLanes; ++lane) {
    bytes.push_back(request.active(lane) ? json(request.byte_offset[static_cast<std::size_t>(lane)])
                                         : json());
  }
  return {{"block", request.block},
          {"warp", request.warp},
          {"site", to_text(request.site)},
          {"kind", to_text(request.kind)},
          {"bytes", std::move(bytes)}};
}

const json& lanes_of(const json& from) {
  const json& bytes = lab::array_of(from, "bytes", kWhere);
  if (bytes.size() != kLanes) {
    throw Error(
        fmt::format("{}: 'bytes' must have {} entries, but has {}", kWhere, kLanes, bytes.size()));
  }
  for (const json& byte : bytes) {
    if (byte.is_null()) continue;
    if (!byte.is_number_integer() || byte.get<std::int64_t>() < 0) {
      throw Error(fmt::format("{}: 'bytes' must hold byte offsets or null", kWhere));
    }
  }
  return bytes;
}

WarpRequest request_from_json(const json& from) {
  WarpRequest request;
  request.block = lab::member<int>(from, "block", kWhere);
  request.warp = lab::member<int>(from, "warp", kWhere);
  request.site = named<Site>(from, "site", kSites);
  request.kind = named<Access>(from, "kind", kKinds);
  const json& bytes = lanes_of(from);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    request.byte_offset[lane] = bytes[lane].is_null() ? -1 : bytes[lane].get<std::int64_t>();
    if (!bytes[lane].is_null()) request.active_lanes |= 1U << lane;
  }
  return request;
}

json tile_request_to_json(const TileRequest& request) {
  return {{"rung", request.rung},
          {"kind", to_text(request.kind)},
          {"bytes", request.byte_offset},
          {"ways", request.ways}};
}

TileRequest tile_request_from_json(const json& from) {
  TileRequest request;
  request.rung = lab::member<std::string>(from, "rung", kWhere);
  request.kind = named<Access>(from, "kind", kKinds);
  request.ways = lab::member<int>(from, "ways", kWhere);
  const json& bytes = lanes_of(from);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (bytes[lane].is_null()) {
      throw Error(fmt::format("{}: every lane of a tile request has an offset", kWhere));
    }
    request.byte_offset[lane] = bytes[lane].get<std::int32_t>();
  }
  return request;
}

}  // namespace

std::vector<Sector> touched_sectors(const WarpRequest& request, int element_bytes) {
  std::vector<Sector> sectors;
  sectors.reserve(kLanes);
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!request.active(lane)) continue;
    const std::int64_t first = request.byte_offset[static_cast<std::size_t>(lane)];
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

int bank_ways(const std::array<std::int32_t, kLanes>& byte_offset) {
  std::array<std::set<std::int32_t>, kBanks> words;
  for (const std::int32_t byte : byte_offset) {
    const std::int32_t word = byte / kBankBytes;
    words[static_cast<std::size_t>(word % kBanks)].insert(word);
  }
  std::size_t ways = 0;
  for (const auto& bank : words) ways = std::max(ways, bank.size());
  return static_cast<int>(ways);
}

std::vector<std::size_t> Trace::pattern_requests() const {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].site == Site::pattern) positions.push_back(i);
  }
  return positions;
}

json to_json(const Trace& trace) {
  json requests = json::array();
  for (const WarpRequest& request : trace.requests) requests.push_back(request_to_json(request));
  json tiles = json::array();
  for (const TileRequest& request : trace.tile_requests) {
    tiles.push_back(tile_request_to_json(request));
  }
  return {
      {"pattern", to_text(trace.pattern)},
      {"access", to_text(trace.access)},
      {"element_bytes", trace.element_bytes},
      {"elements", trace.elements},
      {"pattern_array_bytes", trace.pattern_array_bytes},
      {"warps", trace.warps},
      {"traced_warps", trace.traced_warps},
      {"source", kSourcePath},
      {"access_line", trace.access_line},
      {"index_line", trace.index_line},
      {"statement", trace.statement},
      {"counters", {{"available", trace.counters_available}, {"reason", trace.counters_reason}}},
      {"requests", std::move(requests)},
      {"tile_requests", std::move(tiles)}};
}

Trace trace_from_json(const json& from) {
  Trace trace;
  trace.pattern = named<Pattern>(from, "pattern", kPatterns);
  trace.access = named<Access>(from, "access", kKinds);
  trace.element_bytes = lab::member<int>(from, "element_bytes", kWhere);
  if (trace.element_bytes < 1 || trace.element_bytes > 16 ||
      !std::has_single_bit(static_cast<unsigned>(trace.element_bytes))) {
    throw Error(fmt::format("{}: 'element_bytes' is {}; allowed: 1, 2, 4, 8, 16", kWhere,
                            trace.element_bytes));
  }
  trace.elements = lab::member<std::int64_t>(from, "elements", kWhere);
  trace.pattern_array_bytes = lab::member<std::int64_t>(from, "pattern_array_bytes", kWhere);
  trace.warps = lab::member<std::int64_t>(from, "warps", kWhere);
  trace.traced_warps = lab::member<std::int64_t>(from, "traced_warps", kWhere);
  const SourceLines lines = source_lines(trace.pattern, trace.access);
  trace.access_line = lines.access;
  trace.index_line = lines.index;
  trace.statement = lab::member<std::string>(from, "statement", kWhere);
  const json counters = lab::member<json>(from, "counters", kWhere);
  trace.counters_available = lab::member<bool>(counters, "available", kWhere);
  trace.counters_reason = lab::member<std::string>(counters, "reason", kWhere);
  for (const json& request : lab::array_of(from, "requests", kWhere)) {
    trace.requests.push_back(request_from_json(request));
    for (const std::int64_t byte : trace.requests.back().byte_offset) {
      if (byte >= 0 && byte % trace.element_bytes != 0) {
        throw Error(fmt::format("{}: byte offset {} is not aligned to an element of {} bytes",
                                kWhere, byte, trace.element_bytes));
      }
    }
  }
  for (const json& request : lab::array_of(from, "tile_requests", kWhere)) {
    trace.tile_requests.push_back(tile_request_from_json(request));
  }
  return trace;
}

}  // namespace tilestep::coalescing
