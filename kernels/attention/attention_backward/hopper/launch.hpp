#pragma once

/// \file
/// Starting the backward pass for Hopper: what TMA is told, which kernel runs. For both backends; included by what both
/// compilers compile.

#include <algorithm>
#include <cassert>
#include <cmath>
#include <type_traits>

#include "kernels/attention/attention_backward/hopper/backward.cu"
#include "kernels/attention/attention_backward/hopper/problem.hpp"
#include "kernels/attention/attention_backward/hopper/rows.cu"
#include "kernels/attention/flash_attention_3/launch/tensor_maps.hpp"
#include "kernels/base/simt/resources.hpp"

namespace tilestep::attention_backward::hopper::SIMT_BACKEND {

using flash_3::SIMT_BACKEND::map_of;

template <class T>
TensorMaps maps_of(const Problem& problem, const Arrays& a) {
  const int tiles = problem.heads * query_tiles_of(problem, T::kQueries);
  return {map_of(a.q, problem, problem.heads, T::kQueries),
          map_of(a.d_o, problem, problem.heads, T::kQueries),
          map_of(a.k, problem, problem.kv_heads, kKeys),
          map_of(a.v, problem, problem.kv_heads, kKeys),
          simt::tensor_map(a.terms, {.rows = tiles,
                                     .columns = 2 * T::kQueries,
                                     .box_rows = 1,
                                     .box_columns = 2 * T::kQueries}),
          simt::tensor_map(a.dq_sums, {.rows = std::int64_t{tiles} * kConsumers * kPieceRows,
                                       .columns = kPieceColumns,
                                       .box_rows = kPieceRows,
                                       .box_columns = kPieceColumns}),
          map_of(a.dk, problem, problem.kv_heads, kRowsOfGroup),
          map_of(a.dv, problem, problem.kv_heads, kRowsOfGroup)};
}

template <class T>
void start_prepare(simt::Device& device, const Problem& problem, const Arrays& a) {
  const int tiles = query_tiles_of(problem, T::kQueries);
  const std::int64_t threads =
      std::int64_t{problem.heads} * tiles * T::kQueries * (T::kHeadDim / 8);
  simt::launch(
      device,
      simt::row_of_blocks("backward_prepare", simt::blocks_for(threads, kRowThreads), kRowThreads),
      prepare<T>,
      RowArrays{simt::global(a.o, "O"), simt::global(a.d_o, "dO"),
                simt::global(a.lse, "log-sum-exp"), simt::global(a.terms, "log-sum-exp and D"),
                simt::global(a.dq_sums, "sums of dQ")},
      problem.rule.length, tiles, problem.heads);
}
template <class T>
void start_convert(simt::Device& device, const Problem& problem, const Arrays& a, float scale) {
  const int tiles = query_tiles_of(problem, T::kQueries);
  const std::int64_t pieces = std::int64_t{problem.heads} * tiles * kConsumers;
  simt::launch(device, simt::row_of_blocks("backward_convert", pieces, kRowThreads), convert<T>,
               simt::global<const float>(a.dq_sums, "sums of dQ"), simt::global(a.dq, "dQ"),
               problem.rule.length, tiles, scale);
}

template <class T>
simt::Launch launch_of(const TileOrder& order) {
  return simt::row_of_blocks("backward_hopper", order.count(), kThreads,
                             static_cast<std::size_t>(T::kSizes.shared_bytes()));
}
template <class T>
Task task_of(const Problem& problem, const TileOrder& order) {
  const double scale = 1 / std::sqrt(static_cast<double>(problem.head_dim));
  return {problem.rule,
          order,
          problem.heads / problem.kv_heads,
          query_tiles_of(problem, T::kQueries),
          static_cast<float>(scale),
          static_cast<float>(1.4426950408889634 * scale)};
}

/// All three kernels, with tiles T.
template <class T, class Tape>
void start(simt::Device& device, const Problem& problem, const Arrays& arrays, const Tape& tape) {
  [[maybe_unused]] const Scratch scratch = scratch_of(problem, T::kQueries, T::kHeadDim);
  assert(arrays.terms.count == scratch.terms && arrays.dq_sums.count == scratch.dq_sums);
  const TileOrder order = order_of(problem);
  const Task task = task_of<T>(problem, order);
  start_prepare<T>(device, problem, arrays);
  simt::launch(device, launch_of<T>(order), backward<T, Tape>, maps_of<T>(problem, arrays), task,
               tape);
  start_convert<T>(device, problem, arrays, task.scale);
}

/// Calls run(tile), a std::type_identity, for problems that the kernels take. Throws Error for others, Error
/// (unavailable) on a GPU other than Hopper.
template <class Run>
void with_tile(const simt::DeviceInfo& device, const Problem& problem, Run run) {
  flash_3::SIMT_BACKEND::check(device, problem, "flash-3 backward");
  // Numbers of threads, and rows of dQ's pieces, are an int.
  simt::require_within("flash-3 backward: queries of all heads",
                       std::int64_t{problem.heads} * problem.rule.length, 1, 1 << 26);
  simt::with_constant<64, 128>("flash-3 backward: head_dim", problem.head_dim, [&](auto head_dim) {
    constexpr TileSizes kSizes = timed_sizes(decltype(head_dim)::value);
    run(std::type_identity<Tile<kSizes.head_dim, kSizes.queries, kSizes.stages,
                                kSizes.gradient_stages, kSizes.head_dim == 64>>{});
  });
}

/// dQ, dK, dV; with a Tape the clock of each Site too. Asynchronous on a GPU.
template <class Tape>
void start(simt::Device& device, const Problem& problem, const Arrays& arrays, const Tape& tape) {
  with_tile(device.info(), problem, [&](auto tile) {
    start<typename decltype(tile)::type>(device, problem, arrays, tape);
  });
}

}  // namespace tilestep::attention_backward::hopper::SIMT_BACKEND
