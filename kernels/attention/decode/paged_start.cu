// How the paged kernels are launched; the same text for both backends.

#include <bit>
#include <cassert>
#include <cmath>
#include <type_traits>

#include "kernels/attention/decode/paged.cu"
#include "kernels/attention/decode/paged_start.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::decode::paged::SIMT_BACKEND {
namespace {

/// Query rows of an item at most.
int rows_of(const Problem& problem) {
  return problem.most_rows * problem.most_requests;
}

void check(const simt::DeviceInfo& device, const Problem& problem) {
  simt::require_capability(device, "paged decode", simt::kMmaCapability);
  simt::require_within("paged decode: kv_heads", problem.kv_heads, 1, 1 << 12);
  simt::require_multiple("paged decode: heads", problem.heads, problem.kv_heads);
  simt::require_within("paged decode: query rows of an item", rows_of(problem), 1, kMostRows);
  simt::require_within("paged decode: page_size", problem.page_size, 1, 1 << 20);
}

/// Warps that the rows of an item take.
int strips_of(const Problem& problem) {
  return rows_of(problem) <= 16 ? 1 : rows_of(problem) <= 32 ? 2 : 4;
}

Task task_of(const Problem& problem) {
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
          .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(problem.head_dim)))};
}

simt::Global<const std::uint16_t> units(simt::Span<const std::uint8_t> bytes, const char* name) {
  assert(reinterpret_cast<std::uintptr_t>(bytes.data) % 16 == 0);
  return simt::global(
      simt::Span<const std::uint16_t>{reinterpret_cast<const std::uint16_t*>(bytes.data),
                                      bytes.count / 2},
      name);
}
Memory memory_of(const Arrays& a) {
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

/// Calls run(format), a std::type_identity, of queries in BF16.
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

template <class T, class W>
void launch(simt::Device& device, const Problem& problem, const Arrays& arrays, const W& witness,
            simt::Resources* resources) {
  const Task task = task_of(problem);
  const int strips = T::strips(task.strips);
  const auto blocks = static_cast<std::int64_t>(arrays.first_item.count) - 1;
  const simt::Launch shape = simt::row_of_blocks(
      "paged", blocks, 32 * T::warps(strips), static_cast<std::size_t>(Layout<T>(strips).bytes()));
  if (resources != nullptr) {
    *resources = simt::resources_of(shape, paged<T, W>);
  } else {
    simt::launch(device, shape, paged<T, W>, memory_of(arrays), task, witness);
  }
}

/// Tiles and rings of timed kernels. Up to 16 rows of queries they are made for bytes on their way that keep an H200's
/// memory busy; kWide ones, for more rows, for products that do not wait for each other.
template <class F, int kEights, bool kWide>
struct TimedSizes {
  static constexpr int kTokens = F::kBits == 16 && !kWide ? 16 : 32;
  static constexpr int kStages = 2;
  static constexpr int kWarps = F::kBits == 4 && kEights == 1 ? 12 : 8;
};
template <class F, int kDim, int kEights, bool kWide, class S = TimedSizes<F, kEights, kWide>>
using TimedShape = Shape<F, Bf16, kDim, kEights, S::kTokens, S::kStages, S::kWarps>;

void attend_timed(simt::Device& device, const Problem& problem, const Arrays& arrays,
                  simt::Resources* resources) {
  check(device.info(), problem);
  if (problem.number != Number::bf16) throw Error("timed paged decode: queries are BF16");
  constexpr int kDim = 128;
  simt::require_within("timed paged decode: head_dim", problem.head_dim, kDim, kDim);
  with_format(problem, [&](auto format) {
    using F = typename decltype(format)::type;
    if (rows_of(problem) <= 8) {
      launch<TimedShape<F, kDim, 1, false>>(device, problem, arrays, Timed{}, resources);
    } else if (rows_of(problem) <= 16) {
      launch<TimedShape<F, kDim, 2, false>>(device, problem, arrays, Timed{}, resources);
    } else {
      launch<TimedShape<F, kDim, 2, true>>(device, problem, arrays, Timed{}, resources);
    }
  });
}

Explained witness_of(const Explanation& what) {
  return {simt::global(what.visits, "visits"),
          simt::global(what.steps, "steps"),
          simt::global(what.asked, "asked"),
          simt::global(what.weights, "weights"),
          what.request,
          what.head,
          what.component,
          what.step_pitch,
          what.traced_item,
          what.tape};
}

template <class W>
void merge_with(simt::Device& device, const Problem& problem, const Arrays& arrays,
                const W& witness) {
  const simt::Launch shape =
      simt::row_of_blocks("merge", static_cast<std::int64_t>(arrays.items.count), 128);
  const auto run = [&](auto query) {
    using Query = typename decltype(query)::type;
    simt::with_constant<32, 64, 128>("merge: head_dim", problem.head_dim, [&](auto dim) {
      using T = Shape<Plain<Query>, Query, decltype(dim)::value, 1, 16, 2, 0>;
      simt::launch(device, shape, SIMT_BACKEND::merge<T, W>, memory_of(arrays), task_of(problem),
                   witness);
    });
  };
  if (problem.number == Number::bf16) {
    run(std::type_identity<Bf16>{});
  } else {
    run(std::type_identity<Fp16>{});
  }
}

}  // namespace

void attend(simt::Device& device, const Problem& problem, const Arrays& arrays) {
  attend_timed(device, problem, arrays, nullptr);
}

simt::Resources resources(simt::Device& device, const Problem& problem) {
  simt::Resources found;
  Arrays none;
  none.first_item.count = 2;
  attend_timed(device, problem, none, &found);
  return found;
}

void explain(simt::Device& device, const Problem& problem, const Arrays& arrays,
             const Explanation& what) {
  check(device.info(), problem);
  const Explained witness = witness_of(what);
  const auto run = [&](auto format, auto query) {
    simt::with_constant<32, 64, 128>("paged decode: head_dim", problem.head_dim, [&](auto dim) {
      using T = Shape<typename decltype(format)::type, typename decltype(query)::type,
                      decltype(dim)::value, 2, kExplainedTile, 2, 0>;
      launch<T>(device, problem, arrays, witness, nullptr);
    });
  };
  if (problem.number == Number::fp16) {
    if (problem.cache != Cache::same) {
      throw Error("paged decode: queries of a quantized cache are BF16");
    }
    run(std::type_identity<Plain<Fp16>>{}, std::type_identity<Fp16>{});
  } else {
    with_format(problem, [&](auto format) { run(format, std::type_identity<Bf16>{}); });
  }
}

void merge(simt::Device& device, const Problem& problem, const Arrays& arrays,
           const Explanation* what) {
  check(device.info(), problem);
  if (what != nullptr) {
    merge_with(device, problem, arrays, witness_of(*what));
  } else {
    merge_with(device, problem, arrays, Timed{});
  }
}

}  // namespace tilestep::decode::paged::SIMT_BACKEND
