#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/base/simt/error.hpp"
#include "kernels/base/simt/location.hpp"

namespace tilestep::simt {

/// Where a kernel went wrong, as far as the emulation knows.
struct FaultPlace {
  /// Of the thread at fault, innermost first: each address lies in the instruction that called the one before.
  /// Empty unless an edited kernel runs (fault_guard.hpp): for others nobody asks.
  std::vector<const void*> callers;
  std::string file;   ///< as the compiler was given it; empty: only the callers say
  unsigned line = 0;  ///< 1-based
};

/// The Error of a kernel, with its place. Its sentence names kernel, block and thread.
class KernelFault : public Error {
 public:
  KernelFault(const std::string& sentence, FaultPlace place, bool ends_process = false,
              ExitCode code = ExitCode::check_failed)
      : Error(sentence, code), place_(std::move(place)), ends_process_(ends_process) {}

  const FaultPlace& place() const { return place_; }
  /// The thread was stopped in the middle of something: what it has written where, nobody knows, and this
  /// process should run nothing more.
  bool ends_process() const { return ends_process_; }

 private:
  FaultPlace place_;
  bool ends_process_;
};

namespace emulated {

/// Callers that are kept.
inline constexpr std::size_t kMostCallers = 48;
/// Adds who called this function to the first `count` of `callers`, one after the other: where a stack is so spoiled
/// that it faults, those before are there. Takes no memory: signal handlers call it, too.
void collect_callers(const void* (&callers)[kMostCallers], volatile std::size_t& count);

/// The calling thread's place; callers only where somebody asks for them.
FaultPlace place_here();
FaultPlace place_of(const Location& at);

}  // namespace emulated
}  // namespace tilestep::simt
