#pragma once

/// \file
/// Starting the backward pass for Hopper: what TMA is told, which kernel runs. For both backends; included by what both
/// compilers compile.

#include <algorithm>
#include <cassert>
#include <cmath>
#include <type_traits>

#include "kernels/attention/attention_backward/hopper/backward_hopper.cu"
#include "kernels/attention/attention_backward/hopper/backward_hopper_rows.cu"
#include "kernels/attention/attention_backward/hopper/problem.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/tensor_map.hpp"

namespace tilestep::attention_backward::hopper::SIMT_BACKEND {

/// Throws Error for what the kernels do not take; Error (unavailable) on a GPU other than Hopper.
inline void check(const simt::DeviceInfo& device, const Problem& problem) {
  if (device.compute_capability != 0 && device.compute_capability / 10 != 9) {
    simt::refuse_device(device, "flash-3 backward", "compute capability 9.0 (Hopper)");
  }
  simt::require_within("flash-3 backward: length", problem.rule.length, 1, 1 << 20);
  simt::require_within("flash-3 backward: kv_heads", problem.kv_heads, 1, 1 << 12);
  simt::require_multiple("flash-3 backward: heads", problem.heads, problem.kv_heads);
  simt::require_within("flash-3 backward: heads", problem.heads, 1, 1 << 12);
  // Numbers of threads, and rows of dQ's pieces, are an int.
  simt::require_within("flash-3 backward: queries of all heads",
                       std::int64_t{problem.heads} * problem.rule.length, 1, 1 << 26);
  const Mask mask = problem.rule.mask;
  const bool has_it = mask == Mask::none || mask == Mask::causal ||
                      (mask == Mask::sliding_window && problem.rule.sinks == 0);
  if (!has_it) {
    throw Error("flash-3 backward: masks are none, causal and sliding-window without sinks");
  }
}

/// Boxes of `box_rows` rows by 128 bytes of one of `heads` matrices [length × head_dim].
template <class N>
TensorMap map_of(simt::Span<N> array, const Problem& problem, int heads, int box_rows) {
  return simt::tensor_map(array, {.rows = problem.rule.length,
                                  .columns = problem.head_dim,
                                  .box_rows = box_rows,
                                  .box_columns = kPanelColumns,
                                  .swizzle = kPanelBytes,
                                  .matrices = heads});
}
template <class T>
TensorMaps maps_of(const Problem& problem, const Arrays& a) {
  const int tiles = problem.heads * query_tiles_of(problem, T::kQueries);
  return {map_of(a.q, problem, problem.heads, T::kQueries),
          map_of(a.d_o, problem, problem.heads, T::kQueries),
          map_of(a.k, problem, problem.kv_heads, kKeys),
          map_of(a.v, problem, problem.kv_heads, kKeys),
          simt::tensor_map(a.rows, {.rows = tiles,
                                    .columns = 2 * T::kQueries,
                                    .box_rows = 1,
                                    .box_columns = 2 * T::kQueries}),
          simt::tensor_map(a.sums, {.rows = std::int64_t{tiles} * kConsumers * kPieceRows,
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
                simt::global(a.lse, "log-sum-exp"), simt::global(a.rows, "log-sum-exp and D"),
                simt::global(a.sums, "sums of dQ")},
      problem.rule.length, tiles, problem.heads);
}
template <class T>
void start_convert(simt::Device& device, const Problem& problem, const Arrays& a, float scale) {
  const int tiles = query_tiles_of(problem, T::kQueries);
  const std::int64_t pieces = std::int64_t{problem.heads} * tiles * kConsumers;
  simt::launch(device, simt::row_of_blocks("backward_convert", pieces, kRowThreads), convert<T>,
               simt::global<const float>(a.sums, "sums of dQ"), simt::global(a.dq, "dQ"),
               problem.rule.length, tiles, scale);
}

template <class T>
simt::Launch launch_of(const TileOrder& order) {
  return simt::row_of_blocks("backward_hopper", order.count(), kThreads,
                             static_cast<std::size_t>(T::kSizes.shared_bytes()));
}
template <class T>
Task task_of(const Problem& problem, const TileOrder& order, int stagger) {
  const double scale = 1 / std::sqrt(static_cast<double>(problem.head_dim));
  return {problem.rule,
          order,
          problem.heads / problem.kv_heads,
          query_tiles_of(problem, T::kQueries),
          stagger,
          static_cast<float>(scale),
          static_cast<float>(1.4426950408889634 * scale)};
}

/// All three kernels, with tiles T.
template <class T, class Tape>
void start(simt::Device& device, const Problem& problem, const Arrays& arrays, const Tape& tape,
           int together = kHeadsTogether, int stagger = 0) {
  [[maybe_unused]] const Scratch scratch = scratch_of(problem, T::kSizes);
  assert(arrays.rows.count == scratch.rows && arrays.sums.count == scratch.sums);
  const TileOrder order = order_of(problem, together);
  const Task task = task_of<T>(problem, order, stagger);
  start_prepare<T>(device, problem, arrays);
  simt::launch(device, launch_of<T>(order), backward<T, Tape>, maps_of<T>(problem, arrays), task,
               tape);
  start_convert<T>(device, problem, arrays, task.scale);
}

template <int kDim>
constexpr TileSizes kTimedSizes = timed_sizes(kDim);
template <int kDim>
using TimedTile = Tile<kDim, kTimedSizes<kDim>.queries, kTimedSizes<kDim>.stages,
                       kTimedSizes<kDim>.gradient_stages, ProductOrder::dq_first, kDim == 64>;

/// Calls run(tile), a std::type_identity.
template <class Run>
void with_tile(const Problem& problem, Run run) {
  simt::with_constant<64, 128>("flash-3 backward: head_dim", problem.head_dim, [&](auto head_dim) {
    run(std::type_identity<TimedTile<decltype(head_dim)::value>>{});
  });
}

/// dQ, dK, dV. Asynchronous on a GPU. Throws Error for what the kernels do not take, Error (unavailable) on a GPU
/// other than Hopper.
inline void backward_timed(simt::Device& device, const Problem& problem, const Arrays& arrays) {
  check(device.info(), problem);
  with_tile(problem, [&](auto tile) {
    start<typename decltype(tile)::type>(device, problem, arrays, simt::NoTape{});
  });
}

/// What the timed kernel that multiplies takes of a multiprocessor.
inline simt::Resources resources_of(simt::Device& device, const Problem& problem) {
  check(device.info(), problem);
  simt::Resources resources;
  with_tile(problem, [&](auto tile) {
    using T = typename decltype(tile)::type;
    resources = simt::resources_of(launch_of<T>(order_of(problem, kHeadsTogether)),
                                   backward<T, simt::NoTape>);
  });
  return resources;
}

/// The same sums, and the clock of each Site. Throws as backward_timed.
inline void backward_explained(simt::Device& device, const Problem& problem, const Arrays& arrays,
                               const simt::Tape& tape) {
  check(device.info(), problem);
  with_tile(problem, [&](auto tile) {
    start<typename decltype(tile)::type>(device, problem, arrays, tape);
  });
}

}  // namespace tilestep::attention_backward::hopper::SIMT_BACKEND
