#pragma once

#include <cstddef>
#include <unordered_map>

namespace tilestep::simt::emulated {

/// Memory between two pages that nobody may touch: a kernel that walks out of its array by a pointer of its own is
/// stopped there, and does not overwrite something that fails later. Aligned to 256 bytes; the end lies at a fence
/// to within that, and global_watch.hpp sees those bytes. All of it lies in one range of addresses, so that others are told
/// from it at once.
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
    char* begin;
    std::size_t bytes;
  };
  bool reserve();

  char* range_ = nullptr;
  std::size_t range_bytes_ = 0, used_ = 0;
  std::unordered_map<void*, Mapping> mapped_;
};

}  // namespace tilestep::simt::emulated
