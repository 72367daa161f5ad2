// The picture of the lesson on a paged cache: the pool, the block tables, the engine's requests and the waste; then
// where in memory a block's keys are.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "scenes/attention/paged_kv/scene.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using paged_kv::GatherTrace, paged_kv::ItemTrace, paged_kv::Piece, paged_kv::Running,
    paged_kv::Served;
using words::counted, words::number;

namespace {

constexpr std::int64_t kSector = 32, kLine = 128;
constexpr int kMostLines = 8;      ///< of the gather that are drawn
constexpr float kLaneLeft = 4.5f;  ///< margin for the lanes' names, in heights of a line
constexpr int kTile = 16;          ///< tokens that a block takes at a time
constexpr std::size_t kRows = 1;   ///< of the axes: that of the tables

int pages_for(int tokens, int page_size) {
  return (tokens + page_size - 1) / page_size;
}

int place_of(const std::vector<int>& pages, int page) {
  return static_cast<int>(std::find(pages.begin(), pages.end(), page) - pages.begin());
}

std::vector<std::string> request_names(int count) {
  std::vector<std::string> names;
  for (int r = 0; r < count; ++r) names.push_back(fmt::format("R{}", r));
  return names;
}

}  // namespace

Extent PagedKvScene::extent() const {
  const double tokens = static_cast<double>(trace_.pool) * trace_.shape.page_size;
  return {{{.name = "place",
            .kind = Axis::band,
            .count = pages_for(trace_.limit, trace_.shape.page_size),
            .align = 0,
            .least_slot = 3},
           {.name = "row",
            .kind = Axis::band,
            .count = trace_.most_running,
            .names = std::vector<std::string>(static_cast<std::size_t>(trace_.most_running)),
            .align = 0,
            .least_slot = 4},
           {.name = "page_number",
            .kind = Axis::band,
            .count = trace_.pool,
            .title = text("page"),
            .ticks = true,
            .least_slot = 1},
           {.name = "in_page", .high = 1.2 * trace_.shape.page_size},
           {.name = "request",
            .kind = Axis::band,
            .count = trace_.coming,
            .names = request_names(trace_.coming),
            .least_slot = 3},
           {.name = "step",
            .low = 0,
            .high = std::max(1.0, static_cast<double>(engine_steps())),
            .title = text("step"),
            .ticks = true},
           {.name = "kind", .kind = Axis::band, .count = 2, .names = {"pages", "one piece"}},
           {.name = "tokens",
            .high = rounded(0, std::max(tokens, 1.0 * trace_.most_running * trace_.limit)).second,
            .title = text("tokens"),
            .ticks = true}}};
}

Picture PagedKvScene::picture(const Extent& extent, const View& view) const {
  const Cursor cursor = view.cursor;
  std::vector<Axis> axes = extent.axes;
  if (const Served* now = moment(cursor)) {
    std::vector<std::string>& rows = axes[kRows].names;
    for (std::size_t r = 0; r < std::min(rows.size(), now->running.size()); ++r) {
      rows[r] = fmt::format("R{}", now->running[r].request);
    }
  }
  std::vector<Box> below = reading(cursor) ? std::vector{gather(cursor), page_sizes()}
                                           : std::vector{timeline(cursor), waste(cursor)};
  return {
      {marked(sentence(cursor), symbols(view))},
      std::move(axes),
      column({"paged_kv"},
             {row({"memory"}, {pool(cursor), tables(cursor)},
                  {.weight = 1.8f, .least_height = 2.6f, .place = Place::device_memory}),
              // Guesses are written here, above the boxes below.
              box({"gap"}, {}, {}, {.weight = 0, .least_height = 0.9f}),
              row({"below"}, std::move(below), {.rank = 1, .weight = 1.5f, .least_height = 3.6f})},
             {.even = true}),
      {"pool", "tables", "timeline", "gather"}};
}

// ---- memory -------------------------------------------------------------------------------------------------

State PagedKvScene::page_state(int row, int place, Cursor cursor) const {
  if (!reading(cursor)) return State::plain;
  for (std::size_t i = 0; i < trace_.items.size(); ++i) {
    const ItemTrace& item = trace_.items[i];
    const bool of = row >= item.row && row < item.row + item.rows;
    if (!of || place < item.first_page || place >= item.first_page + item.pages) continue;
    const int step = trace_.step_of(static_cast<int>(i));
    return step == cursor.tile ? State::current : step < cursor.tile ? State::done : State::to_come;
  }
  return State::to_come;
}

