// How the kernel of merge.cu is launched.

#include "kernels/attention/kv_cache/paged/launch.hpp"
#include "kernels/attention/kv_cache/paged/merge.cu"

namespace tilestep::kv_cache::paged::SIMT_BACKEND {

void merge(simt::Device& device, const Problem& problem, const Arrays& arrays) {
  check(device.info(), problem);
  simt::require_within("merge: head_dim", problem.head_dim, kTimedDim, kTimedDim);
  using T = Shape<Plain<Bf16>, kTimedDim, 1, 16, 2, 0>;
  simt::launch(
      device, simt::row_of_blocks("merge", static_cast<std::int64_t>(arrays.items.count), 128),
      SIMT_BACKEND::merge<T, simt::NoTape>, memory_of(arrays), task_of(problem), simt::NoTape{});
}

}  // namespace tilestep::kv_cache::paged::SIMT_BACKEND
