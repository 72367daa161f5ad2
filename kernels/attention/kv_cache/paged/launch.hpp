#pragma once

/// \file
/// Shared by the files that launch paged kernels; the same text for both backends.

#include <bit>
#include <cassert>
#include <cmath>
#include <type_traits>

#include "kernels/attention/kv_cache/paged/kernels.hpp"
#include "kernels/attention/kv_cache/paged/teams.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::kv_cache::paged::SIMT_BACKEND {

/// The most query rows of an item.
inline int rows_of(const Problem& problem) {
  return problem.most_rows * problem.most_requests;
}

inline void check(const simt::DeviceInfo& device, const Problem& problem) {
  simt::require_capability(device, "paged decode", simt::kMmaCapability);
  simt::require_within("paged decode: kv_heads", problem.kv_heads, 1, 1 << 12);
  simt::require_multiple("paged decode: heads", problem.heads, problem.kv_heads);
  simt::require_within("paged decode: query rows of an item", rows_of(problem), 1, kMostRows);
  simt::require_within("paged decode: page_size", problem.page_size, 1, 1 << 20);
}

/// Warps for the rows of an item.
inline int strips_of(const Problem& problem) {
  return rows_of(problem) <= 16 ? 1 : rows_of(problem) <= 32 ? 2 : 4;
}

inline Task task_of(const Problem& problem) {
  const auto page = static_cast<unsigned>(problem.page_size);
  return {.heads = problem.heads,
          .kv_heads = problem.kv_heads,
          .page_size = problem.page_size,
          .table_pitch = problem.table_pitch,
          .most_rows = problem.most_rows,
          .page_shift = std::has_single_bit(page) ? std::countr_zero(page) : -1,
          .strips = strips_of(problem),
          .k_channels = problem.k_channels,
          .merges = problem.merged_by == MergedBy::last_block,
          .merging = problem.merging,
          .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(problem.head_dim))),
          .followed = problem.followed};
}

inline simt::Global<const std::uint16_t> units(simt::Span<const std::uint8_t> bytes,
                                               const char* name) {
  assert(reinterpret_cast<std::uintptr_t>(bytes.data) % 16 == 0);
  return simt::global(
      simt::Span<const std::uint16_t>{reinterpret_cast<const std::uint16_t*>(bytes.data),
                                      bytes.count / 2},
      name);
}
inline Memory memory_of(const Arrays& a) {
  return {simt::global(a.q, "q"),
          units(a.k, "K"),
          units(a.v, "V"),
          simt::global(a.k_scales, "scales of K"),
          simt::global(a.v_scales, "scales of V"),
          simt::global(a.table, "block table"),
          simt::global(a.context, "context"),
          simt::global(a.items, "work items"),
          simt::global(a.first_item, "first items"),
          simt::global(a.o, "O"),
          simt::global(a.lse, "log-sum-exp"),
          simt::global(a.part_o, "parts of O"),
          simt::global(a.part_m, "maxima of parts"),
          simt::global(a.part_l, "sums of parts"),
          simt::global(a.arrived, "arrived"),
          simt::global(a.parts, "parts of rows")};
}

/// Calls run(format), a std::type_identity.
template <class Run>
void with_format(const Problem& problem, Run run) {
  switch (problem.cache) {
    case Cache::same:
      return run(std::type_identity<Plain<Bf16>>{});
    case Cache::fp8:
      return run(std::type_identity<E4m3>{});
    case Cache::int8:
      return run(std::type_identity<Int8>{});
    case Cache::int4:
      return run(std::type_identity<Int4>{});
  }
}

/// A launch of `kernel`, or with `resources` the resources that it would take.
template <class T, class Tape>
void launch(simt::Device& device, void (*kernel)(Memory, Task, Tape), const Problem& problem,
            const Arrays& arrays, const Tape& tape, simt::Resources* resources = nullptr) {
  const Task task = task_of(problem);
  const int strips = T::strips(task.strips);
  const auto blocks = static_cast<std::int64_t>(arrays.first_item.count) - 1;
  const simt::Launch shape = simt::row_of_blocks(
      "paged", blocks, 32 * T::warps(strips), static_cast<std::size_t>(Layout<T>(strips).bytes()));
  if (resources != nullptr) {
    *resources = simt::resources_of(shape, kernel);
  } else {
    simt::launch(device, shape, kernel, memory_of(arrays), task, tape);
  }
}

}  // namespace tilestep::kv_cache::paged::SIMT_BACKEND
