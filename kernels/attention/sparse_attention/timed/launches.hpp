#pragma once

#include "kernels/attention/sparse_attention/timed/kernels.hpp"
#include "kernels/base/simt/simt.hpp"

/// launch_timed.cu's interface to launch.cu.
namespace tilestep::sparse_attention::timed::SIMT_BACKEND {

void attend_here(simt::Device& device, const ListShape& shape, const ListArrays& arrays);
void score_here(simt::Device& device, const ScoreShape& shape, const ScoreArrays& arrays);
void decode_here(simt::Device& device, const DecodeShape& shape, const DecodeArrays& arrays);

}  // namespace tilestep::sparse_attention::timed::SIMT_BACKEND
