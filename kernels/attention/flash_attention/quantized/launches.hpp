#pragma once

/// \file
/// What quantized/quantized_launch.cu gives launch.cu: these kernels are compiled beside the others, not behind them.

#include "kernels/attention/flash_attention/quantized/problem.hpp"

namespace tilestep::flash_attention::SIMT_BACKEND {

/// The explained kernels. Throw Error for shapes that they do not take, Error (unavailable) on a GPU other than Hopper.
void explain_quantized(simt::Device& device, const QuantizedProblem& problem, Break broken,
                       const QuantizedArrays& arrays, const Records& records);
/// The timed ones: head dimension 128, no score modifier. Asynchronous on a GPU.
void run_quantized(simt::Device& device, const QuantizedProblem& problem,
                   const QuantizedArrays& arrays);
/// What the timed kernel that attends takes of a multiprocessor.
simt::Resources quantized_resources(simt::Device& device, const QuantizedProblem& problem);

}  // namespace tilestep::flash_attention::SIMT_BACKEND
