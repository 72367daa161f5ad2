#include "kernels/base/simt/emulator/emulator.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "kernels/base/simt/emulator/block_runner.hpp"
#include "kernels/base/simt/emulator/emulated_device.hpp"
#include "kernels/base/simt/emulator/fault_guard.hpp"
#include "kernels/base/simt/emulator/global_watch.hpp"
#include "kernels/base/simt/stream.hpp"

namespace tilestep::simt::emulated {
namespace {

// Adds kernel, block and thread if a kernel is running; a host may also look at a checked array.
[[noreturn]] void fail(const std::string& what) {
  if (BlockRunner::inside_kernel()) BlockRunner::current().fail(what);
  throw Error("the host " + what);
}

}  // namespace

void run(Device& device, const Launch& launch, ThreadFunction thread, void* data) {
  auto* emulated = dynamic_cast<EmulatedDevice*>(&device);
  if (emulated == nullptr) {
    throw Error(fmt::format("{} was compiled for the CPU emulation, but launched on {}",
                            launch.name, device.info().name));
  }
  if (BlockRunner::inside_kernel()) {
    fail(fmt::format("launches {}: a kernel cannot launch another one here", launch.name));
  }
  emulated->run(launch, thread, data);
}

void launch(Device& device, const Launch& launch, ThreadFunction thread,
            const std::shared_ptr<void>& data, std::span<const MemoryUse> uses) {
  auto* emulated = dynamic_cast<EmulatedDevice*>(&device);
  Streams* const streams = emulated == nullptr ? nullptr : emulated->streams();
  if (streams == nullptr || BlockRunner::inside_kernel()) {
    run(device, launch, thread, data.get());
    return;
  }
  check_launch(launch, emulated->info());
  streams->submit({launch.name, {uses.begin(), uses.end()}, [emulated, launch, thread, data] {
                     emulated->run(launch, thread, data.get());
                   }});
}

int meet_at_barrier(bool predicate, Location at) {
  return block_barrier(predicate, at);
}

std::uint64_t warp_collective(WarpOp op, unsigned mask, std::uint64_t value, int source,
                              Location at) {
  return BlockRunner::current().warp_collective(op, mask, value, source, at);
}

unsigned coalesced_lanes(Location at) {
  return BlockRunner::current().coalesced_lanes(at);
}

int lane() {
  return BlockRunner::current().lane();
}

int warp() {
  return BlockRunner::current().current_thread() / 32;
}

void* warp_board_memory() {
  struct alignas(64) Board {
    unsigned char bytes[kWarpBoard];
  };
  // A cluster runs on one OS thread.
  static thread_local std::unique_ptr<Board[]> boards;
  if (!boards) {
    boards = std::make_unique_for_overwrite<Board[]>(kMaxCluster * kMaxThreadsPerBlock / 32);
  }
  return &boards[static_cast<std::size_t>(warp())];
}

void start_copy(void* to, const void* from, int bytes, Location at) {
  BlockRunner& runner = BlockRunner::current();
  watch_access(to, static_cast<std::size_t>(bytes), SharedUse::copy, __builtin_frame_address(0));
  if (from != nullptr) {
    watch_access(from, static_cast<std::size_t>(bytes), SharedUse::read,
                 __builtin_frame_address(0));
  }
  runner.copies().start(runner.current_thread(), to, from, bytes, runner.watching(), at);
}

void commit_copies() {
  BlockRunner& runner = BlockRunner::current();
  runner.copies().commit(runner.current_thread());
}

void wait_copies(int pending) {
  BlockRunner& runner = BlockRunner::current();
  runner.copies().wait(runner.current_thread(), pending, runner.watching(), runner.races());
}

void watch(const char* name, double value, Location at) {
  BlockRunner::current().watch(name, value, at);
}

void name_memory(const void* memory, std::size_t element, const char* name) {
  if (FaultGuard::armed()) global_watch().name(memory, element, name);
}

void expect_unwritten(bool may) {
  watch_window.may_be_unwritten = may;
}

void* dynamic_shared_memory(std::size_t bytes, std::size_t byte_offset, std::size_t alignment) {
  return BlockRunner::current().dynamic_shared_memory(bytes, byte_offset, alignment);
}

void out_of_bounds(const char* name, std::ptrdiff_t index, std::size_t count) {
  const std::string allowed = count == 0 ? std::string("none") : fmt::format("0–{}", count - 1);
  fail(fmt::format("accesses {}[{}], but {} has {} elements (allowed: {})", name, index, name,
                   count, allowed));
}

void assertion_failed(const char* condition) {
  fail(fmt::format("fails its assertion '{}'", condition));
}

void trapped() {
  fail("calls __trap()");
}

void outside_shared_array(std::ptrdiff_t index, std::size_t count) {
  fail(fmt::format("takes index {} of a shared array where it has {} elements (allowed: 0–{})",
                   index, count, count - 1));
}

void misaligned(const char* name, std::ptrdiff_t index, std::size_t vector_bytes,
                std::size_t alignment) {
  fail(
      fmt::format("takes {} from element {} on as vectors of {} bytes, but that address is not a "
                  "multiple of {} bytes",
                  name, index, vector_bytes, alignment));
}

void refused_here(const char* what) {
  fail(what);
}

void bad_shuffle_width(int width) {
  fail(fmt::format("shuffles with width {} (allowed: 1, 2, 4, 8, 16, 32)", width));
}

}  // namespace tilestep::simt::emulated
