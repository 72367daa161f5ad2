// How the paged kernels that write down what happens are launched.

#include "kernels/attention/kv_cache/paged/launch.hpp"
#include "kernels/attention/kv_cache/paged/paged.cu"

namespace tilestep::kv_cache::paged::SIMT_BACKEND {

void explain(simt::Device& device, const Problem& problem, const Arrays& arrays,
             const simt::Tape& tape) {
  check(device.info(), problem);
  simt::require_within("explained paged decode: head_dim", problem.head_dim, kExplainedDim,
                       kExplainedDim);
  with_format(problem, [&](auto format) {
    using T = Shape<typename decltype(format)::type, kExplainedDim, 2, kExplainedTile, 2, 0>;
    launch<T>(device, paged<T, simt::Tape>, problem, arrays, tape);
  });
}

}  // namespace tilestep::kv_cache::paged::SIMT_BACKEND
