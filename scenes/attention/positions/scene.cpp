#include "scenes/attention/positions/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/base/lab/source.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using positions::Method, positions::Phase;
using words::number, words::significant;

StepAxis PositionsScene::loaded(const positions::Trace&) {
  find_events();
  return {trace_.length(), positions::kPhases, "step", {"rotate", "score"}, ""};
}

// ---- where the cursor is ------------------------------------------------------------------------------

int PositionsScene::turned(Cursor cursor) const {
  return std::min(cursor.tile, pairs());
}
int PositionsScene::summed(Cursor cursor) const {
  return std::clamp(scored(cursor) ? cursor.tile : cursor.tile - 1, 0, pairs());
}

int PositionsScene::distance(const View& view) const {
  constexpr int kFirst = 3;
  return std::clamp(view.pick("distance", kFirst), 0, trace_.last());
}

double PositionsScene::Hand::angle() const {
  return std::atan2(y, x) / (2 * std::numbers::pi);
}
bool PositionsScene::Hand::is_number() const {
  return std::isfinite(x) && std::isfinite(y);
}

namespace {

PositionsScene::Hand hand_of(const positions::Trace& trace, const std::vector<float>& numbers,
                             int first, int pair) {
  const auto number = [&](int which) {
    const int at = first + positions::number_of(trace.pairs, trace.dim, pair, which);
    return static_cast<double>(numbers[static_cast<std::size_t>(at)]);
  };
  return {number(0), number(1)};
}

}  // namespace

PositionsScene::Hand PositionsScene::query_hand(int pair, bool is_turned) const {
  return hand_of(trace_, is_turned ? trace_.q_turned : trace_.q, 0, pair);
}
PositionsScene::Hand PositionsScene::key_hand(int key, int pair, bool is_turned) const {
  return is_turned ? hand_of(trace_, trace_.k_turned, key * trace_.dim, pair)
                   : hand_of(trace_, trace_.k, 0, pair);
}

std::optional<double> PositionsScene::score_at(int distance, Cursor cursor) const {
  const int count = summed(cursor), key = trace_.last() - distance;
  if (count == 0) return std::nullopt;
  if (count == pairs()) return trace_.scores[static_cast<std::size_t>(key)];
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += static_cast<double>(trace_.term(key, i));
  return sum;
}

/// The rim of all wheels. Only YaRN's temperature makes a hand longer as it turns.
double PositionsScene::longest_hand() const {
  double most = 0;
  for (int i = 0; i < pairs(); ++i) {
    for (const Hand& hand : {query_hand(i, false), key_hand(0, i, false)})
      most = std::max(most, std::hypot(hand.x, hand.y));
  }
  return most * static_cast<double>(size_of(trace_.turning()));
}

/// The most that a pair can add to a score: both hands in one direction.
double PositionsScene::largest_term(int pair) const {
  const auto size = static_cast<double>(size_of(trace_.turning()));
  const Hand q = query_hand(pair, false), k = key_hand(0, pair, false);
  return size * size * std::hypot(q.x, q.y) * std::hypot(k.x, k.y) /
         std::sqrt(static_cast<double>(trace_.dim));
}

// ---- words --------------------------------------------------------------------------------------------

/// "once in 6.28 tokens".
std::string PositionsScene::wave_words(int pair) const {
  const double each = turns_of(trace_.turning())[static_cast<std::size_t>(pair)];
  return each > 0 ? fmt::format("once in {} tokens", significant(1 / each, 3)) : "not at all";
}

namespace {

std::string degrees(double turns) {
  const double left = turns - std::round(turns);
  return fmt::format("{}°", number(360 * left, 0));
}

}  // namespace

std::string PositionsScene::sentence(const View& view) const {
  const Cursor cursor = view.cursor;
  const int i = pair(cursor), d = distance(view), key = trace_.last() - d;
  if (cursor.tile <= 0) {
    return fmt::format("The same word {} times: each token has the same q and the same k.",
                       positions::kTokens);
  }
  if (in_pairs(cursor) && !scored(cursor)) {
    const Hand q = query_hand(i, true), k = key_hand(key, i, true);
    if (!q.is_number() || !k.is_number())
      return fmt::format("Frequency {}: the angle is no number any more.", i);
    const double before = query_hand(i, false).angle() - key_hand(key, i, false).angle();
    return fmt::format("Frequency {} turns {}: q is now {} ahead of the k at distance {}.", i,
                       wave_words(i), degrees(q.angle() - k.angle() - before), d);
  }
  if (in_pairs(cursor)) {
    const double term = static_cast<double>(trace_.term(key, i));
    const std::string sum = number(*score_at(d, cursor), 2);
    if (i + 1 == pairs() && !trace_.result.outcome.empty())
      return fmt::format("Score {} at distance {}: {}.", sum, d, trace_.result.outcome);
    return fmt::format("Frequency {} adds {} to the score at distance {}, now {}.", i,
                       number(term, 2), d, sum);
  }
  const std::string length = std::to_string(trace_.trained_length);
  if (extends(cursor)) {
    if (trace_.method == Method::nope)
      return scored(cursor) ? "nope: all scores are equal, at any distance."
                            : "A causal mask lets token n see n tokens: equal weights, 1/n, count "
                              "them.";
    if (trace_.method == Method::alibi)
      return scored(cursor) ? "alibi: each score loses 1/256 with each token of distance."
                            : "Dashed: wavelengths that turned pairs would have; alibi turns none.";
    return scored(cursor)
               ? fmt::format("What slow wheels add past {} tokens, with {}.", length,
                             name_of(trace_.method))
               : fmt::format("Wavelengths above {} tokens were never seen whole in training.",
                             length);
  }
  const auto bytes = [](const std::vector<positions::Moved>& launches) {
    double sum = 0;
    for (const positions::Moved& one : launches) sum += one.read + one.written;
    return significant(sum, 4);
  };
  return scored(cursor) ? fmt::format("One launch moves {} bytes per token, four move {}.",
                                      bytes(trace_.together), bytes(trace_.apart))
                        : fmt::format(
                              "Norms, rotation and store as four launches: {} bytes per "
                              "token.",
                              bytes(trace_.apart));
}

