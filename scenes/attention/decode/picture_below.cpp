// The parts of the chosen head's answer, and explanations of items.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "scenes/attention/decode/scene.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using decode::ItemTrace, decode::PartTrace, decode::StepTrace;
using words::counted, words::number;

namespace {

/// Kilobytes of a token's K and V for one K/V head; a latent row is both.
double token_kb(const decode::Shape& shape) {
  const int numbers = shape.key + (shape.scheme == decode::Scheme::mla ? 0 : shape.value);
  return numbers * decode::bits_of(shape.kv_dtype) / 8e3;
}
/// Of m, ℓ and O in FP32, which are written where another part is merged with them.
double part_kb(const decode::Shape& shape, const ItemTrace& item) {
  return item.splits > 1 ? item.heads * (shape.value + 2) * 4 / 1e3 : 0;
}

std::string sum_text(float value, int digits) {
  return number(static_cast<double>(value), digits);
}

}  // namespace

// ---- the launch -------------------------------------------------------------------------------------------

/// m, ℓ and O of each part of the chosen head so far; at the end its weight in the merge.
Ledger DecodeScene::part_table(Cursor cursor) const {
  constexpr int kColumns = 4;
  Ledger table{items("part", 0), {}, {}};
  std::array<std::vector<int>, 3> about;  // of m, ℓ and O
  const std::vector<Symbol> names = symbols({});
  table.columns = {
      {marked("m", names)}, {marked("ℓ", names)}, {marked("O", names)}, text("weight", "w")};
  for (const PartTrace& part : trace_.parts) {
    if (std::ssize(table.rows) >= kMostParts) break;
    const ItemTrace& item = trace_.item_of(part);
    const StepTrace* last = nullptr;
    for (const StepTrace& step : trace_.steps) {
      if (step.item == part.item && trace_.step_of(item, step.tile) <= cursor.tile) last = &step;
    }
    table.rows.push_back(text(fmt::format("part {}", item.split), std::to_string(item.split)));
    const bool weighed = merging(cursor) || (at_end(cursor) && last != nullptr);
    table.items.names.push_back(last == nullptr ? "–" : sum_text(last->m_after, 2));
    table.items.names.push_back(last == nullptr ? "–" : sum_text(last->l, 2));
    table.items.names.push_back(last == nullptr ? "–" : sum_text(last->o, 2));
    table.items.names.push_back(weighed ? sum_text(part.weight, 3) : "–");
    const bool now = !merging(cursor) && at_work(item, cursor);
    for (int column = 0; column < kColumns; ++column) {
      for (std::size_t of = 0; of < about.size(); ++of) {
        about[of].push_back(static_cast<int>(of) == column ? 0 : -1);
      }
      const bool current = now ? column < kColumns - 1 : merging(cursor) && column == kColumns - 1;
      const bool wrong = weighed && column == kColumns - 1 && misweighed(part);
      table.items.state.each.push_back(wrong     ? State::wrong
                                       : current ? State::current
                                                 : State::plain);
    }
  }
  table.items.count = static_cast<int>(table.items.names.size());
  table.items.per_row = kColumns;
  table.items.about = {{"m", {-1, about[0]}}, {"l", {-1, about[1]}}, {"o", {-1, about[2]}}};
  return table;
}

/// The merged result of the parts.
std::vector<Text> DecodeScene::answer_lines(Cursor cursor) const {
  const std::int64_t more = std::ssize(trace_.parts) - kMostParts;
  if (!at_end(cursor)) {
    return {more > 0 ? text(fmt::format("O / ℓ = not yet, and {}", counted(more, "more part")),
                            "O / ℓ = not yet")
                     : text("O / ℓ = not yet")};
  }
  double sum = 0, o = 0, magnitude = 0;
  for (const PartTrace& part : trace_.parts) {
    sum += static_cast<double>(part.weight) * static_cast<double>(part.l);
    o += static_cast<double>(part.weight) * static_cast<double>(part.o);
    magnitude += static_cast<double>(part.weight) * std::abs(static_cast<double>(part.o));
  }
  const std::string answer = number(static_cast<double>(trace_.o), 3);
  std::vector<Text> rows;
  if (merging(cursor)) rows.push_back(text(fmt::format("M = {}", number(most_m(), 2))));
  const std::vector<Symbol> names = symbols({});
  rows.push_back({marked(words::equation(
                             "O / ℓ", fmt::format("{} / {}", number(o, 2), number(sum, 2)), o / sum,
                             static_cast<double>(trace_.o),
                             [](double value) { return number(value, 3); }, magnitude / sum),
                         names),
                  marked(fmt::format("O / ℓ = {}", answer), names)});
  return rows;
}

