#include <string>

#include "kernels/base/simt/error.hpp"
#include "kernels/base/simt/simt.hpp"

// What an edited kernel can leave on a tape, or not.
namespace tilestep::simt {

void refuse_note(std::uint32_t index, std::size_t count) {
  throw Error("the kernel recorded number " + std::to_string(index) + " of what there are only " +
                  std::to_string(count) + " of: a line of its recording was changed",
              ExitCode::check_failed);
}

void refuse_unrecorded(const char* what, std::size_t recorded, std::size_t count) {
  throw Error("the kernel recorded " + std::to_string(recorded) + " of " + std::to_string(count) +
                  " of " + what + ": a line of its recording is missing, or is not reached",
              ExitCode::check_failed);
}

void refuse_long_tape(std::uint64_t entries, std::size_t room) {
  throw Error("the kernel recorded " + std::to_string(entries) + " entries where " +
                  std::to_string(room) + " were expected: a line of its recording is run too often",
              ExitCode::check_failed);
}

}  // namespace tilestep::simt
