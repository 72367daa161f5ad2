// How flash-3's timed kernels are launched; the same text for both backends.

#include "kernels/attention/flash_attention_3/launch/launch.hpp"
#include "kernels/attention/flash_attention_3/launch/launches.hpp"

namespace tilestep::flash_attention_3::SIMT_BACKEND {

void run_here(simt::Device& device, const Problem& problem, const Arrays<std::uint16_t>& arrays) {
  attend_timed(device, problem, arrays);
}
simt::Resources resources_here(simt::Device& device, const Problem& problem) {
  return resources_of(device, problem);
}

}  // namespace tilestep::flash_attention_3::SIMT_BACKEND
