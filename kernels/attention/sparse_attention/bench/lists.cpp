#include <algorithm>
#include <numeric>

#include "kernels/attention/flash_attention_3/schedule.hpp"
#include "kernels/attention/sparse_attention/bench/bench.hpp"
#include "kernels/attention/sparse_attention/timed/kernels.hpp"
#include "kernels/base/lab/random.hpp"

namespace tilestep::sparse_attention {
namespace {

int tiles_in(int length, int each) {
  return (length + each - 1) / each;
}

}  // namespace

TileLists lists_of(const attention::MaskRule& rule) {
  using attention::TileKind;
  TileLists lists;
  const int queries = tiles_in(rule.length, timed::kListRows),
            keys = tiles_in(rule.length, timed::kListKeys);
  for (int tile = 0; tile < queries; ++tile) {
    lists.first.push_back(static_cast<int>(lists.tiles.size()));
    const int q0 = tile * timed::kListRows;
    const int q1 = std::min(q0 + timed::kListRows, rule.length) - 1;
    for (const TileKind wanted : {TileKind::partial, TileKind::full}) {
      if (wanted == TileKind::full) lists.whole.push_back(static_cast<int>(lists.tiles.size()));
      for (int key = keys - 1; key >= 0; --key) {
        const int k0 = key * timed::kListKeys;
        const int k1 = std::min(k0 + timed::kListKeys, rule.length) - 1;
        TileKind kind = rule.kind(q0, q1, k0, k1, flash_attention_3::NoDocuments{});
        // A tile that the end cuts off has keys that nobody sees.
        if (kind == TileKind::full && k1 - k0 + 1 < timed::kListKeys) kind = TileKind::partial;
        if (kind == wanted) lists.tiles.push_back(key);
      }
    }
  }
  lists.first.push_back(static_cast<int>(lists.tiles.size()));
  return lists;
}

TileLists lists_by_lot(int length, double share, std::int64_t seed) {
  TileLists lists;
  std::mt19937 generator = lab::generator_of(seed);
  const int queries = tiles_in(length, timed::kListRows), keys = tiles_in(length, timed::kListKeys);
  const int wanted = std::clamp(static_cast<int>(share * keys + 0.5), 1, keys);
  for (int tile = 0; tile < queries; ++tile) {
    std::vector<int> all(static_cast<std::size_t>(keys));
    std::iota(all.begin(), all.end(), 0);
    std::swap(all.front(), all[static_cast<std::size_t>(tile)]);
    for (int i = 1; i < wanted; ++i) {
      const int other = i + static_cast<int>(lab::uniform(generator) * (keys - i));
      std::swap(all[static_cast<std::size_t>(i)], all[static_cast<std::size_t>(other)]);
    }
    std::sort(all.begin(), all.begin() + wanted, std::greater<>());
    lists.first.push_back(static_cast<int>(lists.tiles.size()));
    // The last tile may be cut off: it comes first, with masking code.
    const bool cut = all.front() == keys - 1 && length % timed::kListKeys != 0;
    lists.whole.push_back(lists.first.back() + (cut ? 1 : 0));
    lists.tiles.insert(lists.tiles.end(), all.begin(), all.begin() + wanted);
  }
  lists.first.push_back(static_cast<int>(lists.tiles.size()));
  return lists;
}

}  // namespace tilestep::sparse_attention
