// The picture of the lesson on linear attention: weights, the state and what it holds, chunks, lengths.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/attention/linear_attention/scene.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using linear_attention::kShown, linear_attention::Trace;
using words::number, words::significant;

namespace {

constexpr std::uint8_t kQuery = 1, kKey = 3, kValue = 2, kState = 5, kSoftmax = 4;

/// What is held of the list from `first` on.
std::vector<float> part_of_list(const std::vector<float>& all, int first, int count) {
  const auto from = all.begin() + first;
  return {from, from + count};
}

/// How deep a number's colour is: as the root, so that small ones show beside large ones.
float depth_of(double value, double most) {
  return static_cast<float>(std::copysign(std::sqrt(std::abs(value) / most), value));
}

/// A map of signed numbers, and below it, as one more row, its scale from −most to most. NaN, or past the end: not known
/// yet, or never computed.
Cells heat_map(Name name, Name x, Name y, int rows, int columns, const std::vector<float>& values,
               double most) {
  Cells cells{items(name, (rows + 1) * columns)};
  cells.x = x;
  cells.y = y;
  cells.columns = columns;
  Items& all = cells.items;
  all.per_row = columns;
  all.heat = true;
  for (int i = 0; i < all.count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool scale = i >= rows * columns;
    const bool known = scale || (at < values.size() && !std::isnan(values[at]));
    const double of_scale = most * (2.0 * (i % columns) / (columns - 1) - 1);
    const double value = scale ? of_scale : known ? static_cast<double>(values[at]) : 0;
    all.value.each.push_back(depth_of(value, most));
    all.state.each.push_back(known ? State::done : State::to_come);
    all.glyph.each.push_back(known ? kSolid : kHollow);
  }
  return cells;
}
Axis map_rows(Name name, int rows) {
  std::vector<std::string> names(static_cast<std::size_t>(rows), "");
  names.push_back("scale");
  return {.name = name,
          .kind = Axis::band,
          .count = rows + 1,
          .group = rows,
          .ticks = true,
          .names = std::move(names),
          .least_slot = 3};
}
Axis map_columns(Name name, int columns) {
  return {.name = name, .kind = Axis::band, .count = columns, .least_slot = 3};
}

/// A row of numbers as bars, named in its left margin.
Box bar_row(Key key, Name name, Name axis, const std::vector<float>& values, bool known,
            std::uint8_t tone, Text label, float left) {
  Bars bars{items(name, known ? values : std::vector<float>(values.size(), 0.0f)), "number", axis};
  bars.items.tone.all = tone;
  bars.items.state.all = known ? State::done : State::to_come;
  return box(key, {std::move(bars)}, std::move(label),
             {.least_width = 12, .least_height = 0.85f, .left = left});
}

Text scale_words(const std::string& what, double most, const std::vector<Symbol>& symbols = {}) {
  const std::string ends = significant(most, 3);
  return {marked(fmt::format("{} (scale −{} … {})", what, ends, ends), symbols),
          marked(what, symbols)};
}

}  // namespace

double LinearAttentionScene::most_of(const std::vector<float>& values) const {
  double most = 0;
  for (const float one : values) {
    if (std::isfinite(one)) most = std::max(most, std::abs(static_cast<double>(one)));
  }
  return rounded(0, most).second;
}

/// When chunks come, the outputs token by token are known. A mistake's may go beyond.
std::pair<double, double> LinearAttentionScene::output_ends() const {
  double low = 0, high = 0;
  for (int t = 0; t < trace_.tokens; ++t) {
    const auto one = static_cast<double>(trace_.at(trace_.out, t, 0));
    if (!std::isfinite(one)) continue;
    low = std::min(low, 1.2 * one);
    high = std::max(high, 1.2 * one);
  }
  return rounded(low, high);
}

