#pragma once

#include <cstddef>
#include <cstdint>

namespace tilestep::simt::emulated {

enum class SharedUse : std::uint8_t;

/// Who is told of each access to memory that a source makes which is compiled as edited ones are, before it happens: in
/// kernels (EmulationOptions::listener), and on the host by whom it sets its own thread's watch_window.
class AccessListener {
 public:
  virtual ~AccessListener() = default;
  /// `frame` is that of the function which the source called (__builtin_frame_address).
  virtual void access(std::uintptr_t address, std::size_t bytes, SharedUse use, void** frame) = 0;
  /// A block, by its linear number, begins on the calling OS thread, and runs there to its end.
  virtual void block_begins(std::uint64_t) {}
  /// All threads of the block have met at a barrier.
  virtual void block_met() {}
  virtual void block_ended() {}
};

}  // namespace tilestep::simt::emulated
