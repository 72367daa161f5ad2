// What only the picture of attention does, held to the trace that it is drawn from.
#include "scenes/attention/flash_attention/scene.hpp"

#include <algorithm>
#include <set>
#include <variant>

#include "kernels/attention/flash_attention/lesson.hpp"
#include "tests/scenes/shown.hpp"

using namespace tilestep;
using flash_attention::Tensor, flash_attention::TileKind;
using scenes::Cursor, scenes::FlashAttentionScene, scenes::FlashMoment, scenes::TileFate;
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

std::vector<Cursor> all_places(const scenes::Scene& scene) {
  std::vector<Cursor> places;
  for (int place = 0; place <= scene.steps().places(); ++place) {
    places.push_back(scene.steps().at_place(place));
  }
  return places;
}
Cursor end_of(const scenes::Scene& scene) {
  return scene.steps().at_place(scene.steps().places());
}

picture::Picture picture_at(const scenes::Scene& scene, Cursor cursor) {
  return scene.picture(scene.extent(), {cursor});
}
/// The items of that name; there must be some.
picture::Items items_named(const picture::Picture& picture, picture::Name name) {
  for (const picture::Mark* mark : picture::marks_of(picture)) {
    const picture::Items* items = picture::items_of(*mark);
    if (items != nullptr && items->name == name) return *items;
  }
  FAIL("nothing is called " << name.text());
  return {};
}

/// How many different clocks the events have: under emulation their numbers are the time.
double clocks_of(const flash_attention::Trace& trace) {
  std::set<std::int64_t> clocks;
  for (const flash_attention::Event& event : trace.events) clocks.insert(event.clock);
  return static_cast<double>(clocks.size());
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
    for (const flash_attention::LedgerRow& row : shown.trace().ledger) {
      CAPTURE(name_of(row.tensor));
      double before = 0;
      for (const Cursor cursor : all_places(*shown)) {
        const auto now = shown->asked_by(shown->moment(cursor), row);
        if (cursor.tile == 0) CHECK(now.loaded + now.stored == 0);
        CHECK(now.loaded + now.stored >= before);
        before = now.loaded + now.stored;
      }
      const auto last = shown->asked_by(shown->moment(end_of(*shown)), row);
      CHECK(last.loaded == static_cast<double>(row.loaded));
      CHECK(last.stored == static_cast<double>(row.stored));
    }
  }
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
}

TEST_CASE("FlashAttention: of stored scores the hidden ones are computed in vain",
          "[flash_attention_scene]") {
  Shown shown(variant("naive"));
  const auto& trace = shown.trace();
  const picture::Items scores = items_named(picture_at(*shown, end_of(*shown)), "S");
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
  Shown shown(with({{"head_dim", std::string("80")}, {"variant", std::string("flash-3")}}));
  const picture::Items queries = items_named(picture_at(*shown, {1, 0}), "Q");
  CHECK(queries.per_row == 6);
  for (int i = 0; i < queries.count; ++i) {
    const auto state = queries.state[static_cast<std::size_t>(i)];
    CHECK((state == picture::State::wasted) == (i % 6 == 5));
  }
  const auto parts = shown.picture({1, 0}, {1900, 1000});
  CHECK(std::any_of(parts.begin(), parts.end(), [](const auto& part) {
    return part.second.label.find("flash-3 runs as flash-2") != std::string::npos;
  }));
}

