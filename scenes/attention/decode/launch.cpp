// One launch of the kernel: the block tables that it reads through, and its blocks over their tiles.
#include "scenes/attention/decode/launch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenes/shared/questions.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using decode::ItemTrace, decode::Running, decode::Served, decode::StepTrace;
using words::counted;

namespace {

int pages_for(int tokens, int page_size) {
  return (tokens + page_size - 1) / page_size;
}

}  // namespace

// ---- where the cursor is ------------------------------------------------------------------------------

const Served* LaunchPicture::moment(Cursor cursor) const {
  const int step = std::min(cursor.tile, engine_steps());
  return step <= 0 ? nullptr : &trace_.serving[static_cast<std::size_t>(step) - 1];
}

bool LaunchPicture::contradicted() const {
  return fails(report_, "result") &&
         !words::close(static_cast<double>(trace_.o), trace_.exact_o, 1e-2);
}

int LaunchPicture::round(Cursor cursor) const {
  return std::clamp(cursor.tile - engine_steps(), 0, trace_.rounds());
}

int LaunchPicture::tiles_of(const ItemTrace& item, Cursor cursor) const {
  return std::clamp(round(cursor) - item.first_round, 0, item.tiles);
}

bool LaunchPicture::at_work(const ItemTrace& item, Cursor cursor) const {
  const int now = round(cursor);
  return !merging(cursor) && !looking_back(cursor) && now > item.first_round &&
         now <= item.first_round + item.tiles;
}

bool LaunchPicture::has_chosen(const ItemTrace& item) const {
  return is_of(item, trace_.request) && trace_.head >= item.first_head &&
         trace_.head < item.first_head + item.heads;
}

std::string LaunchPicture::requests_of(const ItemTrace& item) const {
  const std::string first = fmt::format("R{}", request_number(item.row));
  return item.rows == 1 ? first : fmt::format("{} +{}", first, item.rows - 1);
}

const StepTrace* LaunchPicture::step_now(Cursor cursor) const {
  if (merging(cursor) || looking_back(cursor)) return nullptr;
  for (const StepTrace& step : trace_.steps) {
    const ItemTrace& item = trace_.items[static_cast<std::size_t>(step.item)];
    if (trace_.step_of(item, step.tile) == cursor.tile) return &step;
  }
  return nullptr;
}

// ---- the picture --------------------------------------------------------------------------------------

std::vector<std::string> LaunchPicture::block_names() const {
  std::vector<std::string> names;
  for (int block = 0; block < trace_.blocks; ++block) {
    names.push_back(trace_.blocks <= kMostNamed ? fmt::format("block {}", block) : std::string());
  }
  return names;
}

std::vector<Axis> LaunchPicture::launch_axes() const {
  return {{.name = "place",
           .kind = Axis::band,
           .count = pages_for(trace_.limit, trace_.shape.page_size),
           .align = 0,
           .least_slot = 3},
          {.name = "row",
           .kind = Axis::band,
           .count = trace_.most_running,
           .align = 0,
           .least_slot = 4},
          {.name = "block",
           .kind = Axis::band,
           .count = trace_.blocks,
           .names = block_names(),
           .least_slot = 2},
          {.name = "round",
           .low = 0,
           .high = std::max(1.0, static_cast<double>(trace_.rounds())),
           .title = text("tiles"),
           .ticks = true}};
}

State LaunchPicture::page_state(int row, int place, Cursor cursor) const {
  if (!reading(cursor)) return State::plain;
  const int size = trace_.shape.page_size, tile = trace_.shape.tile;
  bool done = false;
  for (const ItemTrace& item : trace_.items) {
    if (!is_of(item, row) || place < item.first_page || place >= item.first_page + item.pages)
      continue;
    // Tokens of the item that lie in the page, against those of the tiles that are through.
    const int first = (place - item.first_page) * size;
    const int through = tiles_of(item, cursor) * tile;
    const bool now = at_work(item, cursor) && first < through && first + size > through - tile;
    if (now) return State::current;
    done = done || through >= std::min(first + size, item.tokens);
  }
  return done ? State::done : State::to_come;
}

