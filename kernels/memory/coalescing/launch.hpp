#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "kernels/memory/coalescing/kernels.hpp"

/// Shared by launch.cu and launch_sweep.cu, which are compiled separately, so that an edited access.cu compiles faster.
namespace tilestep::coalescing::SIMT_BACKEND {

/// Starts the sweep of `Kernels::sweep`; its arguments are checked.
void start_sweep(simt::Device& device, const PatternShape& shape, const SweepConfig& config,
                 simt::Span<const unsigned char> in, simt::Span<unsigned char> out);

/// `bytes` as elements of type E.
template <class E, class Byte>
simt::Span<E> elements_of(simt::Span<Byte> bytes) {
  assert(reinterpret_cast<std::uintptr_t>(bytes.data) % sizeof(E) == 0);
  return {reinterpret_cast<E*>(bytes.data), bytes.count / sizeof(E)};
}

/// Calls `run` with the pattern as a constant, of which nvcc leaves one line. Emulated, where nothing is optimized away,
/// it stays a value: that is sixty kernels fewer of each to compile.
template <class Run>
void with_pattern(Pattern pattern, Run run) {
#if defined(__CUDACC__)
  const auto choose = [&]<std::size_t... kAt>(std::index_sequence<kAt...>) {
    return ((pattern == kPatterns[kAt] &&
             (run(std::integral_constant<Pattern, kPatterns[kAt]>{}), true)) ||
            ...);
  };
  [[maybe_unused]] const bool known = choose(std::make_index_sequence<kPatterns.size()>{});
  assert(known);
#else
  run(pattern);
#endif
}

/// Calls `run` with a value of an element type of `bytes`.
template <class Run>
void with_element(int bytes, Run run) {
  using Elements = std::tuple<unsigned char, unsigned short, unsigned, uint2, uint4>;
  simt::with_constant<1, 2, 4, 8, 16>("element_bytes", bytes, [&](auto size) {
    run(std::tuple_element_t<std::countr_zero(unsigned{size}), Elements>{});
  });
}

}  // namespace tilestep::coalescing::SIMT_BACKEND
