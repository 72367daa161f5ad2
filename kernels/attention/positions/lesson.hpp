#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attention/positions/kernels.hpp"
#include "kernels/attention/positions/method.hpp"
#include "kernels/lessons.hpp"

/// The lesson on positions: attention knows where a token stands because queries and keys are turned, pair by pair, by
/// angles that grow with the position. A word that comes again and again is projected to the same query and key each
/// time; a fused kernel norms and turns them and writes the keys into a paged cache, and the last one's query is
/// multiplied with all keys, frequency by frequency.
namespace tilestep::positions {

inline constexpr std::string_view kSourcePath = "kernels/attention/positions/heads.cu";
inline constexpr std::string_view kScoresPath = "kernels/attention/positions/scores.cu";

inline constexpr int kTokens = 32;  ///< the word, so many times in a row
/// The first tokens were in the cache when the others came.
inline constexpr int kHit = 16;
inline constexpr int kPageSize = 16;
inline constexpr int kMostShift = kMostPosition - kTokens;
/// Distances past the trained length.
inline constexpr int kSamples = 48;

struct Params {
  Method method = Method::rope;
  Pairs pairs = Pairs::half_split;
  double base = 10000;
  double scale = 4;
  int trained_length = 2048;
  int shift = 0;       ///< position of the first token
  int dim_choice = 0;  ///< 16 << dim_choice numbers of a head
  bool fused = true;
  Break broken = Break::none;
  std::int64_t seed = 1;

  int dim() const { return 16 << dim_choice; }
  Turning turning() const {
    return {.method = method,
            .base = base,
            .scale = scale,
            .trained_length = trained_length,
            .dim = dim()};
  }
};
const lab::KnobTable<Params>& knob_table();

enum class Phase { rotate, score };
constexpr auto names_of(Phase) {
  return std::to_array<std::string_view>({"rotate", "score"});
}
inline constexpr int kPhases = static_cast<int>(count_of<Phase>());

/// Bytes that a launch read and wrote per token, by its own accesses.
struct Moved {
  Stage stage = Stage::fused;
  double read = 0, written = 0;
  bool operator==(const Moved&) const = default;
};

/// Scores of keys far away, and the part of the pairs that are slow.
struct Far {
  std::vector<float> score, slow;  ///< kSamples
};

/// What went wrong in a broken run.
struct BrokenResult {
  std::string outcome;  ///< empty: nothing was broken
  int wrong = 0, elements = 0;
  bool operator==(const BrokenResult&) const = default;
};

struct Trace {
  Method method = Method::rope;
  Pairs pairs = Pairs::half_split;
  Break broken = Break::none;
  bool fused = true;
  int dim = 16, trained_length = 2048;
  double base = 10000, scale = 4;
  std::vector<int> positions;  ///< kTokens, as the kernel got them
  /// What the kernel turned, in memory's order, normed: a query and a key.
  std::vector<float> q, k;
  /// What it left: the last token's query, and all keys in the cache.
  std::vector<float> q_turned, k_turned;  ///< dim, kTokens × dim
  /// What each pair adds to the score of each key, and the scores.
  std::vector<float> terms;          ///< kTokens × pairs
  std::vector<float> scores, sound;  ///< kTokens; `sound`: without the mistake, if one was made
  int reach = 0;                     ///< the farthest distance of `far`
  Far far, untouched;                ///< with the method, and as trained
  std::vector<Moved> together, apart;
  BrokenResult result;

  Turning turning() const { return {method, base, scale, trained_length, dim}; }
  int pairs_of_head() const { return dim / 2; }
  /// The first of the pairs that came to no full turn in training; at least the last is one.
  int first_slow() const;
  int last() const { return kTokens - 1; }
  float term(int key, int pair) const {
    return terms[static_cast<std::size_t>(key * pairs_of_head() + pair)];
  }
  /// The picture's steps: one per pair, then the extension, then the launches.
  int extension() const { return pairs_of_head() + 1; }
  int length() const { return pairs_of_head() + 2; }
  /// Distance of a sample of `far`.
  int distance(int sample) const;
  bool operator==(const Trace& other) const;
};

std::vector<lab::Table> tables_of(const Trace& trace);
/// 1-based lines of kSourcePath: the norm, the pair's rotation and the store.
std::array<int, 3> step_lines();
/// … and of kScoresPath: a pair's part of the score, and what ALiBi takes off it.
std::array<int, 2> score_lines();

}  // namespace tilestep::positions
