#include "scenes/matmul/tiling/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "scenes/picture/placed.hpp"
#include "scenes/shared/words.hpp"
#include "scenes/ui/roofline.hpp"
#include "tests/lesson_contract/pictures.hpp"
#include "tests/scenes/marks.hpp"

using namespace tilestep;
using picture::Cells, picture::Frame, picture::Key, picture::Picture, picture::State;
using scenes::Cursor, scenes::TilingScene;
using tests::mark_named, tests::Parts, tests::within;
using Shown = tests::Shown<TilingScene>;

namespace {

lab::Settings sizes(std::int64_t tile, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {{"tile", tile}, {"m", m}, {"n", n}, {"k", k}};
}

lab::Settings with(lab::Settings settings, const char* id, const char* choice) {
  settings[id] = std::string(choice);
  return settings;
}

std::string cell(const char* prefix, int i, int tile) {
  return std::string(prefix) + "_" + std::to_string(i / tile) + "_" + std::to_string(i % tile);
}

/// The tiles on screen against what must have happened: thread y·tile + x loads element [y][x] of
/// either tile, and every element inside is used once by each thread of its row or column.
void check_tiles(const Parts& parts, const tiling::Trace& trace, int k_tile, bool multiplied) {
  const bool shared = trace.block.variant == tiling::Variant::shared_tile;
  const int tile = trace.tile;
  const int depth = std::min(tile, trace.k - k_tile * tile);
  for (int i = 0; i < tile * tile; ++i) {
    const bool a_inside = i / tile < trace.rows() && i % tile < depth;
    const bool b_inside = i / tile < depth && i % tile < trace.columns();
    const auto expected = [&](bool inside, int loads) -> std::string {
      if (!inside) return "wasted";
      return std::to_string(!shared ? loads : multiplied ? tile : i);
    };
    CHECK(parts.at(cell("sa", i, tile)).value == expected(a_inside, trace.columns()));
    CHECK(parts.at(cell("sb", i, tile)).value == expected(b_inside, trace.rows()));
    if (parts.count(cell("na", i, tile)) == 0) continue;
    const auto naive = [&](bool inside, int loads) -> std::string {
      return !multiplied ? "to come" : inside ? std::to_string(loads) : "wasted";
    };
    CHECK(parts.at(cell("na", i, tile)).value == naive(a_inside, trace.columns()));
    CHECK(parts.at(cell("nb", i, tile)).value == naive(b_inside, trace.rows()));
  }
}

/// The block's rows of A: what is done, worked on and to come, and the frame round the k-tile. A cell
/// may stand for several elements; B is the same turned.
void check_bands(const Picture& picture, const tiling::Trace& trace, int k_tile, bool loading) {
  const int tile = trace.tile, k0 = k_tile * tile, depth = std::min(tile, trace.k - k0);
  const auto& a = mark_named<Cells>(picture, "A");
  const int unit = (trace.k + a.columns - 1) / a.columns;
  for (int i = 0; i < a.items.count; ++i) {
    const int row = i / a.columns * unit, number = i % a.columns * unit / tile;
    const bool within = row < trace.first_row() + trace.rows() && row + unit > trace.first_row();
    CHECK((a.items.tone[static_cast<std::size_t>(i)] > 0) == within);
    if (!within) continue;
    CHECK(a.items.state[static_cast<std::size_t>(i)] == (number < k_tile    ? State::done
                                                         : number == k_tile ? State::plain
                                                                            : State::to_come));
  }
  const auto& a_tile = mark_named<Frame>(picture, "a_tile");
  CHECK(a_tile.state == State::current);
  CHECK(a_tile.round.front() == Key{"A", trace.first_row() / unit, k0 / unit});
  CHECK(a_tile.round.back() ==
        Key{"A", (trace.first_row() + trace.rows() - 1) / unit, (k0 + depth - 1) / unit});
  const auto& b_tile = mark_named<Frame>(picture, "b_tile");
  CHECK(b_tile.round.front() == Key{"B", k0 / unit, trace.first_column() / unit});
  // Elements fly from their places in A and B when they are loaded, and at no other time.
  for (const char* name : {"sa", "sb"}) {
    const auto& items = mark_named<Cells>(picture, name).items;
    const bool is_a = name == std::string("sa");
    for (int i = 0; i < items.count; ++i) {
      const bool inside = items.state[static_cast<std::size_t>(i)] != State::wasted;
      const int row = (is_a ? trace.first_row() : k0) + i / tile;
      const int column = (is_a ? k0 : trace.first_column()) + i % tile;
      const Key from{is_a ? picture::Name("A") : picture::Name("B"), row / unit, column / unit};
      CHECK(items.ways[static_cast<std::size_t>(i)].from == (loading && inside ? from : Key{}));
    }
  }
}

/// C's block with the kernel's own sums; those of C only when they are written.
void check_sums(const Picture& picture, const TilingScene& scene, Cursor cursor, int last) {
  const tiling::Trace& trace = scene.trace();
  const auto& c = mark_named<Cells>(picture, "c").items;
  for (int i = 0; i < trace.tile * trace.tile; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const float sum =
        last < 0 ? 0 : trace.block.k_tiles[static_cast<std::size_t>(last)].sums[index];
    CHECK(scene.sum(i, cursor) == sum);
    const bool inside = i / trace.tile < trace.rows() && i % trace.tile < trace.columns();
    CHECK((c.state[index] == State::wasted) == !inside);
    CHECK(std::isnan(c.value[index]) == (!inside || last < 0));
    if (inside && last >= 0) CHECK(c.value[index] == sum);
  }
  const auto& in_c = mark_named<Cells>(picture, "C").items;
  const bool written = last == trace.k_tiles() - 1;
  for (int i = 0; i < in_c.count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    if (in_c.tone[index] == 0) continue;
    CHECK(in_c.state[index] == (written ? State::plain : State::to_come));
    CHECK((in_c.ways[index].from.name == picture::Name("c")) == written);
  }
}

void check_picture(Shown& shown, Cursor cursor) {
  const TilingScene& scene = *shown;
  const Parts parts = shown.picture(cursor);
  const Picture picture = scene.picture(scene.extent(), {cursor});
  const tiling::Trace& trace = scene.trace();
  const bool shared = trace.block.variant == tiling::Variant::shared_tile;
  CHECK(parts.at("sentence").label == scene.sentence(cursor));
  const auto loads_of = [&](const char* name) {
    const std::vector<double>& ends = mark_named<picture::Spans>(picture, name).end;
    return ends.empty() ? 0 : ends.back();
  };
  if (cursor.tile == 0) {
    CHECK(parts.at("sa_0_0").value == "to come");
    CHECK(loads_of("naive_loads") == 0);
    CHECK(parts.count("a_tile") == 0);
    return;
  }
  const int k_tile = cursor.tile - 1;
  const bool multiplied = !shared || cursor.phase >= 2;
  check_tiles(parts, trace, k_tile, multiplied);
  check_bands(picture, trace, k_tile, shared && cursor.phase == 0);
  check_sums(picture, scene, cursor, multiplied ? k_tile : k_tile - 1);

  // Loads so far: a tile of A and one of B each k-tile, against two a product.
  const int before = k_tile * trace.tile;
  const int after = std::min(trace.k, before + trace.tile);
  const int products = trace.rows() * trace.columns();
  const int naive = 2 * products * (multiplied ? after : before);
  const int tiled = (trace.rows() + trace.columns()) * after;
  CHECK(loads_of("naive_loads") == naive);
  if (trace.block.variant != tiling::Variant::naive) {
    CHECK(loads_of("block_loads") == (shared ? tiled : naive));
  }
  CHECK(within(parts.at("a_tile"), parts.at("matrix_a"), 6));
  CHECK(within(parts.at("b_tile"), parts.at("matrix_b"), 6));
  CHECK(within(parts.at("c_block"), parts.at("matrix_c"), 6));
  CHECK(scene.moment(cursor).k_tile == k_tile);
  CHECK(scene.table_row("k_tiles", {cursor}) == k_tile);
  if (!shared) return;
  const auto state = [&](int phase) {
    return cursor.phase == phase ? "current" : cursor.phase > phase ? "done" : "to come";
  };
  CHECK(parts.at("barrier_after_load").value == state(1));
  CHECK(parts.at("barrier_after_multiply").value == state(3));
}

}  // namespace