/// A column per page, its tokens against its room, over the request that holds it; outlines are free.
Box PagedKvScene::pool(Cursor cursor) const {
  const Served* now = moment(cursor);
  const int size = trace_.shape.page_size;
  Cells cells{items("page", trace_.pool)};
  Bars room{items("room", std::vector<float>(static_cast<std::size_t>(trace_.pool), float(size)))};
  Bars filled{items("filled", trace_.pool)};
  cells.x = room.x = filled.x = "page_number";
  room.y = filled.y = "in_page";
  room.items.state.all = State::to_come;
  std::vector<int> owners;
  for (int page = 0; page < trace_.pool; ++page) {
    const auto i = static_cast<std::size_t>(page);
    const int owner = now == nullptr ? -1 : now->owner[i];
    const int holders = now == nullptr ? 0 : now->holders[i];
    owners.push_back(owner);
    cells.items.names.push_back(owner < 0     ? std::string()
                                : holders > 1 ? fmt::format("×{}", holders)
                                              : fmt::format("R{}", owner));
    cells.items.tone.each.push_back(tone_of(owner));
    cells.items.glyph.each.push_back(owner < 0 ? kHollow : kSolid);
    const int tokens = owner < 0 ? 0 : now->filled[i];
    filled.items.value.each.push_back(float(tokens));
    filled.items.names.push_back(tokens == 0 || reading(cursor) ? std::string()
                                                                : std::to_string(tokens));
  }
  cells.items.about = filled.items.about = {{"request", {0, owners}}};
  filled.items.tone = cells.items.tone;
  // The pages that the current step reads.
  if (const ItemTrace* item = item_now(cursor)) {
    cells.items.state.each.assign(static_cast<std::size_t>(trace_.pool), State::plain);
    const auto& table = trace_.requests[static_cast<std::size_t>(item->row)].pages;
    for (int place = item->first_page; place < item->first_page + item->pages; ++place) {
      cells.items.state.each[static_cast<std::size_t>(table[static_cast<std::size_t>(place)])] =
          State::current;
    }
    filled.items.state = cells.items.state;
  }
  const int free = now == nullptr ? trace_.pool : now->free_pages();
  return labelled({"pool"},
                  {box({"fill"}, {room, filled}, {}, {.least_height = 1.4f, .left = 1.6f}),
                   box({"owners"}, {cells}, {}, {.weight = 0, .least_height = 1.1f, .left = 1.6f})},
                  text(fmt::format("pool: {} of {}, {} free", counted(trace_.pool, "page"),
                                   counted(size, "token"), free),
                       fmt::format("{} free", counted(free, "page")), "pool"),
                  {.close = true, .weight = 1.6f, .least_width = 7, .least_height = 2.6f});
}

Box PagedKvScene::tables(Cursor cursor) const {
  const Served* now = moment(cursor);
  const int longest = pages_for(trace_.limit, trace_.shape.page_size);
  const auto rows = now == nullptr ? 0 : static_cast<int>(now->running.size());
  Links owners{items("owner", 0)};
  owners.items.state = {State::wrong};
  owners.items.glyph = {1};
  Cells cells{items("entry", 0)};
  cells.x = "place";
  cells.y = "row";
  cells.columns = longest;
  cells.items.count = longest * trace_.most_running;
  cells.items.per_row = longest;
  std::vector<int> requests;
  for (int r = 0; r < trace_.most_running; ++r) {
    const Running* one = r < rows ? &now->running[static_cast<std::size_t>(r)] : nullptr;
    // The kernel's own tables, which a broken run changes.
    const std::vector<int>* pages = one == nullptr ? nullptr : &one->pages;
    if (reading(cursor))
      pages = r < rows ? &trace_.requests[static_cast<std::size_t>(r)].pages : nullptr;
    for (int place = 0; place < longest; ++place) {
      const bool there = pages != nullptr && place < static_cast<int>(pages->size());
      const int page = there ? (*pages)[static_cast<std::size_t>(place)] : -1;
      requests.push_back(one == nullptr ? -1 : one->request);
      cells.items.names.push_back(there ? std::to_string(page) : "");
      cells.items.tone.each.push_back(there ? tone_of(one->request) : std::uint8_t{0});
      cells.items.glyph.each.push_back(there ? kSolid : kHollow);
      const bool wrong = there && stale(r, place, cursor);
      cells.items.state.each.push_back(wrong   ? State::wrong
                                       : there ? page_state(r, place, cursor)
                                               : State::to_come);
      if (!wrong) continue;
      // To its owner: the entry in that table, or the page where no running request has it.
      const int row = row_with(page, cursor);
      Key owner{"page", page};
      if (row >= 0) owner = {"entry", row, place_of(now->running[row].pages, page)};
      ++owners.items.count;
      owners.from.push_back({{"entry", r, place}});
      owners.to.push_back({owner});
    }
  }
  cells.items.about = {{"request", {0, requests}}};
  return labelled({"tables"}, box({"table_rows"}, {cells, owners}, {}, {.left = 2}),
                  text("block tables: one row per request", "block tables"),
                  {.weight = 1.2f, .least_width = 8, .least_height = 2.1f});
}

