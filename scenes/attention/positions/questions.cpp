// The questions of the lesson on positions before a step, and the events of its trace.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/attention/positions/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using positions::Break, positions::Moved, positions::Phase;
using words::number, words::significant;

/// Before a pair turns. The answers are those of a sound run.
std::optional<Question> PositionsScene::pair_question(int next) const {
  const bool sound = trace_.broken == Break::none;
  if (next == 1 && sound) {
    return of_kind(
        "shift-both",
        ask("Both tokens move on by 1000 positions. What becomes of their score?",
            "It stays the same", {"It shrinks", "It grows", "It depends on the frequencies"},
            turns(trace_.method)
                ? "both hands of a wheel turn by the same angle, and a score knows the "
                  "angle between them alone."
                : "nothing turns, and the distance is the same."));
  }
  if (next == 2 && sound) {
    return of_kind(
        "turn-values",
        ask("Queries and keys turn. Do values turn too?", "No, they are stored as they are",
            {"Yes, like their keys", "Yes, but the other way round", "Only every second pair"},
            "positions are to change the weights, and a value is what is weighted: the "
            "cache has it bit for bit as it came."));
  }
  if (next == 3 && sound && turns(trace_.method)) {
    int best = 0;
    double most = -1;
    for (int i = 0; i < pairs(); ++i) {
      const double change = std::abs(static_cast<double>(trace_.term(trace_.last(), i)) -
                                     static_cast<double>(trace_.term(trace_.last() - 1, i)));
      if (change > most) {
        most = change;
        best = i;
      }
    }
    const auto name = [](int i) { return fmt::format("Frequency {}", i); };
    return of_kind("next-token",
                   ask("Which frequency tells a key at distance 1 best from one at distance 0?",
                       name(best), {name(0), name(pairs() / 2), name(pairs() - 1), name(1)},
                       fmt::format("its term changes by {}; a slow wheel has hardly moved after a "
                                   "token, and tells far tokens apart.",
                                   number(most, 2))));
  }
  if (next == pairs()) {
    const int d = trace_.last();
    const double score = *score_at(d, {pairs(), static_cast<int>(Phase::score)});
    const double before = *score_at(d, {pairs() - 1, static_cast<int>(Phase::score)});
    if (!std::isfinite(score)) return std::nullopt;
    const auto axes = extent().axes;
    const auto axis = std::find_if(axes.begin(), axes.end(), [](const auto& one) {
      return one.name == picture::Name("score");
    });
    return of_kind(
        "slowest",
        ask_to_set(
            fmt::format("{} of {} frequencies give {} at distance {}. What is the score with "
                        "the last one?",
                        pairs() - 1, pairs(), number(before, 2), d),
            {"near_plot"}, "score", score, 0.06 * (axis->high - axis->low),
            fmt::format("the slowest wheel adds {}: it has hardly turned in {} tokens.",
                        number(score - before, 2), d)));
  }
  return std::nullopt;
}

Question PositionsScene::extension_question() const {
  int unfinished = 0;
  positions::Turning rope = trace_.turning();
  rope.method = positions::Method::rope;
  for (const double each : turns_of(rope)) unfinished += each * trace_.trained_length < 1 ? 1 : 0;
  return of_kind("unfinished",
                 ask_count(fmt::format("Trained on {} tokens: how many of the {} wheels never came "
                                       "full circle?",
                                       trace_.trained_length, pairs()),
                           unfinished, {0, 1, unfinished + 1, unfinished - 1, pairs()},
                           "beyond that length their hands stand where none stood in training."));
}

Question PositionsScene::launch_question() const {
  double apart = 0, together = 0;
  for (const Moved& one : trace_.apart) apart += one.read + one.written;
  for (const Moved& one : trace_.together) together += one.read + one.written;
  return of_kind("launch-bytes",
                 ask_number(
                     "Norm of q, norm of k, rotation, store: four launches. How many bytes "
                     "do they move for each that one launch moves?",
                     together > 0 ? apart / together : 0, {1.0, 4.0, 3.0, 1.5},
                     [](double times) { return fmt::format("{}×", significant(times, 3)); },
                     "apart, q is moved twice and k three times; together each is read once "
                     "and written once.",
                     0.01));
}

std::optional<Question> PositionsScene::question(const View& view) const {
  const int next = view.cursor.tile + 1;
  if (next > trace_.length()) return std::nullopt;
  std::optional<Question> question = next <= pairs()              ? pair_question(next)
                                     : next == trace_.extension() ? extension_question()
                                                                  : launch_question();
  return placed(std::move(question), report_, picture::Key{"gap"});
}

void PositionsScene::find_events() {
  events_.clear();
  if (turns(trace_.method)) {
    const std::vector<double> each = turns_of(trace_.turning());
    for (int i = 0; i < pairs(); ++i) {
      if (each[static_cast<std::size_t>(i)] * positions::kTokens >= 1) continue;
      events_.push_back({{i + 1, 0}, "a wheel slower than these tokens"});
      break;
    }
  }
  const int last = static_cast<int>(Phase::score);
  if (trace_.result.wrong > 0) events_.push_back({{pairs(), last}, "numbers are wrong"});
  events_.push_back({{trace_.extension(), last}, "past the trained length"});
  events_.push_back({{trace_.length(), last}, "one launch for four"});
}

}  // namespace tilestep::scenes
