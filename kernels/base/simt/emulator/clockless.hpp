#pragma once

#include "kernels/base/simt/emulator/emulated_device.hpp"

namespace tilestep::simt::emulated {

/// The emulation for a bench whose times nobody asks for: its clock says 1 ms, and timed work does not run. What a
/// bench compares and counts up to is real.
class ClocklessDevice : public EmulatedDevice {
 public:
  using EmulatedDevice::EmulatedDevice;

  bool can_time() const override { return true; }
  std::vector<double> time_ms(const std::function<void()>&, const TimingPlan& plan) override {
    return std::vector<double>(static_cast<std::size_t>(plan.samples), 1.0);
  }
};

}  // namespace tilestep::simt::emulated
