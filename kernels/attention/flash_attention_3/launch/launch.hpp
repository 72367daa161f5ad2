#pragma once

/// \file
/// Starting FlashAttention 3's kernels: which sizes of tiles they have, what TMA is told, and how many blocks
/// there are. For both backends; included by what both compilers compile.

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/attention/flash_attention_3/flash_3.cu"
#include "kernels/attention/flash_attention_3/problem.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/tensor_map.hpp"

namespace tilestep::flash_attention_3::SIMT_BACKEND {

/// Throws Error for what the kernels do not take; Error (unavailable) on a GPU other than Hopper.
inline void check(const simt::DeviceInfo& device, const Problem& problem) {
  if (device.compute_capability != 0 && device.compute_capability / 10 != 9) {
    simt::refuse_device(device, "flash-3", "compute capability 9.0 (Hopper)");
  }
  simt::require_within("flash-3: length", problem.rule.length, 1, 1 << 20);
  simt::require_within("flash-3: kv_heads", problem.kv_heads, 1, 1 << 12);
  simt::require_multiple("flash-3: heads", problem.heads, problem.kv_heads);
  simt::require_within("flash-3: heads", problem.heads, 1, 1 << 12);
  simt::require_within("flash-3: blocks", problem.blocks, 0, 1 << 20);
  const Mask mask = problem.rule.mask;
  const bool has_it = mask == Mask::none || mask == Mask::causal ||
                      (mask == Mask::sliding_window && problem.rule.sinks == 0);
  if (!has_it) {
    throw Error("flash-3: masks are none, causal and sliding-window without sinks");
  }
}

/// Boxes of `box_rows` rows by 128 bytes of one of `heads` matrices [length × head_dim].
template <class T>
TensorMap map_of(simt::Span<T> array, const Problem& problem, int heads, int box_rows) {
  return simt::tensor_map(array, {.rows = problem.rule.length,
                                  .columns = problem.head_dim,
                                  .box_rows = box_rows,
                                  .box_columns = kPanelBytes / static_cast<int>(sizeof(T)),
                                  .swizzle = kPanelBytes,
                                  .matrices = heads});
}

constexpr double kLog2E = 1.4426950408889634;

/// Starts the kernel of tiles T, or with `resources` says what it takes.
template <class T, Rung kRung, class Out, class Tape>
void start(simt::Device& device, const Problem& problem, const Arrays<Out>& arrays,
           const Tape& tape, simt::Resources* resources) {
  const Schedule schedule =
      schedule_of(problem, T::kSizes, std::max(device.info().multiprocessors, 1));
  const simt::Launch launch{.name = "flash_3",
                            .grid = dim3(static_cast<unsigned>(schedule.blocks)),
                            .block = dim3(static_cast<unsigned>(T::kSizes.threads())),
                            .shared_bytes = static_cast<std::size_t>(T::kSizes.shared_bytes())};
  const auto kernel = attend<T, kRung, Out, Tape>;
  if (resources != nullptr) {
    *resources = simt::resources_of(launch, kernel);
    return;
  }
  assert(arrays.q.count == numeric::elements_of(problem.heads, problem.rule.length) *
                               static_cast<std::size_t>(problem.head_dim));
  assert(arrays.lse.count == numeric::elements_of(problem.heads, problem.rule.length));
  const TensorMaps maps{map_of(arrays.q, problem, problem.heads, kRowsOfGroup),
                        map_of(arrays.k, problem, problem.kv_heads, T::kKeys),
                        map_of(arrays.v, problem, problem.kv_heads, T::kKeys),
                        map_of(arrays.o, problem, problem.heads, kRowsOfGroup)};
  const Task task{problem.rule, schedule.order, problem.heads / problem.kv_heads,
                  static_cast<float>(kLog2E / std::sqrt(static_cast<double>(problem.head_dim)))};
  simt::launch(device, launch, kernel, maps, simt::global(arrays.lse, "log-sum-exp"), task, tape);
}

template <class T, class Out, class Tape>
void start_rung(simt::Device& device, const Problem& problem, const Arrays<Out>& arrays,
                const Tape& tape, simt::Resources* resources) {
  switch (problem.rung) {
    case Rung::tma:
      return start<T, Rung::tma>(device, problem, arrays, tape, resources);
    case Rung::ping_pong:
      return start<T, Rung::ping_pong>(device, problem, arrays, tape, resources);
    case Rung::pipelined:
      return start<T, Rung::pipelined>(device, problem, arrays, tape, resources);
  }
}

}  // namespace tilestep::flash_attention_3::SIMT_BACKEND