Extent LinearAttentionScene::extent() const {
  double share = 0, low = 0;
  for (const std::vector<float>* some : {&trace_.exact, &trace_.approximate}) {
    for (const float one : *some) {
      if (!std::isfinite(one)) continue;
      share = std::max(share, static_cast<double>(one));
      low = std::min(low, static_cast<double>(one));
    }
  }
  const auto shares = rounded(low, share);
  // The same ends for all rules. Features that are positive make all keys alike, and much more is held for each.
  const bool alike = trace_.feature != linear_attention::Feature::none && !corrects(trace_.rule);
  const double k = most_of(trace_.keys);
  const double v = most_of(trace_.values);
  const double held = std::max({v, most_of(trace_.before), most_of(trace_.held)});
  const double answer =
      std::max({most_of(trace_.by_softmax), most_of(trace_.by_weights), most_of(trace_.by_state)});
  const auto o = output_ends();
  const double longest = 1 << 20;
  return {
      {{.name = "token",
        .kind = Axis::band,
        .count = trace_.tokens,
        .title = text("token"),
        .ticks = true,
        .least_slot = 3},
       {.name = "out_token",
        .kind = Axis::band,
        .count = trace_.tokens,
        .group = trace_.chunk,
        .title = text("token"),
        .ticks = true,
        .least_slot = 3},
       {.name = "weight", .low = shares.first, .high = shares.second, .ticks = true},
       {.name = "number", .kind = Axis::band, .count = kShown, .least_slot = 3},
       {.name = "answer", .low = -answer, .high = answer},
       map_columns("column", kShown),
       map_columns("column_next", kShown),
       map_rows("row", kShown),
       map_columns("product_column", trace_.chunk),
       map_rows("product_row", trace_.chunk),
       map_rows("key_row", kShown),
       map_rows("value_row", kShown),
       {.name = "k_number", .low = -k, .high = k},
       {.name = "v_number", .low = -v, .high = v},
       {.name = "held_value", .low = -held, .high = held, .ticks = true},
       {.name = "key",
        .kind = Axis::band,
        .count = trace_.repeats,
        .title = text("key"),
        .ticks = true,
        .least_slot = 12},
       {.name = "strength", .low = alike ? -10.0 : -0.5, .high = alike ? 10.0 : 2.0, .ticks = true},
       {.name = "o", .low = o.first, .high = o.second, .ticks = true},
       {.name = "length",
        .kind = Axis::log,
        .low = 1,
        .high = longest,
        .title = text("tokens"),
        .ticks = true},
       {.name = "length_too",
        .kind = Axis::log,
        .low = 1,
        .high = longest,
        .title = text("tokens"),
        .ticks = true},
       {.name = "bytes",
        .kind = Axis::log,
        .low = 10,
        .high = 1e9,
        .title = text("bytes of a head"),
        .ticks = true},
       {.name = "flop",
        .kind = Axis::log,
        .low = 10,
        .high = 1e9,
        .title = text("FLOPs per token"),
        .ticks = true}}};
}

Picture LinearAttentionScene::picture(const Extent& extent, const View& view) const {
  const Cursor cursor = view.cursor;
  Picture made{{marked(sentence(view), symbols(view))}, extent.axes};
  const Box gap = box({"gap"}, {}, {}, {.weight = 0, .least_height = 0.5f});
  switch (part_of(cursor)) {
    case Part::weights:
      if (cursor.tile <= 0) {
        made.root = column({"linear", 4}, {gap, inputs(true), inputs(false)});
        made.subject = {"keys", "values_of_tokens"};
        break;
      }
      made.root = column({"linear", 0}, {gap, weights(cursor), answers(cursor)});
      made.subject = {"weights", "answers"};
      break;
    case Part::tokens:
      made.root = column(
          {"linear", 1},
          {gap, row({"token_row"},
                    {state(cursor), column({"holding"}, {recall(cursor), values(cursor)})})});
      made.subject = {"state", "holding"};
      break;
    case Part::chunks:
      made.root =
          column({"linear", 2},
                 {gap,
                  row({"chunk_row"}, {handed(cursor, false), product(cursor), handed(cursor, true)},
                      {.weight = 1.3f}),
                  outputs(cursor)});
      made.subject = {"chunk_row", "outputs"};
      break;
    case Part::lengths:
      made.root = column({"linear", 3},
                         {gap, row({"growth"}, {growth(cursor, false), growth(cursor, true)})});
      made.subject = {"bytes_box", "flops_box"};
      break;
  }
  return made;
}

