// What the MoE lesson asks before a step; every answer is read off the trace.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenes/experts/moe_routing/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using moe_routing::ExpertTrace, moe_routing::Scheme, moe_routing::Step;

/// Before the count: who is wanted most often?
std::optional<Question> MoeRoutingScene::busiest_question() const {
  std::vector<int> order(trace_.expert.size());
  for (std::size_t e = 0; e < order.size(); ++e) order[e] = static_cast<int>(e);
  std::stable_sort(order.begin(), order.end(),
                   [this](int a, int b) { return expert(a).wanted > expert(b).wanted; });
  const int most = expert(order.front()).wanted;
  const int least = expert(order.back()).wanted;
  // With two that are wanted most often there is no one answer.
  if (expert(order[1]).wanted == most && least != most) return std::nullopt;
  const bool alike = most == least;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 3); ++i) {
    names.push_back(fmt::format("E{}", order[i]));
  }
  const std::string none = "None: all are wanted equally";
  names.push_back(none);
  Question question =
      ask("Look at the tokens' colours. Which expert is wanted most often?",
          alike ? none : names.front(), names,
          alike ? fmt::format("Each of {} experts is wanted {}.", experts(), words::times(most))
                : fmt::format("E{} is wanted {}, E{} only {}.", order.front(), words::times(most),
                              order.back(), least == 0 ? "never" : words::times(least)));
  for (const std::string& choice : question.choices) {
    question.where.push_back(choice == none ? picture::Key{"columns"}
                                            : picture::Key{"name", std::stoi(choice.substr(1))});
  }
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
  return about(
      {"columns"},
      ask_count(
          fmt::format("An expert takes at most {}. How many of {} choices will be dropped?",
                      trace_.capacity, all),
          trace_.dropped(),
          {0, std::max(0, most - trace_.capacity), trace_.dropped() * 2, all / 2,
           trace_.dropped() + 1},
          trace_.dropped() == 0
              ? fmt::format("None: even the busiest expert is wanted only {}.", words::times(most))
              : fmt::format(
                    "{} of {} experts {} wanted more often than that; the excess is dropped.", over,
                    experts(), over == 1 ? "is" : "are")));
}

/// Before the product: whole tiles, whatever lies in them.
Question MoeRoutingScene::slots_question() const {
  const std::int64_t kept = trace_.kept();
  const std::int64_t tile = trace_.tile;
  const std::int64_t dense = (kept + tile - 1) / tile * tile;
  int most_tiles = 0;
  for (const ExpertTrace& each : trace_.expert) most_tiles = std::max(most_tiles, each.tiles);
  std::string because =
      fmt::format("{} of {}; {} hold no token.", words::counted(trace_.tiles_run, "tile"), tile,
                  words::counted(trace_.slots() - kept, "slot"));
  if (trace_.scheme == Scheme::padded_to_capacity) {
    because += " In this scheme every expert gets as many tiles as the fullest may need.";
  }
  return about(
      {"columns"},
      ask_count(
          fmt::format(
              "{} tokens go to their experts, which multiply whole tiles of {}. How many slots "
              "will the tensor cores run?",
              kept, tile),
          trace_.slots(),
          {kept, dense, most_tiles * tile * experts(), tile * experts(), trace_.slots() + tile,
           trace_.slots() * 2},
          std::move(because)));
}

std::optional<Question> MoeRoutingScene::question(const View& view) const {
  if (shown_tokens() == 0) return std::nullopt;
  const auto before = [&](Step step) { return view.cursor.tile == static_cast<int>(step); };
  if (before(Step::count)) return busiest_question();
  const bool limited = trace_.capacity >= 0;
  if (before(Step::offset)) return limited ? dropped_question() : slots_question();
  if (before(Step::multiply) && limited) return slots_question();
  return std::nullopt;
}

}  // namespace tilestep::scenes
