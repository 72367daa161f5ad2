// What only the picture of decoding does, held to the trace that it is drawn from.
#include "scenes/attention/decode/scene.hpp"

#include <algorithm>
#include <set>

#include "tests/scenes/marks.hpp"

using namespace tilestep;
using decode::ItemTrace;
using picture::State;
using scenes::Cursor, scenes::DecodeScene;
using tests::count_of, tests::items_named, tests::mark_named, tests::picture_at;
using Shown = tests::Shown<DecodeScene>;

TEST_CASE("Decode: every tile of every request is read, and then done", "[decode_scene]") {
  Shown shown(lab::Settings{{"splits", std::int64_t{0}}});
  const auto& trace = shown.trace();
  int tiles = 0, done = 0;
  for (const int tokens : trace.tokens) tiles += (tokens + 15) / 16;
  for (int round = 1; round <= trace.rounds(); ++round) {
    const picture::Items entries = items_named(picture_at(*shown, round), "entry");
    CHECK(count_of(entries, State::done) >= done);
    done = count_of(entries, State::done);
  }
  const picture::Items entries = items_named(picture_at(*shown, trace.answered()), "entry");
  CHECK(count_of(entries, State::done) == tiles);
}

TEST_CASE("Decode: lanes grow by a tile a round and end where the items end", "[decode_scene]") {
  Shown shown(lab::Settings{{"splits", std::int64_t{0}}});
  const auto& trace = shown.trace();
  double before = 0;
  for (int round = 1; round <= trace.rounds(); ++round) {
    const picture::Picture picture = picture_at(*shown, round);
    const picture::Spans& lanes = mark_named<picture::Spans>(picture, "lane");
    double taken = 0;
    for (int i = 0; i < lanes.items.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      CHECK(lanes.end[at] <= round);
      if (lanes.items.ids[at] < std::ssize(trace.items)) taken += lanes.end[at] - lanes.begin[at];
    }
    CHECK(taken > before);
    before = taken;
  }
  double tiles = 0;
  for (const ItemTrace& item : trace.items) tiles += item.tiles;
  CHECK(before == tiles);
}

TEST_CASE("Decode: the query heads that use a tile light up together", "[decode_scene]") {
  for (const char* scheme : {"mha", "gqa", "mqa", "mla"}) {
    Shown shown(lab::Settings{{"scheme", std::string(scheme)}});
    const auto& shape = shown.trace().shape;
    const picture::Picture picture = picture_at(*shown, 1);
    CHECK(count_of(items_named(picture, "query_head"), State::current) == shape.heads);
    CHECK(count_of(items_named(picture, "kv_head"), State::current) == shape.cached_heads);
    const picture::Picture still = picture_at(*shown, shown.trace().length());
    CHECK(count_of(items_named(still, "query_head"), State::current) == 0);
  }
}

TEST_CASE("Decode: parts are in registers until the merge reads them from device memory",
          "[decode_scene]") {
  using picture::Place;
  Shown shown;
  const auto place = [&](int step, std::string_view box) {
    return tests::place_of(picture_at(*shown, step).root, box);
  };
  CHECK(place(1, "cache") == Place::device_memory);
  CHECK(place(1, "parts") == Place::registers);
  CHECK(place(4, "parts") == Place::nowhere);  // its weights are nowhere
  CHECK(place(4, "part_table") == Place::device_memory);
}

TEST_CASE("Decode: the event of the merge leads to the merge", "[decode_scene]") {
  Shown shown;
  REQUIRE(shown.trace().merged);
  const scenes::Event last = shown->events().back();
  CHECK(tests::contains(last.text, "merged"));
  CHECK(shown->sentence(last.at).starts_with("Merge"));
}
