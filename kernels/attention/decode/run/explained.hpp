#pragma once

#include "kernels/attention/decode/kernels.hpp"
#include "kernels/attention/kv_cache/explained/run_explained.hpp"

namespace tilestep::decode {

/// How the case's kernel takes it: that for heads, or the one for mla.
Way way_of(simt::Device& device, const Case& of, const Inputs& inputs);

/// Runs the explained kernel with what `of` leaves out. Throws Error as the device does.
Outcome run_explained(simt::Device& device, const Case& of, const Inputs& inputs,
                      const Cache& cache, const Chosen& chosen);

}  // namespace tilestep::decode
