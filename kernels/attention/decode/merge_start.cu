// How the kernel of merge.cu is launched.

#include "kernels/attention/decode/merge.cu"
#include "kernels/attention/decode/paged_launch.hpp"

namespace tilestep::decode::paged::SIMT_BACKEND {
namespace {

template <class W>
void merge_with(simt::Device& device, const Problem& problem, const Arrays& arrays,
                const W& witness) {
  const simt::Launch shape =
      simt::row_of_blocks("merge", static_cast<std::int64_t>(arrays.items.count), 128);
  const auto run = [&](auto query) {
    using Query = typename decltype(query)::type;
    simt::with_constant<32, 64, 128>("merge: head_dim", problem.head_dim, [&](auto dim) {
      using T = Shape<Plain<Query>, Query, decltype(dim)::value, 1, 16, 2, 0>;
      simt::launch(device, shape, SIMT_BACKEND::merge<T, W>, memory_of(arrays), task_of(problem),
                   witness);
    });
  };
  if (problem.number == Number::bf16) {
    run(std::type_identity<Bf16>{});
  } else {
    run(std::type_identity<Fp16>{});
  }
}

}  // namespace

void merge(simt::Device& device, const Problem& problem, const Arrays& arrays,
           const Explanation* what) {
  check(device.info(), problem);
  if (what != nullptr) {
    merge_with(device, problem, arrays, witness_of(*what));
  } else {
    merge_with(device, problem, arrays, Timed{});
  }
}

}  // namespace tilestep::decode::paged::SIMT_BACKEND
