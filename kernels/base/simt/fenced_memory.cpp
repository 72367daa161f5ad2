#include "kernels/base/simt/fenced_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace tilestep::simt::emulated {
namespace {

constexpr std::size_t kAlignment = 256;

std::size_t rounded_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace

FencedMemory::~FencedMemory() {
  for (const auto& [memory, mapping] : mapped_) ::munmap(mapping.begin, mapping.bytes);
}

void* FencedMemory::allocate(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t used = rounded_up(bytes, kAlignment), pages = rounded_up(used, page);
  const std::size_t all = pages + 2 * page;
  if (bytes > all) return nullptr;
  void* begin = ::mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  char* first = static_cast<char*>(begin) + page;
  // Only now does it count against a limit for data.
  if (::mprotect(first, pages, PROT_READ | PROT_WRITE) != 0) {
    ::munmap(begin, all);
    return nullptr;
  }
  void* memory = first + (pages - used);
  mapped_[memory] = {begin, all};
  return memory;
}

bool FencedMemory::release(void* memory) noexcept {
  const auto found = mapped_.find(memory);
  if (found == mapped_.end()) return false;
  ::munmap(found->second.begin, found->second.bytes);
  mapped_.erase(found);
  return true;
}

}  // namespace tilestep::simt::emulated
