// What only the picture of linear attention does, held to the trace that it is drawn from.
#include "scenes/attention/linear_attention/scene.hpp"

#include <cmath>

#include "tests/scenes/marks.hpp"

using namespace tilestep;
using linear_attention::kShown, linear_attention::Phase;
using scenes::Cursor, scenes::LinearAttentionScene;
using tests::items_named, tests::mark_named, tests::mark_of, tests::picture_at;
using Shown = tests::Shown<LinearAttentionScene>;

namespace {

constexpr int kBefore = static_cast<int>(Phase::before), kAfter = static_cast<int>(Phase::after);

}  // namespace

TEST_CASE("Linear attention: weights and answers are the kernel's, on one scale",
          "[linear_attention_scene]") {
  for (const char* feature : {"elu", "random"}) {
    Shown shown(lab::Settings{{"feature", feature}});
    const auto& trace = shown.trace();
    const picture::Picture before = picture_at(*shown, Cursor{1, kBefore}),
                           after = picture_at(*shown, Cursor{1, kAfter});
    const auto& exact = mark_named<picture::Bars>(after, "exact");
    const auto& approximate = mark_named<picture::Bars>(after, "approximate");
    CHECK(exact.y == approximate.y);
    for (int t = 0; t < trace.tokens; ++t) {
      const auto at = static_cast<std::size_t>(t);
      CHECK(exact.items.value[at] == trace.exact[at]);
      CHECK(approximate.items.value[at] == trace.approximate[at]);
      CHECK(items_named(before, "approximate").value[at] == 0);
    }
    for (int i = 0; i < kShown; ++i) {
      const auto at = static_cast<std::size_t>(i);
      CHECK(items_named(after, "by_state").value[at] == trace.by_state[at]);
      CHECK(items_named(after, "by_softmax").value[at] == trace.by_softmax[at]);
    }
  }
}

TEST_CASE("Linear attention: the map is S after the token, and its scale stays",
          "[linear_attention_scene]") {
  for (const char* rule : {"sum", "gated-delta"}) {
    Shown shown(lab::Settings{{"rule", rule}});
    const auto& trace = shown.trace();
    // Colours are as deep as the root of a number's share of the scale, which is the last row.
    double scale = 0;
    for (const int token : {0, 5, trace.tokens - 1}) {
      const picture::Items map =
          items_named(picture_at(*shown, Cursor{trace.step_of_token(token), kAfter}), "S");
      CHECK(map.value[static_cast<std::size_t>(map.count - 1)] == 1);
      CHECK(map.value[static_cast<std::size_t>(map.count - kShown)] == -1);
      for (int i = 0; i < kShown * kShown; ++i) {
        const double s = static_cast<double>(
            trace.states[static_cast<std::size_t>(token * kShown * kShown + i)]);
        const auto depth = static_cast<double>(map.value[static_cast<std::size_t>(i)]);
        CHECK(std::abs(depth) <= 1);
        if (std::abs(depth) < 0.05) continue;
        CHECK((depth < 0) == (s < 0));
        if (scale == 0) scale = std::abs(s) / (depth * depth);
        CHECK(std::abs(s) / (depth * depth) == Approx(scale).epsilon(1e-3));
      }
      // Before the token is written the map is that of the one before it.
      if (token == 0) continue;
      const picture::Items was =
          items_named(picture_at(*shown, Cursor{trace.step_of_token(token), kBefore}), "S");
      const auto before = static_cast<std::size_t>((token - 1) * kShown * kShown + 3);
      CHECK(was.value[3] * std::abs(was.value[3]) * scale ==
            Approx(trace.states[before]).epsilon(1e-3));
    }
  }
}