TEST_CASE("the tiling picture equals the trace at every step and phase", "[tiling_scene]") {
  Shown shown;
  for (const char* variant : {"shared-tile", "naive", "coalesced"}) {
    // The chosen block is at neither edge in the first, and cut off on two sides in the second.
    for (const lab::Settings& size : {sizes(8, 24, 40, 20), sizes(8, 5, 7, 9)}) {
      shown.run(with(size, "variant", variant));
      for (const Cursor cursor : tests::all_places(*shown)) {
        CAPTURE(variant, shown.trace().m, cursor.tile, cursor.phase);
        check_picture(shown, cursor);
      }
    }
  }
}

TEST_CASE("the picked thread's formula adds up", "[tiling_scene]") {
  Shown shown(sizes(4, 8, 8, 8));
  const auto& trace = shown.trace();
  shown.click("c_3_2", {1, 2});
  const int picked = 3 * trace.tile + 2;
  CHECK(shown->picked(shown.player().view({1, 2})) == picked);
  CHECK(shown->thread_of(picked) == picked);

  double sum = 0;
  for (int kk = 0; kk < trace.k; ++kk) {
    sum += static_cast<double>(trace.a_band[static_cast<std::size_t>(3 * trace.k + kk)]) *
           static_cast<double>(trace.b_band[static_cast<std::size_t>(kk * trace.columns() + 2)]);
    if (kk % trace.tile != trace.tile - 1) continue;
    const Cursor cursor{kk / trace.tile + 1, 3};
    CHECK(static_cast<double>(shown->sum(picked, cursor)) == Approx(sum).margin(1e-4));
    const Picture picture = shown->picture(shown->extent(), shown.player().view(cursor));
    const std::string formula = plain(mark_named<picture::Lines>(picture, "formula").rows[0].full);
    CHECK(tests::contains(formula, " + … = "));
    CHECK(formula.ends_with(scenes::words::number(double(shown->sum(picked, cursor)), 3)));
    const auto& row = mark_named<Frame>(picture, "picked_row");
    CHECK(row.round == std::vector<Key>{{"sa", 3, 0}, {"sa", 3, trace.tile - 1}});
  }
}

