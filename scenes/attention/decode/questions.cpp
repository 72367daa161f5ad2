// What the lesson on decoding asks before a step, and what happens in its trace.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/attention/decode/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using decode::Break, decode::Happened, decode::Happening, decode::ItemTrace, decode::Served,
    decode::PartTrace;
using picture::Axis, picture::Extent, picture::Name;
using words::counted, words::number, words::significant;

/// Before a step of the engine: how many pages will be free after it?
std::optional<Question> DecodeScene::serving_question(int step) const {
  const Served& next = trace_.serving[static_cast<std::size_t>(step) - 1];
  const int before =
      step == 1 ? trace_.pool : trace_.serving[static_cast<std::size_t>(step) - 2].free_pages();
  const int free = next.free_pages();
  if (free == before) return stored_question(step);
  std::vector<std::string> texts;
  for (const Happened& one : next.events) {
    if (one.what == Happening::waits) continue;
    const char* what = one.what == Happening::finished    ? "has finished"
                       : one.what == Happening::preempted ? "is preempted"
                                                          : "is admitted";
    texts.push_back(fmt::format("R{} {}", one.request, what));
  }
  std::string because =
      texts.empty() ? std::string("those that run needed new pages, and no request came or left")
                    : fmt::format("{}", fmt::join(texts, ", "));
  because +=
      fmt::format(": {} held after the step.", counted(trace_.pool - free, "page is", "pages are"));
  return of_kind("free-pages",
                 ask_count(fmt::format("{} free now. How many will be after the next step?",
                                       counted(before, "page is", "pages are")),
                           free, {before, before + 2, before - 2, free + 1, free + 3, free - 1},
                           std::move(because)));
}

/// Before a step in which nobody comes or leaves: how many tokens will be stored?
std::optional<Question> DecodeScene::stored_question(int step) const {
  const Served& next = trace_.serving[static_cast<std::size_t>(step) - 1];
  const bool moves = std::any_of(next.events.begin(), next.events.end(),
                                 [](const Happened& one) { return one.what != Happening::waits; });
  if (step == 1 || moves || next.running.empty()) return std::nullopt;
  const int before = trace_.serving[static_cast<std::size_t>(step) - 2].tokens();
  const auto more = static_cast<double>(next.tokens() - before);
  // What a hand can set on the axis.
  double tolerance = 0.5 * more;
  const Extent axes = extent();
  for (const Axis& axis : axes.axes) {
    if (axis.name == Name("tokens")) tolerance = std::max(tolerance, 0.006 * axis.high);
  }
  if (tolerance >= more) return std::nullopt;
  return of_kind(
      "stored",
      ask_to_set(fmt::format("{} stored, and {} run. How many will be there after the next step, "
                             "in which nobody comes or leaves?",
                             counted(before, "token is", "tokens are"),
                             counted(std::ssize(next.running), "request")),
                 {"stored_box"}, "tokens", next.tokens(), tolerance,
                 fmt::format("each request adds {}: {} in all.", counted(trace_.stride, "token"),
                             next.tokens())));
}

/// Once: paging does not make a request faster.
Question DecodeScene::paging_question() const {
  return of_kind(
      "what-paging-does",
      ask("What do pages change against one piece of memory for each request?",
          "More requests fit into the same memory",
          {"Each request is answered faster", "Fewer bytes are read for each token",
           "Nothing that one could measure"},
          fmt::format("with {} tokens reserved for each only {} would fit into this pool, while a "
                      "single request reads the same bytes either way, and the table besides.",
                      trace_.limit,
                      counted(static_cast<std::int64_t>(trace_.pool) * trace_.shape.page_size /
                                  std::max(trace_.limit, 1),
                              "request"))));
}

/// Before the launch: does a larger batch feed the tensor cores? Where requests share what is read, it does.
std::optional<Question> DecodeScene::batch_question() const {
  for (const ItemTrace& item : trace_.items) {
    if (item.rows > 1) return std::nullopt;
  }
  const decode::LayerShape layer = decode::layer_shape(params_);
  const double point = decode::intensity(layer, params_.kv_dtype, params_.scales);
  const bool right = point >= decode::kRidge;
  const std::string same = right ? "Arithmetic, at any batch" : "Memory, at any batch";
  return of_kind(
      "batch-and-roof",
      ask(fmt::format("What limits the attention of {} when the batch grows?",
                      name_of(params_.scheme)),
          same,
          {right ? "Memory, at any batch" : "Arithmetic, at any batch",
           "Memory first, arithmetic from some batch on"},
          fmt::format("each request has a cache of its own, so that twice the batch reads twice "
                      "the bytes: it stays at {} FLOP a byte, and the roofs meet at {:.0f}.",
                      significant(point, 3), decode::kRidge)));
}