// ---- weights --------------------------------------------------------------------------------------------

/// What softmax keeps: a column for each token.
Box LinearAttentionScene::inputs(bool keys) const {
  const std::vector<float>& all = keys ? trace_.keys : trace_.values;
  std::vector<float> values;
  for (int i = 0; i < kShown; ++i) {
    for (int t = 0; t < trace_.tokens; ++t) values.push_back(trace_.at(all, t, i));
  }
  const double most = most_of(all);
  const Name name = keys ? Name("keys") : Name("values_of_tokens");
  return labelled({name},
                  box({keys ? Name("key_map") : Name("value_map")},
                      {heat_map(keys ? Name("K") : Name("V"), "token",
                                keys ? Name("key_row") : Name("value_row"), kShown, trace_.tokens,
                                values, most)},
                      {}, {.least_height = 3, .left = 3.5f}),
                  scale_words(keys ? "keys, mapped: a column for each token" : "values", most),
                  {.least_width = 14, .least_height = 4});
}

Box LinearAttentionScene::weights(Cursor cursor) const {
  const bool known[] = {cursor.tile > 0, cursor.tile > 0 && is_second(cursor)};
  std::vector<Box> boxes;
  for (const bool exact : {true, false}) {
    Bars bars{items(exact ? Name("exact") : Name("approximate"), trace_.tokens), "token", "weight"};
    bars.items.tone.all = exact ? kSoftmax : kState;
    bars.items.about = {{"token", {0, picture::numbers(trace_.tokens)}}};
    for (int t = 0; t < trace_.tokens; ++t) {
      const auto at = static_cast<std::size_t>(t);
      const bool there = known[exact ? 0 : 1];
      bars.items.value.each.push_back(there ? (exact ? trace_.exact : trace_.approximate)[at] : 0);
      bars.items.state.each.push_back(there ? State::done : State::to_come);
    }
    Text label = exact ? text("exp(q·k / √d): softmax's weight of each key", "exp(q·k / √d)")
                       : text(trace_.feature == linear_attention::Feature::none
                                  ? "q·k: the weight without a map"
                                  : fmt::format("φ(q)·φ(k): the weight by features {}",
                                                name_of(trace_.feature)),
                              "the weight");
    boxes.push_back(labelled({exact ? Name("exact_box") : Name("approximate_box")},
                             box({exact ? Name("exact_plot") : Name("approximate_plot")},
                                 {std::move(bars)}, {}, {.least_height = 1.6f, .left = 3.5f}),
                             std::move(label), {.least_height = 2.6f}));
  }
  return column({"weights"}, std::move(boxes),
                {.weight = 2, .least_width = 14, .least_height = 5.2f});
}

Box LinearAttentionScene::answers(Cursor cursor) const {
  const int dim = trace_.dim;
  const bool first = cursor.tile > 0, second = first && is_second(cursor);
  std::vector<Box> rows;
  rows.push_back(bar_row({"answer_row", 0}, "by_softmax", "answer", trace_.by_softmax, first,
                         kSoftmax, text("softmax"), 5.5f));
  rows.push_back(bar_row({"answer_row", 1}, "by_weights", "answer", trace_.by_weights, second,
                         kState, text("(QK^T)V"), 5.5f));
  rows.push_back(bar_row({"answer_row", 2}, "by_state", "answer", trace_.by_state, second, kState,
                         text("Q(K^TV)"), 5.5f));
  return labelled(
      {"answers"}, std::move(rows),
      text(fmt::format("the answer; FLOPs for this token: {} by weights, {} by S (derived)",
                       significant(linear_attention::softmax_flops(dim, trace_.tokens), 6),
                       significant(linear_attention::state_flops(dim), 6)),
           "answers"),
      {.weight = 1.4f, .least_width = 16, .least_height = 3.6f});
}