TEST_CASE("the frame on what the picked thread reads goes the way of its reads", "[tiling_scene]") {
  Shown shown(sizes(4, 8, 8, 8));
  lab::Report report = shown.report();
  shown.click("c_3_2", {1, 2});
  const auto framed = [&](int along_k) {
    nlohmann::json trace = report.trace;
    for (auto& tile : trace["block"]["k_tiles"]) tile["along_k"] = along_k;
    report.trace = trace;
    shown.player().load(report);
    std::vector<Key> all;
    for (const int phase : {1, 2}) {
      const Picture picture = shown->picture(shown->extent(), shown.player().view({2, phase}));
      for (const char* name : {"one_element", "its_partner"}) {
        if (const auto* frame = tests::mark_of<Frame>(picture, name))
          all.push_back(frame->round.front());
      }
    }
    return all;
  };
  using Keys = std::vector<Key>;
  // Behind the barrier nobody knows the way yet.
  CHECK(framed(1) == Keys{{"sa", 3, 0}, {"sb", 0, 2}, {"sa", 3, 3}, {"sb", 3, 2}});
  CHECK(framed(-1) == Keys{{"sa", 3, 0}, {"sb", 0, 2}, {"sa", 3, 0}, {"sb", 0, 2}});
  CHECK(framed(0) == Keys{{"sa", 3, 0}, {"sb", 0, 2}});
  CHECK(shown->steps().lasts == std::vector<double>{1, 1, 2, 1});
}

TEST_CASE("in naive, threads are numbered down the rows", "[tiling_scene]") {
  Shown shown(with(sizes(4, 8, 8, 8), "variant", "naive"));
  CHECK(shown->thread_of(1) == 4);
  CHECK(shown->thread_of(4) == 1);
  CHECK(shown->steps().phases == 1);
  shown.click("c_0_1", {1, 0});  // its thread is the fifth
  CHECK(shown.player().view({1, 0}).pick("thread") == 4);
  CHECK(shown->picked(shown.player().view({1, 0})) == 1);
}

