// What the MoE lesson asks before a step; every answer is read off the trace.
#include <fmt/format.h>

#include <algorithm>

#include "scenes/experts/moe_routing/scene.hpp"

namespace tilestep::scenes {

using moe_routing::ExpertTrace;
using moe_routing::Scheme;
using moe_routing::Step;

namespace {

/// `answer` among up to three of `others`, in order of size.
Question ask(std::string text, std::int64_t answer, std::initializer_list<std::int64_t> others) {
  std::vector<std::int64_t> values = {answer};
  for (const std::int64_t other : others) {
    const bool known = std::find(values.begin(), values.end(), other) != values.end();
    if (values.size() < 4 && other >= 0 && !known) values.push_back(other);
  }
  std::sort(values.begin(), values.end());
  Question question;
  question.text = std::move(text);
  for (std::size_t i = 0; i < values.size(); ++i) {
    question.choices.push_back(std::to_string(values[i]));
    if (values[i] == answer) question.answer = static_cast<int>(i);
  }
  return question;
}

}  // namespace

/// Before the count: whom do most tokens want?
std::optional<Question> MoeRoutingScene::straggler_question() const {
  std::vector<int> order(trace_.expert.size());
  for (std::size_t e = 0; e < order.size(); ++e) order[e] = static_cast<int>(e);
  std::stable_sort(order.begin(), order.end(),
                   [this](int a, int b) { return expert(a).wanted > expert(b).wanted; });
  const int most = expert(order.front()).wanted;
  const int least = expert(order.back()).wanted;
  // Two that are wanted most often are no straggler that one could name.
  if (expert(order[1]).wanted == most && least != most) return std::nullopt;
  Question question;
  question.text = "Look at the tokens' colours. Which expert will be the straggler?";
  const std::size_t named = std::min<std::size_t>(order.size(), 3);
  std::vector<int> shown(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(named));
  std::sort(shown.begin(), shown.end());
  for (const int e : shown) question.choices.push_back(fmt::format("E{}", e));
  question.choices.push_back("None: all are wanted alike");
  const auto place = std::find(shown.begin(), shown.end(), order.front()) - shown.begin();
  question.answer = most == least ? static_cast<int>(named) : static_cast<int>(place);
  question.because = most == least
                         ? fmt::format("Each of {} experts is wanted {} times.", experts(), most)
                         : fmt::format("E{} is wanted {} times, E{} only {} times.", order.front(),
                                       most, order.back(), least);
  return question;
}

/// Before the slots are laid out, with a limit on them.
Question MoeRoutingScene::dropped_question() const {
  int over = 0;
  int most = 0;
  for (const ExpertTrace& each : trace_.expert) {
    over += each.wanted > trace_.capacity ? 1 : 0;
    most = std::max(most, each.wanted);
  }
  const std::int64_t all = static_cast<std::int64_t>(trace_.tokens) * trace_.top_k;
  Question question =
      ask(fmt::format("An expert takes at most {}. How many of {} choices will be dropped?",
                      trace_.capacity, all),
          trace_.dropped(),
          {0, std::max(0, most - trace_.capacity), trace_.dropped() * 2, all / 2,
           trace_.dropped() + 1});
  question.because =
      trace_.dropped() == 0
          ? fmt::format("None: the busiest expert is wanted {} times.", most)
          : fmt::format("{} of {} experts {} wanted more often than that; what is over is dropped.",
                        over, experts(), over == 1 ? "is" : "are");
  return question;
}

/// Before the product: whole tiles, whatever lies in them.
Question MoeRoutingScene::slots_question() const {
  const std::int64_t kept = trace_.kept();
  const std::int64_t tile = trace_.tile;
  const std::int64_t dense = (kept + tile - 1) / tile * tile;
  int most_tiles = 0;
  for (const ExpertTrace& each : trace_.expert) most_tiles = std::max(most_tiles, each.tiles);
  Question question = ask(
      fmt::format("{} tokens go to their experts, who multiply whole tiles of {}. How many slots "
                  "will the tensor cores run?",
                  kept, tile),
      trace_.slots(),
      {kept, dense, most_tiles * tile * experts(), tile * experts(), trace_.slots() + tile,
       trace_.slots() * 2});
  question.because = fmt::format("{} tiles of {}; {} slots of them hold no token.",
                                 trace_.tiles_run, tile, trace_.slots() - kept);
  if (trace_.scheme == Scheme::padded_to_capacity) {
    question.because += " In this scheme every expert has as many as the fullest may have.";
  }
  return question;
}

std::optional<Question> MoeRoutingScene::question(Cursor cursor) const {
  if (shown_tokens() == 0) return std::nullopt;
  const auto before = [&](Step step) { return cursor.tile == static_cast<int>(step); };
  if (before(Step::count)) return straggler_question();
  const bool limited = trace_.capacity >= 0;
  if (before(Step::offset)) return limited ? dropped_question() : slots_question();
  if (before(Step::multiply) && limited) return slots_question();
  return std::nullopt;
}

}  // namespace tilestep::scenes
