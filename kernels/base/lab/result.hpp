#pragma once

#include <vector>

#include "kernels/base/simt/device.hpp"

namespace tilestep::lab {

/// What `launch()` leaves in `output`, whose bytes are all 0xFF before: floats that it does not
/// write are NaN. Throws Error for a kernel that failed.
template <class T, class Launch>
std::vector<T> result_of(simt::Device& device, simt::Buffer<T>& output, const Launch& launch) {
  output.fill(0xFF);
  launch();
  device.synchronize();
  return output.download();
}

}  // namespace tilestep::lab
