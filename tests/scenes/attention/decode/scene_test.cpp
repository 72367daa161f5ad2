// What only the picture of decoding does, held to the trace that it is drawn from.
#include "scenes/attention/decode/scene.hpp"

#include <algorithm>
#include <set>

#include "tests/scenes/shown.hpp"

using namespace tilestep;
using decode::ItemTrace;
using picture::State;
using scenes::Cursor, scenes::DecodeScene;
using Shown = tests::Shown<DecodeScene>;

namespace {

picture::Picture picture_at(const scenes::Scene& scene, int step) {
  return scene.picture(scene.extent(), {Cursor{step, 0}});
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
const picture::Spans& spans_named(const picture::Picture& picture, picture::Name name) {
  for (const picture::Mark* mark : picture::marks_of(picture)) {
    const auto* spans = std::get_if<picture::Spans>(mark);
    if (spans != nullptr && spans->items.name == name) return *spans;
  }
  FAIL("no spans are called " << name.text());
  throw Error("");
}
int count_of(const picture::Items& items, State state) {
  int count = 0;
  for (int i = 0; i < items.count; ++i)
    count += items.state[static_cast<std::size_t>(i)] == state ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("Decode: every tile of every request is read, and then done", "[decode_scene]") {
  Shown shown({{"splits", std::int64_t{0}}});
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
  Shown shown({{"splits", std::int64_t{0}}});
  const auto& trace = shown.trace();
  double before = 0;
  for (int round = 1; round <= trace.rounds(); ++round) {
    const picture::Picture picture = picture_at(*shown, round);
    const picture::Spans& lanes = spans_named(picture, "lane");
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

TEST_CASE("Decode: the event of the merge leads to the merge", "[decode_scene]") {
  Shown shown;
  REQUIRE(shown.trace().merged);
  const scenes::Event last = shown->events().back();
  CHECK(tests::contains(last.text, "merged"));
  CHECK(shown->sentence(last.at).starts_with("Merge"));
}