TEST_CASE("a removed barrier and what it broke are on screen", "[tiling_scene]") {
  for (const char* removed : {"after-load", "after-multiply"}) {
    Shown shown(with(sizes(8, 16, 16, 24), "remove_barrier", removed));
    const auto& trace = shown.trace();
    REQUIRE(trace.races.wrong_orders > 0);
    const int last = shown->steps().tiles;
    auto parts = shown.picture({1, 3});
    const std::string id =
        removed == std::string("after-load") ? "barrier_after_load" : "barrier_after_multiply";
    CHECK(parts.at(id).value == "wrong");
    CHECK(tests::contains(shown->explain({{1, 3}}, {picture::Name("barrier_after_load")}),
                          "removed") == (id == "barrier_after_load"));
    CHECK(tests::marks_named<Frame>(tests::picture_at(*shown, Cursor{1, 3}), "wrong_in_c").empty());
    const Picture picture = tests::picture_at(*shown, Cursor{last, 3});
    CHECK(tests::mark_of<Frame>(picture, "wrong_in_c") != nullptr);
    const auto first = fmt::format("C[{}][{}]", trace.races.row, trace.races.column);
    CHECK(tests::contains(shown->explain({{last, 3}}, {"wrong_in_c"}), first));
    const auto& block = mark_named<Cells>(picture, "c").items;
    const auto& wrong = trace.races.wrong_elements;
    for (int i = 0; i < block.count; ++i) {
      const bool is_wrong = std::find(wrong.begin(), wrong.end(), i) != wrong.end();
      CHECK((block.state[static_cast<std::size_t>(i)] == State::wrong) == is_wrong);
    }
    const std::string counts = std::to_string(trace.races.wrong_orders) + " of " +
                               std::to_string(trace.races.orders) + " orders";
    CHECK(tests::contains(shown->sentence({last, 3}), counts));
    CHECK(shown.answer({last - 1, 3}) ==
          (trace.races.wrong_orders == trace.races.orders ? "In all" : "In some"));
  }
}

TEST_CASE("the tiling questions are answered by the trace", "[tiling_scene]") {
  for (const char* variant : {"shared-tile", "naive"}) {
    Shown shown(with(sizes(8, 16, 16, 20), "variant", variant));
    const auto& trace = shown.trace();
    const int last_phase = shown->steps().phases - 1;
    const auto answer_at = [&](int tile) { return shown.answer({tile, last_phase}); };
    CHECK(answer_at(0) == std::to_string(trace.block.k_tiles[0].loads_so_far));
    if (last_phase > 0) {
      // The followed thread's own element, as it runs along the rows.
      const int thread = shown->thread_of(shown->picked(shown.player().view({1, last_phase})));
      CHECK(answer_at(1) == fmt::format("sA[{}][{}]", thread / 8, thread % 8));
      CHECK_FALSE(shown->question({{0, 0}}));
    }
    // The last k-tile has 4 of 8 columns of A.
    CHECK(answer_at(2) ==
          std::to_string(trace.block.loads() - trace.block.k_tiles[1].loads_so_far));
    CHECK_FALSE(shown->question({{3, last_phase}}));
  }
}

TEST_CASE("the kernel's lines follow the phases", "[tiling_scene]") {
  Shown shown;
  CHECK(shown->source({{0, 3}}).current == 0);
  for (int phase = 0; phase < 4; ++phase) {
    const scenes::SourceMark mark = shown->source({{1, phase}});
    REQUIRE(mark.step_lines.size() == 4);
    CHECK(mark.current == mark.step_lines[static_cast<std::size_t>(phase)]);
  }
  shown.run({{"variant", std::string("warp-tile")}});
  CHECK(shown->source({{1, 0}}).path == "kernels/matmul/tiling/warp_tile.cu");
}

