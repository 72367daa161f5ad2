#pragma once

#include <cstddef>
#include <unordered_map>

namespace tilestep::simt::emulated {

/// Memory between two pages that nobody may touch: a kernel that walks out of its array by a pointer of its own is
/// stopped there, and does not overwrite something that fails later. Aligned to 256 bytes; the end lies at a fence
/// to within that.
class FencedMemory {
 public:
  FencedMemory() = default;
  ~FencedMemory();
  FencedMemory(const FencedMemory&) = delete;
  FencedMemory& operator=(const FencedMemory&) = delete;

  /// Null where the system has none.
  void* allocate(std::size_t bytes);
  /// False for what is not from here.
  bool release(void* memory) noexcept;

 private:
  struct Mapping {
    void* begin;
    std::size_t bytes;
  };
  std::unordered_map<void*, Mapping> mapped_;
};

}  // namespace tilestep::simt::emulated
