// The online-softmax lesson's questions before a tile, the events of its trace, and its questions about
// measurements. Scores are on screen from the start, so the choice of question gives nothing away.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/attention/online_softmax/scene.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using online_softmax::StepRecord;
using words::number;

// ---- before a tile --------------------------------------------------------------------------------

namespace {

/// The largest score of a tile below its peak, if the weights' ratio is worth asking for.
std::optional<float> runner_up(const online_softmax::Trace& trace, int tile) {
  const float peak = trace.steps[tile].tile_max, far = peak - 7;
  float best = far;
  for (int key = trace.first_key(tile); key < trace.first_key(tile + 1); ++key) {
    if (trace.scores[key] < peak) best = std::max(best, trace.scores[key]);
  }
  return best > far ? std::optional(best) : std::nullopt;
}

/// The key with the largest score; −1 if several share it.
int heaviest_key(const std::vector<float>& scores) {
  const auto best = std::max_element(scores.begin(), scores.end());
  const bool alone = std::count(scores.begin(), scores.end(), *best) == 1;
  return alone ? static_cast<int>(best - scores.begin()) : -1;
}

/// The best keys of the other tiles, the closest score first.
std::vector<std::string> other_heavy_keys(const online_softmax::Trace& trace, int best) {
  std::vector<std::pair<float, int>> others;
  const auto scores = trace.scores.begin();
  for (int tile = 0; tile < trace.tiles(); ++tile) {
    if (tile == trace.tile_of(best)) continue;
    const auto top =
        std::max_element(scores + trace.first_key(tile), scores + trace.first_key(tile + 1));
    others.emplace_back(-*top, static_cast<int>(top - scores));
  }
  std::sort(others.begin(), others.end());
  std::vector<std::string> names;
  for (const auto& [score, key] : others) names.push_back(fmt::format("key {}", key));
  return names;
}

}  // namespace