TEST_CASE("products that are hard to draw", "[tiling_scene]") {
  contract::check_pictures(lesson("tiling"),
                           {sizes(32, 256, 256, 256), sizes(4, 1, 1, 1), sizes(32, 1, 256, 1),
                            sizes(4, 256, 1, 256), sizes(4, 1, 1, 256)});
}

TEST_CASE("a rung above shared-tile is drawn by who has what of C", "[tiling_scene]") {
  const std::map<std::string, std::pair<std::string, std::string>> said = {
      {"register-tile-1d",
       {"16 warps share 64 × 64 of C: one has 8 × 32.",
        "One thread owns 8 × 1 of C: 9 reads for 8 FMAs."}},
      {"register-tile-2d",
       {"8 warps share 128 × 128 of C: one has 16 × 128.",
        "One thread owns 8 × 8 of C: 16 reads for 64 FMAs."}},
      {"vectorized",
       {"8 warps share 128 × 128 of C: one has 2 rectangles of 8 × 128.",
        "One thread owns 4 squares of 4 × 4: 16 numbers in 4 reads for 64 FMAs."}},
      {"double-buffered",
       {"8 warps share 128 × 128 of C: one has 2 rectangles of 8 × 128.",
        "One thread owns 4 squares of 4 × 4: 16 numbers in 4 reads for 64 FMAs."}},
      {"warp-tile",
       {"8 warps share 128 × 128 of C: one has 64 × 32.",
        "One thread owns 4 squares of 4 × 4: 16 numbers in 4 reads for 64 FMAs."}},
      {"tensor-core",
       {"4 warps share 128 × 128 of C: one has 64 × 64.",
        "One thread owns 64 pairs of C: 64 numbers in 8 reads for 2048 FMAs."}}};
  Shown shown;
  for (const auto& [variant, words] : said) {
    CAPTURE(variant);
    shown.run({{"variant", variant}});
    const tiling::Rung& rung = shown.trace().rungs.back();
    const bool mma = variant == "tensor-core";
    REQUIRE(shown->steps().places() == tiling::kShares);
    CHECK(shown->sentence({1, 0}) == words.first);
    CHECK(shown->sentence({1, 2}) == words.second);
    for (const int thread : {rung.threads / 3, 0, rung.threads - 1}) {
      const scenes::View view{{1, 2}, {{picture::Name("thread"), thread}}};
      const Picture picture = shown->picture(shown->extent(), view);
      const auto& cells = mark_named<Cells>(picture, "share");
      const int tall = mma ? 16 : rung.unit_rows, wide = mma ? 8 : rung.unit_columns;
      REQUIRE(cells.items.count == rung.rows / tall * (rung.columns / wide));
      int own = 0;
      for (int i = 0; i < cells.items.count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const int owner = rung.owner(i / cells.columns * tall, i % cells.columns * wide);
        CHECK((cells.items.tone[at] > 0) == (owner / 32 == thread / 32));
        CHECK((cells.items.value[at] == 1) == (!mma && owner == thread));
        own += cells.items.value[at] == 1 ? tall * wide : 0;
      }
      CHECK(own == (mma ? 0 : rung.owned));
      if (!mma) {
        // What it reads for a k, and the sums that it adds each times each to.
        const auto& sums = mark_named<Cells>(picture, "sum_of").items;
        CHECK(sums.count == rung.owned);
        CHECK(std::count(sums.state.each.begin(), sums.state.each.end(), State::plain) ==
              rung.owned);
        CHECK((mark_named<Cells>(picture, "of_a").items.count +
               mark_named<Cells>(picture, "of_b").items.count) *
                  rung.depth ==
              rung.reads);
        continue;
      }
      // One mma: a lane has two neighbours in a row, and two eight rows below (PTX ISA, m16n8k16).
      const auto& lanes = mark_named<Cells>(picture, "lane").items;
      REQUIRE(lanes.count == 64);
      for (int i = 0; i < 64; ++i) {  // rows 0–7 left, 8–15 right, a pair a cell
        const int lane = i / 8 * 4 + i % 4;
        CHECK(lanes.names[static_cast<std::size_t>(i)] == std::to_string(lane));
        CHECK((lanes.tone[static_cast<std::size_t>(i)] > 0) == (lane == thread % 32));
      }
    }
    // A bar for each rung up to this one, which comes last.
    for (const int phase : {0, 1, 2}) {
      const Picture picture = shown->picture(shown->extent(), {{1, phase}});
      const auto& bars = mark_named<picture::Spans>(picture, "reads_of");
      REQUIRE(bars.items.count == std::ssize(shown.trace().rungs) - (phase < 2 ? 1 : 0));
      for (int i = 0; i < bars.items.count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const tiling::Rung& of = shown.trace().rungs[at];
        CHECK(bars.end[at] == static_cast<double>(of.reads) / (of.owned * of.depth));
      }
      CHECK((bars.items.tone[static_cast<std::size_t>(bars.items.count - 1)] > 0) == (phase == 2));
    }
  }
}

