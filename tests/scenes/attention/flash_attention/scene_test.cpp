// What only the picture of attention does, held to the trace that it is drawn from.
#include "scenes/attention/flash_attention/scene.hpp"

#include <algorithm>
#include <set>
#include <variant>

#include "kernels/attention/flash_attention/lesson.hpp"
#include "tests/scenes/marks.hpp"

using namespace tilestep;
using flash_attention::Tensor, flash_attention::TileKind;
using scenes::Cursor, scenes::FlashAttentionScene, scenes::FlashMoment, scenes::TileFate;
using tests::all_places, tests::end_of, tests::items_named, tests::picture_at;
using Shown = tests::Shown<FlashAttentionScene>;

namespace {

/// Short, so that a run takes a moment.
lab::Settings with(lab::Settings settings, std::int64_t seq = 128) {
  settings.try_emplace("seq", seq);
  return settings;
}
lab::Settings variant(const char* name) {
  return with({{"variant", std::string(name)}});
}

int fates(const FlashAttentionScene& scene, const FlashMoment& now, TileFate fate) {
  int count = 0;
  for (int q = 0; q < scene.trace().plan.q_tiles; ++q) {
    for (int k = 0; k < scene.trace().plan.k_tiles; ++k) {
      count += scene.fate(now, q, k) == fate ? 1 : 0;
    }
  }
  return count;
}

}  // namespace

TEST_CASE("FlashAttention: bytes run up to what was traced, and never back",
          "[flash_attention_scene]") {
  for (const char* name : {"naive", "flash-1", "flash-2"}) {
    CAPTURE(name);
    Shown shown(variant(name));
    tests::check_bytes(shown);
  }
}

TEST_CASE("FlashAttention: bytes of all kernels stand on one scale, and products are as many",
          "[flash_attention_scene]") {
  using flash_attention::Variant;
  double naive[3] = {};
  for (const Variant runs : all_of<Variant>()) {
    Shown shown(with({{"variant", std::string(name_of(runs))}, {"mask", std::string("none")}}));
    const picture::Picture picture = picture_at(*shown, end_of(*shown));
    double formula[3] = {}, asked = 0, traced = 0, products[3] = {};
    for (const picture::Mark* mark : picture::marks_of(picture)) {
      const auto* spans = std::get_if<picture::Spans>(mark);
      if (spans == nullptr) continue;
      for (std::size_t k = 0; k < spans->begin.size(); ++k) {
        const double long_by = spans->end[k] - spans->begin[k];
        if (spans->items.name == picture::Name("formula_bytes")) formula[spans->lane[k]] += long_by;
        if (spans->items.name == picture::Name("asked_bytes")) asked += long_by;
        if (spans->items.name == picture::Name("product")) products[spans->lane[k]] += long_by;
      }
    }
    for (const auto& row : shown.trace().ledger)
      traced += static_cast<double>(row.loaded + row.stored);
    const auto own = static_cast<std::size_t>(runs);
    CHECK(asked == Approx(traced / 1e6));
    CHECK(formula[own] == Approx(asked));
    CHECK(formula[0] > 2 * formula[2]);
    CHECK(products[0] > 0);
    CHECK(products[1] == products[0]);
    CHECK(products[2] == products[0]);
    naive[own] = formula[0];
    // Before the end nothing says how many products there are.
    const auto before = picture_at(*shown, Cursor{1, 0});
    CHECK(items_named(before, "product").count == 0);
  }
  CHECK(naive[1] == naive[0]);
  CHECK(naive[2] == naive[0]);
}

TEST_CASE("FlashAttention: O is divided by ℓ and log-sum-exp made once, at the end",
          "[flash_attention_scene]") {
  Shown shown(variant("flash-2"));
  const auto said = [&](Cursor cursor) {
    std::string all;
    const picture::Picture picture = picture_at(*shown, cursor);
    for (const picture::Mark* mark : picture::marks_of(picture)) {
      const auto* lines = std::get_if<picture::Lines>(mark);
      if (lines == nullptr || lines->items.name != picture::Name("formula")) continue;
      for (const picture::Text& row : lines->rows) all += picture::plain(row.full) + "\n";
    }
    return all;
  };
  CHECK(tests::contains(said(end_of(*shown)), "lse = "));
  CHECK(tests::contains(said(end_of(*shown)), "O / ℓ = "));
  CHECK_FALSE(tests::contains(said({1, 2}), "lse"));
}

TEST_CASE("FlashAttention: of scores that are not stored one tile a block exists",
          "[flash_attention_scene]") {
  Shown shown(with({}));
  const auto& trace = shown.trace();
  for (const Cursor cursor : all_places(*shown)) {
    const FlashMoment now = shown->moment(cursor);
    CAPTURE(cursor.tile, cursor.phase);
    for (int q = 0; q < trace.plan.q_tiles; ++q) {
      int exist = 0;
      for (int k = 0; k < trace.plan.k_tiles; ++k) {
        const TileFate fate = shown->fate(now, q, k);
        exist += fate == TileFate::now ? 1 : 0;
        CHECK(fate != TileFate::stored);
        CHECK((fate == TileFate::never) == (trace.visit(q, k).kind == TileKind::skipped));
      }
      CHECK(exist <= 1);
      if (q == trace.chosen.q_tile) CHECK(exist == (now.step > 0 && !now.through ? 1 : 0));
    }
  }
  CHECK(fates(*shown, shown->moment({2, 2}), TileFate::gone) > 0);
  const picture::Picture midway = picture_at(*shown, {2, 2});
  CHECK(tests::place_of(midway.root, "scores") == picture::Place::registers);
  // O too lies in registers until it is written.
  CHECK(tests::hollow(items_named(midway, "O")) > 0);
  CHECK(tests::hollow(items_named(picture_at(*shown, end_of(*shown)), "O")) == 0);
}

