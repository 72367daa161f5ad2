#include "scenes/attention/linear_attention/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/source.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using linear_attention::Phase, linear_attention::Rule, linear_attention::kShown;
using words::number, words::percent, words::significant;

StepAxis LinearAttentionScene::loaded(const linear_attention::Trace&) {
  find_events();
  return {trace_.length(), 2, "step", {"before", "after"}, ""};
}

// ---- where the cursor is ------------------------------------------------------------------------------

LinearAttentionScene::Part LinearAttentionScene::part_of(Cursor cursor) const {
  if (cursor.tile <= 1) return Part::weights;
  if (cursor.tile < trace_.step_of_chunk(0)) return Part::tokens;
  return cursor.tile < trace_.length() ? Part::chunks : Part::lengths;
}

int LinearAttentionScene::written(Cursor cursor) const {
  const int token = token_of(cursor) - (is_second(cursor) ? 0 : 1);
  return std::clamp(token, -1, trace_.tokens - 1);
}

bool LinearAttentionScene::is_out(Cursor cursor, int token) const {
  return cursor >=
         Cursor{trace_.step_of_chunk(token / trace_.chunk), static_cast<int>(Phase::after)};
}

int LinearAttentionScene::wrong_in(int chunk) const {
  int wrong = 0;
  for (int t = first_of(chunk); t < end_of(chunk); ++t)
    wrong += trace_.wrong[static_cast<std::size_t>(t)];
  return wrong;
}

// ---- words --------------------------------------------------------------------------------------------

/// What a token has done to what the state holds for its key.
std::string LinearAttentionScene::rule_words(int token) const {
  const int key = trace_.key_of(token);
  const std::string off = percent(trace_.off(token, key));
  if (!std::isfinite(trace_.off(token, key))) return "the state holds no number any more";
  if (trace_.off(token, key) < 0.02)
    return fmt::format("for key {} the state now holds its value alone", key);
  return fmt::format("for key {} the state now holds {} of its value, and is off by {}", key,
                     number(trace_.strength(token, key), 2), off);
}

std::string LinearAttentionScene::chunk_words(Cursor cursor) const {
  const int chunk = chunk_of(cursor), first = first_of(chunk), end = end_of(chunk);
  if (!is_second(cursor)) {
    const int above = [&] {
      int count = 0;
      for (int t = first; t < end; ++t) {
        for (int j = t - first + 1; j < trace_.chunk; ++j)
          count += trace_.products[static_cast<std::size_t>(t * trace_.chunk + j)] != 0 ? 1 : 0;
      }
      return count;
    }();
    if (above > 0)
      return fmt::format("Tokens {} to {} look at each other, {} times at a later one.", first,
                         end - 1, above);
    return fmt::format("Tokens {} to {} at once: each looks at those of its chunk up to itself.",
                       first, end - 1);
  }
  if (const int wrong = wrong_in(chunk); wrong > 0)
    return fmt::format("The state adds what came before: {} numbers of the outputs are wrong.",
                       wrong);
  if (chunk == 0)
    return fmt::format(
        "No token came before: the state adds nothing. It is handed on with {} tokens.", end);
  return fmt::format("The state adds what {} tokens before said, and is handed on with {}.", first,
                     end);
}

std::string LinearAttentionScene::sentence(const View& view) const {
  const Cursor cursor = view.cursor;
  switch (part_of(cursor)) {
    case Part::weights: {
      if (cursor.tile <= 0)
        return fmt::format("A query meets {} tokens, whose keys come in turn: {} of them.",
                           trace_.tokens, trace_.repeats);
      const auto most = [](const std::vector<float>& of) {
        return static_cast<double>(*std::max_element(of.begin(), of.end()));
      };
      if (!is_second(cursor))
        return fmt::format("Softmax: the largest weight of a key is {}.",
                           percent(most(trace_.exact)));
      return fmt::format(
          "φ(q)·φ(k) on the same scale: the largest is {}, and both orders answer alike.",
          percent(most(trace_.approximate)));
    }
    case Part::tokens: {
      const int token = token_of(cursor), key = trace_.key_of(token);
      if (is_second(cursor)) return fmt::format("Token {}: {}.", token, rule_words(token));
      if (trace_.newest(token - 1, key) < 0)
        return fmt::format("Token {} brings key {} for the first time.", token, key);
      return fmt::format("Token {} brings key {} again: of the value before, S holds {}.", token,
                         key, number(trace_.strength_before(token), 2));
    }
    case Part::chunks:
      if (cursor == Cursor{trace_.step_of_chunk(trace_.chunks() - 1), 1} &&
          !trace_.result.outcome.empty())
        return fmt::format("All chunks: {}.", trace_.result.outcome);
      return chunk_words(cursor);
    case Part::lengths:
      break;
  }
  using namespace linear_attention;
  if (!is_second(cursor))
    return "With each token a cache grows, and so does the work of the next token.";
  return fmt::format("A state has {} bytes at any length, as a cache of {} tokens has.",
                     significant(state_bytes(trace_.dim), 4), trace_.dim);
}

