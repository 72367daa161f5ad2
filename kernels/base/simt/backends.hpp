#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/simt/device.hpp"
#include "kernels/base/simt/emulator/async_event.hpp"

namespace tilestep::simt {

namespace emulated {
class AccessListener;
}

/// One row of a backend's table of kernels: a lesson, spelled as in code (`online_softmax`), and its
/// kernels.
struct KernelEntry {
  std::string_view lesson;
  const KernelSet& (*kernels)();

  /// Whether these are the kernels of the lesson `id`, spelled for people: `online-softmax`.
  constexpr bool belongs_to(std::string_view id) const {
    const auto same = [](char a, char b) { return a == b || (a == '_' && b == '-'); };
    return std::equal(lesson.begin(), lesson.end(), id.begin(), id.end(), same);
  }
};

/// In which order the emulator lets the threads of a block run between two barriers.
enum class ThreadOrder { ascending, descending, shuffled };
constexpr auto names_of(ThreadOrder) {
  return std::to_array<std::string_view>({"ascending", "descending", "shuffled"});
}

/// When the emulator does what a GPU does beside the threads (TMA, wgmma): at the earliest or the latest
/// moment that the program allows, in between, or copies at the earliest and all else at the latest, which
/// is what shows that memory was released before it was read.
enum class Completion { earliest, latest, seeded, early_copies };

/// How the emulator runs.
struct EmulationOptions {
  ThreadOrder order = ThreadOrder::ascending;
  std::uint64_t seed = 1;  ///< for `shuffled` and `seeded`
  int os_threads = 0;      ///< 0: one for each core
  Completion completion = Completion::latest;
  /// Whether an unsafe use of shared memory beside TMA and wgmma ends the launch; if not, the numbers
  /// show what it does.
  bool report_unsafe = true;
  /// Where to write what the hardware beside the threads does, in the order in which it does it; null:
  /// nowhere. All blocks then run on one OS thread. Must outlive the device.
  std::vector<AsyncEvent>* log = nullptr;
  /// Where to write the address of each kernel that is launched; null: nowhere. Must outlive the device.
  std::vector<const void*>* launched = nullptr;
  /// Who is told of the accesses of an edited source; null: nobody. Must outlive the device.
  emulated::AccessListener* listener = nullptr;
};

/// The CPU emulation. `table` must outlive the device.
std::unique_ptr<Device> make_emulated_device(std::span<const KernelEntry> table,
                                             EmulationOptions options = {});

/// Whether the CUDA backend can be used on this machine, and if not, why and what to do.
struct CudaStatus {
  bool built = false;      ///< the module was built (its file lies beside the program)
  bool available = false;  ///< module loaded, driver there, a device found
  std::string reason;      ///< one sentence, empty when available
  DeviceInfo device;       ///< filled when available
};
CudaStatus cuda_status();
/// Why there is a CUDA module that cannot be used, in one sentence; empty where there is none, or where
/// only the GPU is missing.
std::string why_cuda_refused();

/// The first CUDA device. Throws Error (unavailable) with `cuda_status().reason`.
std::unique_ptr<Device> make_cuda_device();

}  // namespace tilestep::simt
