#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/base/simt/device.hpp"

namespace tilestep::lab {

/// An array whose bytes are all 0xFF: each float is NaN until a kernel writes it.
template <class T>
simt::Buffer<T> unwritten(simt::Device& device, std::size_t count) {
  simt::Buffer<T> buffer(device, count);
  buffer.fill(0xFF);
  return buffer;
}
template <class T>
simt::Buffer<T> uploaded(simt::Device& device, const std::vector<T>& host) {
  return simt::Buffer<T>(device, std::span<const T>(host));
}

/// The contents of `output` after `launch()`. Its bytes are all 0xFF before, so floats that the kernel
/// does not write are NaN. Throws Error for a kernel that failed.
template <class T, class Launch>
std::vector<T> result_of(simt::Device& device, simt::Buffer<T>& output, const Launch& launch) {
  output.fill(0xFF);
  launch();
  device.synchronize();
  return output.download();
}

}  // namespace tilestep::lab