// ---- the engine -------------------------------------------------------------------------------------------

/// Running requests, each from admission until it finishes or is preempted.
Box PagedKvScene::timeline(Cursor cursor) const {
  SpanList list("runs", "step", "request", "request");
  const int now = std::min(cursor.tile, engine_steps());
  for (int request = 0; request < trace_.coming; ++request) {
    int begin = -1;
    for (int step = 0; step <= now; ++step) {
      bool runs = false;
      if (step < now) {
        for (const Running& one : trace_.serving[static_cast<std::size_t>(step)].running) {
          runs = runs || one.request == request;
        }
      }
      if (runs && begin < 0) begin = step;
      if (runs || begin < 0) continue;
      const State state = step == now && now > 0 ? State::current : State::plain;
      list.add({request, double(begin), double(step), state, category_tone(request, trace_.coming),
                fmt::format("R{}", request), request, request * paged_kv::kServingSteps + begin});
      begin = -1;
    }
  }
  const Served* moment_now = moment(cursor);
  const std::string waiting =
      moment_now == nullptr
          ? counted(trace_.coming, "request") + " to come"
          : fmt::format("{} running, {} waiting, {} finished", moment_now->running.size(),
                        moment_now->waiting, moment_now->finished);
  return labelled({"timeline"},
                  box({"runs_box"}, {list.made(now)}, {}, {.least_height = 2, .left = 2.5f}),
                  text("requests: " + waiting, waiting, "requests"),
                  {.weight = 1, .least_width = 9, .least_height = 3.8f});
}

/// Slots of the pool with tokens, and slots reserved in vain: in pages, and with a contiguous block for each request.
Box PagedKvScene::waste(Cursor cursor) const {
  SpanList list("stored", "tokens", "kind", "request");
  const auto add = [&](int id, int lane, double begin, double stored, double held, int request) {
    const std::uint8_t tone = category_tone(request, trace_.coming);
    list.add({lane, begin, begin + stored, State::plain, tone, fmt::format("R{}", request), request,
              id, 1});
    list.add({lane, begin + stored, begin + held, State::wasted, tone, "", request, id + 1, 1});
  };
  const Served* now = moment(cursor);
  double end = 0, in_pages = 0;
  if (now != nullptr) {
    const double held =
        static_cast<double>(trace_.pool - now->free_pages()) * trace_.shape.page_size;
    // By the request that holds the pages: the first one's where they are shared.
    double used = 0;
    for (int request = 0; request < trace_.coming; ++request) {
      double stored = 0, held_by = 0;
      for (std::size_t page = 0; page < now->owner.size(); ++page) {
        if (now->owner[page] != request) continue;
        stored += now->filled[page];
        held_by += trace_.shape.page_size;
      }
      if (held_by <= 0) continue;
      add(2 * request, 0, used, stored, held_by, request);
      used += held_by;
    }
    in_pages = held;
    int number_of = 2 * trace_.coming;
    double at = 0;
    for (const Running& one : now->running) {
      add(number_of, 1, at, one.tokens, std::max(trace_.limit, one.tokens), one.request);
      at += std::max(trace_.limit, one.tokens);
      number_of += 2;
    }
    end = std::max(end, at);
  }
  const auto said = [](int lane, double to) {
    return lane_end({"held_end", lane}, "tokens", "kind", to, text(number(to, 0)));
  };
  Box made = box({"stored_box"}, {list.made(std::max(end, in_pages))}, {},
                 {.least_height = 2, .left = kLaneLeft, .right = 2});
  if (now != nullptr) made.marks.insert(made.marks.end(), {said(0, in_pages), said(1, end)});
  const double pool = static_cast<double>(trace_.pool) * trace_.shape.page_size;
  made.marks.emplace_back(
      Rule{.key = {"pool_end"}, .axis = "tokens", .at = pool, .label = text("pool")});
  return labelled({"waste"}, std::move(made),
                  text("tokens stored; hatched: held but empty", "tokens stored", "waste"),
                  {.rank = 1, .weight = 1, .least_width = 9, .least_height = 3.8f});
}

