// The picture of the decoding lesson: heads and the K/V heads they share, FLOP per byte, the launch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/attention/decode/scene.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using decode::ItemTrace, decode::Scheme;
using words::counted, words::significant;

Extent DecodeScene::extent() const {
  const decode::Shape& shape = trace_.shape;
  const auto schemes = names_of(Scheme{});
  Extent all{
      {{.name = "heads",
        .kind = Axis::band,
        .count = shape.heads,
        .group = shape.heads / shape.cached_heads,
        .least_slot = 2},
       {.name = "cached", .kind = Axis::band, .count = shape.cached_heads, .least_slot = 2},
       {.name = "swept",
        .kind = Axis::band,
        .count = cells_for(trace_.followed_tokens()),
        .least_slot = 2},
       {.name = "swept_head", .kind = Axis::band, .count = shape.cached_heads, .least_slot = 2},
       {.name = "intensity", .high = 260, .fixed = true, .title = text("FLOP/B"), .ticks = true},
       {.name = "scheme_lane",
        .kind = Axis::band,
        .count = static_cast<int>(count_of<Scheme>()),
        .names = {schemes.begin(), schemes.end()},
        .least_slot = 3}}};
  for (const std::vector<Axis>& more : {launch_axes(), moved_axes(), cost_axes(), time_axes()}) {
    all.axes.insert(all.axes.end(), more.begin(), more.end());
  }
  return all;
}

Picture DecodeScene::picture(const Extent& extent, const View& view) const {
  const Cursor cursor = view.cursor;
  Box left = column({"left"}, {heads(cursor), formulas(), intensity()},
                    {.weight = 0.5f, .least_width = 9});
  Box right = cursor.tile <= 0       ? costs(view)
              : looking_back(cursor) ? look_back()
                                     : launched(cursor);
  return {{marked(sentence(cursor), symbols(view))},
          extent.axes,
          row({"decode"}, {std::move(left), std::move(right)}, {.even = true}),
          merging(cursor) ? std::vector<std::string>{"weights", "part_table", "answer"}
                          : std::vector<std::string>{"batch_chart", "mixed_steps", "cache", "moved",
                                                     "part_table", "clocks", "chip"}};
}

/// The cache, and below it the launch's blocks; then the parts of the chosen answer.
Box DecodeScene::launched(Cursor cursor) const {
  return column(
      {"right"},
      {column({"memory"}, {cache(cursor), moved(cursor)}, {.weight = 1.8f, .least_height = 2.1f}),
       // Guesses are written here, above the boxes below.
       box({"gap"}, {}, {}, {.weight = 0, .least_height = 0.5f}),
       row({"below"}, {lanes(cursor), parts(cursor)}, {.weight = 1.5f, .least_height = 3.6f})},
      {.even = true});
}

// ---- heads ------------------------------------------------------------------------------------------------

/// Query heads over the K/V heads that they share. While the kernel reads, the users of a loaded tile light up.
Box DecodeScene::heads(Cursor cursor) const {
  const decode::Shape& shape = trace_.shape;
  const int group = shape.heads / shape.cached_heads;
  Cells queries{items("query_head", shape.heads)};
  Cells cached{items("kv_head", shape.cached_heads)};
  Links links{items("uses", shape.heads)};
  queries.x = "heads";
  cached.x = "cached";
  std::vector<bool> read(static_cast<std::size_t>(shape.cached_heads));
  std::vector<bool> used(static_cast<std::size_t>(shape.heads));
  for (const ItemTrace& item : trace_.items) {
    // Only the followed request's: another request's K/V head is other data with the same query heads.
    if (!reading(cursor) || item.request != trace_.request || !at_work(item, cursor)) continue;
    read[static_cast<std::size_t>(item.kv_head)] = true;
    for (int h = item.first_head; h < item.first_head + item.heads; ++h) {
      used[static_cast<std::size_t>(h)] = true;
    }
  }
  for (int h = 0; h < shape.heads; ++h) {
    const bool now = used[static_cast<std::size_t>(h)];
    queries.items.names.push_back(std::to_string(h));
    queries.items.state.each.push_back(now ? State::current : State::plain);
    queries.items.flags.each.push_back(h == trace_.head ? kPicked : kNone);
    links.from.push_back({{"query_head", h}});
    links.to.push_back({{"kv_head", h / group}});
    links.items.state.each.push_back(now ? State::current : State::plain);
  }
  for (int h = 0; h < shape.cached_heads; ++h) {
    cached.items.names.push_back(shape.scheme == Scheme::mla ? "latent" : std::to_string(h));
    cached.items.state.each.push_back(read[static_cast<std::size_t>(h)] ? State::current
                                                                        : State::plain);
  }
  std::vector<int> of_group;
  for (int h = 0; h < shape.heads; ++h) of_group.push_back(h / group);
  queries.items.about = {{"kv", {0, of_group}}};
  links.items.about = {{"kv", {0, of_group}}};
  cached.items.about = {{"kv", {0, numbers(shape.cached_heads)}}};
  const std::string stored = shape.scheme == Scheme::mla ? std::string("a latent row per token")
                                                         : counted(shape.cached_heads, "K/V head");
  Box above = box({"queries"}, {queries},
                  text(fmt::format("{} {} {}", counted(shape.heads, "query head"),
                                   shape.heads == 1 ? "uses" : "share", stored),
                       counted(shape.heads, "query head")),
                  {.least_height = 1.6f, .most_height = 3});
  Box under = box({"cache_heads"}, {cached, links}, {}, {.least_height = 1.6f, .most_height = 3});
  return column({"heads"}, {std::move(above), std::move(under), sweep(cursor)},
                {.weight = 1, .least_height = 6.5f});
}