TEST_CASE("FlashAttention: lanes end at the cursor, whose clock never goes back",
          "[flash_attention_scene]") {
  Shown shown(with({{"variant", std::string("flash-3-ping-pong")},
                    {"heads", std::int64_t{1}},
                    {"head_dim", std::string("64")},
                    {"mask", std::string("none")}},
                   256));
  double before = 0;
  int drawn = 0;
  for (const Cursor cursor : all_places(*shown)) {
    const double now = shown->clock_at(shown->moment(cursor));
    CHECK(now >= before);
    before = now;
    const picture::Picture picture = picture_at(*shown, cursor);
    for (const picture::Mark* mark : picture::marks_of(picture)) {
      const auto* spans = std::get_if<picture::Spans>(mark);
      if (spans == nullptr) continue;
      for (std::size_t i = 0; i < spans->begin.size(); ++i, ++drawn) {
        CHECK(spans->begin[i] < now);
        CHECK(spans->end[i] <= now);
      }
    }
  }
  CHECK(drawn > 0);
  CHECK(before == clocks_of(shown.trace()) - 1);
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

TEST_CASE("FlashAttention: a query that sees no key has no step", "[flash_attention_scene]") {
  Shown shown(with({{"mask", std::string("sliding-window")}, {"window", std::int64_t{0}}}));
  CHECK(shown->steps().tiles == 0);
  CHECK(shown->sentence(shown->moment({0, 0})).find("no key") != std::string::npos);
  CHECK_FALSE(shown.picture({0, 0}).empty());
}

TEST_CASE("FlashAttention: tiles lead to their steps, tiles of queries to their queries",
          "[flash_attention_scene]") {
  Shown shown(with({}));
  const int q = shown.trace().chosen.q_tile;
  CHECK(shown->leads_to({}, {"S", q, 2}) == Cursor{3, 2});
  CHECK(shown->leads_to({}, {"S", q - 1, 2}) == std::nullopt);
  CHECK(shown->dropped({}, {"Q", 1}, {"Q", 1}) == lab::Settings{{"query", std::int64_t{63}}});
}

// ---- backward ---------------------------------------------------------------------------------------

namespace {

lab::Settings backward() {
  return with({{"pass", std::string("backward-recompute")}});
}

}  // namespace

TEST_CASE("FlashAttention: backward, blocks walk down their columns side by side",
          "[flash_attention_scene]") {
  Shown shown(backward());
  const auto& trace = shown.trace();
  const int tiles = trace.plan.k_tiles;
  REQUIRE(tiles == 4);
  for (int step = 1; step <= tiles; ++step) {
    CAPTURE(step);
    for (int phase = 0; phase < 3; ++phase) {
      const FlashMoment now = shown->moment({step, phase});
      if (now.through) continue;
      // What exists lies on a diagonal: a tile a block that still has one.
      for (int q = 0; q < tiles; ++q) {
        for (int k = 0; k < tiles; ++k) {
          const bool exists = q - k == step - 1;
          CHECK((shown->fate(now, q, k) == TileFate::now) == exists);
          CHECK((shown->fate(now, q, k) == TileFate::gone) == (q >= k && q - k < step - 1));
        }
      }
    }
    // dQ says how many blocks have added to it.
    const picture::Items sums = items_named(picture_at(*shown, {step, 2}), "dQ");
    for (int q = 0; q < tiles; ++q) {
      CHECK(sums.names[static_cast<std::size_t>(q)] == std::to_string(std::min(q + 1, step)) + "×");
    }
  }
  const picture::Items weights = items_named(picture_at(*shown, {2, 0}), "P"),
                       gradients = items_named(picture_at(*shown, {2, 0}), "dS");
  for (int key = 0; key < 128; ++key) {
    // Two tiles of weights are made again, and of the second there is no dS yet.
    const auto i = static_cast<std::size_t>(key);
    CHECK(weights.value[i] == (key >= 64 ? trace.backward.p[i] : 0));
    CHECK(gradients.value[i] == (key >= 96 ? trace.backward.ds[i] : 0));
  }
}

TEST_CASE("FlashAttention: backward, dK and dV of a shared head wait for all its query heads",
          "[flash_attention_scene]") {
  Shown first(backward());
  REQUIRE(first.trace().shape.heads == 2);
  lab::Settings settings = backward();
  settings["head"] = std::int64_t{1};
  Shown last(settings);
  // The last tile of keys has one tile of queries: its block is through after the first step.
  for (const char* name : {"dK", "dV"}) {
    const auto state = [&](const FlashAttentionScene& scene) {
      const picture::Picture picture = picture_at(scene, {2, 0});
      for (const picture::Mark* mark : picture::marks_of(picture)) {
        const picture::Items* items = picture::items_of(*mark);
        if (items != nullptr && items->name.text() == name) return items->state[3];
      }
      return picture::State::wrong;
    };
    CHECK(state(*first) == picture::State::done);
    CHECK(state(*last) == picture::State::plain);
  }
}

TEST_CASE("FlashAttention: backward, bytes run up to what was traced, and never back",
          "[flash_attention_scene]") {
  Shown shown(backward());
  for (const flash_attention::LedgerRow& row : shown.trace().ledger) {
    CAPTURE(name_of(row.tensor));
    double loaded = 0, stored = 0;
    for (const Cursor cursor : all_places(*shown)) {
      const auto now = shown->asked_by(shown->moment(cursor), row);
      CHECK(now.loaded >= loaded);
      CHECK(now.stored >= stored);
      loaded = now.loaded, stored = now.stored;
      if (cursor.tile == 0) CHECK(loaded + stored == 0);
    }
    CHECK(loaded == static_cast<double>(row.loaded));
    CHECK(stored == static_cast<double>(row.stored));
  }
}

TEST_CASE("FlashAttention: backward, what a break did stands in dQ, dK and dV",
          "[flash_attention_scene]") {
  lab::Settings settings = backward();
  settings["break"] = std::string("mask-off-by-one");
  Shown shown(settings);
  const auto& trace = shown.trace();
  REQUIRE(trace.result.wrong > 0);
  const picture::Picture end = picture_at(*shown, end_of(*shown));
  const auto check = [&](const picture::Items& items, const std::vector<int>& wrong) {
    for (std::size_t i = 0; i < wrong.size(); ++i) {
      CHECK((items.state[i] == picture::State::wrong) == (wrong[i] > 0));
      if (wrong[i] > 0) CHECK(items.names[i] == std::to_string(wrong[i]));
    }
  };
  check(items_named(end, "dQ"), trace.wrong);
  check(items_named(end, "dK"), trace.wrong_dk);
  check(items_named(end, "dV"), trace.wrong_dv);
  CHECK(items_named(picture_at(*shown, {1, 0}), "dQ").state[0] != picture::State::wrong);
}

TEST_CASE("FlashAttention: backward, it is asked what to keep and what that costs",
          "[flash_attention_scene]") {
  std::set<std::string> kinds;
  Shown shown(backward());
  for (int step = 0; step < shown->steps().tiles; ++step) {
    const auto question = shown->question({{step, shown->steps().last_phase(step)}});
    if (!question) continue;
    kinds.insert(question->id);
    if (question->id != "keep-or-recompute") continue;
    // Of 128 positions and 2 heads of 32: 65536 bytes of weights; Q, O, K, V and the log-sum-exp are 50176.
    CHECK(question->choices[static_cast<std::size_t>(question->answer)].starts_with("2.3"));
  }
  CHECK(kinds == std::set<std::string>{"visited", "kept", "products", "keep-or-recompute"});
}
