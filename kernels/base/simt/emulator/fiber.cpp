#include "kernels/base/simt/emulator/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace tilestep::simt::emulated {
namespace {

#if defined(TILESTEP_ASAN) || defined(TILESTEP_TSAN)
constexpr std::size_t kStackBytes = 256 * 1024;  // sanitizers make frames several times larger
#else
constexpr std::size_t kStackBytes = 64 * 1024;
#endif
constexpr std::size_t kColorStep = 5 * 64;  // cache lines; coprime with the lines of a page
// A guard page splits a mapping in two, and a process may have 65530 of them by default.
constexpr int kMostGuards = 8192;

std::atomic<int> guards{0};
std::atomic<unsigned> stacks_made{0};

std::size_t page_bytes() {
  static const std::size_t bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// One page for the guard, one that the starting offsets spread over.
std::size_t mapped_bytes() {
  return kStackBytes + 2 * page_bytes();
}

}  // namespace

boost::context::stack_context StackAllocator::allocate() {
  void* memory = mmap(nullptr, mapped_bytes(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  if (guards.fetch_add(1, std::memory_order_relaxed) < kMostGuards) {
    // Without the guard an overflow goes unnoticed, but everything else works: no reason to stop.
    (void)mprotect(memory, page_bytes(), PROT_NONE);
  }
  const std::size_t color = stacks_made.fetch_add(1, std::memory_order_relaxed) * kColorStep;
  boost::context::stack_context stack;
  stack.size = mapped_bytes() - page_bytes() - color % page_bytes();
  stack.sp = static_cast<char*>(memory) + page_bytes() + stack.size;
  return stack;
}

void StackAllocator::deallocate(boost::context::stack_context& stack) noexcept {
  char* memory = static_cast<char*>(stack.sp) - stack.size - page_bytes();
#if defined(TILESTEP_ASAN)
  // Whatever is mapped here next must not inherit the frames' red zones.
  __asan_unpoison_memory_region(memory, mapped_bytes());
#endif
  munmap(memory, mapped_bytes());
  guards.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace tilestep::simt::emulated
