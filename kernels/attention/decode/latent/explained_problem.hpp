#pragma once

/// \file
/// The explained step of MLA: its problem, arrays and work split. Plain data, known to host and kernel.

#include "kernels/attention/kv_cache/paged/problem.hpp"
#include "kernels/attention/kv_cache/paged/work_plan.hpp"

namespace tilestep::decode::latent {

namespace paged = kv_cache::paged;

/// A row of the cache has `width` numbers, of which the first `value` are also the value. All in BF16.
struct ExplainedProblem {
  int heads = 1;
  int width = 144, value = 128;
  int page_size = 16, table_pitch = 0;
  int most_rows = 1;      ///< most query heads of an item and a request; the rows of a slot
  int most_requests = 1;  ///< of an item
  float scale = 1;        ///< of the scores, before exp
  paged::Merging merging = paged::Merging::weighted;
};

/// Query heads whose O one block keeps in shared memory.
constexpr int most_heads(int value) {
  return 16384 / value;
}
/// The largest such number that divides the heads.
constexpr int heads_of_item(int heads, int value) {
  int rows = heads < most_heads(value) ? heads : most_heads(value);
  while (heads % rows != 0) --rows;
  return rows;
}

/// Dynamic shared memory: O, maxima and sums of an item's rows in FP32, their queries and a tile of rows in BF16.
constexpr std::size_t explained_shared_bytes(const ExplainedProblem& p) {
  const int rows = p.most_rows * p.most_requests;
  const auto floats = static_cast<std::size_t>(rows) * static_cast<std::size_t>(p.value + 2);
  const auto words =
      static_cast<std::size_t>(rows + paged::kExplainedTile) * static_cast<std::size_t>(p.width);
  return floats * 4 + words * 2 + 16;
}

/// On the device: q [batch × heads × width], cache [pages × page_size × width], o [batch × heads × value], all BF16;
/// the rest as in paged::Arrays, with rows of `value` columns. `arrays.k` is the cache, `arrays.v` empty.
using ExplainedArrays = paged::Arrays;

}  // namespace tilestep::decode::latent
