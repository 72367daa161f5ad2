#pragma once

#include "kernels/base/simt/simt.hpp"

namespace tilestep::fault {

struct Kernels : simt::KernelSet {
  /// One thread adds 1 to the first number, or does what `kind` says instead: see fault.cu.
  virtual void misbehave(simt::Device& device, simt::Span<int> numbers, int kind) const = 0;
};

}  // namespace tilestep::fault