/// Each kind at its first occasion; a skipped rescale while its outcome is still in doubt.
std::vector<Occasion> OnlineSoftmaxScene::occasions() const {
  const auto skips = [this](int tile) {
    return trace_.skip_rescale && std::isfinite(trace_.steps[tile].m_old);
  };
  const auto masked = [this](int tile) { return std::isinf(trace_.steps[tile].tile_max); };
  // A tile with scores, after others.
  const auto plain = [this, skips, masked](int tile) {
    return !skips(tile) && !masked(tile) && std::isfinite(trace_.steps[tile].m_old);
  };
  const auto rises = [this](int tile) {
    return trace_.steps[tile].tile_max > trace_.steps[tile].m_old;
  };
  using Asked = std::optional<Question>;
  const auto skipped = [this, skips](int tile) -> Asked {
    const bool doubt = trace_.first_wrong_tile < 0 || tile <= trace_.first_wrong_tile;
    if (!skips(tile) || !doubt) return std::nullopt;
    const StepRecord& next = trace_.steps[tile];
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
  };
  const auto masked_tile = [this, skips, masked](int tile) -> Asked {
    if (skips(tile) || !masked(tile)) return std::nullopt;
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
  };
  // The ratio of weights depends on the difference of scores, not on their ratio.
  const auto weight_ratio = [this, masked](int tile) -> Asked {
    if (masked(tile) || std::isfinite(trace_.steps[tile].m_old)) return std::nullopt;
    const auto second = runner_up(trace_, tile);
    if (!second) return std::nullopt;
    const double top = trace_.steps[tile].tile_max, low = *second;
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
  };
  const auto new_maximum = [this, plain](int tile) -> Asked {
    if (!plain(tile)) return std::nullopt;
    const StepRecord& next = trace_.steps[tile];
    const std::string peak = score_text(next.tile_max), old = score_text(next.m_old);
    return about(
        {"sums"},
        ask(fmt::format(
                "Tile {} peaks at {}; m is {}. What happens to ℓ and O before the tile is added?",
                tile, peak, old),
            next.rescale < 1 ? "They shrink" : "They stay",
            {"They shrink", "They stay", "They grow"},
            fmt::format("m = max({0}, {1}) = {2}, so the factor is exp({0} − {2}) = {3}.", old,
                        peak, score_text(next.m), number(next.rescale, 3))));
  };
  // The tallest weight so far is the maximum's, 1: it shrinks to the factor itself.
  const auto old_weight = [this, plain, rises](int tile) -> Asked {
    if (!plain(tile) || !rises(tile)) return std::nullopt;
    const StepRecord& next = trace_.steps[tile];
    const std::string old = score_text(next.m_old), fresh = score_text(next.m);
    return ask_to_set(
        fmt::format(
            "Tile {} raises m from {} to {}. How tall will the tallest old weight, now 1, be then?",
            tile, old, fresh),
        {"weights"}, "weight", next.rescale, 0.08,
        fmt::format("all old weights shrink by one factor, exp({} − {}) = {}.", old, fresh,
                    number(next.rescale, 3)));
  };
  const auto fresh_weight = [this, plain, rises](int tile) -> Asked {
    if (!plain(tile) || rises(tile)) return std::nullopt;
    const StepRecord& next = trace_.steps[tile];
    const double weight = std::exp(double{next.tile_max} - double{next.m});
    const std::string peak = score_text(next.tile_max), m = score_text(next.m);
    return ask_to_set(
        fmt::format("Tile {} peaks at {}; m stays {}. How tall will its largest weight be?", tile,
                    peak, m),
        {"weights"}, "weight", weight, 0.08,
        fmt::format("a weight says how far a score is below the maximum so far: exp({} − {}) = {}.",
                    peak, m, number(weight, 3)));
  };
  const auto exact = [this, plain](int tile) -> Asked {
    if (!plain(tile) || tile + 1 < tiles()) return std::nullopt;
    const double right = trace_.exact_output, output = trace_.steps.back().output;
    const double share = std::abs(output - right) / std::max(std::abs(right), 1e-30);
    const std::vector<std::string> classes = {"By less than 0.01 %", "By 0.01 % to 1 %",
                                              "By more than 1 %"};
    const std::size_t is = share < 1e-4 ? 0 : share <= 1e-2 ? 1 : 2;
    return about(
        {"bar_output"},
        ask("One pass, no score read twice. How far from the exact softmax will O / ℓ end up?",
            classes[is], classes,
            fmt::format("the subtracted m cancels in the quotient and only rounding is left: "
                        "it ends at {}, the exact value is {}.",
                        number(output, 6), number(right, 6))));
  };
  const int best = heaviest_key(trace_.scores);
  const auto heaviest = [this, plain, best](int tile) -> Asked {
    if (!plain(tile) || tile + 1 == tiles() || best < 0) return std::nullopt;
    const auto thing = [](const std::string& choice) {
      return picture::Key{"score", std::stoi(choice.substr(4))};
    };
    return about_each(
        thing,
        ask(fmt::format("{} tiles remain. Which key will have the largest weight at the end?",
                        tiles() - tile),
            fmt::format("key {}", best), other_heavy_keys(trace_, best),
            fmt::format("its score is the highest, {0}: every other weight ends as exp(s − {0}) < "
                        "1, whatever its tile.",
                        score_text(trace_.scores[best]))));
  };
  return {{"rescale-skipped", skipped, 3},
          {"masked-tile", masked_tile},
          {"weight-ratio", weight_ratio},
          {"new-maximum", new_maximum},
          {"old-weight", old_weight},
          {"fresh-weight", fresh_weight},
          {"exact", exact},
          {"heaviest-key", heaviest}};
}

std::optional<Question> OnlineSoftmaxScene::question(const View& view) const {
  const auto asked = asked_.find(view.cursor.tile);
  if (asked == asked_.end() || view.cursor.phase != 3) return std::nullopt;
  return asked->second;
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
  const auto cached = [&](const char* rung) {
    return number_with(bench, "ladder_measured", {{"rung", rung}, {"columns", "8192"}},
                       "bandwidth");
  };
  const auto beyond = [&](const char* rung) {
    return number_with(bench, "ladder_uncached", {{"rung", rung}}, "bandwidth");
  };
  const std::vector<double> others = {3, 1.5, 1.1, 4, 2};
  return asked_of(
      bench,
      {ask_faster(bench, {"Ladder"}, "cached-reads",
                  {cached("online-one-read"), cached("three-pass"), "GB/s"},
                  "Rows of 8192 columns: three-pass reads each element three times, "
                  "online-one-read once. How many times as fast is online-one-read?",
                  others, "a cache answers most of the second and third reads"),
       ask_faster(bench, {"Beyond L2"}, "saved-reads",
                  {beyond("online-one-read"), beyond("three-pass"), "GB/s"},
                  "Now more rows are in flight than any cache holds. Three reads and a write "
                  "against one read and a write: how many times as fast is online-one-read?",
                  others, "every read goes to memory: four transfers per element against two")});
}

}  // namespace tilestep::scenes