// ---- tokens ---------------------------------------------------------------------------------------------

Box LinearAttentionScene::state(Cursor cursor) const {
  constexpr Layout kSide{.weight = 0.16f, .least_width = 2.4f, .least_height = 5};
  constexpr Layout kMap{.weight = 1, .least_width = 8, .least_height = 7};
  const int token = token_of(cursor), last = written(cursor);
  std::vector<float> values(static_cast<std::size_t>(kShown * kShown), 0.0f);
  if (last >= 0) values = part_of_list(trace_.states, last * kShown * kShown, kShown * kShown);
  const double most = most_of(trace_.states);

  Bars v{items("v", part_of_list(trace_.values, token * kShown, kShown)), "column", "v_number"};
  v.items.tone.all = kValue;
  Bars k{items("k", part_of_list(trace_.keys, token * kShown, kShown)), "k_number", "row"};
  k.items.tone.all = kKey;
  const auto flat = [](Layout layout) {
    layout.weight = layout.weight < 1 ? layout.weight : 1;
    layout.least_height = 2;
    return layout;
  };
  Layout map = kMap;
  map.left = 0;
  Cells cells = heat_map("S", "column", "row", kShown, kShown, values, most);
  return labelled(
      {"state"},
      {row({"above"},
           {box({"corner"}, {}, {}, flat(kSide)), box({"v_box"}, {std::move(v)}, {}, flat(kMap))},
           {.weight = 0.22f, .least_height = 2}),
       row({"across"}, {box({"k_box"}, {std::move(k)}, {}, kSide),
                        box({"state_map"}, {std::move(cells)}, {}, map)})},
      scale_words("k beside and v above S", most, symbols({cursor})),
      {.weight = 1.2f, .least_width = 12, .least_height = 9});
}

Box LinearAttentionScene::recall(Cursor cursor) const {
  const int token = token_of(cursor), last = written(cursor), now = trace_.key_of(token);
  Bars bars{items("held", trace_.repeats), "key", "strength"};
  bars.items.format = {Format::fixed, 2};
  bars.items.tone.all = kState;
  for (int key = 0; key < trace_.repeats; ++key) {
    const bool there = last >= 0 && trace_.newest(last, key) >= 0;
    const double strength = there ? trace_.strength(last, key) : 0;
    bars.items.value.each.push_back(static_cast<float>(strength));
    bars.items.state.each.push_back(!there       ? State::to_come
                                    : key == now ? State::current
                                                 : State::done);
  }
  const Rule whole{{"whole"}, "strength", 1, State::plain, text("all of it")};
  return labelled({"recall"},
                  box({"recall_plot"}, {std::move(bars), whole}, {},
                      {.least_height = 3, .left = 3.5f, .right = 5}),
                  text("how much of each key's newest value S holds", "held of each key's value"),
                  {.weight = 2.2f, .least_width = 14, .least_height = 6});
}

Box LinearAttentionScene::values(Cursor cursor) const {
  const int token = token_of(cursor), key = trace_.key_of(token);
  const bool now = is_second(cursor);
  Bars held{
      items("now", part_of_list(now ? trace_.held : trace_.before,
                                (now ? token * trace_.repeats + key : token) * kShown, kShown)),
      "number", "held_value"};
  held.items.tone.all = kState;
  Curve value{.key = {"value"}, .ax = "number", .ay = "held_value"};
  for (int i = 0; i < kShown; ++i) {
    value.x.push_back(i + 0.5);
    value.y.push_back(static_cast<double>(trace_.at(trace_.values, token, i)));
  }
  value.tone = kValue;
  value.dashed = true;
  value.end = text("v");
  return labelled({"values"},
                  box({"value_plot"}, {std::move(held), std::move(value)}, {},
                      {.least_height = 2.5f, .left = 3.5f, .right = 5}),
                  text(fmt::format("what S {} for key {}; dashed: the token's value",
                                   now ? "now holds" : "held", key),
                       fmt::format("key {}: held, and v", key)),
                  {.rank = 1, .weight = 1.6f, .least_width = 14, .least_height = 4});
}

