#pragma once

/// \file
/// What a whole CUDA program asks of the host side of CUDA, as kernels/base/inspect/program.cpp does it under emulation:
/// simt/toolkit/host.hpp has CUDA's own words for it. All functions note what they were asked, with its place, and
/// answer the number of a cudaError_t where they return int. One program in a process.

#include <cstddef>
#include <cstdint>

#include "kernels/base/simt/emulator/emulated_types.hpp"
#include "kernels/base/simt/location.hpp"

namespace tilestep::program {

using simt::Location;

/// Who may use a piece of memory.
enum class Memory : std::uint8_t { device, managed, pinned };

/// The numbers of CUDA's Runtime API ("cudaError_t"), of those that can happen here.
inline constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidConfiguration = 9,
                     kInvalidSymbol = 13, kInvalidDirection = 21, kInvalidDevice = 101,
                     kNotReady = 600, kNotSupported = 801;
const char* error_name(int error);
const char* error_text(int error);
/// The last error of a launch or call; `reset` forgets it.
int last_error(bool reset);

/// `name` is how the source calls the pointer, or empty; `element` the size of what it points to, 0 where that is not known.
int allocate(void** to, std::size_t bytes, const char* name, std::size_t element, Memory kind,
             Location at);
int release(void* memory, Memory kind, Location at);

enum class Direction : std::uint8_t { host_to_host, to_device, to_host, on_device, by_address };
struct Copy {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;  ///< of a row
  std::size_t rows = 1;
  std::size_t to_pitch = 0, from_pitch = 0;
  std::size_t element = 0;  ///< as of allocate
  Direction direction = Direction::by_address;
  int stream = 0;
};
int copy(const Copy& copy, Location at);
int fill(void* to, int byte, std::size_t bytes, int stream, Location at);

/// Memory of the device that a library's function uses: `rows` of `bytes`, `pitch` bytes apart.
struct Range {
  const void* begin = nullptr;
  std::size_t bytes = 0, rows = 1, pitch = 0;
  bool reads = false, writes = false;
  const char* name = "";  ///< of the argument: "A"
};
/// Whether the function `what` can use it; otherwise that is a finding. Reading bytes that nothing has
/// written is one too. Bytes that it writes count as written from now on.
bool device_range(const Range& range, const char* what, Location at);
/// A library's function refuses its arguments; `why` ends the sentence "… is refused: ".
void refuse_call(const char* what, const char* why, Location at);

struct Shape {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  int stream = 0;
};
/// Runs `thread` with `data` for every thread. Memory from `parameters` holds what the kernel is called with.
void launch(const char* name, const Shape& shape, void (*thread)(void*), void* data, Location at);
void* parameters(std::size_t bytes, std::size_t alignment);
/// A launch that names more dynamic shared memory than 48 KB needs this first ("cudaFuncAttributeMaxDynamicSharedMemorySize").
int allow_shared(int bytes, Location at);

/// A wait of the host's: "cudaDeviceSynchronize".
int wait(const char* word, Location at);
/// The number of a new stream or event.
int new_handle();
/// Seconds since the program began, by which events are told apart.
double seconds();

/// Threads of a block for which most threads fit on a multiprocessor, by threads and shared memory alone.
int best_block(std::size_t shared_bytes, int limit);
int blocks_per_multiprocessor(int threads, std::size_t shared_bytes);

}  // namespace tilestep::program
