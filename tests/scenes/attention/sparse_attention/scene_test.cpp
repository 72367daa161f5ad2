// What only the picture of sparse attention does, held to the trace that it is drawn from.
#include "scenes/attention/sparse_attention/scene.hpp"

#include <algorithm>

#include "tests/scenes/marks.hpp"

using namespace tilestep;
using scenes::Cursor, scenes::SparseAttentionScene;
using tests::items_named, tests::mark_named, tests::mark_of, tests::picture_at;
using Shown = tests::Shown<SparseAttentionScene>;

TEST_CASE("Sparse attention: cells are what was seen, computed in vain, skipped or missing",
          "[sparse_attention_scene]") {
  const lab::Settings corners{
      {"method", "strided"}, {"found", "corners"}, {"window", std::int64_t{6}}};
  for (const lab::Settings& settings :
       {lab::Settings{}, lab::Settings{{"method", "own"}}, corners}) {
    Shown shown(settings);
    const auto& trace = shown.trace();
    const int end = trace.tiles();
    const picture::Items cells = items_named(picture_at(*shown, Cursor{end, 1}), "pair");
    REQUIRE(cells.count == trace.length * trace.length);
    int wrong = 0, missing = 0;
    for (int at = 0; at < cells.count; ++at) {
      const int q = at / trace.length, k = at % trace.length;
      const bool seen = trace.sees(q, k), computed = trace.computes(q / trace.tile, k / trace.tile);
      const picture::State state = cells.state[static_cast<std::size_t>(at)];
      const bool now = q / trace.tile == end - 1;
      const bool unasked = trace.kind(q / trace.tile, k / trace.tile) == attention::TileKind::full;
      using picture::State;
      const State want = !computed ? (seen ? State::wrong : State::plain)
                         : !seen   ? (unasked ? State::wrong : State::plain)
                         : now     ? State::current
                                   : State::done;
      wrong += state != want ? 1 : 0;
      missing += state == State::wrong ? 1 : 0;
    }
    CHECK(wrong == 0);
    CHECK((missing > 0) == (settings == corners));
    // Half way nothing below the row is known.
    const picture::Items half = items_named(picture_at(*shown, Cursor{4, 1}), "pair");
    for (int at = 4 * trace.tile * trace.length; at < half.count; ++at)
      CHECK(half.state[static_cast<std::size_t>(at)] == picture::State::plain);
  }
}

TEST_CASE("Sparse attention: counts add up to the trace's", "[sparse_attention_scene]") {
  Shown shown;
  const auto& trace = shown.trace();
  const auto all = shown->counted({trace.tiles(), 1});
  CHECK(all.seen == std::count(trace.pairs.begin(), trace.pairs.end(), 1));
  for (const auto& size : trace.sizes) {
    if (size.tile == trace.tile) CHECK(all.computed == size.computed);
  }
  CHECK(all.missed == 0);
  CHECK(shown->counted({0, 1}).seen == 0);
  CHECK(tests::contains(shown->sentence({Cursor{5, 1}}), "256 pairs are computed for 144"));
}

TEST_CASE("Sparse attention: the best so far are those that the kernel kept",
          "[sparse_attention_scene]") {
  Shown shown(lab::Settings{{"method", "dsa"}});
  const auto& trace = shown.trace();
  for (int tile = 1; tile <= trace.tiles(); ++tile) {
    const std::vector<int> kept = shown->kept({tile, 1});
    CHECK(std::ssize(kept) == std::min(tile * trace.tile, trace.top_k));
    // A full sort of the scores so far, equal ones by index.
    std::vector<int> order;
    for (int t = 0; t < tile * trace.tile; ++t) order.push_back(t);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return trace.index[static_cast<std::size_t>(a)] > trace.index[static_cast<std::size_t>(b)];
    });
    order.resize(kept.size());
    std::sort(order.begin(), order.end());
    CHECK(kept == order);
    CHECK(shown->floor({tile, 1}).has_value() == (tile * trace.tile >= trace.top_k));
    CHECK(shown->kept({tile, 0}) == shown->kept({tile - 1, 1}));
  }
  const picture::Items rows = items_named(picture_at(*shown, Cursor{trace.after(), 0}), "row_of");
  for (std::size_t i = 0; i < trace.rows.size(); ++i)
    CHECK(rows.state[static_cast<std::size_t>(trace.rows[i])] == picture::State::current);
}

TEST_CASE("Sparse attention: rows of other tokens are wrong in the picture",
          "[sparse_attention_scene]") {
  Shown shown(lab::Settings{{"method", "dsa"}, {"break", "scattered-keys"}});
  const auto& trace = shown.trace();
  const picture::Items rows = items_named(picture_at(*shown, Cursor{trace.after(), 1}), "row_of");
  int wrong = 0;
  for (int i = 0; i < rows.count; ++i)
    wrong += rows.state[static_cast<std::size_t>(i)] == picture::State::wrong ? 1 : 0;
  CHECK(wrong > 0);
  CHECK(tests::contains(shown->sentence({Cursor{trace.after(), 1}}), "are wrong"));
}

TEST_CASE("Sparse attention: questions about a bench have its numbers",
          "[sparse_attention_scene]") {
  using Bench = tests::MadeUpBench<SparseAttentionScene>;
  CHECK(Bench().answer("window-gain") == "not asked");
  lab::Table lists{
      "lists", "", {"rung", lab::real("times", "", "", 2), lab::real("allowed", "", "", 2)}};
  lists.add({"window 4096", 7.2, 7.9});
  lists.add({"50 % of the blocks", 1.9, 2.0});
  lists.add({"5 % of the blocks", 17.0, 20.0});
  CHECK(Bench({lists}).answer("window-gain") == "7.2×");
  CHECK(Bench({lists}).answer("block-gain") == "17×");
  lab::Table index{"index", "", {lab::whole("context"), "rung", lab::real("more", "", "%", 1)}};
  index.add({65536, "scores and top-k", 20.0});
  CHECK(Bench({index}).answer("choice-cost") == "20 %");
}
