#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/lessons.hpp"

/// The online-softmax lesson: attention for one query with its keys in tiles, one pass, three
/// running numbers (maximum m, denominator l, accumulator O). Milakov & Gimelshein, "Online
/// normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022.
namespace tilestep::online_softmax {

/// The kernel source that `Trace::lines` numbers.
inline constexpr std::string_view kSourcePath = "kernels/attention/online_softmax/one_pass.cu";

enum class Preset {
  worked_example,
  random,
  rising,
  falling,
  equal,
  outlier,
  masked,
  all_masked,
  custom
};
constexpr auto names_of(Preset) {
  return std::to_array<std::string_view>({"worked-example", "random", "rising", "falling", "equal",
                                          "outlier", "masked", "all-masked", "custom"});
}
/// The format of l and O.
enum class Accumulator { fp32, fp16, bf16 };
constexpr auto names_of(Accumulator) {
  return std::to_array<std::string_view>({"fp32", "fp16", "bf16"});
}

struct Params {
  Preset preset = Preset::worked_example;
  int keys = 16;
  int tile_width = 4;  ///< keys per tile
  int head_dim = 1;    ///< components of a value vector
  Accumulator accumulator = Accumulator::fp32;
  std::int64_t seed = 1;
  bool skip_rescale = false;  ///< breaks the algorithm on purpose
  int queries = 8;
  int query = 0;  ///< the recorded one
  /// "1,2.5,-inf": for `custom`. Like the worked example's scores they repeat if there are more keys, shifted
  /// by one key per query; empty: the worked example's.
  std::string scores = {};

  int tiles() const { return (keys + tile_width - 1) / tile_width; }
};

/// The knobs, bound to Params.
const lab::KnobTable<Params>& knob_table();

/// The most scores that the knob `scores` takes, and their largest magnitude.
inline constexpr int kMostScores = 64;
inline constexpr double kMostScore = 200;
/// Whether `text` is a list of scores: numbers from −200 to 200 or -inf, with commas between.
bool is_list_of_scores(std::string_view text);
/// The list in the format of the knob `scores`, rounded to tenths. At most kMostScores.
std::string scores_text(const std::vector<float>& scores);

/// The kernels' inputs, row-major.
struct Inputs {
  std::vector<float> scores;  ///< queries × keys; −inf where masked
  std::vector<float> values;  ///< keys × head_dim
};
/// The preset's data, identical for the same Params on every machine. A row's scores span less than
/// 600, so that exp(s − max) stays within the range of a double.
Inputs make_inputs(const Params& params, lab::Progress& progress);

/// One line of the recurrence, as the kernel notes it while it runs. A tile takes four phases:
/// 0: m = max(m_old, tile_max); 1: rescale = exp(m_old − m); 2: the weights exp(s − m) and their
/// sum; 3: l and O.
struct StepRecord {
  float tile_max = 0;
  float m_old = 0;
  float m = 0;
  float rescale = 0;
  float tile_sum = 0;  ///< sum of the tile's weights
  float l_old = 0;
  float l = 0;
  float o_old = 0;
  float o = 0;       ///< component 0 of O
  float output = 0;  ///< O / l so far; 0 while l is 0
  bool operator==(const StepRecord&) const = default;
};

/// The number of phases in a tile's step.
inline constexpr int kPhases = 4;
/// Each phase's 1-based line of kSourcePath in this build, regardless of recordings.
std::array<int, kPhases> phase_lines();

/// The picture's data: one query, component 0 of its output.
struct Trace {
  int keys = 0;
  int tile_width = 0;
  int query = 0;
  bool skip_rescale = false;
  std::vector<float> scores;      ///< keys
  std::vector<float> values;      ///< keys: component 0 of each value vector
  std::vector<float> weights;     ///< keys: exp(s − m) when the key's tile was computed
  std::vector<StepRecord> steps;  ///< one per tile
  std::array<int, kPhases> lines = phase_lines();
  std::vector<double> exact_outputs;  ///< softmax over the keys up to and including each tile
  double exact_max = 0;               ///< of the whole row
  double exact_l = 0;                 ///< Σ exp(s − exact_max)
  double exact_output = 0;
  float naive_numerator = 0, naive_denominator = 0;  ///< Σ exp(s) v and Σ exp(s), by its kernel
  int first_wrong_tile = -1;                         ///< −1: the output is right after every tile

  int tiles() const { return static_cast<int>(steps.size()); }
  int tile_of(int key) const { return key / tile_width; }
  /// The first key of a tile, or, of the tile after the last, how many keys there are.
  int first_key(int tile) const { return std::min(tile * tile_width, keys); }
  bool operator==(const Trace&) const = default;
};

/// Columns of numbers, compact; non-finite numbers as lab::number_to_json writes them.
nlohmann::json to_json(const Trace& trace);
/// Throws Error naming the missing or wrong member.
Trace trace_from_json(const nlohmann::json& json);

/// The report's tables of a trace's data.
std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::online_softmax
