// The paged-cache lesson's questions before a step, and the events of its trace.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenes/attention/paged_kv/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using paged_kv::Happened, paged_kv::Happening, paged_kv::ItemTrace, paged_kv::Served;
using picture::Axis, picture::Extent, picture::Name;
using words::counted, words::percent;

/// Before a step of the engine: how many pages will be free after it?
std::optional<Question> PagedKvScene::serving_question(int step) const {
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
      texts.empty() ? std::string("running requests needed new pages; no request came or left")
                    : fmt::format("{}", fmt::join(texts, ", "));
  because +=
      fmt::format(": {} held after the step.", counted(trace_.pool - free, "page is", "pages are"));
  return of_kind("free-pages",
                 ask_count(fmt::format("{} free now. How many after the next step?",
                                       counted(before, "page is", "pages are")),
                           free, {before, before + 2, before - 2, free + 1, free + 3, free - 1},
                           std::move(because)));
}

/// Before a step in which no request comes or leaves: how many tokens will be stored?
std::optional<Question> PagedKvScene::stored_question(int step) const {
  const Served& next = trace_.serving[static_cast<std::size_t>(step) - 1];
  const bool moves = std::any_of(next.events.begin(), next.events.end(),
                                 [](const Happened& one) { return one.what != Happening::waits; });
  if (step == 1 || moves || next.running.empty()) return std::nullopt;
  const int before = trace_.serving[static_cast<std::size_t>(step) - 2].tokens();
  const auto more = static_cast<double>(next.tokens() - before);
  // As precise as a hand can set it on the axis.
  double tolerance = 0.5 * more;
  const Extent axes = extent();
  for (const Axis& axis : axes.axes) {
    if (axis.name == Name("tokens")) tolerance = std::max(tolerance, 0.006 * axis.high);
  }
  if (tolerance >= more) return std::nullopt;
  return of_kind("stored", ask_to_set(fmt::format("{} stored, and {} run. How many after the next "
                                                  "step, in which no request comes or leaves?",
                                                  counted(before, "token is", "tokens are"),
                                                  counted(std::ssize(next.running), "request")),
                                      {"stored_box"}, "tokens", next.tokens(), tolerance,
                                      fmt::format("each request adds {}: {} in all.",
                                                  counted(trace_.stride, "token"), next.tokens())));
}

/// Once: paging does not make a request faster.
Question PagedKvScene::paging_question() const {
  return of_kind(
      "what-paging-does",
      ask("What do pages change against one contiguous block per request?",
          "More requests fit in memory at once",
          {"Each request is answered faster", "Fewer bytes are read per token",
           "Nothing measurable"},
          fmt::format("with {} tokens reserved for each, only {} would fit into this pool; a "
                      "single request reads the same bytes either way, plus the table.",
                      trace_.limit,
                      counted(static_cast<std::int64_t>(trace_.pool) * trace_.shape.page_size /
                                  std::max(trace_.limit, 1),
                              "request"))));
}

/// Before a block reads: pages that several share, the used part of the sectors, the number of pages.
std::optional<Question> PagedKvScene::reading_question(int number) const {
  const ItemTrace& item = trace_.items[static_cast<std::size_t>(number)];
  if (item.rows > 1) {
    return of_kind(
        "read-once",
        ask_count(fmt::format("{} share their first {}. How many blocks read these for K/V head 0?",
                              counted(item.rows, "request"), counted(item.pages, "page")),
                  1, {item.rows, item.pages, item.rows * item.pages},
                  "one block takes the query heads of all of them and reads each page once."));
  }
  if (number == trace_.traced_item) {
    const paged_kv::Piece piece =
        paged_kv::piece_of(params_.layer(), trace_.shape.kv_dtype, trace_.shape.page_size);
    const auto say = [](double share) { return percent(share); };
    return of_kind(
        "sectors-used",
        ask_number(
            fmt::format("Pages of {} are anywhere in the pool. How much of each fetched sector "
                        "holds keys of this head?",
                        counted(trace_.shape.page_size, "token")),
            piece.of_sectors(), {1, 0.5, 0.25, 0.125}, say,
            fmt::format(
                "one head's keys in a page are {:.0f} contiguous bytes, and a sector has 32.",
                piece.bytes),
            0));
  }
  const int size = trace_.shape.page_size;
  return of_kind(
      "pages-found",
      ask_count(
          fmt::format(
              "The next block reads {} of {}, in pages of {}. How many pages does it look up?",
              counted(item.tokens, "token"), requests_of(item), size),
          item.pages, {item.pages - 1, item.pages + 1, item.tokens, 1},
          fmt::format("{} take {} pages of {}; the last may be partly full.",
                      counted(item.tokens, "token"), item.pages, size)));
}

std::optional<Question> PagedKvScene::question_before(int next) const {
  if (next == std::min(2, engine_steps())) return paging_question();
  if (next <= engine_steps()) return serving_question(next);
  return reading_question(next - engine_steps() - 1);
}

std::optional<Question> PagedKvScene::question(const View& view) const {
  const int next = view.cursor.tile + 1;
  if (next > trace_.length()) return std::nullopt;
  // Below the pool there is room.
  return placed(question_before(next), report_, picture::Key{"below"});
}

// ---- events -------------------------------------------------------------------------------------------------

void PagedKvScene::find_events() {
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
  events_.push_back({{engine_steps() + 1, 0}, "the kernel begins to read"});
}

}  // namespace tilestep::scenes
