// How the backward kernels for Hopper are launched; the same text for both backends.

#include "kernels/attention/attention_backward/hopper/launch.hpp"
#include "kernels/attention/attention_backward/hopper/launches.hpp"

namespace tilestep::attention_backward::hopper::SIMT_BACKEND {

void run(simt::Device& device, const Problem& problem, const Arrays& arrays) {
  backward_timed(device, problem, arrays);
}
simt::Resources resources(simt::Device& device, const Problem& problem) {
  return resources_of(device, problem);
}

}  // namespace tilestep::attention_backward::hopper::SIMT_BACKEND