// ---- chunks ---------------------------------------------------------------------------------------------

Box LinearAttentionScene::handed(Cursor cursor, bool next) const {
  const int chunk = chunk_of(cursor) + (next ? 1 : 0);
  std::vector<float> values;
  if (!next || is_second(cursor)) {
    constexpr int kSquare = kShown * kShown;
    if (chunk < trace_.chunks()) {
      values = part_of_list(trace_.handed, chunk * kSquare, kSquare);
    } else {
      values = part_of_list(trace_.states, (trace_.tokens - 1) * kSquare, kSquare);
    }
  }
  const double most = std::max(most_of(trace_.states), most_of(trace_.handed));
  Cells cells =
      heat_map(next ? Name("handed_on") : Name("handed"),
               next ? Name("column_next") : Name("column"), "row", kShown, kShown, values, most);
  const std::string words = next ? "S hands on" : "S begins";
  return labelled({next ? Name("next_state") : Name("first_state")},
                  box({next ? Name("next_map") : Name("first_map")}, {std::move(cells)}, {},
                      {.least_height = 3.5f, .left = next ? 0 : 3.5f}),
                  scale_words(words, most), {.least_width = 7, .least_height = 4.5f});
}

Box LinearAttentionScene::product(Cursor cursor) const {
  const int chunk = chunk_of(cursor), first = first_of(chunk), end = end_of(chunk),
            size = trace_.chunk;
  std::vector<float> values;
  for (int t = first; t < end; ++t) {
    for (int j = 0; j < size; ++j) {
      const float one = trace_.products[static_cast<std::size_t>(t * size + j)];
      const bool computed = (j <= t - first || one != 0) && first + j < end;
      values.push_back(computed ? one : NAN);
    }
  }
  const double most = most_of(trace_.products);
  return labelled({"product"},
                  box({"product_map"},
                      {heat_map("P", "product_column", "product_row", size, size, values, most)},
                      {}, {.least_height = 3.5f}),
                  scale_words(fmt::format("tokens {}–{}: masked Q·K^T", first, end - 1), most),
                  {.weight = 1.3f, .least_width = 8, .least_height = 4.5f});
}

Box LinearAttentionScene::outputs(Cursor cursor) const {
  const auto ends = output_ends();
  const auto number_0 = [&](const std::vector<float>& of, int t) {
    return std::clamp(trace_.at(of, t, 0), static_cast<float>(ends.first),
                      static_cast<float>(ends.second));
  };
  Bars all{items("out", trace_.tokens), "out_token", "o"},
      inter{items("inter", trace_.tokens), "out_token", "o"};
  all.items.tone.all = kValue;
  inter.items.tone.all = kState;
  Curve one_by_one{.key = {"one_by_one"}, .ax = "out_token", .ay = "o"};
  for (int t = 0; t < trace_.tokens; ++t) {
    const bool known = is_out(cursor, t);
    const bool wrong = known && trace_.wrong[static_cast<std::size_t>(t)] > 0;
    all.items.value.each.push_back(known ? number_0(trace_.chunk_out, t) : 0);
    inter.items.value.each.push_back(known ? number_0(trace_.inter, t) : 0);
    all.items.state.each.push_back(!known ? State::to_come : wrong ? State::wrong : State::done);
    inter.items.state.each.push_back(known ? State::done : State::to_come);
    if (!known || !std::isfinite(trace_.at(trace_.out, t, 0))) continue;
    one_by_one.x.push_back(t + 0.5);
    one_by_one.y.push_back(static_cast<double>(trace_.at(trace_.out, t, 0)));
  }
  std::vector<Mark> marks = {std::move(all)};
  if (!one_by_one.x.empty()) {
    one_by_one.dashed = true;
    one_by_one.end = text("token by token", "recurrent");
    marks.emplace_back(std::move(one_by_one));
  }
  constexpr Layout kRow{.least_width = 14, .least_height = 2.2f, .left = 5, .right = 7};
  return labelled({"outputs"},
                  {box({"inter_plot"}, {std::move(inter)}, text("from S"), kRow),
                   box({"output_plot"}, std::move(marks), text("in all"), kRow)},
                  text("number 0 of each token's output: what S says of it, and all of it",
                       "outputs: from S, and in all"),
                  {.weight = 1.6f, .least_width = 14, .least_height = 6});
}