TEST_CASE("a block of 64 is a quarter of one of 128, and both are square", "[tiling_scene]") {
  Shown shown;
  float side = 0;
  for (const char* variant : {"register-tile-2d", "register-tile-1d"}) {
    shown.run({{"variant", std::string(variant)}});
    const tiling::Rung& rung = shown.trace().rungs.back();
    const Parts parts = shown.picture({1, 2});
    const auto& first = parts.at("share_0_0");
    const auto& last = parts.at(fmt::format("share_{}_{}", rung.rows / rung.unit_rows - 1,
                                            rung.columns / rung.unit_columns - 1));
    const float wide = last.max.x - first.min.x, tall = last.max.y - first.min.y;
    CHECK(wide == Approx(tall).margin(3));
    if (side > 0) CHECK(wide == Approx(side / 2).margin(3));
    side = wide;
  }
}

TEST_CASE("a rung asks how many numbers its FMAs take, before it says so", "[tiling_scene]") {
  Shown shown(lab::Settings{{"variant", std::string("register-tile-2d")}});
  CHECK(shown.answer({0, tiling::kShares - 1}) == "16");
  CHECK_FALSE(shown->question({{1, tiling::kShares - 1}}));
}

TEST_CASE("the measured views of the tiling lesson show the recording", "[tiling_scene]") {
  Shown shown;
  for (const ImVec2 size : tests::kSweptSizes) {
    const auto show = [&](const std::string& view) { return shown.measured(view, size); };
    Parts parts = show("measured_view_0");
    // Bars below the window's edge are not on screen.
    if (size.y > 300) CHECK(parts.at("ladder_fp32_7").label == "warp-tile");
    CHECK(parts.at("ladder_fp32_0").label == "naive");
    parts = show("measured_view_1");
    if (size.y > 300) {
      CHECK(parts.at("roofline_dot_0").label == "naive");
      // A rung that is faster and moves fewer bytes stands higher and further right.
      CHECK(parts.at("roofline_dot_1").min.y < parts.at("roofline_dot_0").min.y);
    }
    parts = show("measured_view_2");
    CHECK(parts.at("shared_ceiling_0").label == "shared-tile");
    CHECK(parts.at("shared_ceiling_0").value.ends_with(" %"));
    if (size.y > 300) CHECK(parts.at("shared_bytes_0").label == "shared-tile");
    show("measured_view_3");
    show("measured_view_4");
  }
}

TEST_CASE("the roofline allows the lower of its roofs", "[tiling_scene]") {
  ui::Roofline plot;
  plot.memory = {{"copy", 4, false}, {"datasheet", 5, true}};
  const ui::ComputeRoof roof{"library", 50, false};
  CHECK(ui::attainable(plot, roof, 2) == 8);
  CHECK(ui::attainable(plot, roof, 12.5) == 50);
  CHECK(ui::attainable(plot, roof, 1000) == 50);
}

TEST_CASE("a readout of two numbers says where both come from", "[tiling_scene]") {
  Shown shown(sizes(8, 16, 16, 24));
  const auto all = shown->readouts({{shown->steps().tiles, 3}});
  const auto found = std::find_if(all.begin(), all.end(),
                                  [](const auto& each) { return each.id == "global_loads"; });
  REQUIRE(found != all.end());
  CHECK(tests::contains(found->unit, " per output"));
  CHECK(std::count(found->detail.begin(), found->detail.end(), '\n') == 1);
}
