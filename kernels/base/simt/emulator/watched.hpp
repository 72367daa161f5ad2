#pragma once

#include <mutex>
#include <vector>

#include "kernels/base/simt/device.hpp"

namespace tilestep::simt::emulated {

/// What edited kernels showed by simt::watch, from all OS threads of a device.
class WatchedValues {
 public:
  void add(Watched value);
  /// By block and thread, and of one thread in the order in which it showed them.
  std::vector<Watched> sorted() const;
  std::size_t dropped() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Watched> values_;
  std::size_t dropped_ = 0;
};

}  // namespace tilestep::simt::emulated
