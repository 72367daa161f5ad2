// How the backward kernels for Hopper are launched; the same text for both backends.

#include "kernels/attention/flash_attention/backward_hopper/launch.hpp"
#include "kernels/attention/flash_attention/backward_hopper/launches.hpp"

namespace tilestep::flash_attention::backward_hopper::SIMT_BACKEND {

void run(simt::Device& device, const Problem& problem, const Arrays& arrays) {
  backward_timed(device, problem, arrays);
}
simt::Resources resources(simt::Device& device, const Problem& problem) {
  return resources_of(device, problem);
}

}  // namespace tilestep::flash_attention::backward_hopper::SIMT_BACKEND
