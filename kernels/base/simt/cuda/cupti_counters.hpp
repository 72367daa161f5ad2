#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/simt/device.hpp"

/// Hardware counters of the current CUDA device, through CUPTI's Range Profiler (CUPTI
/// documentation, "Range Profiling API"). Part of the CUDA module. CUPTI is loaded when it is first
/// asked for; nothing here needs it before.
namespace tilestep::simt::cuda {

class CuptiCounters {
 public:
  CuptiCounters();
  ~CuptiCounters();
  CuptiCounters(const CuptiCounters&) = delete;
  CuptiCounters& operator=(const CuptiCounters&) = delete;

  /// Loads CUPTI and counts nothing once, to see whether the driver permits it. The answer is kept.
  CounterStatus status();

  /// What was counted during each of `works`, as Device::count says. Each work is a range of its
  /// own and is run as often as the metrics need passes.
  std::vector<std::map<std::string, double>> count(const std::vector<std::string>& metrics,
                                                   const std::vector<std::function<void()>>& works);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  std::unique_ptr<CounterStatus> status_;
};

}  // namespace tilestep::simt::cuda
