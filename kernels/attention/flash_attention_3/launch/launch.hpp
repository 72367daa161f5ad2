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
#include "kernels/attention/flash_attention_3/launch/tensor_maps.hpp"
#include "kernels/attention/flash_attention_3/problem.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/resources.hpp"

namespace tilestep::flash_attention_3::SIMT_BACKEND {

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
