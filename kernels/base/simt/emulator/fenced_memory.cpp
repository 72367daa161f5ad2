#include "kernels/base/simt/emulator/fenced_memory.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernels/base/simt/emulator/global_watch.hpp"

namespace tilestep::simt::emulated {
namespace {

constexpr std::size_t kAlignment = 256;
/// More than an edited kernel may take (workbench/guarded.hpp).
constexpr std::size_t kRange = std::size_t{8} << 30;

std::size_t rounded_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace

bool FencedMemory::reserve() {
  // Addresses alone, which count against no limit for data. Where they are limited it takes a part: a run has several
  // devices, and not only those.
  rlimit limit{};
  range_bytes_ = kRange;
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur / 8 < kRange) {
    range_bytes_ =
        rounded_up(limit.rlim_cur / 8, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  }
  void* range =
      ::mmap(nullptr, range_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return false;
  range_ = static_cast<char*>(range);
  global_watch().begin(range_, range_bytes_);
  return true;
}

FencedMemory::~FencedMemory() {
  if (range_ == nullptr) return;
  global_watch().end(range_);
  ::munmap(range_, range_bytes_);
}

void* FencedMemory::allocate(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t used = rounded_up(bytes, kAlignment), pages = rounded_up(used, page);
  const std::size_t all = pages + 2 * page;
  if (bytes > all || (range_ == nullptr && !reserve())) return nullptr;
  if (mapped_.empty()) used_ = 0;
  if (all > range_bytes_ - used_) return nullptr;
  char* begin = range_ + used_;
  char* first = begin + page;
  // Only now does it count against a limit for data.
  if (::mprotect(first, pages, PROT_READ | PROT_WRITE) != 0) return nullptr;
  used_ += all;
  void* memory = first + (pages - used);
  mapped_[memory] = {begin, all};
  global_watch().add(memory, bytes, true);
  return memory;
}

bool FencedMemory::release(void* memory) noexcept {
  const auto found = mapped_.find(memory);
  if (found == mapped_.end()) return false;
  const Mapping mapping = found->second;
  global_watch().remove(memory);
  // The addresses stay ours, what stood there goes.
  ::mmap(mapping.begin, mapping.bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (mapping.begin + mapping.bytes == range_ + used_) used_ -= mapping.bytes;
  mapped_.erase(found);
  return true;
}

}  // namespace tilestep::simt::emulated