std::vector<picture::Symbol> LinearAttentionScene::symbols(const View&) const {
  return {{"S", {"S"}, 5, "The state: the sum of all k v^T, as the rule left it.", {"s"}},
          {"φ", {"map", 0}, 0, "The feature map of queries and keys.", {}}};
}

std::vector<std::string> LinearAttentionScene::stage_knobs() const {
  return {"rule", "feature", "break"};
}

// ---- tables -------------------------------------------------------------------------------------------

Cursor LinearAttentionScene::known(const lab::Table& table, int row, int column) const {
  constexpr int kFirst = static_cast<int>(Phase::before), kSecond = static_cast<int>(Phase::after);
  if (table.id == "weights")
    return column < 2 ? Cursor{} : Cursor{1, column == 2 ? kFirst : kSecond};
  if (table.id == "answers")
    return column == 0 ? Cursor{} : Cursor{1, column == 1 ? kFirst : kSecond};
  if (table.id == "tokens")
    return column < 2 ? Cursor{}
                      : Cursor{trace_.step_of_token(row), column == 2 ? kFirst : kSecond};
  if (table.id == "chunks")
    return column < 2 ? Cursor{} : Cursor{trace_.step_of_chunk(row / trace_.chunk), kSecond};
  if (table.id == "lengths")
    return column == 0 ? Cursor{}
                       : Cursor{trace_.length(), column == 1 || column == 3 ? kFirst : kSecond};
  return Scene::known(table, row, column);
}

int LinearAttentionScene::table_row(std::string_view table_id, const View& view) const {
  const Part part = part_of(view.cursor);
  if (table_id == "tokens" && part == Part::tokens) return token_of(view.cursor);
  if (table_id == "chunks" && part == Part::chunks) return first_of(chunk_of(view.cursor));
  return -1;
}

// ---- numbers beside the picture -------------------------------------------------------------------------

std::vector<Readout> LinearAttentionScene::readouts(const View& view) const {
  using namespace linear_attention;
  const Cursor cursor = view.cursor;
  const Part part = part_of(cursor);
  const int tokens = part == Part::tokens ? written(cursor) + 1 : trace_.tokens;
  std::vector<Readout> all;
  all.push_back({"state_bytes", "state", significant(state_bytes(trace_.dim), 6), "B",
                 lab::Provenance::derived,
                 fmt::format("4 bytes · {0} · {0}, whatever has been written", trace_.dim)});
  all.push_back({"cache_bytes", "a K/V cache", significant(cache_bytes(trace_.dim, tokens), 6), "B",
                 lab::Provenance::derived,
                 fmt::format("4 bytes · {} · {} tokens so far: what softmax would keep", trace_.dim,
                             tokens)});
  if (part == Part::tokens) {
    const int token = token_of(cursor), key = trace_.key_of(token);
    const bool now = is_second(cursor);
    all.push_back({"held", fmt::format("of key {}'s value", key),
                   now                                 ? number(trace_.strength(token, key), 3)
                   : trace_.newest(token - 1, key) < 0 ? "–"
                                                       : number(trace_.strength_before(token), 3),
                   "", lab::Provenance::traced,
                   "the part of the newest value in what the kernel read from S for this key"});
  }
  const Cursor end{trace_.step_of_chunk(trace_.chunks() - 1), 1};
  if (cursor >= end && trace_.result.wrong > 0) {
    all.push_back({"wrong", "wrong numbers", std::to_string(trace_.result.wrong),
                   fmt::format("of {}", trace_.tokens * trace_.dim), lab::Provenance::traced,
                   "of the outputs by chunks, against double"});
    all.back().look = Readout::wrong;
  }
  return all;
}

// ---- the kernel -----------------------------------------------------------------------------------------

SourceMark LinearAttentionScene::source(const View& view) const {
  using namespace linear_attention;
  const Cursor cursor = view.cursor;
  const int second = is_second(cursor) ? 1 : 0;
  switch (part_of(cursor)) {
    case Part::weights:
      return source_mark(kWeightsPath, lab::source_marks(kWeightsPath).lines({"weight", "order"}),
                         cursor.tile <= 0 ? -1 : second);
    case Part::tokens: {
      const auto lines = lab::source_marks(kSourcePath).lines({"delta", "write", "read"});
      SourceMark mark = source_mark(kSourcePath, lines, second);
      if (second == 1)
        mark.values[lines[1]] = fmt::format(
            "S[0][0] = {}",
            number(static_cast<double>(trace_.at(trace_.states, token_of(cursor) * kShown, 0)), 3));
      return mark;
    }
    case Part::chunks:
      return source_mark(kChunkedPath,
                         lab::source_marks(kChunkedPath).lines({"mask", "within", "hand over"}),
                         second == 1 ? 2 : 0);
    case Part::lengths:
      break;
  }
  return source_mark(kSourcePath, lab::source_marks(kSourcePath).lines({"write", "read"}), second);
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(linear_attention, LinearAttentionScene)
