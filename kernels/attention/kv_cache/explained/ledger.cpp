#include <algorithm>

#include "kernels/attention/kv_cache/explained/run_explained.hpp"

namespace tilestep::kv_cache {
namespace {

constexpr std::int64_t kWord = 2, kFloat = 4, kEntry = 4;

}  // namespace

int tokens_of(const paged::WorkItem& item, int page_size, int context) {
  const int first = item.first_page * page_size;
  return std::max(std::min(first + item.pages * page_size, context) - first, 0);
}

Ledger ledger_of(const paged::Problem& problem, const paged::WorkPlan& plan,
                 const std::vector<int>& contexts, const RowShape& shape, int look_up) {
  Ledger all{};
  const std::int64_t row = std::int64_t{shape.key} * paged::bits_of(problem.cache) / 8;
  const bool scaled = paged::has_scales(problem.cache);
  for (const paged::WorkItem& item : plan.items) {
    const std::int64_t tokens =
        tokens_of(item, problem.page_size, contexts[static_cast<std::size_t>(item.request)]);
    const std::int64_t rows = paged::rows_of(item);
    const std::int64_t queries = rows * shape.key, numbers = rows * shape.value;
    // The latent kernel fetches no queries for an item without tokens.
    if (shape.latent == 0 || tokens > 0) all[paged::kQ].loaded += queries * kWord;
    all[paged::kK].loaded += tokens * row;
    if (shape.latent == 0) all[paged::kV].loaded += tokens * row;
    all[paged::kTable].loaded += (tokens + look_up - 1) / look_up * kEntry;
    if (scaled && problem.k_channels) all[paged::kScales].loaded += (tokens + queries) * kFloat;
    if (scaled && !problem.k_channels) all[paged::kScales].loaded += tokens * 2 * kFloat;
    if (paged::is_split(item)) {
      const std::int64_t part = (numbers + 2 * rows) * kFloat;
      all[paged::kParts].stored += part;
      all[paged::kParts].loaded += part;
    }
    if (item.split == 0) {
      all[paged::kO].stored += numbers * kWord;
      all[paged::kLse].stored += rows * kFloat;
    }
  }
  return all;
}

}  // namespace tilestep::kv_cache