// ---- the gather -------------------------------------------------------------------------------------------

/// The sectors that the traced item's keys came from, page by page, as far as there is room for their lines.
Strip PagedKvScene::sectors() const {
  const paged_kv::Shape& shape = trace_.shape;
  const std::int64_t piece =
      std::int64_t{shape.key} * paged_kv::bits_of(shape.kv_dtype) / 8 * shape.page_size;
  Strip strip{items("gather_sector", 0)};
  std::int64_t line = -1;
  int lines = 0;
  // A page that is not the request's comes first.
  const auto stale = std::find_if(trace_.gathers.begin(), trace_.gathers.end(),
                                  [](const GatherTrace& one) { return !one.owned; });
  const auto from_gather = stale == trace_.gathers.end() ? trace_.gathers.begin() : stale;
  for (auto one = from_gather; one != trace_.gathers.end(); ++one) {
    const GatherTrace& gather = *one;
    const std::int64_t first = (std::int64_t{gather.page} * shape.cached_heads) * piece;
    const std::int64_t end = first + gather.bytes;
    for (std::int64_t at = first / kSector * kSector; at < end; at += kSector) {
      if (at / kLine != line) {
        line = at / kLine;
        if (++lines > kMostLines) return strip;
      }
      const auto from = static_cast<int>(std::max(at, first) - at);
      const auto to = static_cast<int>(std::min(at + kSector, end) - at);
      strip.address.push_back(at);
      strip.used.push_back(((std::uint64_t{1} << (to - from)) - 1) << from);
      strip.items.state.each.push_back(gather.owned ? State::plain : State::wrong);
      ++strip.items.count;
    }
  }
  return strip;
}

/// Where the traced item found its keys.
Box PagedKvScene::gather(Cursor cursor) const {
  const ItemTrace& item = traced();
  const std::string whose = fmt::format("K of {}, head 0", requests_of(item));
  Strip strip = gathered(cursor) ? sectors() : Strip{items("gather_sector", 0)};
  const int request = trace_.requests[static_cast<std::size_t>(item.row)].request;
  strip.items.tone.all = tone_of(request);
  strip.items.about = {{"request", {request, {}}}};
  Text label = text(whose + ": not yet gathered", whose);
  if (gathered(cursor)) {
    std::int64_t sectors = 0, bytes = 0;
    for (const GatherTrace& one : trace_.gathers) {
      sectors += one.sectors;
      bytes += one.bytes;
    }
    const double used =
        sectors > 0 ? static_cast<double>(bytes) / static_cast<double>(kSector * sectors) : 1;
    label = text(fmt::format("{}: {}, {} of each used", whose, counted(sectors, "sector"),
                             words::percent(used)),
                 fmt::format("{}, {} used", counted(sectors, "sector"), words::percent(used)),
                 counted(sectors, "sector"));
  }
  return labelled({"gather"}, box({"sectors"}, {std::move(strip)}, {}, {.least_height = 1.2f}),
                  std::move(label), {.weight = 1, .least_width = 9, .least_height = 3.8f});
}

