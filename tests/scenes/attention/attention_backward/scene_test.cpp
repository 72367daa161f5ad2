// What only the picture of attention's gradients does, held to the trace that it is drawn from.
#include "scenes/attention/attention_backward/scene.hpp"

#include <algorithm>
#include <set>
#include <variant>

#include "tests/scenes/marks.hpp"

using namespace tilestep;
using scenes::AttentionBackwardScene, scenes::BackwardMoment, scenes::Cursor, scenes::TileFate;
using tests::all_places, tests::end_of, tests::items_named, tests::picture_at;
using Shown = tests::Shown<AttentionBackwardScene>;

namespace {

/// Short, so that a run takes a moment.
lab::Settings with(lab::Settings settings) {
  settings.try_emplace("seq", std::int64_t{128});
  return settings;
}

}  // namespace

TEST_CASE("Attention backward: blocks walk down their columns side by side",
          "[attention_backward_scene]") {
  Shown shown(with({}));
  const auto& trace = shown.trace();
  const int tiles = trace.plan.k_tiles;
  REQUIRE(tiles == 4);
  for (int step = 1; step <= tiles; ++step) {
    CAPTURE(step);
    for (int phase = 0; phase < 3; ++phase) {
      const BackwardMoment now = shown->moment({step, phase});
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
    CHECK(weights.value[i] == (key >= 64 ? trace.row.p[i] : 0));
    CHECK(gradients.value[i] == (key >= 96 ? trace.row.ds[i] : 0));
  }
}

TEST_CASE("Attention backward: dK and dV of a shared head wait for all its query heads",
          "[attention_backward_scene]") {
  // The last tile of keys has one tile of queries: its block is through after the first step, where no other head
  // shares its keys.
  for (const std::int64_t kv_heads : {1, 2}) {
    Shown shown(with({{"kv_heads", kv_heads}}));
    for (const char* name : {"dK", "dV"}) {
      const picture::Items sums = items_named(picture_at(*shown, {2, 0}), name);
      CHECK(sums.state[3] == (kv_heads == 1 ? picture::State::done : picture::State::plain));
      CHECK((sums.glyph[3] == picture::kHollow) == (kv_heads == 1));  // still in registers
    }
  }
}

TEST_CASE("Attention backward: bytes run up to what was traced, and never back",
          "[attention_backward_scene]") {
  Shown shown(with({}));
  tests::check_bytes(shown);
}

TEST_CASE("Attention backward: what a break did stands in dQ, dK and dV",
          "[attention_backward_scene]") {
  Shown shown(with({{"break", std::string("mask-off-by-one")}}));
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

TEST_CASE("Attention backward: it is asked what to keep and what that costs",
          "[attention_backward_scene]") {
  std::set<std::string> kinds;
  Shown shown(with({}));
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