/// The followed request's keys and values, a row per K/V head, a page per cell: the query passes over them once.
Box DecodeScene::sweep(Cursor cursor) const {
  const int columns = cells_for(trace_.followed_tokens()), tokens = trace_.followed_tokens();
  const int heads = trace_.shape.cached_heads, tile = trace_.shape.tile;
  Cells cells{items("swept", columns * heads)};
  cells.x = "swept";
  cells.y = "swept_head";
  cells.columns = cells.items.per_row = columns;
  cells.items.state.each.assign(static_cast<std::size_t>(columns * heads), State::to_come);
  cells.items.tone.all = tone_of(trace_.request);
  std::vector<int> of_head;
  for (int h = 0; h < heads; ++h) {
    for (int place = 0; place < columns; ++place) {
      const int first = place * kCell;
      cells.items.names.push_back(h > 0                    ? ""
                                  : first + kCell > tokens ? fmt::format("·{}", tokens - first)
                                                           : std::to_string(first));
      of_head.push_back(h);
    }
  }
  for (const ItemTrace& item : trace_.items) {
    if (item.request != trace_.request) continue;
    const int through = tiles_of(item, cursor), taken = std::min(through * tile, item.tokens);
    for (int first = 0; first < taken; first += kCell) {
      const auto at =
          static_cast<std::size_t>(item.kv_head * columns + (item.first + first) / kCell);
      if (at >= cells.items.state.each.size()) continue;
      cells.items.state.each[at] =
          at_work(item, cursor) && first / tile + 1 == through ? State::current : State::done;
    }
  }
  cells.items.about = {{"kv", {0, of_head}}};
  return box(
      {"sweep"}, {cells},
      text(fmt::format("cache of R{}: {}, read once", trace_.request, counted(tokens, "token")),
           fmt::format("cache of R{}", trace_.request)),
      {.weight = 1.6f, .least_height = 2.2f, .place = Place::device_memory});
}

Box DecodeScene::formulas() const {
  const decode::LayerShape layer = params_.layer();
  const double bytes = decode::token_bytes(layer, params_.kv_dtype);
  const double point = decode::intensity(layer, params_.kv_dtype, params_.scales);
  const double scales = decode::scale_bytes(layer, params_.kv_dtype, params_.scales);
  std::vector<Text> rows;
  const std::string stored = layer.row.latent > 0
                                 ? fmt::format("({}+{})", layer.row.latent, layer.row.rope)
                                 : std::to_string(layer.row.stored);
  const std::string all = significant(bytes + scales, 6);
  const std::string and_scales = scales > 0 ? " + " + significant(scales, 6) : "";
  rows.push_back(text(fmt::format("B = {}·{}·{}/8{} = {}", layer.cached_heads, stored,
                                  decode::bits_of(params_.kv_dtype), and_scales, all),
                      fmt::format("B = {}", all)));
  rows.push_back(
      text(fmt::format("FLOP/B = {} / {} = {}", significant(decode::token_flops(layer), 7), all,
                       significant(point, 3)),
           fmt::format("FLOP/B = {}", significant(point, 3))));
  return box({"formulas"}, {lines("formula", std::move(rows), Lines::formula)},
             text("KV bytes per token and layer", "KV bytes per token", "bytes"),
             {.rank = 1, .weight = 0, .least_height = 2.6f});
}

/// Each scheme's FLOP per byte of cache, against the FLOP that an H200 can do while that byte arrives.
Box DecodeScene::intensity() const {
  SpanList bars("scheme", "intensity", "scheme_lane", "scheme");
  Box made = box({"intensities"}, {}, {}, {.least_height = 3.5f, .left = 2.4f, .right = 2.4f});
  std::vector<Curve> ends;
  for (const Scheme scheme : all_of<Scheme>()) {
    decode::Params other = params_;
    other.scheme = scheme;
    if (scheme == Scheme::mla) other.kv_dtype = decode::KvType::bf16;
    const double value = decode::intensity(other.layer(), other.kv_dtype, other.scales);
    const auto lane = static_cast<int>(scheme);
    const bool own = scheme == params_.scheme;
    bars.add({.lane = lane,
              .end = std::min(value, 260.0),
              .state = own ? State::plain : State::to_come,
              .about = lane,
              .lanes = 1,
              .flags = own ? kPicked : kNone});
    ends.push_back(lane_end({"scheme_end", lane}, "intensity", "scheme_lane", bars.end(),
                            text(significant(value, 3)), 0, {"scheme", lane}));
  }
  // Where memory sets the rate.
  made.marks.emplace_back(Curve{.key = {"memory_bound"},
                                .x = {0, decode::kRidge},
                                .y = {0, 0},
                                .ax = "intensity",
                                .ay = "scheme_lane",
                                .state = State::to_come,
                                .base = {static_cast<double>(bars.count())}});
  made.marks.emplace_back(bars.made(260));
  for (Curve& end : ends) made.marks.emplace_back(std::move(end));
  made.marks.emplace_back(Rule{.key = {"ridge"},
                               .axis = "intensity",
                               .at = decode::kRidge,
                               .state = State::done,
                               .label = text(fmt::format("ridge {:.0f}", decode::kRidge))});
  return labelled({"intensity_box"}, std::move(made),
                  text("FLOP per byte of cache, and the ridge", "FLOP per byte of cache", "FLOP/B"),
                  {.rank = 2, .weight = 1.3f, .least_height = 5});
}

}  // namespace tilestep::scenes