TEST_CASE("FlashAttention: of stored scores the hidden ones are computed in vain",
          "[flash_attention_scene]") {
  Shown shown(variant("naive"));
  const auto& trace = shown.trace();
  const picture::Picture made = picture_at(*shown, end_of(*shown));
  CHECK(tests::place_of(made.root, "scores") == picture::Place::nowhere);  // but round it:
  CHECK(tests::place_of(made.root, "device_memory") == picture::Place::device_memory);
  const picture::Items scores = items_named(made, "S");
  for (std::size_t i = 0; i < trace.visits.size(); ++i) {
    const bool hidden = trace.visits[i].kind == TileKind::skipped;
    CHECK((scores.state[i] == picture::State::wasted) == hidden);
  }
  // Weights come when all scores are there.
  const FlashMoment scored = shown->moment({trace.plan.k_tiles, 0});
  const FlashMoment weighed = shown->moment({trace.plan.k_tiles, 1});
  for (const flash_attention::LedgerRow& row : trace.ledger) {
    if (row.tensor != Tensor::p) continue;
    CHECK(shown->asked_by(scored, row).stored == 0);
    CHECK(shown->asked_by(weighed, row).stored == static_cast<double>(row.stored));
  }
}

TEST_CASE("FlashAttention: version 1 says how often O was read and written",
          "[flash_attention_scene]") {
  Shown shown(with({{"variant", std::string("flash-1")}, {"mask", std::string("none")}}));
  const picture::Items output = items_named(picture_at(*shown, end_of(*shown)), "O");
  CHECK(output.names == std::vector<std::string>(4, "4×"));
}

TEST_CASE("FlashAttention: columns that are filled with zeros are hatched",
          "[flash_attention_scene]") {
  Shown shown(with({{"head_dim", std::string("80")}}));
  const picture::Items queries = items_named(picture_at(*shown, {1, 0}), "Q");
  CHECK(queries.per_row == 6);
  for (int i = 0; i < queries.count; ++i) {
    const auto state = queries.state[static_cast<std::size_t>(i)];
    CHECK((state == picture::State::wasted) == (i % 6 == 5));
  }
  const auto parts = shown.picture({1, 0}, {1900, 1000});
  CHECK(std::any_of(parts.begin(), parts.end(), [](const auto& part) {
    return part.second.label.find("filled with zeros") != std::string::npos;
  }));
}

TEST_CASE("FlashAttention: the mask of a longer text stands beside the part that ran",
          "[flash_attention_scene]") {
  Shown shown(with({}, 4096));
  REQUIRE(shown.trace().shape.length < 4096);
  const picture::Items whole = items_named(picture_at(*shown, {1, 0}), "whole");
  CHECK(whole.count <= 24 * 24);
  for (int i = 0; i < whole.count; ++i) {
    const bool hidden = i % whole.per_row > i / whole.per_row;
    CHECK((whole.glyph[static_cast<std::size_t>(i)] == picture::kHollow) == hidden);
  }
}

TEST_CASE("FlashAttention: what a break did stands in the picture at the end",
          "[flash_attention_scene]") {
  Shown skipped(with({{"break", std::string("skip-rescale")}}));
  REQUIRE(skipped.trace().result.wrong > 0);
  const picture::Items last = items_named(picture_at(*skipped, end_of(*skipped)), "O"),
                       first = items_named(picture_at(*skipped, {1, 0}), "O");
  for (std::size_t q = 0; q < skipped.trace().wrong.size(); ++q) {
    CHECK((last.state[q] == picture::State::wrong) == (skipped.trace().wrong[q] > 0));
    CHECK(first.state[q] != picture::State::wrong);
  }
  CHECK(skipped->sentence(skipped->moment(end_of(*skipped))).starts_with("skip-rescale: "));

  Shown written(with({{"break", std::string("materialize")}}));
  CHECK(fates(*written, written->moment({1, 2}), TileFate::stored) == 0);
  CHECK(fates(*written, written->moment({2, 2}), TileFate::stored) > 0);
  const std::string sentence = written->sentence(written->moment(end_of(*written)));
  CHECK(sentence.find("for nothing") != std::string::npos);
}

TEST_CASE("FlashAttention: tiles lead to their steps, tiles of queries to their queries",
          "[flash_attention_scene]") {
  Shown shown(with({}));
  const int q = shown.trace().chosen.q_tile;
  CHECK(shown->leads_to({}, {"S", q, 2}) == Cursor{3, 2});
  CHECK(shown->leads_to({}, {"S", q - 1, 2}) == std::nullopt);
  CHECK(shown->dropped({}, {"Q", 1}, {"Q", 1}) == lab::Settings{{"query", std::int64_t{63}}});
}
