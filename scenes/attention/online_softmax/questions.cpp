// The online-softmax lesson's questions before a tile, the events of its trace, and its questions about
// measurements. Scores are on screen from the start, so the choice of question gives nothing away.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "scenes/attention/online_softmax/scene.hpp"
#include "scenes/shared/measured.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using words::number;

// ---- which question when --------------------------------------------------------------------------

/// Asks each kind once, at its first occasion; a skipped rescale while its outcome is still in doubt.
void OnlineSoftmaxScene::plan_questions() {
  asked_.assign(trace_.steps.size(), Ask::nothing);
  std::set<Ask> known;
  const auto ask_first = [&](Ask kind, std::size_t tile) {
    const bool first = known.insert(kind).second;
    if (first) asked_[tile] = kind;
    return first;
  };
  const bool has_heaviest = heaviest_key() >= 0;
  int skips = 0;
  constexpr int kMostSkips = 3;
  for (std::size_t t = 0; t < asked_.size(); ++t) {
    const auto& step = trace_.steps[t];
    const bool masked = std::isinf(step.tile_max), empty = std::isinf(step.m_old);
    if (trace_.skip_rescale && !empty) {
      const bool doubt =
          trace_.first_wrong_tile < 0 || static_cast<int>(t) <= trace_.first_wrong_tile;
      if (doubt && skips++ < kMostSkips) asked_[t] = Ask::skipped;
      continue;
    }
    if (masked || empty) {
      const bool told = masked || runner_up(static_cast<int>(t));
      if (told) ask_first(masked ? Ask::masked : Ask::weight_ratio, t);
      continue;
    }
    const bool rises = step.tile_max > step.m_old;
    const bool last = t + 1 == asked_.size();
    if (ask_first(Ask::new_maximum, t)) continue;
    if (ask_first(rises ? Ask::old_weight : Ask::fresh_weight, t)) continue;
    if (last && ask_first(Ask::exact, t)) continue;
    if (!last && has_heaviest) ask_first(Ask::heaviest, t);
  }
}

/// The key with the largest score; −1 if several share it.
int OnlineSoftmaxScene::heaviest_key() const {
  const auto best = std::max_element(trace_.scores.begin(), trace_.scores.end());
  const bool alone = std::count(trace_.scores.begin(), trace_.scores.end(), *best) == 1;
  return alone ? static_cast<int>(best - trace_.scores.begin()) : -1;
}

std::optional<Question> OnlineSoftmaxScene::question(const View& view) const {
  if (view.cursor.tile >= tiles() || view.cursor.phase != 3) return std::nullopt;
  const int tile = view.cursor.tile;
  switch (asked_[tile]) {
    case Ask::nothing:
      return std::nullopt;
    case Ask::weight_ratio:
      return shuffled(of_kind("weight-ratio", weight_ratio_question(tile)), report_);
    case Ask::new_maximum:
      return shuffled(of_kind("new-maximum", new_maximum_question(tile)), report_);
    case Ask::old_weight:
      return of_kind("old-weight", old_weight_question(tile));
    case Ask::fresh_weight:
      return of_kind("fresh-weight", fresh_weight_question(tile));
    case Ask::heaviest:
      return shuffled(of_kind("heaviest-key", heaviest_question(tile)), report_);
    case Ask::masked:
      return shuffled(of_kind("masked-tile", masked_question(tile)), report_);
    case Ask::skipped:
      return shuffled(of_kind("rescale-skipped", skipped_question(tile)), report_);
    case Ask::exact:
      return shuffled(of_kind("exact", exact_question()), report_);
  }
  return std::nullopt;
}

// ---- before a tile --------------------------------------------------------------------------------

/// The largest score of a tile below its peak, if the weights' ratio is worth asking for.
std::optional<float> OnlineSoftmaxScene::runner_up(int tile) const {
  const float peak = trace_.steps[tile].tile_max, far = peak - 7;
  float best = far;
  for (int key = tile * trace_.tile_width; key < trace_.keys && tile_of(key) == tile; ++key) {
    if (trace_.scores[key] < peak) best = std::max(best, trace_.scores[key]);
  }
  return best > far ? std::optional(best) : std::nullopt;
}

