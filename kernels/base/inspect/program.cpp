// What a program calls (simt/program.hpp).

#include "kernels/base/simt/program.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "kernels/base/inspect/session.hpp"

namespace tilestep::program {
namespace {

const auto begun = std::chrono::steady_clock::now();
int handles = 0;

struct ErrorWords {
  int number;
  const char *name, *text;
};
constexpr ErrorWords kErrors[] = {
    {kSuccess, "cudaSuccess", "no error"},
    {kInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {kOutOfMemory, "cudaErrorMemoryAllocation", "out of memory"},
    {kInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {kInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {kInvalidDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {kInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {kNotReady, "cudaErrorNotReady", "device not ready"},
    {kNotSupported, "cudaErrorNotSupported", "operation not supported"},
};

}  // namespace

const char* error_name(int error) {
  for (const ErrorWords& each : kErrors) {
    if (each.number == error) return each.name;
  }
  return "cudaErrorUnknown";
}
const char* error_text(int error) {
  for (const ErrorWords& each : kErrors) {
    if (each.number == error) return each.text;
  }
  return "unknown error";
}
int last_error(bool reset) {
  return inspect::Session::current().last_error(reset);
}
int allocate(void** to, std::size_t bytes, const char* name, std::size_t element, Memory kind,
             Location at) {
  return inspect::Session::current().allocate(to, bytes, name, element, kind, at);
}
int release(void* memory, Memory kind, Location at) {
  // cudaFree takes managed memory too.
  return inspect::Session::current().release(memory, kind, at);
}
int copy(const Copy& copy, Location at) {
  return inspect::Session::current().copy(copy, at);
}
int fill(void* to, int byte, std::size_t bytes, int stream, Location at) {
  return inspect::Session::current().fill(to, byte, bytes, stream, at);
}
bool device_range(const Range& range, const char* what, Location at) {
  return inspect::Session::current().device_range(range, what, at);
}
void refuse_call(const char* what, const char* why, Location at) {
  inspect::Session::current().refuse_call(what, why, at);
}
void launch(const char* name, const Shape& shape, void (*thread)(void*), void* data, Location at) {
  inspect::Session::current().launch(name, shape, thread, data, at);
}
void* parameters(std::size_t bytes, std::size_t alignment) {
  static std::vector<char> room;
  room.resize(std::max(room.size(), bytes + alignment));
  void* memory = room.data();
  std::size_t space = room.size();
  return std::align(alignment, bytes, memory, space);
}
int allow_shared(int bytes, Location) {
  return inspect::Session::current().allow_shared(bytes);
}
int wait(const char* word, Location at) {
  return inspect::Session::current().wait(word, at);
}
int new_handle() {
  return ++handles;
}
double seconds() {
  inspect::Session::current().timed_by_events = true;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

// Compute capability 9.0: 2048 threads, 32 blocks and 228 KB of a multiprocessor, of which each block costs 1 KB more.
int blocks_per_multiprocessor(int threads, std::size_t shared_bytes) {
  if (threads < 1 || threads > 1024) return 0;
  const int warps = (threads + 31) / 32;
  const auto by_shared = static_cast<int>((std::size_t{228} << 10) / (shared_bytes + 1024));
  return std::min({64 / warps, 32, by_shared});
}
int best_block(std::size_t shared_bytes, int limit) {
  int best = 32, most = 0;
  for (int threads = 1024; threads >= 32; threads -= 32) {
    if (limit > 0 && threads > limit) continue;
    const int resident = threads * blocks_per_multiprocessor(threads, shared_bytes);
    if (resident > most) best = threads, most = resident;
  }
  return best;
}

}  // namespace tilestep::program
