#pragma once

#include <memory>
#include <optional>
#include <string>

#include "kernels/base/lab/gpu_line.hpp"
#include "kernels/base/simt/device.hpp"

namespace tilestep::lab {

class Progress;

/// When a run had the GPU to itself for its timings. Milliseconds since 1970.
struct TurnTimes {
  double asked_ms = 0;  ///< when it first asked to be timed
  double from_ms = 0;   ///< when its turn began
  double to_ms = 0;     ///< when it ended
  std::string refused;  ///< why it was timed without queueing; empty: it queued
};

/// A run's turn on its GPU, for as long as this object lives. It is taken when something is first timed
/// or counted, so untimed runs never wait, and kept to the end of the run, so a ladder and its peers
/// are timed under the same conditions.
class Turn {
 public:
  Turn(simt::Device& device, Progress& progress);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// The times so far, ending now; nothing if nothing was timed.
  std::optional<TurnTimes> times() const;

 private:
  void take(Progress& progress);

  simt::Device& device_;
  std::unique_ptr<GpuLine> line_;
  std::optional<TurnTimes> times_;
};

}  // namespace tilestep::lab