TEST_CASE("Linear attention: bars are what the state holds for each key",
          "[linear_attention_scene]") {
  Shown shown(lab::Settings{{"rule", "delta"}, {"repeat", std::int64_t{3}}});
  const auto& trace = shown.trace();
  const Cursor cursor{trace.step_of_token(4), kAfter};
  const picture::Items bars = items_named(picture_at(*shown, cursor), "held");
  for (int key = 0; key < 3; ++key)
    CHECK(bars.value[static_cast<std::size_t>(key)] == Approx(trace.strength(4, key)));
  CHECK(bars.value[1] == Approx(1).margin(0.02));
  CHECK(tests::contains(shown->sentence({cursor}), "its value alone"));
  CHECK(tests::contains(shown->sentence({Cursor{trace.step_of_token(4), kBefore}}), "again"));
  CHECK(tests::contains(shown->sentence({Cursor{trace.step_of_token(2), kBefore}}), "first time"));
}

TEST_CASE("Linear attention: a chunk's product is masked, and its outputs are known after it",
          "[linear_attention_scene]") {
  Shown shown;
  const auto& trace = shown.trace();
  const picture::Picture before = picture_at(*shown, Cursor{trace.step_of_chunk(1), kBefore}),
                         after = picture_at(*shown, Cursor{trace.step_of_chunk(1), kAfter});
  const picture::Items product = items_named(before, "P");
  for (int i = 0; i < trace.chunk; ++i) {
    for (int j = 0; j < trace.chunk; ++j) {
      const auto at = static_cast<std::size_t>(i * trace.chunk + j);
      CHECK((product.state[at] == picture::State::to_come) == (j > i));
    }
  }
  CHECK(items_named(before, "out").value[20] == 0);
  CHECK(items_named(after, "out").value[20] == trace.at(trace.chunk_out, 20, 0));
  CHECK(items_named(after, "inter").value[20] == trace.at(trace.inter, 20, 0));
  CHECK(items_named(after, "out").value[33] == 0);
  // The state that it hands on is what the next begins with.
  const picture::Items on = items_named(after, "handed_on"),
                       next = items_named(
                           picture_at(*shown, Cursor{trace.step_of_chunk(2), kBefore}), "handed");
  for (std::size_t i = 0; i < kShown * kShown; ++i) CHECK(on.value[i] == next.value[i]);
}

TEST_CASE("Linear attention: mistakes stand where the kernel made them",
          "[linear_attention_scene]") {
  Shown stale(lab::Settings{{"break", "stale-state"}});
  const auto& trace = stale.trace();
  const picture::Items out =
      items_named(picture_at(*stale, Cursor{trace.step_of_chunk(1), kAfter}), "out");
  for (int t = 0; t < 2 * trace.chunk; ++t) {
    const auto at = static_cast<std::size_t>(t);
    CHECK((out.state[at] == picture::State::wrong) == (trace.wrong[at] > 0));
  }
  CHECK(tests::contains(stale->sentence({Cursor{trace.step_of_chunk(1), kAfter}}), "wrong"));
  Shown unmasked(lab::Settings{{"break", "unmasked-chunk"}});
  CHECK(tests::contains(unmasked->sentence({Cursor{unmasked.trace().step_of_chunk(0), kBefore}}),
                        "later one"));
}

TEST_CASE("Linear attention: questions about a bench have its numbers",
          "[linear_attention_scene]") {
  using Bench = tests::MadeUpBench<LinearAttentionScene>;
  CHECK(Bench().answer("long-text") == "not asked");
  lab::Table lengths{"timed_lengths",
                     "",
                     {lab::whole("length"), "rung", lab::real("time", "", "ms", 2),
                      lab::real("times", "", "", 2)}};
  double times = 0.5;
  for (const int length : {512, 1024, 2048, 4096, 8192, 16384, 32768}) {
    lengths.add({length, "chunked, gate", 1.0, times});
    times *= 1.6;
  }
  CHECK(Bench({lengths}).answer("long-text") == "5.2×");
  CHECK(Bench({lengths}).answer("crossing") == "2048 tokens");
  lab::Table chunks{
      "chunk_sizes", "", {"rule", lab::whole("chunk"), lab::real("time", "", "ms", 2)}};
  chunks.add({"gate", 16, 3.0});
  chunks.add({"gate", 64, 1.5});
  CHECK(Bench({lengths, chunks}).answer("chunk-time") == "2.0×");
}
