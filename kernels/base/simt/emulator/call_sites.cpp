#include "kernels/base/simt/emulator/call_sites.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

namespace tilestep::simt::emulated {
namespace {

constexpr std::size_t kFrames = 6;
/// Sites that are told apart; a power of two. A kernel has some hundreds, and a process runs one edit after the other:
/// 8192 were full after some twenty. Pages of the table that nobody came to take no memory.
constexpr std::size_t kSites = 1 << 20;
constexpr std::size_t kTries = 32;

using Site = std::array<const void*, kFrames>;
/// Of all OS threads. Never emptied: modules are never unloaded either.
std::array<std::atomic<const Site*>, kSites> table{};

}  // namespace

std::uint32_t call_site(void** frame, const void* top) {
  Site site{};
  const auto end = reinterpret_cast<std::uintptr_t>(top);
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < kFrames; ++i) {
    site[i] = frame[1];
    hash = (hash ^ reinterpret_cast<std::uintptr_t>(frame[1])) * 0x9E3779B97F4A7C15u;
    const auto next = reinterpret_cast<std::uintptr_t>(frame[0]);
    const auto here = reinterpret_cast<std::uintptr_t>(frame);
    if (next <= here || next + 2 * sizeof(void*) > end || next % sizeof(void*) != 0) break;
    frame = reinterpret_cast<void**>(next);
  }
  for (std::size_t tries = 0; tries < kTries; ++tries) {
    const std::size_t at = ((hash >> 40) + tries) % kSites;
    if (at == 0) continue;
    const Site* kept = table[at].load(std::memory_order_acquire);
    if (kept == nullptr) {
      auto mine = std::make_unique<const Site>(site);
      if (table[at].compare_exchange_strong(kept, mine.get(), std::memory_order_acq_rel)) {
        mine.release();
        return static_cast<std::uint32_t>(at);
      }
    }
    if (*kept == site) return static_cast<std::uint32_t>(at);
  }
  return 0;
}

std::vector<const void*> callers_of(std::uint32_t site) {
  std::vector<const void*> callers;
  const Site* kept = table[site].load(std::memory_order_acquire);
  if (kept == nullptr) return callers;
  for (const void* caller : *kept) {
    if (caller != nullptr) callers.push_back(static_cast<const char*>(caller) - 1);
  }
  return callers;
}

}  // namespace tilestep::simt::emulated