/// Before the merge: what is the first part worth?
std::optional<Question> DecodeScene::weight_question() const {
  if (trace_.parts.size() < 2 || trace_.broken == Break::unmerged_splits) return std::nullopt;
  const PartTrace* least = &trace_.parts.front();
  for (const PartTrace& part : trace_.parts) {
    if (part.m < least->m) least = &part;
  }
  const int split = trace_.items[static_cast<std::size_t>(least->item)].split;
  const auto weight = static_cast<double>(least->weight);
  const double even = 1.0 / static_cast<double>(trace_.parts.size());
  return of_kind(
      "merge-weight",
      ask_number(
          fmt::format("By what is part {} multiplied in the merge?", split), weight,
          {1.0, even, weight * 2, weight / 3, 0.75}, [](double value) { return number(value, 3); },
          fmt::format(
              "its weight is e^(m − M), with its own m = {} and M the largest of all parts.",
              number(static_cast<double>(least->m), 2)),
          0));
}

/// Before the look back: how many blocks were at work on average?
Question DecodeScene::at_work_question() const {
  const double mean = trace_.mean_at_work();
  const double blocks = trace_.blocks;
  return of_kind(
      "at-work",
      ask_number(
          fmt::format("{} ran on {} multiprocessors{}. How many were at work on average, "
                      "from the first block's start to the last one's end?",
                      counted(trace_.blocks, "block"), decode::kMultiprocessors,
                      trace_.clocked() ? "" : ", say that all tiles take as long"),
          mean, {blocks, decode::kMultiprocessors, blocks / 2, mean / 2, mean * 2},
          [](double value) { return number(value, 1); },
          "a block that finishes early sits idle until the longest one has: it is the sum of the "
          "blocks' times over the time of the launch.",
          0));
}

std::optional<Question> DecodeScene::question_before(int next) const {
  const int engine = engine_steps();
  if (next == 1) return crossing_question();
  if (next == trace_.length()) return at_work_question();
  if (next == std::min(2, engine) && engine > 1) return paging_question();
  if (next <= engine) return serving_question(next);
  if (next == engine + 1) return batch_question();
  if (trace_.act_of(next) == decode::Act::read) return busy_question(next - engine);
  return weight_question();
}

std::optional<Question> DecodeScene::question(const View& view) const {
  const int next = view.cursor.tile + 1;
  if (next > trace_.length()) return std::nullopt;
  std::optional<Question> asked = question_before(next);
  if (!asked) return asked;
  asked = shuffled(std::move(*asked), report_);
  if (asked->choices.empty()) return asked;  // it stands on its axis
  // A guess is written above what it is about: there is room below the pool.
  return about(picture::Key{"below"}, std::move(*asked));
}

// ---- what happens -------------------------------------------------------------------------------------------

void DecodeScene::find_events() {
  const auto most = static_cast<std::size_t>(std::min(16, trace_.length() / 3));
  for (int step = 1; step <= engine_steps(); ++step) {
    std::string text;
    for (const Happened& one : trace_.serving[static_cast<std::size_t>(step) - 1].events) {
      if (one.what == Happening::finished) text = fmt::format("R{} has finished", one.request);
      if (one.what == Happening::preempted)
        text = fmt::format("no page left: R{} is preempted", one.request);
      if (one.what == Happening::shared) text = fmt::format("R{} shares pages", one.request);
      if (!text.empty()) break;
    }
    if (!text.empty() && events_.size() < most) events_.push_back({{step, 0}, text});
  }
  if (trace_.rounds() > 0)
    events_.push_back({{engine_steps() + 1, 0}, "the kernel begins to read"});
  if (trace_.merged) events_.push_back({{trace_.answered(), 0}, "the parts are merged"});
}

}  // namespace tilestep::scenes
