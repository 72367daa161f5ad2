// How flash-3's kernels that write down what happens are launched; the same text for both backends.

#include "kernels/attention/flash_attention_3/launch/launch.hpp"
#include "kernels/attention/flash_attention_3/launch/launches.hpp"

namespace tilestep::flash_attention_3::SIMT_BACKEND {

void explain_here(simt::Device& device, const Problem& problem, const Arrays<float>& arrays,
                  const Explanation& what) {
  attend_explained(device, problem, arrays, what);
}

}  // namespace tilestep::flash_attention_3::SIMT_BACKEND