/// The ratio of weights depends on the difference of scores, not on their ratio.
Question OnlineSoftmaxScene::weight_ratio_question(int tile) const {
  const auto top = static_cast<double>(trace_.steps[tile].tile_max),
             low = static_cast<double>(*runner_up(tile));
  const std::string peak = score_text(top), next = score_text(low);
  return about(
      {"weights"},
      ask_number(
          fmt::format("Tile {} has scores {} and {}. How many times as large will the weight of "
                      "the first be at the end?",
                      tile, peak, next),
          std::exp(top - low), {top / low, top - low, std::exp2(top - low), 1},
          [](double times) { return words::significant(times, 3); },
          fmt::format("exp({0} − m) / exp({1} − m) = exp({0} − {1}), whatever m comes to.", peak,
                      next),
          0));
}

Question OnlineSoftmaxScene::new_maximum_question(int tile) const {
  const auto& next = trace_.steps[tile];
  const std::string peak = score_text(next.tile_max), old = score_text(next.m_old);
  return about(
      {"sums"},
      ask(fmt::format(
              "Tile {} peaks at {}; m is {}. What happens to ℓ and O before the tile is added?",
              tile, peak, old),
          next.rescale < 1 ? "They shrink" : "They stay", {"They shrink", "They stay", "They grow"},
          fmt::format("m = max({0}, {1}) = {2}, so the factor is exp({0} − {2}) = {3}.", old, peak,
                      score_text(next.m), number(next.rescale, 3))));
}

/// The tallest weight so far is the maximum's, 1: it shrinks to the factor itself.
Question OnlineSoftmaxScene::old_weight_question(int tile) const {
  const auto& next = trace_.steps[tile];
  const std::string old = score_text(next.m_old), fresh = score_text(next.m);
  return ask_to_set(
      fmt::format(
          "Tile {} raises m from {} to {}. How tall will the tallest old weight, now 1, be then?",
          tile, old, fresh),
      {"weights"}, "weight", static_cast<double>(next.rescale), 0.08,
      fmt::format("all old weights shrink by one factor, exp({} − {}) = {}.", old, fresh,
                  number(next.rescale, 3)));
}

Question OnlineSoftmaxScene::fresh_weight_question(int tile) const {
  const auto& next = trace_.steps[tile];
  const double weight = std::exp(static_cast<double>(next.tile_max) - static_cast<double>(next.m));
  const std::string peak = score_text(next.tile_max), m = score_text(next.m);
  return ask_to_set(
      fmt::format("Tile {} peaks at {}; m stays {}. How tall will its largest weight be?", tile,
                  peak, m),
      {"weights"}, "weight", weight, 0.08,
      fmt::format("a weight says how far a score is below the maximum so far: exp({} − {}) = {}.",
                  peak, m, number(weight, 3)));
}

Question OnlineSoftmaxScene::heaviest_question(int tile) const {
  const int best = heaviest_key();
  // The best keys of the other tiles, the closest score first.
  std::vector<std::pair<float, int>> others;
  for (int first = 0; first < trace_.keys; first += trace_.tile_width) {
    const int end = std::min(first + trace_.tile_width, trace_.keys);
    const auto top = std::max_element(trace_.scores.begin() + first, trace_.scores.begin() + end);
    const int key = static_cast<int>(top - trace_.scores.begin());
    if (tile_of(key) != tile_of(best)) others.emplace_back(-*top, key);
  }
  std::sort(others.begin(), others.end());
  std::vector<std::string> names;
  for (const auto& [score, key] : others) names.push_back(fmt::format("key {}", key));
  const auto thing = [](const std::string& choice) {
    return picture::Key{"score", std::stoi(choice.substr(4))};
  };
  return about_each(
      thing,
      ask(fmt::format("{} tiles remain. Which key will have the largest weight at the end?",
                      tiles() - tile),
          fmt::format("key {}", best), names,
          fmt::format("its score is the highest, {0}: every other weight ends as exp(s − {0}) < 1, "
                      "whatever its tile.",
                      score_text(trace_.scores[best]))));
}

Question OnlineSoftmaxScene::masked_question(int tile) const {
  const std::string text = fmt::format(
      "Every key of tile {} is masked: its scores are −∞. What happens to ℓ and O?", tile);
  // Before any other key ℓ and O are 0, and would be if they shrank or restarted.
  const bool first = std::isinf(trace_.steps[tile].m);
  return about(
      {"sums"},
      first ? ask(text, "They stay 0",
                  {"They become NaN", "They become −∞", "ℓ counts the masked keys"},
                  "exp(−∞ − m) = 0; while m itself is −∞ the kernel sets every weight to 0, "
                  "since −∞ − (−∞) is NaN.")
            : ask(text, "They stay", {"They start again at 0", "They shrink", "They become NaN"},
                  "each weight is exp(−∞ − m) = 0, and m stays, so the factor is 1."));
}

