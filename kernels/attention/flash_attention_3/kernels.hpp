#pragma once

#include "kernels/attention/flash_attention_3/params.hpp"
#include "kernels/attention/flash_attention_3/problem.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::flash_attention_3 {

/// The kernels as the host calls them: explained, with O in FP32, and timed. Throw Error for what they do not take, Error
/// (unavailable) on a GPU other than Hopper.
class Kernels : public simt::KernelSet {
 public:
  /// Tiles have 64 or 128 keys. The tape has the clock of each Site, keeps kSteps, and its chosen thread is a row of the
  /// block's tiles of queries; what does not happen stays as it is.
  virtual void explain(simt::Device& device, const Problem& problem, const Arrays<float>& arrays,
                       int keys, const simt::Tape& tape) const = 0;
  virtual void run(simt::Device& device, const Problem& problem,
                   const Arrays<std::uint16_t>& arrays) const = 0;
  /// What the timed one takes of a multiprocessor.
  virtual simt::Resources resources(simt::Device& device, const Problem& problem) const = 0;
};

}  // namespace tilestep::flash_attention_3