std::vector<picture::Symbol> PositionsScene::symbols(const View&) const {
  return {{"q", {"hand", 0}, 1, "The last token's query: a hand on each wheel.", {"q"}},
          {"k",
           {"hand", 1},
           3,
           "The key of the token that you follow: a hand on each wheel.",
           {"keys"}}};
}

std::vector<std::string> PositionsScene::stage_knobs() const {
  return {"method", "shift", "break"};
}

// ---- tables -------------------------------------------------------------------------------------------

Cursor PositionsScene::known(const lab::Table& table, int row, int column) const {
  const Cursor summed_up{pairs(), static_cast<int>(Phase::score)};
  if (table.id == "frequencies") {
    if (column < 4) return {};
    if (column == 4) return {trace_.extension(), 0};
    return {row + 1, static_cast<int>(Phase::score)};
  }
  if (table.id == "tokens") return column < 2 ? Cursor{} : summed_up;
  if (table.id == "far")
    return column == 0 ? Cursor{} : Cursor{trace_.extension(), static_cast<int>(Phase::score)};
  if (table.id == "launches" && column > 1) {
    const bool apart = row < std::ssize(trace_.apart);
    return {trace_.length(), static_cast<int>(apart ? Phase::rotate : Phase::score)};
  }
  if (table.id == "launches") return {};
  return Scene::known(table, row, column);
}

int PositionsScene::table_row(std::string_view table_id, const View& view) const {
  if (table_id == "frequencies") return in_pairs(view.cursor) ? pair(view.cursor) : -1;
  return -1;
}

// ---- numbers beside the picture -------------------------------------------------------------------------

std::vector<Readout> PositionsScene::readouts(const View& view) const {
  const Cursor cursor = view.cursor;
  const int d = distance(view), key = trace_.last() - d;
  const std::string by = "by the kernels on " + report_.device.name;
  std::vector<Readout> all;
  all.push_back({"q_position", "q stands at", std::to_string(trace_.positions.back()), "",
                 lab::Provenance::traced, "the last token's position, as the kernel got it"});
  if (in_pairs(cursor)) all.back().about = {"hand", 0};
  all.push_back({"k_position", "k stands at",
                 std::to_string(trace_.positions[static_cast<std::size_t>(key)]), "",
                 lab::Provenance::traced,
                 "the position of the key that you follow: click a bar for another"});
  if (in_pairs(cursor)) all.back().about = {"hand", 1};
  const auto score = score_at(d, cursor);
  all.push_back({"score", fmt::format("score at {}", d), score ? number(*score, 3) : "–", "",
                 lab::Provenance::traced,
                 fmt::format("q·k / √{} from {} of {} frequencies, {}", trace_.dim, summed(cursor),
                             pairs(), by)});
  if (summed(cursor) == pairs() && trace_.result.wrong > 0) {
    all.push_back({"wrong", "wrong numbers", std::to_string(trace_.result.wrong),
                   fmt::format("of {}", trace_.result.elements), lab::Provenance::traced,
                   "of queries, keys and values, against double"});
    all.back().look = Readout::wrong;
  }
  return all;
}

// ---- the kernel -----------------------------------------------------------------------------------------

SourceMark PositionsScene::source(const View& view) const {
  enum { kPair = 1, kStore };  // of step_lines()
  const Cursor cursor = view.cursor;
  const bool in_scores = cursor.tile > 0 && scored(cursor) && cursor.tile < trace_.length();
  if (in_scores) {
    const auto lines = positions::score_lines();
    const bool biased = trace_.method == Method::alibi && summed(cursor) == pairs();
    SourceMark mark = source_mark(positions::kScoresPath, lines, biased ? 1 : 0);
    const int d = distance(view);
    mark.values[lines[0]] =
        fmt::format("at distance {}: score = {}", d, number(*score_at(d, cursor), 2));
    return mark;
  }
  const auto lines = positions::step_lines();
  SourceMark mark = source_mark(positions::kSourcePath, lines,
                                cursor.tile <= 0                 ? -1
                                : cursor.tile == trace_.length() ? kStore
                                                                 : kPair);
  if (cursor.tile > 0 && in_pairs(cursor)) {
    const int i = pair(cursor);
    mark.values[lines[kPair]] =
        fmt::format("frequency {}: q is ({}, {})", i, number(query_hand(i, true).x, 2),
                    number(query_hand(i, true).y, 2));
  }
  return mark;
}

std::optional<lab::Settings> PositionsScene::dragged(const View&, const picture::Key& item,
                                                     double value) const {
  if (!item.is({"token"})) return std::nullopt;
  const double first = std::round(value) - trace_.last();
  const double most = positions::kMostShift;
  return lab::Settings{{"shift", static_cast<std::int64_t>(std::clamp(first, 0.0, most))}};
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(positions, PositionsScene)
