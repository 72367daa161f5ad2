#include "kernels/base/inspect/requests.hpp"

#include <algorithm>
#include <bit>

namespace tilestep::inspect {
namespace {

constexpr std::uintptr_t kWord = 4, kBanks = 32;

/// How many different bytes the lanes want.
std::uint32_t wanted_by(const Request& request) {
  std::array<std::uintptr_t, kLanes> begins;
  int count = 0;
  for (std::uint32_t left = request.lanes; left != 0; left &= left - 1) {
    begins[static_cast<std::size_t>(count++)] =
        request.address[static_cast<std::size_t>(std::countr_zero(left))];
  }
  std::sort(begins.begin(), begins.begin() + count);
  std::uintptr_t end = 0;
  std::uint32_t wanted = 0;
  for (int i = 0; i < count; ++i) {
    const std::uintptr_t begin = std::max(begins[static_cast<std::size_t>(i)], end);
    const std::uintptr_t to = begins[static_cast<std::size_t>(i)] + request.bytes;
    if (to <= begin) continue;
    wanted += static_cast<std::uint32_t>(to - begin);
    end = to;
  }
  return wanted;
}

/// Whether each lane and the one `apart` from it (by the bits of its number) want the same, where both take part.
bool same_in_pairs(const Request& request, int apart) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const int other = lane ^ apart;
    const bool both = (request.lanes >> lane & request.lanes >> other & 1u) != 0;
    if (both && request.address[static_cast<std::size_t>(lane)] !=
                    request.address[static_cast<std::size_t>(other)]) {
      return false;
    }
  }
  return true;
}

/// The turns of lanes [from, to): as many as the busiest bank has different words.
int turns_of_lanes(const Request& request, int from, int to) {
  std::array<std::uintptr_t, kLanes * 4> words;
  std::size_t count = 0;
  for (int lane = from; lane < to; ++lane) {
    if ((request.lanes >> lane & 1u) == 0) continue;
    const std::uintptr_t begin = request.address[static_cast<std::size_t>(lane)];
    for (std::uintptr_t word = begin / kWord;
         word <= (begin + request.bytes - 1) / kWord && count < words.size(); ++word) {
      words[count++] = word;
    }
  }
  std::sort(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count));
  const auto end = std::unique(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count));
  std::array<int, kBanks> of_bank{};
  int most = 0;
  for (auto word = words.begin(); word != end; ++word)
    most = std::max(most, ++of_bank[*word % kBanks]);
  return most;
}

}  // namespace

std::uint32_t piece_of(const Request& request) {
  std::uintptr_t all = request.bytes;
  for (std::uint32_t left = request.lanes; left != 0; left &= left - 1) {
    all |= request.address[static_cast<std::size_t>(std::countr_zero(left))];
  }
  return std::min(16u, 1u << std::min(std::countr_zero(all), 4));
}

int parts_of(const Request& request) {
  const int parts = request.bytes > 8 ? 4 : request.bytes > 4 ? 2 : 1;
  return parts > 1 && (same_in_pairs(request, 1) || same_in_pairs(request, 2)) ? parts / 2 : parts;
}

Cost sectors_of(const Request& request) {
  std::array<std::uintptr_t, kLanes * 2> sectors;
  std::size_t count = 0;
  for (std::uint32_t left = request.lanes; left != 0; left &= left - 1) {
    const std::uintptr_t begin = request.address[static_cast<std::size_t>(std::countr_zero(left))];
    sectors[count++] = begin / kSector;
    if ((begin + request.bytes - 1) / kSector != begin / kSector)
      sectors[count++] = begin / kSector + 1;
  }
  std::sort(sectors.begin(), sectors.begin() + static_cast<std::ptrdiff_t>(count));
  const auto end =
      std::unique(sectors.begin(), sectors.begin() + static_cast<std::ptrdiff_t>(count));
  Cost cost;
  cost.moved = static_cast<int>(end - sectors.begin());
  cost.wanted = wanted_by(request);
  cost.least = static_cast<int>((cost.wanted + kSector - 1) / kSector);
  return cost;
}

Cost turns_of(const Request& request) {
  const int parts = parts_of(request);
  Cost cost;
  cost.wanted = wanted_by(request);
  for (int part = 0; part < parts; ++part) {
    const int turns = turns_of_lanes(request, part * kLanes / parts, (part + 1) * kLanes / parts);
    cost.moved += turns;
    cost.least += turns > 0 ? 1 : 0;
  }
  return cost;
}

void Requests::add(std::uint32_t block, std::uint32_t warp, std::uint32_t site, Space space,
                   Use use, const Request& request) {
  Traffic& traffic = traffic_[site];
  traffic.space = space;
  traffic.use = use;
  // A GPU moves a structure in pieces that its alignment allows.
  const std::uint32_t piece = piece_of(request);
  for (std::uint32_t from = 0; request.lanes != 0 && from < request.bytes; from += piece) {
    Request part = request;
    part.bytes = piece;
    for (std::uintptr_t& address : part.address) address += from;
    const Cost cost = space == Space::shared ? turns_of(part) : sectors_of(part);
    traffic.bytes = std::max(traffic.bytes, part.bytes);
    ++traffic.requests;
    traffic.lanes += static_cast<std::uint64_t>(std::popcount(part.lanes));
    traffic.moved += static_cast<std::uint64_t>(cost.moved);
    traffic.least += static_cast<std::uint64_t>(cost.least);
    traffic.wanted += cost.wanted;
    // Of those with the same to spare one of more lanes shows more.
    const int spare = cost.moved - cost.least - (traffic.worst_moved - traffic.worst_least);
    if (spare < 0 ||
        (spare == 0 && std::popcount(part.lanes) <= std::popcount(traffic.worst.lanes))) {
      continue;
    }
    traffic.worst = part;
    traffic.worst_block = block;
    traffic.worst_warp = warp;
    traffic.worst_moved = cost.moved;
    traffic.worst_least = cost.least;
  }
}

}  // namespace tilestep::inspect
