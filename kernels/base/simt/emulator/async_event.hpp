#pragma once

#include <cstdint>
#include <string>

namespace tilestep::simt {

/// Something that the emulated hardware did beside a block's threads (EmulationOptions::log). Threads are
/// linear in their block, x fastest. Depths are those of hopper::cycles(): order, not time.
struct AsyncEvent {
  enum class Kind {
    landed,        ///< bytes of a copy arrived in shared memory
    phase_ended,   ///< of an mbarrier
    product_done,  ///< a wgmma: its sums are there
  };
  Kind kind = Kind::landed;
  std::uint64_t block = 0;  ///< linear, x fastest: where the shared memory or the warpgroup is
  long long depth = 0;

  // landed, phase_ended
  std::string barrier = {};  ///< as hopper::name_shared has named it; empty: nobody has
  int number = 0;            ///< of that name
  unsigned barrier_address = 0;
  long long phase = 0;  ///< that the bytes count for, or that ended; from 0

  // landed
  std::uint64_t source_block = 0;  ///< of the thread that started the copy, linear
  int thread = 0;                  ///< that started it; of a product: the warpgroup's first
  unsigned address = 0;            ///< in shared memory, without the swizzle
  int bytes = 0;
  long long pending_bytes = 0;  ///< that the phase still waits for; below 0: not yet announced
  int pending_arrivals = 0;     ///< that the phase still waits for

  // product_done
  int n = 0;
  long long product = 0;  ///< of its warpgroup, from 0
};

}  // namespace tilestep::simt
