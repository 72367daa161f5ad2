// The trace as JSON.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/attention/sparse_attention/lesson.hpp"
#include "kernels/base/lab/fields.hpp"

namespace tilestep::sparse_attention {
namespace {

constexpr int kMostLength = 1 << 12;

lab::Fields<Tiling> tiling_fields() {
  return lab::Fields<Tiling>()
      .whole("tile", &Tiling::tile, 1, kMostTile)
      .from(lab::kAhead)
      .whole(TILESTEP_MEMBERS(Tiling, full, partial, skipped, computed), 0, lab::kMostCount);
}
lab::Fields<Kept> method_fields() {
  return lab::Fields<Kept>()
      .name("method", &Kept::method)
      .from(lab::kAhead)
      .whole(TILESTEP_MEMBERS(Kept, pairs, computed), 0, lab::kMostCount)
      .real("mass", &Kept::mass);
}
lab::Fields<Result> result_fields() {
  return lab::Fields<Result>()
      .text("outcome", &Result::outcome)
      .whole(TILESTEP_MEMBERS(Result, wrong, elements), 0, lab::kMostCount);
}

int masked(const Trace& trace, int count) {
  return trace.indexes() ? 0 : count;
}
int indexed(const Trace& trace, int count) {
  return trace.indexes() ? count : 0;
}
int squared(int n) {
  return n * n;
}
lab::When after(const Trace& trace, int phase) {
  return {trace.after(), phase};
}

lab::Fields<Trace> trace_fields() {
  using At = std::size_t;
  return lab::Fields<Trace>()
      .name(TILESTEP_MEMBERS(Trace, method, finding))
      .name("break", &Trace::broken)
      .whole("length", &Trace::length, 1, kMostLength)
      .whole(TILESTEP_MEMBERS(Trace, window, top_k), 1, kMostLength)
      .whole("tile", &Trace::tile, 1, kMostTile)
      .whole("indexer_heads", &Trace::heads, 1, 64)
      .wholes(
          "pairs", &Trace::pairs, [](const Trace& t) { return masked(t, squared(t.length)); }, 0, 1)
      .known_each([](const Trace& t, At at) {
        return lab::When{static_cast<int>(at) / t.length / t.tile + 1, 0};
      })
      .wholes(
          "kinds", &Trace::kinds, [](const Trace& t) { return masked(t, squared(t.tiles())); }, 0,
          2)
      .known_each([](const Trace& t, At at) {
        return lab::When{static_cast<int>(at) / t.tiles() + 1, 0};
      })
      .wholes(
          "visited", &Trace::visited, [](const Trace& t) { return masked(t, squared(t.tiles())); },
          0, 2)
      .known_each([](const Trace& t, At at) {
        return lab::When{static_cast<int>(at) / t.tiles() + 1, 1};
      })
      .list("sizes", &Trace::sizes, tiling_fields(),
            [](const Trace& t) { return masked(t, static_cast<int>(std::size(kTileSizes))); })
      .known_each([](const Trace& t, At) { return after(t, 0); })
      .wholes(
          "table", &Trace::table, [](const Trace& t) { return indexed(t, t.pages()); }, 0,
          [](const Trace& t) { return t.pages() - 1; })
      .reals("index", &Trace::index, [](const Trace& t) { return indexed(t, t.length); })
      .known_each([](const Trace& t, At at) {
        return lab::When{static_cast<int>(at) / t.tile + 1, 0};
      })
      .wholes(
          "passed", &Trace::passed, [](const Trace& t) { return indexed(t, t.tiles()); }, 0,
          kMostTile)
      .known_each([](const Trace&, At at) {
        return lab::When{static_cast<int>(at) + 1, 1};
      })
      .wholes(
          "best", &Trace::best, [](const Trace& t) { return indexed(t, t.tiles() * t.top_k); }, -1,
          [](const Trace& t) { return t.length - 1; })
      .known_each([](const Trace& t, At at) {
        return lab::When{static_cast<int>(at) / t.top_k + 1, 1};
      })
      .wholes(
          "chosen", &Trace::chosen, [](const Trace& t) { return indexed(t, t.top_k); }, -1,
          [](const Trace& t) { return t.length - 1; })
      .known_each([](const Trace& t, At) { return after(t, 0); })
      .wholes(
          "rows", &Trace::rows, [](const Trace& t) { return indexed(t, t.top_k); }, -1,
          [](const Trace& t) { return t.pages() * kPageSize - 1; })
      .known_each([](const Trace& t, At) { return after(t, 0); })
      .reals(TILESTEP_MEMBERS(Trace, dense, sparse),
             [](const Trace& t) { return indexed(t, t.length); })
      .known_each([](const Trace& t, At) { return after(t, 1); })
      .list("methods", &Trace::methods, method_fields(), static_cast<int>(count_of<Method>()))
      .known_each([](const Trace& t, At) {
        return lab::When{t.costs(), 0};
      })
      .object("result", &Trace::result, result_fields())
      .known([](const Trace& t) { return after(t, t.indexes() ? 1 : 0); },
             [](const Trace&, const lab::Change&) {
               return result_fields().to_json(Result{"something else", 1, 2});
             });
}

}  // namespace

int Trace::pairs_of(int query_tile, int key_tile) const {
  return std::min(tile, length - query_tile * tile) * std::min(tile, length - key_tile * tile);
}

double Trace::mass() const {
  double sum = 0;
  for (const int token : chosen)
    sum += token >= 0 ? static_cast<double>(dense[static_cast<std::size_t>(token)]) : 0.0;
  return sum;
}

bool Trace::operator==(const Trace& other) const {
  return to_json(*this) == to_json(other);
}

TILESTEP_TRACE_JSON("sparse-attention trace", trace_fields())

}  // namespace tilestep::sparse_attention
