// How the backward kernels for Hopper are launched; the same text for both backends.

#include "kernels/attention/attention_backward/hopper/launch.hpp"
#include "kernels/attention/attention_backward/hopper/launches.hpp"

namespace tilestep::attention_backward::hopper::SIMT_BACKEND {

void run(simt::Device& device, const Problem& problem, const Arrays& arrays) {
  start(device, problem, arrays, simt::NoTape{});
}
/// The multiplying kernel's.
simt::Resources resources(simt::Device& device, const Problem& problem) {
  simt::Resources resources;
  with_tile(device.info(), problem, [&](auto tile) {
    using T = typename decltype(tile)::type;
    resources = simt::resources_of(launch_of<T>(order_of(problem)), backward<T, simt::NoTape>);
  });
  return resources;
}

}  // namespace tilestep::attention_backward::hopper::SIMT_BACKEND
