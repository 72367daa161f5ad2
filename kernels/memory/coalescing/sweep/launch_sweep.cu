// Coalescing: how the kernels of sweep.cu are launched.

#include "kernels/memory/coalescing/launch.hpp"
#include "kernels/memory/coalescing/sweep/sweep.cu"

namespace tilestep::coalescing::SIMT_BACKEND {

/// Starts gather_sweep or scatter_sweep on at most `blocks` blocks; 0: one for each chunk.
template <int kLoads, class E, class Which, class In, class Out>
void launch_sweep(simt::Device& device, const PatternShape& shape, Index blocks, Which pattern,
                  const In& in, const Out& out) {
  const bool load = shape.access == Access::load;
  const Index all = simt::blocks_for(shape.elements, kThreadsPerBlock * kLoads);
  if (blocks <= 0 || blocks > all) blocks = all;
  simt::launch(
      device,
      simt::row_of_blocks(load ? "gather_sweep" : "scatter_sweep", blocks, kThreadsPerBlock),
      load ? gather_sweep<kLoads, E, Which, In, Out> : scatter_sweep<kLoads, E, Which, In, Out>, in,
      out, shape, pattern);
}

void start_sweep(simt::Device& device, const PatternShape& shape, const SweepConfig& config,
                 simt::Span<const unsigned char> in, simt::Span<unsigned char> out) {
  with_element(shape.element_bytes, [&](auto element) {
    using E = decltype(element);
    const auto from = simt::global(elements_of<const E>(in), "in");
    const auto to = simt::global(elements_of<E>(out), "out");
    if (config.loads == 1) {
      using Strided = std::integral_constant<Pattern, Pattern::strided>;
      return launch_sweep<1, E>(device, shape, config.blocks, Strided{}, from, to);
    }
    with_pattern(shape.pattern, [&](auto pattern) {
      launch_sweep<4, E>(device, shape, config.blocks, pattern, from, to);
    });
  });
}

}  // namespace tilestep::coalescing::SIMT_BACKEND
