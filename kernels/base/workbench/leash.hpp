#pragma once

#include <chrono>
#include <functional>

#include "kernels/base/lab/lesson.hpp"

/// A GPU never aborts a kernel: waiting for one that never ends would take forever.
namespace tilestep::workbench {

/// Limits on a run on a GPU.
struct LeashLimits {
  /// From where its progress says kRunning; what it waits for (Progress::wait) does not count.
  std::chrono::milliseconds deadline = std::chrono::seconds(10);
  /// Counts the deadline anew with each report of progress: for a bench, which is long but tells what it does.
  bool anew = false;
  /// How long the work may take to end by itself once it was told to.
  std::chrono::milliseconds grace{300};
};

/// The work did not end in time. It is left to itself and may still run: the process should say so, and end.
class Overdue final : public Error {
 public:
  explicit Overdue(std::chrono::milliseconds deadline);
  std::chrono::milliseconds deadline() const { return deadline_; }

 private:
  std::chrono::milliseconds deadline_;
};

/// Does `work` on a thread of its own and waits for it. Throws what it throws; Overdue; and where the run was given
/// up and `work` does not end, DeviceLost. `work` must own all that it uses, but for what lives as long as the
/// process: it may go on after this has returned, and the progress that it is given lets it.
lab::Report on_leash(std::function<lab::Report(lab::Progress& progress)> work,
                     lab::Progress& progress, const LeashLimits& limits = {});

}  // namespace tilestep::workbench
