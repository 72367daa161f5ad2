// One launch of the kernel: the cache it reads, and its blocks over their tiles.
#include <fmt/format.h>

#include <algorithm>

#include "scenes/attention/decode/scene.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using decode::ItemTrace, decode::StepTrace;
using words::counted;

// ---- where the cursor is ------------------------------------------------------------------------------

bool DecodeScene::contradicted() const {
  return fails(report_, "result") &&
         !words::close(static_cast<double>(trace_.o), trace_.exact_o, 1e-2);
}

int DecodeScene::round(Cursor cursor) const {
  return std::clamp(cursor.tile, 0, trace_.rounds());
}

int DecodeScene::tiles_of(const ItemTrace& item, Cursor cursor) const {
  return std::clamp(round(cursor) - item.first_round, 0, item.tiles);
}

bool DecodeScene::at_work(const ItemTrace& item, Cursor cursor) const {
  const int now = round(cursor);
  return !merging(cursor) && !looking_back(cursor) && now > item.first_round &&
         now <= item.first_round + item.tiles;
}

bool DecodeScene::has_chosen(const ItemTrace& item) const {
  return item.request == trace_.request && trace_.head >= item.first_head &&
         trace_.head < item.first_head + item.heads;
}

const StepTrace* DecodeScene::step_now(Cursor cursor) const {
  if (merging(cursor) || looking_back(cursor)) return nullptr;
  for (const StepTrace& step : trace_.steps) {
    const ItemTrace& item = trace_.item_of(step);
    if (trace_.step_of(item, step.tile) == cursor.tile) return &step;
  }
  return nullptr;
}

// ---- the picture --------------------------------------------------------------------------------------

std::vector<std::string> DecodeScene::block_names() const {
  std::vector<std::string> names;
  for (int block = 0; block < trace_.blocks; ++block) {
    if (trace_.blocks <= kMostNamed) {
      names.push_back(fmt::format("block {}", block));
      continue;
    }
    const auto first = std::ranges::find(trace_.items, block, &ItemTrace::block);
    names.push_back(first == trace_.items.end() ? "" : fmt::format("R{}", first->request));
  }
  return names;
}

std::vector<Axis> DecodeScene::launch_axes() const {
  std::vector<std::string> names;
  for (int r = 0; r < requests(); ++r) names.push_back(fmt::format("R{}", r));
  return {{.name = "place",
           .kind = Axis::band,
           .count = cells_for(std::ranges::max(trace_.tokens)),
           .align = 0,
           .least_slot = 3},
          {.name = "row",
           .kind = Axis::band,
           .count = requests(),
           .names = names,
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
           .step = trace_.rounds() < 10 ? 1.0 : 0.0,  // no half tiles
           .title = text("tiles"),
           .ticks = true}};
}

State DecodeScene::tile_state(int request, int place, Cursor cursor) const {
  if (!reading(cursor)) return State::plain;
  // Over all K/V heads: done once some block has passed it and none is on it now.
  State state = State::to_come;
  const int tile = trace_.shape.tile;
  for (const ItemTrace& item : trace_.items) {
    const int at = place * kCell - item.first;
    if (item.request != request || at < 0 || at >= item.tokens) continue;
    const int through = tiles_of(item, cursor);
    if (at_work(item, cursor) && at / tile == through - 1) return State::current;
    if (at / tile < through) state = State::done;
  }
  return state;
}

Box DecodeScene::cache(Cursor cursor) const {
  const int longest = cells_for(std::ranges::max(trace_.tokens));
  const int rows = requests();
  Cells cells{items("entry", longest * rows)};
  cells.x = "place";
  cells.y = "row";
  cells.columns = longest;
  cells.items.per_row = longest;
  std::vector<int> requests;
  for (int request = 0; request < rows; ++request) {
    const int tokens = trace_.tokens[static_cast<std::size_t>(request)];
    for (int place = 0; place < longest; ++place) {
      const int first = place * kCell;
      const bool there = first < tokens;
      // A partial one shows its number of tokens.
      cells.items.names.push_back(!there                   ? ""
                                  : first + kCell > tokens ? fmt::format("·{}", tokens - first)
                                                           : std::to_string(first));
      cells.items.tone.each.push_back(there ? tone_of(request) : std::uint8_t{0});
      cells.items.glyph.each.push_back(there ? kSolid : kHollow);
      cells.items.state.each.push_back(there ? tile_state(request, place, cursor) : State::to_come);
      requests.push_back(there ? request : -1);
    }
  }
  cells.items.about = {{"request", {0, requests}}};
  return labelled(
      {"cache"}, box({"cache_rows"}, {cells}, {}, {.left = 2}),
      text(fmt::format("cache by request, {} tokens per cell", kCell), "cache, by request",
           "cache"),
      {.weight = 1.2f, .least_width = 8, .least_height = 2.1f, .place = Place::device_memory});
}

