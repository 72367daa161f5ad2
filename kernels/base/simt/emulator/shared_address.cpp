#include "kernels/base/simt/emulator/shared_address.hpp"

#include <fmt/format.h>

#include "kernels/base/simt/emulator/emulator.hpp"
#include "kernels/base/simt/emulator/shared_races.hpp"

namespace tilestep::simt::emulated {
namespace {

// Where the two kinds begin, apart from the remainder: neither has a megabyte.
constexpr std::uint32_t kStatics = 1 << 20, kDynamic = 1 << 22;
constexpr std::uintptr_t kRemainder = 1024;

std::uint32_t base_of(const SharedRaces::Region& region, std::uint32_t kind) {
  return kind + static_cast<std::uint32_t>(region.begin % kRemainder);
}

}  // namespace

std::uint32_t shared_address_of(const void* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const SharedRaces::Region &dynamic = watch_window.dynamic, &statics = watch_window.statics;
  // The end counts too: a loop may step there.
  if (address - dynamic.begin <= dynamic.bytes && dynamic.bytes > 0)
    return base_of(dynamic, kDynamic) + static_cast<std::uint32_t>(address - dynamic.begin);
  if (address - statics.begin <= statics.bytes && statics.bytes > 0)
    return base_of(statics, kStatics) + static_cast<std::uint32_t>(address - statics.begin);
  refused_here("passes __cvta_generic_to_shared a pointer that is not to shared memory");
}

void* shared_memory_at(std::uint32_t address, std::size_t bytes, std::size_t alignment) {
  for (const auto& [region, kind] :
       {std::pair(watch_window.dynamic, kDynamic), std::pair(watch_window.statics, kStatics)}) {
    const std::uint32_t offset = address - base_of(region, kind);
    if (offset >= region.bytes || bytes > region.bytes - offset) continue;
    if (address % alignment != 0) {
      refused_here(fmt::format("uses the shared address 0x{:x}, which is no multiple of {} bytes",
                               address, alignment)
                       .c_str());
    }
    return reinterpret_cast<void*>(region.begin + offset);
  }
  refused_here(
      fmt::format("uses {} bytes at the shared address 0x{:x}, outside its block's shared memory; "
                  "__cvta_generic_to_shared returns such addresses",
                  bytes, address)
          .c_str());
}

}  // namespace tilestep::simt::emulated