/// Each part's weight in the merge, as a length.
Box DecodeScene::weights() const {
  SpanList bars("weight", "weight", "part_lane", "m");
  Box made = box({"weight_bars"}, {}, {}, {.least_height = 2, .left = 3, .right = 3});
  std::vector<Curve> ends;
  for (const PartTrace& part : trace_.parts) {
    const int lane = bars.count();
    if (lane >= kMostParts) break;
    const auto weight = static_cast<double>(part.weight);
    bars.add({.lane = lane,
              .end = std::clamp(weight, 0.0, 1.0),
              .state = misweighed(part) ? State::wrong : State::plain,
              .tone = 4,
              .about = 0,
              .lanes = 1});
    ends.push_back(lane_end({"weight_end", lane}, "weight", "part_lane", bars.end(),
                            text(number(weight, 3)), 4, {"m", 0}));
  }
  made.marks.emplace_back(bars.made(1));
  for (Curve& end : ends) made.marks.emplace_back(std::move(end));
  return labelled({"weights"}, std::move(made), text("e^(m − M): each part's weight", "e^(m − M)"),
                  {.weight = 6, .least_height = 3});
}

// ---- what moves -------------------------------------------------------------------------------------------

std::vector<Axis> DecodeScene::moved_axes() const {
  double cached = 0, parts = 0;
  for (const ItemTrace& item : trace_.items) {
    cached += item.tokens * token_kb(trace_.shape);
    parts += 2 * part_kb(trace_.shape, item);
  }
  const double most = std::max({cached, parts, 0.001});
  const double unit = std::pow(10, std::floor(std::log10(most)));
  return {
      {.name = "moved", .high = std::ceil(most / unit) * unit, .title = text("KB"), .ticks = true},
      {.name = "moved_lane",
       .kind = Axis::band,
       .count = 2,
       .names = {"K and V", "parts"},
       .least_slot = 3}};
}

/// K and V on their way to the blocks, for each request a band as wide as its bytes; below on the same scale the parts'
/// m, ℓ and O, which a block writes when its keys are done and the merge reads.
Box DecodeScene::moved(Cursor cursor) const {
  SpanList list("moved", "moved", "moved_lane", "request");
  struct Now {
    double kb = 0;
    int place = 0;
  };
  std::vector<Now> now(trace_.tokens.size());
  double at = 0, written = 0;
  for (const ItemTrace& item : trace_.items) {
    const int through = tiles_of(item, cursor), tile = trace_.shape.tile;
    const int taken = std::min(through * tile, item.tokens);
    const int before = at_work(item, cursor) ? (through - 1) * tile : taken;
    at += before * token_kb(trace_.shape);
    written += through == item.tiles ? part_kb(trace_.shape, item) : 0;
    Now& request = now[static_cast<std::size_t>(item.request)];
    request.kb += (taken - before) * token_kb(trace_.shape);
    if (taken > before) request.place = (item.first + before) / kCell;
  }
  const auto band = [&](int lane, double width, SpanList::Bar bar, Way way = {}) {
    double& from = lane == 0 ? at : written;
    if (width <= 0) return;
    bar.lane = lane;
    bar.begin = from;
    bar.end = from += width;
    bar.lanes = 1;
    list.add(std::move(bar));
    list.spans.items.ways.push_back(way);
  };
  band(0, std::exchange(at, 0), {.id = 0});
  for (int r = 0; r < requests(); ++r) {
    const Now& request = now[static_cast<std::size_t>(r)];
    // A number for each round: no band comes back.
    band(0, request.kb,
         {.state = State::current,
          .tone = tone_of(r),
          .name = fmt::format("R{}", r),
          .about = r,
          .id = 3 + round(cursor) * requests() + r},
         {{"entry", r, request.place}, {}, 0, true});
  }
  const double back = at_end(cursor) ? written : 0;
  band(1, std::exchange(written, 0), {.tone = 4, .name = "written", .id = 1});
  band(1, back,
       {.state = merging(cursor) ? State::current : State::plain,
        .tone = 4,
        .name = "read",
        .id = 2});
  Box made = box({"moved_box"}, {list.made()}, {}, {.least_height = 2.2f, .left = 4, .right = 4});
  for (const int lane : {0, 1}) {
    const double all = lane == 0 ? at : written;
    if (all > 0)
      made.marks.emplace_back(lane_end({"moved_end", lane}, "moved", "moved_lane", all,
                                       text(fmt::format("{} KB", words::significant(all, 3)))));
  }
  return labelled({"moved"}, std::move(made),
                  text("moved between device memory and the chip, so far", "moved so far", "moved"),
                  {.rank = 1, .weight = 0.9f, .least_height = 3.2f});
}