SpanList DecodeScene::block_spans(
    Name name, Name x, Name lanes, double now,
    const std::function<std::optional<SpanList::Bar>(const ItemTrace&)>& bar_of) const {
  SpanList list(name, x, lanes, "request");
  std::vector<double> last(static_cast<std::size_t>(trace_.blocks));
  for (std::size_t i = 0; i < trace_.items.size(); ++i) {
    const ItemTrace& item = trace_.items[i];
    std::optional<SpanList::Bar> bar = bar_of(item);
    if (!bar) continue;
    double& end = last[static_cast<std::size_t>(item.block)];
    end = std::max(end, bar->end);
    bar->lane = item.block;
    bar->tone = tone_of(item.request);
    bar->about = item.request;
    bar->id = static_cast<int>(i);
    list.add(*std::move(bar));
  }
  for (int block = 0; block < trace_.blocks; ++block) {
    const double end = last[static_cast<std::size_t>(block)];
    if (end < now) {
      list.add({block, end, now, State::to_come, 0, "idle", -1,
                static_cast<int>(trace_.items.size()) + block});
    }
  }
  return list;
}

Box DecodeScene::lanes(Cursor cursor) const {
  const int now = round(cursor);
  const auto bar_of = [&](const ItemTrace& item) -> std::optional<SpanList::Bar> {
    const int through = tiles_of(item, cursor);
    if (through == 0) return std::nullopt;
    std::string name = fmt::format("R{} head {}", item.request, item.kv_head);
    if (item.splits > 1) name += fmt::format(" part {}", item.split);
    return SpanList::Bar{
        .begin = double(item.first_round),
        .end = double(item.first_round + through),
        .state = at_work(item, cursor) ? State::current : State::plain,
        .name = std::move(name),
        .flags = has_chosen(item) && trace_.blocks <= kMostNamed ? kPicked : kNone};
  };
  SpanList list = block_spans("lane", "round", "block", now, bar_of);
  return labelled(
      {"lanes"}, box({"lane_box"}, {list.made(now)}, {}, {.least_height = 2, .left = kLaneLeft}),
      text(fmt::format("{} of one launch, tile by tile", counted(trace_.blocks, "block")),
           counted(trace_.blocks, "block")),
      {.weight = 1, .least_width = 9, .least_height = 3.8f});
}

std::optional<Question> DecodeScene::end_question() const {
  const auto item =
      std::find_if(trace_.items.begin(), trace_.items.end(), [this](const ItemTrace& one) {
        return has_chosen(one) && one.first_round == 0 && one.first == 0 && one.tiles > 1;
      });
  if (item == trace_.items.end()) return std::nullopt;
  const double rounds = trace_.rounds();
  const int tokens = trace_.tokens[static_cast<std::size_t>(item->request)];
  return of_kind("block-ends",
                 ask_to_set(fmt::format("R{} has {}, split over {} per K/V head. After which tile "
                                        "is the first block of head {} done?",
                                        item->request, counted(tokens, "token"),
                                        counted(item->splits, "block"), item->kv_head),
                            {"lane_box"}, "round", item->tiles,
                            std::clamp(0.45, 0.006 * rounds, 0.15 * rounds),
                            fmt::format("its {} are {} of {}.", counted(item->tokens, "token"),
                                        counted(item->tiles, "tile"), trace_.shape.tile)));
}

std::optional<Question> DecodeScene::busy_question(int round) const {
  int before = 0, busy = 0;
  for (const ItemTrace& item : trace_.items) {
    before += round - 1 > item.first_round && round - 1 <= item.first_round + item.tiles ? 1 : 0;
    busy += round > item.first_round && round <= item.first_round + item.tiles ? 1 : 0;
  }
  if (round < 2 || busy == before) return std::nullopt;
  return of_kind(
      "busy-blocks",
      ask_count(
          fmt::format("{} took a tile. How many will take one more?", counted(before, "block")),
          busy, {before, trace_.blocks, before / 2, busy + 1, busy + 2, 0},
          fmt::format("the others have reached the end of their keys; the longest block has {}.",
                      counted(trace_.rounds(), "tile"))));
}

}  // namespace tilestep::scenes
