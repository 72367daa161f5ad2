#pragma once

/// \file
/// What the dialect's words call: the interface between a kernel that is compiled by the host
/// compiler and the emulator that runs its threads. All functions but `run` are called from inside
/// a kernel and throw Error that names kernel, block and thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/base/simt/device.hpp"
#include "kernels/base/simt/emulator/emulated_types.hpp"
#if !defined(SIMT_EDITED)
#include "kernels/base/simt/emulator/fiber.hpp"
#endif
#include "kernels/base/simt/launch.hpp"
#include "kernels/base/simt/location.hpp"

namespace tilestep::simt::emulated {

/// Runs one CUDA thread: the kernel with the arguments that are bound in `data`.
using ThreadFunction = void (*)(void* data);

/// Runs all threads of a launch on an emulated device. Throws Error, Cancelled.
void run(Device& device, const Launch& launch, ThreadFunction thread, void* data);
/// The same, or inside Streams::in gives the launch to the stream, which keeps `data` until then. `uses` are the arrays
/// among its arguments.
void launch(Device& device, const Launch& launch, ThreadFunction thread,
            const std::shared_ptr<void>& data, std::span<const MemoryUse> uses);

/// Waits for all threads of the block. Returns how many of them came with `predicate` true. What an
/// edited source calls, which is compiled without the headers of fibers.
int meet_at_barrier(bool predicate, Location at);

#if defined(SIMT_EDITED)

inline int block_barrier(bool predicate, Location at) {
  return meet_at_barrier(predicate, at);
}

#else

/// The flow of control that waits, and the one that runs meanwhile (null: none need run).
struct Pause {
  Context* from;
  Context* to;
};
/// The two halves of a barrier; both may throw, and `leave` gives the number of threads that came
/// with `predicate` true.
Pause arrive_at_barrier(bool predicate, Location at);
int leave_barrier();

/// Waits for all threads of the block. Returns how many of them came with `predicate` true.
[[gnu::always_inline]] inline int block_barrier(bool predicate, Location at) {
  const Pause pause = arrive_at_barrier(predicate, at);
  if (pause.to != nullptr) Fibers::switch_to(*pause.from, *pause.to);
  return leave_barrier();
}

#endif

enum class WarpOp : std::uint8_t {
  sync,
  shuffle,  ///< value of lane `source`
  ballot,   ///< which lanes have a value other than 0
  add,      ///< sum modulo 2^32
  min_signed,
  max_signed,
  min_unsigned,
  max_unsigned,
  bit_and,
  bit_or,
  bit_xor,
  matrix,    ///< waits, and orders no memory: mma.h's words
  coalesce,  ///< of coalesced_lanes alone
};

/// Waits for all lanes that `mask` names, and combines their values. `source` is for shuffles.
std::uint64_t warp_collective(WarpOp op, unsigned mask, std::uint64_t value, int source,
                              Location at);

/// Waits until no thread of the block can run otherwise, and returns the lanes of the warp that wait at
/// the same place: a GPU whose branches reconverge would run those together.
unsigned coalesced_lanes(Location at);

/// Lane of the calling thread in its warp, 0–31.
int lane();

/// Number of the calling thread's warp in its cluster.
int warp();

/// kWarpBoard bytes, aligned to 64, where the lanes of the calling thread's warp show each other their
/// registers. It is no memory of the kernel's.
inline constexpr std::size_t kWarpBoard = 4096;
void* warp_board_memory();

/// Starts a copy of `bytes` to shared memory (`from` null: zeros) beside the calling thread.
void start_copy(void* to, const void* from, int bytes, Location at);
/// Closes a group of the calling thread's copies.
void commit_copies();
/// Waits until at most `pending` of its newest groups are under way.
void wait_copies(int pending);

/// Keeps `value` under `name` (a string literal) for Device::watched.
void watch(const char* name, double value, Location at);

/// The block's dynamic shared memory from `byte_offset` on, checked for `bytes` and `alignment`.
void* dynamic_shared_memory(std::size_t bytes, std::size_t byte_offset, std::size_t alignment);

/// What the launch calls an array in global memory, whose elements have `element` bytes: for what an edited kernel does
/// there by pointers of its own.
void name_memory(const void* memory, std::size_t element, const char* name);
/// From `may` on until the contrary, reads of shared memory that nobody has written are no fault of an edited kernel.
void expect_unwritten(bool may);
/// A shared array of the calling OS thread, which lives as long as that: filled with set bits now and
/// before each block.
void register_shared(void* memory, std::size_t bytes);
/// `count` is the size of the dimension that was indexed.
[[noreturn]] void outside_shared_array(std::ptrdiff_t index, std::size_t count);
/// Reports `name[index]` of an array of `count` elements.
[[noreturn]] void out_of_bounds(const char* name, std::ptrdiff_t index, std::size_t count);
/// Of an edited kernel (workbench/folders.cpp gives it its assert): `condition` is as it is written.
[[noreturn]] void assertion_failed(const char* condition);
/// __trap().
[[noreturn]] void trapped();
/// Reports that `name + index` is not aligned to `alignment` bytes, as vectors of `vector_bytes`
/// are.
[[noreturn]] void misaligned(const char* name, std::ptrdiff_t index, std::size_t vector_bytes,
                             std::size_t alignment);
/// Reports that the calling thread does `what`: "gives …", "takes …".
[[noreturn]] void refused_here(const char* what);
/// Reports a shuffle whose width is not 1, 2, 4, 8, 16 or 32.
[[noreturn]] void bad_shuffle_width(int width);

}  // namespace tilestep::simt::emulated