Box DecodeScene::parts(Cursor cursor) const {
  // A line for each row and one for the columns' names: below that words lie on words.
  const auto rows = static_cast<float>(std::min<std::size_t>(trace_.parts.size(), kMostParts));
  Box table = box({"part_table"}, {part_table(cursor)}, {},
                  {.weight = 2,
                   .least_height = std::max(2.0f, rows + 1),
                   .most_height = 1.35f * std::max(2.0f, rows + 1)});
  // A block's sums are in registers until its keys are done; the merge reads them from memory.
  if (merging(cursor)) {
    table.label = text("what each block wrote, and its weight", "parts");
    table.place = Place::device_memory;
  }
  Lines said = lines("answer_line", answer_lines(cursor), Lines::formula);
  if (at_end(cursor) && contradicted()) said.items.state.all = State::wrong;
  Box answer =
      box({"answer"}, {std::move(said)}, {},
          {.rank = merging(cursor) ? 0 : 3, .least_height = merging(cursor) ? 2.2f : 1.2f});
  std::vector<Box> boxes = {std::move(table)};
  if (merging(cursor)) boxes.push_back(weights());
  boxes.push_back(std::move(answer));
  return labelled(
      {"parts"}, column({"part_boxes"}, std::move(boxes)),
      text(fmt::format("R{}, head {}, component {}", trace_.request, trace_.head, trace_.component),
           fmt::format("R{}, head {}", trace_.request, trace_.head)),
      {.rank = 1,
       .weight = 1,
       .least_width = 9,
       .least_height = 3.8f,
       .place = merging(cursor) ? Place::nowhere : Place::registers});
}

// ---- explanations -------------------------------------------------------------------------------------------

std::string DecodeScene::explain(const View&, const Key& key) const {
  for (const std::string& said : {explain_cost(key), explain_time(key)}) {
    if (!said.empty()) return said;
  }
  if (key.is({"entry"}) && key.i >= 0 && key.i < std::ssize(trace_.tokens) && key.j >= 0) {
    const int first = key.j * kCell, tokens = trace_.tokens[static_cast<std::size_t>(key.i)];
    if (first >= tokens) return {};
    return fmt::format("R{}, tokens {}–{} of {}", key.i, first, std::min(first + kCell, tokens) - 1,
                       tokens);
  }
  if (key.is({"query_head"}) && key.i >= 0 && key.i < trace_.shape.heads) {
    const int group = trace_.shape.heads / trace_.shape.cached_heads;
    return fmt::format("query head {}\nuses K/V head {} with {} others", key.i, key.i / group,
                       group - 1);
  }
  if (key.is({"lane"}) && key.i >= 0 && key.i < std::ssize(trace_.items)) {
    const ItemTrace& item = trace_.items[static_cast<std::size_t>(key.i)];
    return fmt::format("block {}: K/V head {} of R{}\n{} from token {} on, query heads {}–{}",
                       item.block, item.kv_head, item.request, counted(item.tokens, "token"),
                       item.first, item.first_head, item.first_head + item.heads - 1);
  }
  if (key.is({"moved"})) {
    return key.i == 1
               ? std::string("m, ℓ and O of each part, written by its block when its keys are done")
           : key.i == 2 ? std::string("the same, read by the merge")
                        : std::string("K and V, requested from device memory, as traced");
  }
  if (key.is({"scheme"}) && key.i >= 0 && key.i < static_cast<int>(count_of<decode::Scheme>())) {
    decode::Params other = params_;
    other.scheme = static_cast<decode::Scheme>(key.i);
    const decode::LayerShape layer = other.layer();
    return fmt::format(
        "{}\n{} B per token and layer in 16 bits, heads of {}\n{} FLOP per byte",
        name_of(other.scheme), decode::token_bytes(layer, decode::KvType::bf16),
        other.of().head_dim,
        words::significant(decode::intensity(layer, decode::KvType::bf16, decode::Scales::token),
                           3));
  }
  return {};
}

}  // namespace tilestep::scenes