// ---- lengths --------------------------------------------------------------------------------------------

Box LinearAttentionScene::growth(Cursor cursor, bool flops) const {
  std::vector<Mark> marks;
  const Name axis = flops ? Name("flop") : Name("bytes");
  for (const bool linear : {false, true}) {
    if (linear && !is_second(cursor)) continue;
    Curve curve{.key = {linear ? Name("linear_curve") : Name("softmax_curve"), flops ? 1 : 0},
                .ax = flops ? Name("length_too") : Name("length"),
                .ay = axis};
    for (double length = 1; length <= 1 << 20; length *= 4) {
      const int dim = trace_.dim;
      using namespace linear_attention;
      curve.x.push_back(length);
      curve.y.push_back(flops ? (linear ? state_flops(dim) : softmax_flops(dim, length))
                              : (linear ? state_bytes(dim) : cache_bytes(dim, length)));
    }
    curve.tone = linear ? kState : kSoftmax;
    curve.base = {10};
    curve.end = flops ? text(linear ? "state" : "softmax")
                      : text(linear ? "state" : "K/V cache", linear ? "state" : "cache");
    marks.emplace_back(std::move(curve));
  }
  return labelled({flops ? Name("flops_box") : Name("bytes_box")},
                  box({flops ? Name("flops_plot") : Name("bytes_plot")}, std::move(marks), {},
                      {.least_height = 5, .left = 4, .right = 5}),
                  flops ? text("FLOPs per token against length (derived)", "FLOPs per token")
                        : text("bytes that a head keeps, against length (derived)", "bytes kept"),
                  {.weight = 1, .least_width = 12, .least_height = 7});
}

// ---- explanations -----------------------------------------------------------------------------------------

std::string LinearAttentionScene::explain(const View& view, const Key& key) const {
  const Cursor cursor = view.cursor;
  const auto entry = [&](const std::vector<float>& from, int first) {
    return number(
        static_cast<double>(from[static_cast<std::size_t>(first + key.i * kShown + key.j)]), 3);
  };
  const bool inside = key.i >= 0 && key.i < kShown && key.j >= 0 && key.j < kShown;
  if (key.is({"S"}) && inside && written(cursor) >= 0)
    return fmt::format("S[{}][{}] = {}", key.i, key.j,
                       entry(trace_.states, written(cursor) * kShown * kShown));
  if (key.is({"handed"}) && inside)
    return fmt::format("S[{}][{}] = {}", key.i, key.j,
                       entry(trace_.handed, chunk_of(cursor) * kShown * kShown));
  if (key.is({"P"}) && key.i >= 0 && key.j >= 0 && key.i < trace_.chunk) {
    const int first = first_of(chunk_of(cursor));
    const auto at = static_cast<std::size_t>((first + key.i) * trace_.chunk + key.j);
    if (at >= trace_.products.size()) return {};
    return fmt::format("token {} looks at token {}: {}", first + key.i, first + key.j,
                       number(static_cast<double>(trace_.products[at]), 3));
  }
  if (key.is({"exact", "approximate"}) && cursor.tile > 0 && key.i >= 0 && key.i < trace_.tokens)
    return fmt::format(
        "token {}, key {}: softmax {}", key.i, trace_.key_of(key.i),
        number(static_cast<double>(trace_.exact[static_cast<std::size_t>(key.i)]), 4));
  return {};
}

}  // namespace tilestep::scenes