/// For each page size: sectors that hold one head's keys, how much of them is used, pages per tile.
Box PagedKvScene::page_sizes() const {
  constexpr int kColumns = 3;
  const paged_kv::LayerShape layer = params_.layer();
  Ledger table{items("page_size", 0), {}, {}};
  table.columns = {text("sectors"), text("used"), text("look-ups", "asks")};
  for (const paged_kv::PageSize size : all_of<paged_kv::PageSize>()) {
    const int tokens = tokens_of(size);
    const Piece piece = paged_kv::piece_of(layer, trace_.shape.kv_dtype, tokens);
    table.rows.push_back(text(std::to_string(tokens)));
    table.items.names.push_back(words::significant(piece.sectors, 4));
    table.items.names.push_back(words::percent(piece.of_sectors()));
    table.items.names.push_back(std::to_string(std::max(1, kTile / tokens)));
    const bool own = tokens == trace_.shape.page_size;
    table.items.flags.each.insert(table.items.flags.each.end(), kColumns,
                                  static_cast<std::uint8_t>(own ? kPicked : kNone));
  }
  table.items.count = static_cast<int>(table.items.names.size());
  table.items.per_row = kColumns;
  return labelled({"page_size_box"},
                  box({"page_size_table"}, {std::move(table)}, {}, {.least_height = 4}),
                  text("tokens per page: one head's keys (derived)", "tokens per page", "pages"),
                  {.rank = 2, .weight = 1, .least_width = 9, .least_height = 6.8f});
}

// ---- explanations -------------------------------------------------------------------------------------------

std::string PagedKvScene::explain_entry(Cursor cursor, int row, int place) const {
  const Served* now = moment(cursor);
  if (now == nullptr || row < 0 || row >= std::ssize(now->running)) return {};
  const Running& one = now->running[static_cast<std::size_t>(row)];
  const std::vector<int>& pages =
      reading(cursor) ? trace_.requests[static_cast<std::size_t>(row)].pages : one.pages;
  if (place < 0 || place >= std::ssize(pages)) return {};
  const int page = pages[static_cast<std::size_t>(place)];
  const int first = place * trace_.shape.page_size;
  std::string text = fmt::format("R{}, tokens {}–{}: page {}", one.request, first,
                                 std::min(first + trace_.shape.page_size, one.tokens) - 1, page);
  for (const paged_kv::GatherTrace& gather : trace_.gathers) {
    if (!gathered(cursor) || row < traced().row || row >= traced().row + traced().rows ||
        gather.page != page)
      continue;
    text += fmt::format("\nK of head 0: {} bytes in {} of 32 bytes", gather.bytes,
                        counted(gather.sectors, "sector"));
    if (!gather.owned) text += "\nnot a page of this request";
  }
  return text;
}

std::string PagedKvScene::explain(const View& view, const Key& key) const {
  if (key.is({"page_size"}) && key.i >= 0 &&
      key.i < static_cast<int>(count_of<paged_kv::PageSize>())) {
    const int tokens = tokens_of(static_cast<paged_kv::PageSize>(key.i));
    const Piece piece = paged_kv::piece_of(params_.layer(), trace_.shape.kv_dtype, tokens);
    return fmt::format(
        "pages of {}\none head's keys: {:.0f} contiguous bytes, {} of 32 bytes\na tile of {} "
        "tokens looks up {}\nby formula",
        counted(tokens, "token"), piece.bytes,
        piece.sectors == 1 ? "1 sector" : words::significant(piece.sectors, 4) + " sectors", kTile,
        counted(std::max(1, kTile / tokens), "page"));
  }
  if (key.is({"gather_sector"})) {
    const Strip strip = sectors();
    if (key.i < 0 || key.i >= strip.items.count) return {};
    const auto at = static_cast<std::size_t>(key.i);
    return fmt::format("sector at byte {} of K\n{} of 32 bytes used", strip.address[at],
                       std::popcount(strip.used[at]));
  }
  const Served* now = moment(view.cursor);
  if (key.is({"page"}) && key.i >= 0 && key.i < trace_.pool) {
    const auto page = static_cast<std::size_t>(key.i);
    if (now == nullptr || now->holders[page] == 0) return fmt::format("page {}\nfree", key.i);
    std::string text = fmt::format("page {}\n{} of {} slots have a token", key.i, now->filled[page],
                                   trace_.shape.page_size);
    return text + (now->holders[page] == 1 ? fmt::format("\nof R{}", now->owner[page])
                                           : fmt::format("\nin {} block tables, the first R{}'s",
                                                         now->holders[page], now->owner[page]));
  }
  if (key.is({"entry"})) return explain_entry(view.cursor, key.i, key.j);
  return {};
}

}  // namespace tilestep::scenes
