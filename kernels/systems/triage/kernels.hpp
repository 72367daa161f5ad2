#pragma once

#include "kernels/base/simt/simt.hpp"

namespace tilestep::triage {

struct Kernels : simt::KernelSet {
  /// A block of as many threads as there are numbers, a power of two, leaves their sum in the first.
  virtual void sum(simt::Device& device, simt::Span<float> sums, const simt::Tape& tape) const = 0;
};

}  // namespace tilestep::triage