Question OnlineSoftmaxScene::skipped_question(int tile) const {
  const auto& next = trace_.steps[tile];
  const bool wrong = trace_.first_wrong_tile == tile;
  return about(
      {"sums"},
      ask(fmt::format("The rescale is skipped. Is the output still right after tile {}?", tile),
          wrong ? "It is wrong" : "It is still right", {"It is still right", "It is wrong"},
          wrong ? fmt::format(
                      "the maximum rose from {} to {}, and the old sums needed a factor of {}.",
                      score_text(next.m_old), score_text(next.m),
                      number(std::exp(next.m_old - next.m), 3))
                : "the factor would have been 1, or nothing was summed yet."));
}

Question OnlineSoftmaxScene::exact_question() const {
  const double exact = trace_.exact_output;
  const double off = std::abs(static_cast<double>(trace_.steps.back().output) - exact);
  const double share = off / std::max(std::abs(exact), 1e-30);
  const std::vector<std::string> classes = {"By less than 0.01 %", "By 0.01 % to 1 %",
                                            "By more than 1 %"};
  const std::size_t is = share < 1e-4 ? 0 : share <= 1e-2 ? 1 : 2;
  return about(
      {"bar_output"},
      ask("One pass, no score read twice. How far from the exact softmax will O / ℓ end up?",
          classes[is], classes,
          fmt::format("the subtracted m cancels in the quotient and only rounding is left: "
                      "it ends at {}, the exact value is {}.",
                      number(trace_.steps.back().output, 6), number(exact, 6))));
}

// ---- events ---------------------------------------------------------------------------------------

/// Names only the first of consecutive tiles that raise the maximum.
void OnlineSoftmaxScene::find_events() {
  bool rising = false, masked = false;
  for (int t = 0; t < tiles(); ++t) {
    const auto& step = trace_.steps[t];
    const bool rises = std::isfinite(step.m_old) && step.m > step.m_old;
    const bool gone = std::isinf(step.tile_max);
    if (rises && !rising) {
      events_.push_back({{t + 1, 0}, fmt::format("m rises to {}", score_text(step.m))});
    }
    if (gone && !masked) {
      events_.push_back({{t + 1, 0}, fmt::format("tile {} is masked", t)});
    }
    if (trace_.first_wrong_tile == t) events_.push_back({{t + 1, 3}, "the output goes wrong"});
    rising = rises;
    masked = gone;
  }
  if (tiles() > 0) {
    events_.push_back(
        {{tiles(), 3}, fmt::format("O / ℓ = {}", number(trace_.steps.back().output, 3))});
  }
}

// ---- about measurements ---------------------------------------------------------------------------

/// Reads that hit a cache cost little; reads from memory cost their bytes.
std::vector<Question> OnlineSoftmaxScene::measured_questions(const lab::Report& bench) const {
  std::vector<Question> all;
  const std::string where = measured::where_measured(bench);
  const auto add = [&](const char* id, const char* table, CellTexts three, CellTexts one,
                       std::string text, const char* view, const char* why) {
    const auto slow = number_with(bench, table, three, "bandwidth");
    const auto fast = number_with(bench, table, one, "bandwidth");
    if (!slow || !fast || *slow <= 0) return;
    Question question = of_kind(id, ask_ratio(std::move(text), *fast / *slow, {3, 1.5, 1.1, 4, 2},
                                              fmt::format("{} ({:.0f} against {:.0f} GB/s, {}).",
                                                          why, *fast, *slow, where)));
    question.masks = {view};
    all.push_back(shuffled(std::move(question), bench));
  };
  add("cached-reads", "ladder_measured", {{"rung", "three-pass"}, {"columns", "8192"}},
      {{"rung", "online-one-read"}, {"columns", "8192"}},
      "Rows of 8192 columns: three-pass reads each element three times, online-one-read once. How "
      "many times as fast is online-one-read?",
      "Ladder", "a cache answers most of the second and third reads");
  add("saved-reads", "ladder_uncached", {{"rung", "three-pass"}}, {{"rung", "online-one-read"}},
      "Now more rows are in flight than any cache holds. Three reads and a write against "
      "one read and a write: how many times as fast is online-one-read?",
      "Beyond L2", "every read goes to memory: four transfers per element against two");
  return all;
}

std::vector<std::string> OnlineSoftmaxScene::stage_knobs() const {
  return {"preset", "tile_width", "skip_rescale"};
}

}  // namespace tilestep::scenes
