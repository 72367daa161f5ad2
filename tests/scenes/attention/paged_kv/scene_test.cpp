// What only the picture of a paged cache does, held to the trace that it is drawn from.
#include "scenes/attention/paged_kv/scene.hpp"

#include <algorithm>
#include <bit>
#include <set>

#include "tests/scenes/marks.hpp"

using namespace tilestep;
using paged_kv::GatherTrace, paged_kv::ItemTrace, paged_kv::Served;
using picture::Key, picture::State;
using scenes::Cursor, scenes::PagedKvScene;
using tests::count_of, tests::items_named, tests::mark_named, tests::picture_at;
using Shown = tests::Shown<PagedKvScene>;

TEST_CASE("Paged cache: the pool on show is the engine's, step by step", "[paged_kv_scene]") {
  for (const std::int64_t prefix : {0, 48}) {
    Shown shown(lab::Settings{{"prefix", prefix}});
    for (int step = 1; step <= static_cast<int>(shown.trace().serving.size()); ++step) {
      const Served& now = shown.trace().serving[static_cast<std::size_t>(step) - 1];
      const picture::Items pages = items_named(picture_at(*shown, step), "page");
      const picture::Items filled = items_named(picture_at(*shown, step), "filled");
      REQUIRE(pages.count == shown.trace().pool);
      int free = 0;
      for (std::size_t page = 0; page < now.holders.size(); ++page) {
        free += pages.glyph[page] == picture::kHollow ? 1 : 0;
        std::string name = now.holders[page] > 1    ? "×" + std::to_string(now.holders[page])
                           : now.holders[page] == 1 ? "R" + std::to_string(now.owner[page])
                                                    : "";
        CHECK(filled.value[page] ==
              (now.holders[page] > 0 ? static_cast<float>(now.filled[page]) : 0));
        CHECK(pages.names[page] == name);
      }
      CHECK(free == now.free_pages());
    }
  }
}

TEST_CASE("Paged cache: every page of every request is read once, and then done",
          "[paged_kv_scene]") {
  for (const char* size : {"1", "16", "64"}) {
    Shown shown(lab::Settings{{"page_size", std::string(size)}});
    const auto& trace = shown.trace();
    int pages = 0;
    for (const auto& request : trace.requests) pages += static_cast<int>(request.pages.size());
    int done = 0;
    for (int step = trace.engine_steps() + 1; step <= trace.length(); ++step) {
      const picture::Items entries = items_named(picture_at(*shown, step), "entry");
      CHECK(count_of(entries, State::done) >= done);
      done = count_of(entries, State::done);
      CHECK(done + count_of(entries, State::current) <= pages);
    }
    const picture::Items entries = items_named(picture_at(*shown, trace.length()), "entry");
    CHECK(count_of(entries, State::done) + count_of(entries, State::current) == pages);
  }
}

TEST_CASE("Paged cache: a prefix is read for all requests that share it", "[paged_kv_scene]") {
  Shown shown(lab::Settings{{"prefix", std::int64_t{48}}});
  const auto& trace = shown.trace();
  const auto shared = std::find_if(trace.items.begin(), trace.items.end(),
                                   [](const ItemTrace& item) { return item.rows > 1; });
  REQUIRE(shared != trace.items.end());
  const auto step = trace.step_of(static_cast<int>(shared - trace.items.begin()));
  const picture::Picture picture = picture_at(*shown, step);
  const picture::Items entries = items_named(picture, "entry");
  const picture::Items pages = items_named(picture, "page");
  for (int place = shared->first_page; place < shared->first_page + shared->pages; ++place) {
    for (int row = 0; row < trace.most_running; ++row) {
      const bool reads = row >= shared->row && row < shared->row + shared->rows;
      const auto at = static_cast<std::size_t>(row * entries.per_row + place);
      CHECK((entries.state[at] == State::current) == reads);
    }
    const int page = trace.requests[0].pages[static_cast<std::size_t>(place)];
    CHECK(pages.state[static_cast<std::size_t>(page)] == State::current);
  }
  CHECK(count_of(pages, State::current) == shared->pages);
  CHECK(tests::contains(shown->sentence({step, 0}),
                        "for the " + std::to_string(shared->rows) + " requests"));
}

TEST_CASE("Paged cache: a stale page is crossed out once it has been read", "[paged_kv_scene]") {
  Shown shown(lab::Settings{{"break", std::string("stale-page")}});
  const auto& trace = shown.trace();
  CHECK(count_of(items_named(picture_at(*shown, 8), "entry"), State::wrong) == 0);
  const picture::Picture end = picture_at(*shown, trace.length());
  CHECK(count_of(items_named(end, "entry"), State::wrong) == 1);

  // An arrow leads to the place in the table of who has the page, who is named.
  const auto& owners = mark_named<picture::Links>(end, "owner");
  REQUIRE(owners.items.count == 1);
  CHECK(owners.from.front().key.i == 0);
  const Key to = owners.to.front().key;
  REQUIRE(to.name == picture::Name("entry"));
  const auto& has = trace.serving.back().running[static_cast<std::size_t>(to.i)];
  CHECK(has.pages[static_cast<std::size_t>(to.j)] == trace.result.stale_page);
  const std::string said = shown->sentence({trace.step_of(trace.traced_item), 0});
  CHECK(tests::contains(said, "R" + std::to_string(has.request) + "'s context"));
  CHECK(mark_named<picture::Links>(picture_at(*shown, 8), "owner").items.count == 0);
}