Box LaunchPicture::tables(Cursor cursor) const {
  const Served* now = moment(cursor);
  const int longest = pages_for(trace_.limit, trace_.shape.page_size);
  const auto rows = now == nullptr ? 0 : static_cast<int>(now->running.size());
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
      cells.items.tone.each.push_back(there ? request_tone(one->request) : std::uint8_t{0});
      cells.items.glyph.each.push_back(there ? kSolid : kHollow);
      const bool stale = there && reading(cursor) && r == trace_.request &&
                         page_state(r, place, cursor) != State::to_come &&
                         std::find(one->pages.begin(), one->pages.end(), page) == one->pages.end();
      cells.items.state.each.push_back(stale   ? State::wrong
                                       : there ? page_state(r, place, cursor)
                                               : State::to_come);
    }
  }
  cells.items.about = {{"request", {0, requests}}};
  return box({"tables"}, {cells},
             text("block tables: a row a request, page by page", "block tables"),
             {.weight = 1.2f, .least_width = 8, .least_height = 2.1f});
}

Box LaunchPicture::lanes(Cursor cursor) const {
  SpanList list("lane", "round", "block");
  const int now = round(cursor);
  std::vector<int> last(static_cast<std::size_t>(trace_.blocks));
  for (std::size_t i = 0; i < trace_.items.size(); ++i) {
    const ItemTrace& item = trace_.items[i];
    const int through = tiles_of(item, cursor);
    if (through == 0) continue;
    int& end = last[static_cast<std::size_t>(item.block)];
    end = std::max(end, item.first_round + through);
    const int request = request_number(item.row);
    std::string name = fmt::format("{} head {}", requests_of(item), item.kv_head);
    if (item.splits > 1) name += fmt::format(" part {}", item.split);
    list.add(static_cast<int>(i), item.block, item.first_round, item.first_round + through,
             at_work(item, cursor) ? State::current : State::plain, std::move(name), request);
    if (has_chosen(item) && trace_.blocks <= kMostNamed) {
      list.spans.items.flags.each.resize(static_cast<std::size_t>(list.spans.items.count), kNone);
      list.spans.items.flags.each.back() = kPicked;
    }
  }
  int idle = static_cast<int>(trace_.items.size());
  for (int block = 0; block < trace_.blocks; ++block) {
    const int end = last[static_cast<std::size_t>(block)];
    if (end < now) list.add(idle, block, end, now, State::to_come, "idle", -1);
    ++idle;
  }
  if (!list.spans.items.flags.each.empty()) {
    list.spans.items.flags.each.resize(static_cast<std::size_t>(list.spans.items.count), kNone);
  }
  return labelled(
      {"lanes"}, box({"lane_box"}, {list.made(now)}, {}, {.least_height = 2, .left = kLaneLeft}),
      text(fmt::format("{} of one launch, tile by tile", counted(trace_.blocks, "block")),
           counted(trace_.blocks, "block")),
      {.weight = 1, .least_width = 9, .least_height = 3.8f});
}

std::string LaunchPicture::explain_entry(Cursor cursor, int row, int place) const {
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
  const ItemTrace& traced = trace_.items[static_cast<std::size_t>(trace_.traced_item)];
  const bool through = reading(cursor) && cursor.tile >= trace_.end_of(traced);
  for (const decode::GatherTrace& gather : trace_.gathers) {
    if (!through || !is_of(traced, row) || gather.page != page) continue;
    text += fmt::format("\nK of head {}: {} bytes in {} of 32 bytes", traced.kv_head, gather.bytes,
                        counted(gather.sectors, "sector"));
    if (!gather.owned) text += "\nthe request has not got this page";
  }
  return text;
}

std::optional<Question> LaunchPicture::busy_question(int round) const {
  int before = 0, busy = 0;
  for (const ItemTrace& item : trace_.items) {
    before += round - 1 > item.first_round && round - 1 <= item.first_round + item.tiles ? 1 : 0;
    busy += round > item.first_round && round <= item.first_round + item.tiles ? 1 : 0;
  }
  if (round < 2 || busy == before) return std::nullopt;
  return of_kind("busy-blocks",
                 ask_count(fmt::format("{} took a tile. How many will take one more?",
                                       counted(before, "block")),
                           busy, {before, trace_.blocks, before / 2, busy + 1, busy + 2, 0},
                           fmt::format("the others have come to the end of their keys, of which "
                                       "the longest block has {}.",
                                       counted(trace_.rounds(), "tile"))));
}

}  // namespace tilestep::scenes
