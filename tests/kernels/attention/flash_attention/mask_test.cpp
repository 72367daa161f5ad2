// The description of masks against asking each pair of a query and a key.

#include "kernels/attention/shared/mask.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/base/lab/random.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::attention;

namespace {

/// Where the document of each position begins; a new one begins with chance 1 / `length_of_one`.
std::vector<int> random_begins(int length, int length_of_one, std::mt19937& generator) {
  std::vector<int> begins(static_cast<std::size_t>(length));
  int begin = 0;
  for (int q = 0; q < length; ++q) {
    if (generator() % static_cast<unsigned>(length_of_one) == 0) begin = q;
    begins[static_cast<std::size_t>(q)] = begin;
  }
  return begins;
}

/// The mask in the words of its documentation.
bool sees(const MaskRule& rule, int query, int key, const std::vector<int>& begins) {
  const bool before = key <= query;
  switch (rule.mask) {
    case Mask::none:
      return true;
    case Mask::causal:
      return before;
    case Mask::sliding_window:
      return before && (query - key < rule.window || key < rule.sinks);
    case Mask::document:
      return before &&
             begins[static_cast<std::size_t>(key)] == begins[static_cast<std::size_t>(query)];
    case Mask::prefix:
      return before || key < rule.window;
  }
  return false;
}

struct Wrong {
  int pairs = 0, kinds = 0, visited = 0, full = 0, count = 0, visitors = 0;
  int sum() const { return pairs + kinds + visited + full + count + visitors; }
};

/// Asks each tile of keys which tiles of queries see it.
void compare_visitors(const MaskRule& rule, int height, int width, const std::vector<int>& begins,
                      Wrong& wrong) {
  for (int k0 = 0; k0 < rule.length; k0 += width) {
    const int k1 = std::min(k0 + width, rule.length) - 1;
    const QueryTiles tiles = rule.query_tiles(k0, k1, height, begins);
    for (int q0 = 0; q0 < rule.length; q0 += height) {
      const int q1 = std::min(q0 + height, rule.length) - 1;
      const bool there = rule.kind(q0, q1, k0, k1, begins) != TileKind::skipped;
      const int tile = q0 / height;
      wrong.visitors += there != (tile >= tiles.begin && tile < tiles.end);
    }
    wrong.visitors += tiles.end > (rule.length + height - 1) / height;
  }
}

/// Looks at all tiles of `height` queries by `width` keys.
void compare(const MaskRule& rule, int height, int width, const std::vector<int>& begins,
             Wrong& wrong) {
  const int tiles = (rule.length + width - 1) / width;
  for (int q0 = 0; q0 < rule.length; q0 += height) {
    const int q1 = std::min(q0 + height, rule.length) - 1;
    std::vector<TileKind> kinds;
    for (int tile = 0; tile < tiles; ++tile) {
      const int k0 = tile * width;
      const int k1 = std::min(k0 + width, rule.length) - 1;
      int allowed = 0;
      for (int q = q0; q <= q1; ++q) {
        for (int k = k0; k <= k1; ++k) {
          const bool want = sees(rule, q, k, begins);
          wrong.pairs += rule.allows(q, k, begins) != want;
          allowed += want;
        }
      }
      const TileKind want = allowed == 0                               ? TileKind::skipped
                            : allowed == (q1 - q0 + 1) * (k1 - k0 + 1) ? TileKind::full
                                                                       : TileKind::partial;
      wrong.kinds += rule.kind(q0, q1, k0, k1, begins) != want;
      kinds.push_back(want);
    }
    const KeyTiles at_once = rule.tiles(q0, q1, width, begins);
    std::vector<bool> visited(static_cast<std::size_t>(tiles), false);
    for (int tile = at_once.next(0); tile < at_once.end; tile = at_once.next(tile + 1)) {
      visited.at(static_cast<std::size_t>(tile)) = true;
    }
    int count = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      const auto at = static_cast<std::size_t>(tile);
      const bool there = kinds[at] != TileKind::skipped;
      count += there;
      wrong.visited += visited[at] != there;
      wrong.full += there && at_once.full(tile) != (kinds[at] == TileKind::full);
    }
    wrong.count += at_once.count() != count;
  }
}

}  // namespace

TEST_CASE("tiles are skipped, partial or full as their pairs are", "[flash_attention]") {
  std::mt19937 generator = lab::generator_of(7);
  const auto up_to = [&](int most) {
    return static_cast<int>(generator() % static_cast<unsigned>(most + 1));
  };
  constexpr int kEdges[] = {1, 3, 16, 32, 64};
  int compared = 0;
  for (const Mask mask : all_of<Mask>()) {
    for (const int length : {1, 2, 5, 17, 31, 64, 97, 130}) {
      for (int turn = 0; turn < 24; ++turn) {
        MaskRule rule;
        rule.mask = mask;
        rule.length = length;
        // Ends and beyond the neighbour's tile now and then, anything else.
        rule.window = turn % 6 == 0 ? 0 : turn % 6 == 1 ? length : up_to(length);
        rule.sinks = mask != Mask::sliding_window || turn % 4 == 0 ? 0
                     : turn % 4 == 1                               ? length
                                                                   : up_to(std::min(length, 20));
        const std::vector<int> begins = random_begins(length, 1 + up_to(30), generator);
        Wrong wrong;
        const int height = kEdges[up_to(4)];
        const int width = kEdges[up_to(4)];
        compare(rule, height, width, begins, wrong);
        compare_visitors(rule, height, width, begins, wrong);
        CAPTURE(std::string(name_of(mask)), length, rule.window, rule.sinks, height, width);
        CAPTURE(wrong.pairs, wrong.kinds, wrong.visited, wrong.full, wrong.count, wrong.visitors);
        CHECK(wrong.sum() == 0);
        ++compared;
      }
    }
  }
  CHECK(compared == 5 * 8 * 24);
}
