// What only the picture of decoding does, held to the trace that it is drawn from.
#include "scenes/attention/decode/scene.hpp"

#include <algorithm>
#include <set>

#include "tests/scenes/shown.hpp"

using namespace tilestep;
using decode::ItemTrace, decode::Served;
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

TEST_CASE("Decode: the pool on show is the engine's, step by step", "[decode_scene]") {
  for (const std::int64_t prefix : {0, 48}) {
    Shown shown({{"prefix", prefix}});
    for (int step = 1; step <= static_cast<int>(shown.trace().serving.size()); ++step) {
      const Served& now = shown.trace().serving[static_cast<std::size_t>(step) - 1];
      const picture::Items pages = items_named(picture_at(*shown, step), "page");
      REQUIRE(pages.count == shown.trace().pool);
      int free = 0;
      for (std::size_t page = 0; page < now.holders.size(); ++page) {
        free += pages.glyph[page] == picture::kHollow ? 1 : 0;
        std::string name = now.holders[page] > 1    ? "×" + std::to_string(now.holders[page])
                           : now.holders[page] == 1 ? "R" + std::to_string(now.owner[page])
                                                    : "";
        if (now.holders[page] > 0 && now.filled[page] < 16)
          name += "·" + std::to_string(now.filled[page]);
        CHECK(pages.names[page] == name);
      }
      CHECK(free == now.free_pages());
    }
  }
}

TEST_CASE("Decode: every page of every request is read once, and then done", "[decode_scene]") {
  for (const char* size : {"1", "16", "64"}) {
    Shown shown(lab::Settings{{"page_size", std::string(size)}});
    const auto& trace = shown.trace();
    int pages = 0;
    for (const auto& request : trace.requests) pages += static_cast<int>(request.pages.size());
    int done = 0;
    for (int round = 0; round <= trace.rounds(); ++round) {
      const int step = static_cast<int>(trace.serving.size()) + round;
      if (round == 0) continue;
      const picture::Items entries = items_named(picture_at(*shown, step), "entry");
      CHECK(count_of(entries, State::done) >= done);
      done = count_of(entries, State::done);
      CHECK(done + count_of(entries, State::current) <= pages);
    }
    const picture::Items entries = items_named(picture_at(*shown, trace.answered()), "entry");
    CHECK(count_of(entries, State::done) + count_of(entries, State::current) == pages);
  }
}

TEST_CASE("Decode: a prefix is read for all requests that share it", "[decode_scene]") {
  Shown shown({{"prefix", std::int64_t{48}}});
  const auto& trace = shown.trace();
  const auto shared = std::find_if(trace.items.begin(), trace.items.end(),
                                   [](const ItemTrace& item) { return item.rows > 1; });
  REQUIRE(shared != trace.items.end());
  const picture::Picture picture = picture_at(*shown, trace.step_of(*shared, 0));
  const picture::Items entries = items_named(picture, "entry");
  const auto place = static_cast<std::size_t>(shared->first_page);
  for (int row = 0; row < trace.most_running; ++row) {
    const bool reads = row >= shared->row && row < shared->row + shared->rows;
    const std::size_t at = static_cast<std::size_t>(row * entries.per_row) + place;
    CHECK((entries.state[at] == State::current) == reads);
  }
  const picture::Spans& lanes = spans_named(picture, "lane");
  const auto id = static_cast<int>(shared - trace.items.begin());
  const auto lane = std::find(lanes.items.ids.begin(), lanes.items.ids.end(), id);
  REQUIRE(lane != lanes.items.ids.end());
  const std::string& name =
      lanes.items.names[static_cast<std::size_t>(std::distance(lanes.items.ids.begin(), lane))];
  CHECK(name.find(" +" + std::to_string(shared->rows - 1)) != std::string::npos);
}

TEST_CASE("Decode: lanes grow by a tile a round and end where the items end", "[decode_scene]") {
  Shown shown({{"splits", std::int64_t{0}}});
  const auto& trace = shown.trace();
  double before = 0;
  for (int round = 1; round <= trace.rounds(); ++round) {
    const picture::Picture picture =
        picture_at(*shown, static_cast<int>(trace.serving.size()) + round);
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
    const picture::Picture picture =
        picture_at(*shown, static_cast<int>(shown.trace().serving.size()) + 1);
    CHECK(count_of(items_named(picture, "query_head"), State::current) == shape.heads);
    CHECK(count_of(items_named(picture, "kv_head"), State::current) == shape.cached_heads);
    const picture::Picture still = picture_at(*shown, 1);
    CHECK(count_of(items_named(still, "query_head"), State::current) == 0);
  }
}

TEST_CASE("Decode: a stale page is crossed out once it has been read", "[decode_scene]") {
  Shown shown(lab::Settings{{"break", std::string("stale-page")}});
  const auto& trace = shown.trace();
  CHECK(count_of(items_named(picture_at(*shown, 8), "entry"), State::wrong) == 0);
  CHECK(count_of(items_named(picture_at(*shown, trace.answered()), "entry"), State::wrong) == 1);
}

TEST_CASE("Decode: what is reserved in one piece is more than the pages hold", "[decode_scene]") {
  Shown shown;
  for (int step = 1; step <= 8; ++step) {
    const picture::Picture picture = picture_at(*shown, step);
    const picture::Spans& stored = spans_named(picture, "stored");
    double wasted[2] = {0, 0};
    for (int i = 0; i < stored.items.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (stored.items.state[at] == State::wasted) {
        wasted[stored.lane[at]] += stored.end[at] - stored.begin[at];
      }
    }
    const Served& now = shown.trace().serving[static_cast<std::size_t>(step) - 1];
    CHECK(wasted[0] == (shown.trace().pool - now.free_pages()) * 16.0 - now.tokens());
    CHECK(wasted[1] > wasted[0]);
  }
}

TEST_CASE("Decode: a place of a table says what its page cost the traced item", "[decode_scene]") {
  Shown shown;
  const auto& trace = shown.trace();
  const auto said = [&](int step, int place) {
    return shown->explain({Cursor{step, 0}}, {"entry", trace.request, place});
  };
  CHECK(tests::contains(said(trace.answered(), 0), "1024 bytes in 32 sectors"));
  CHECK_FALSE(tests::contains(said(9, 0), "sectors"));
  CHECK(tests::contains(said(9, 0), "page " + std::to_string(trace.requests[0].pages[0])));
  CHECK(said(trace.answered(), 99).empty());
}

TEST_CASE("Decode: the event of the merge leads to the merge", "[decode_scene]") {
  Shown shown;
  REQUIRE(shown.trace().merged);
  const scenes::Event last = shown->events().back();
  CHECK(tests::contains(last.text, "merged"));
  CHECK(shown->sentence(last.at).starts_with("Merge"));
}