TEST_CASE("Paged cache: what is reserved in one piece is more than the pages hold",
          "[paged_kv_scene]") {
  Shown shown;
  for (int step = 1; step <= 8; ++step) {
    const picture::Picture picture = picture_at(*shown, step);
    const picture::Spans& stored = mark_named<picture::Spans>(picture, "stored");
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

TEST_CASE("Paged cache: a place of a table says what its page cost the traced item",
          "[paged_kv_scene]") {
  Shown shown;
  const auto& trace = shown.trace();
  const auto said = [&](int step, int place) {
    return shown->explain({Cursor{step, 0}}, {"entry", 0, place});
  };
  CHECK(tests::contains(said(trace.length(), 0), "1024 bytes in 32 sectors"));
  CHECK_FALSE(tests::contains(said(8, 0), "sectors"));
  CHECK(tests::contains(said(8, 0), "page " + std::to_string(trace.requests[0].pages[0])));
  CHECK(said(trace.length(), 99).empty());
}

TEST_CASE("Paged cache: the sectors on show are those that the kernel's copies were traced in",
          "[paged_kv_scene]") {
  for (const std::string size : {"1", "4", "16"}) {
    for (const std::string format : {"bf16", "int4"}) {
      CAPTURE(size, format);
      Shown shown(lab::Settings{{"page_size", size}, {"kv_dtype", format}});
      const auto& trace = shown.trace();
      const int end = trace.step_of(trace.traced_item);
      const picture::Picture picture = picture_at(*shown, end);
      const auto& strip = mark_named<picture::Strip>(picture, "gather_sector");
      REQUIRE(strip.items.count > 0);
      // In the traced pages, at the place of K/V head 0. A piece of half a sector begins in the middle of one.
      const std::int64_t row = trace.shape.key * paged_kv::bits_of(trace.shape.kv_dtype) / 8;
      const std::int64_t piece_bytes = row * trace.shape.page_size;
      const auto stands_there = [&](std::size_t sector, const GatherTrace& gather) {
        const std::int64_t first = gather.page * 2 * piece_bytes;
        const std::uint64_t used = strip.used[sector];
        return strip.address[sector] + std::countr_zero(used) == first;
      };
      // As many sectors and used bytes of each page as were traced; the last page may be cut off.
      std::size_t at = 0;
      for (const GatherTrace& gather : trace.gathers) {
        std::int64_t bytes = 0;
        int sectors = 0;
        for (; sectors < gather.sectors && at < strip.address.size(); ++sectors, ++at) {
          if (sectors > 0) CHECK(strip.address[at] == strip.address[at - 1] + 32);
          if (sectors == 0) CHECK(stands_there(at, gather));
          for (int byte = 0; byte < 32; ++byte) bytes += strip.used[at] >> byte & 1;
        }
        if (at == strip.address.size()) break;
        CHECK(bytes == gather.bytes);
      }
      CHECK(at == strip.address.size());
      std::set<std::int64_t> lines;
      for (const std::int64_t address : strip.address) lines.insert(address / 128);
      CHECK(lines.size() <= 8);
      // The formula's row of this page size says what was traced of a full page.
      const GatherTrace& first = trace.gathers.front();
      const paged_kv::Piece piece =
          paged_kv::piece_of(paged_kv::knob_table().params(shown.report().params).layer(),
                             trace.shape.kv_dtype, trace.shape.page_size);
      if (first.tokens == trace.shape.page_size) CHECK(first.bytes == piece.bytes);
      if (first.tokens == trace.shape.page_size) CHECK(first.sectors == piece.sectors);
    }
  }
}

TEST_CASE("Paged cache: a stale page's sectors are crossed out", "[paged_kv_scene]") {
  Shown shown(lab::Settings{{"break", std::string("stale-page")}});
  const picture::Picture picture = picture_at(*shown, shown.trace().length());
  const auto& strip = mark_named<picture::Strip>(picture, "gather_sector");
  int wrong = 0, sectors = 0;
  for (const auto state : strip.items.state.each) wrong += state == picture::State::wrong ? 1 : 0;
  for (const GatherTrace& gather : shown.trace().gathers) {
    if (!gather.owned) sectors += gather.sectors;
  }
  CHECK(wrong == sectors);
  CHECK(sectors > 0);
}
