// What stands below the memory: the engine's requests over its steps and what of the pool is wasted; then the blocks of
// the launch over their tiles, and the parts of the chosen head's answer.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "scenes/attention/decode/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using decode::ItemTrace, decode::Served, decode::PartTrace, decode::Running, decode::StepTrace;
using words::counted, words::number;

namespace {

constexpr int kMostParts = 4;  ///< that have a row

std::string sum_text(float value, int digits) {
  return number(static_cast<double>(value), digits);
}

}  // namespace

// ---- the engine -------------------------------------------------------------------------------------------

/// Who runs, from its admission until it leaves or has to go.
Box DecodeScene::timeline(Cursor cursor) const {
  SpanList list("runs", "step", "request");
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
      list.add(request * decode::kServingSteps + begin, request, begin, step, state,
               fmt::format("R{}", request), request);
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

/// What of the pool holds tokens, and what is reserved in vain: in pages, and with one piece of memory for each.
Box DecodeScene::waste(Cursor cursor) const {
  SpanList list("stored", "tokens", "kind");
  const Served* now = moment(cursor);
  double end = 0;
  if (now != nullptr) {
    const double held =
        static_cast<double>(trace_.pool - now->free_pages()) * trace_.shape.page_size;
    list.add(0, 0, 0, now->tokens(), State::plain, std::to_string(now->tokens()), -1);
    list.add(1, 0, now->tokens(), held, State::wasted, "", -1);
    end = held;
    int number_of = 2;
    double at = 0;
    for (const Running& one : now->running) {
      list.add(number_of, 1, at, at + one.tokens, State::plain, fmt::format("R{}", one.request),
               one.request);
      list.add(number_of + 1, 1, at + one.tokens, at + std::max(trace_.limit, one.tokens),
               State::wasted, "", one.request);
      at += std::max(trace_.limit, one.tokens);
      number_of += 2;
    }
    end = std::max(end, at);
  }
  Box made = box({"stored_box"}, {list.made(end)}, {}, {.least_height = 2, .left = kLaneLeft});
  const double pool = static_cast<double>(trace_.pool) * trace_.shape.page_size;
  made.marks.emplace_back(
      Rule{.key = {"pool_end"}, .axis = "tokens", .at = pool, .label = text("pool")});
  return labelled({"waste"}, std::move(made),
                  text("tokens stored; hatched: held and empty", "hatched: empty", "waste"),
                  {.rank = 1, .weight = 1, .least_width = 9, .least_height = 3.8f});
}

// ---- the launch -------------------------------------------------------------------------------------------

/// m, ℓ and O of each part of the chosen head, as far as it has come; at the end what the merge gives it.
Ledger DecodeScene::part_table(Cursor cursor) const {
  constexpr int kColumns = 4;
  Ledger table{items("part", 0), {}, {}};
  std::array<std::vector<int>, 3> about;  // of m, ℓ and O
  const std::vector<Symbol> names = symbols({});
  table.columns = {
      {marked("m", names)}, {marked("ℓ", names)}, {marked("O", names)}, text("weight", "w")};
  for (const PartTrace& part : trace_.parts) {
    if (std::ssize(table.rows) >= kMostParts) break;
    const ItemTrace& item = trace_.items[static_cast<std::size_t>(part.item)];
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

/// What the parts come to.
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

Box DecodeScene::parts(Cursor cursor) const {
  const int request = request_number(trace_.request);
  Box table = box({"part_table"}, {part_table(cursor)}, {}, {.weight = 2, .least_height = 2});
  Lines said = lines("answer_line", answer_lines(cursor), Lines::formula);
  if (at_end(cursor) && contradicted()) said.items.state.all = State::wrong;
  Box answer =
      box({"answer"}, {std::move(said)}, {}, {.rank = 3, .weight = 1, .least_height = 1.2f});
  return labelled(
      {"parts"}, column({"part_boxes"}, {std::move(table), std::move(answer)}),
      text(fmt::format("R{}, head {}, component {}", request, trace_.head, trace_.component),
           fmt::format("R{}, head {}", request, trace_.head)),
      {.rank = 1, .weight = 1, .least_width = 9, .least_height = 3.8f});
}

// ---- what is said of a thing --------------------------------------------------------------------------------

std::string DecodeScene::explain(const View& view, const Key& key) const {
  for (const std::string& said : {explain_cost(key), explain_time(key)}) {
    if (!said.empty()) return said;
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
  if (key.is({"query_head"}) && key.i >= 0 && key.i < trace_.shape.heads) {
    const int group = trace_.shape.heads / trace_.shape.cached_heads;
    return fmt::format("query head {}\nuses K/V head {} with {} others", key.i, key.i / group,
                       group - 1);
  }
  if (key.is({"lane"}) && key.i >= 0 && key.i < std::ssize(trace_.items)) {
    const ItemTrace& item = trace_.items[static_cast<std::size_t>(key.i)];
    std::string said =
        fmt::format("block {}: K/V head {} of {}\n{} from place {} on, query heads {}–{}",
                    item.block, item.kv_head, requests_of(item), counted(item.pages, "page"),
                    item.first_page, item.first_head, item.first_head + item.heads - 1);
    if (item.rows > 1) said += fmt::format("\nread once for {}", counted(item.rows, "request"));
    return said;
  }
  if (key.is({"scheme"}) && key.i >= 0 && key.i < static_cast<int>(count_of<decode::Scheme>())) {
    decode::Params other = params_;
    other.scheme = static_cast<decode::Scheme>(key.i);
    const decode::LayerShape layer = decode::layer_shape(other);
    return fmt::format(
        "{}\n{} B per token and layer in 16 bits\n{} FLOP for each byte", name_of(other.scheme),
        decode::token_bytes(layer, decode::KvType::bf16),
        words::significant(decode::intensity(layer, decode::KvType::bf16, decode::Scales::token),
                           3));
  }
  return {};
}

}  // namespace tilestep::scenes
