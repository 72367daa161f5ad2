// The picture of the lesson on decoding: heads and what they share, the roofline, the launch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/attention/decode/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using decode::ItemTrace, decode::Scheme;
using words::counted, words::significant;

Extent DecodeScene::extent() const {
  const decode::Shape& shape = trace_.shape;
  Extent all{{{.name = "heads",
               .kind = Axis::band,
               .count = shape.heads,
               .group = shape.heads / shape.cached_heads,
               .least_slot = 2},
              {.name = "cached", .kind = Axis::band, .count = shape.cached_heads, .least_slot = 2},
              {.name = "flop_per_byte",
               .kind = Axis::log,
               .low = 0.5,
               .high = 1024,
               .title = text("FLOP/B"),
               .ticks = true},
              {.name = "tflops",
               .kind = Axis::log,
               .low = 1,
               .high = 2000,
               .title = text("TFLOP/s"),
               .ticks = true}}};
  for (const std::vector<Axis>& more : {launch_axes(), cost_axes(), time_axes()}) {
    all.axes.insert(all.axes.end(), more.begin(), more.end());
  }
  return all;
}

Picture DecodeScene::picture(const Extent& extent, const View& view) const {
  const Cursor cursor = view.cursor;
  Box left =
      column({"left"}, {heads(cursor), formulas(), roofline()}, {.weight = 0.5f, .least_width = 9});
  Box right = cursor.tile <= 0       ? costs(view)
              : looking_back(cursor) ? look_back()
                                     : launched(cursor);
  return {{marked(sentence(cursor), symbols(view))},
          extent.axes,
          row({"decode"}, {std::move(left), std::move(right)}, {.even = true})};
}

/// The cache, and below it the launch's blocks and the parts of the chosen answer.
Box DecodeScene::launched(Cursor cursor) const {
  return column(
      {"right"},
      {row({"memory"}, {cache(cursor)}, {.weight = 1.8f, .least_height = 2.1f}),
       // What is guessed is written here, above the boxes below.
       box({"gap"}, {}, {}, {.weight = 0, .least_height = 0.9f}),
       row({"below"}, {lanes(cursor), parts(cursor)}, {.weight = 1.5f, .least_height = 3.6f})},
      {.even = true});
}

// ---- heads ------------------------------------------------------------------------------------------------

/// Query heads over the K/V heads that they share. While the kernel reads, whoever uses a tile that is there lights up.
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
    // Of all requests: a K/V head of another request is other data, but the same query heads share it.
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
  const std::string stored = shape.scheme == Scheme::mla ? std::string("one latent row a token")
                                                         : counted(shape.cached_heads, "K/V head");
  Box above = box({"queries"}, {queries},
                  text(fmt::format("{} {} {}", counted(shape.heads, "query head"),
                                   shape.heads == 1 ? "uses" : "share", stored),
                       counted(shape.heads, "query head")),
                  {.least_height = 1.6f, .most_height = 3});
  Box under = box({"cache_heads"}, {cached, links}, {}, {.least_height = 1.6f, .most_height = 3});
  return column({"heads"}, {std::move(above), std::move(under)}, {.weight = 1, .least_height = 5});
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

/// Where the schemes stand under an H200's two roofs, by its data sheet.
Box DecodeScene::roofline() const {
  Curve roof{
      .key = {"roof"}, .x = {0.5, decode::kRidge, 1024}, .ax = "flop_per_byte", .ay = "tflops"};
  for (const double x : roof.x) roof.y.push_back(decode::roof_at(x) / 1e12);
  roof.state = State::done;
  Box made = box({"roofs"}, {roof}, {}, {.least_height = 3.5f, .left = 3, .right = 0.5f});
  for (const Scheme scheme : all_of<Scheme>()) {
    decode::Params other = params_;
    other.scheme = scheme;
    if (scheme == Scheme::mla) other.kv_dtype = decode::KvType::bf16;
    const double x = decode::intensity(other.layer(), other.kv_dtype, other.scales);
    const bool own = scheme == params_.scheme;
    Curve point{.key = {"scheme", static_cast<int>(scheme)},
                .x = {std::clamp(x, 0.5, 1024.0)},
                .y = {decode::roof_at(x) / 1e12},
                .ax = "flop_per_byte",
                .ay = "tflops"};
    point.tone = own ? 1 : 0;
    point.flags = own ? kPicked : kNone;
    point.about = {"scheme", static_cast<int>(scheme)};
    point.end = text(std::string(name_of(scheme)));
    point.ends_free = true;
    made.marks.emplace_back(std::move(point));
  }
  return labelled({"roofline"}, std::move(made), text("an H200's roofs (data sheet)", "roofline"),
                  {.rank = 2, .weight = 1.3f, .least_height = 5});
}

}  // namespace tilestep::scenes
