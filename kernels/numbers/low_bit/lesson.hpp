#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/lessons.hpp"
#include "kernels/numbers/low_bit/formats.hpp"
#include "kernels/numbers/low_bit/kernels.hpp"

/// The low-bit lesson: a small matrix of weights in few bits. A format is a few codes and a scale that neighbours share;
/// the lesson records how a group's scale follows from its weights, and which code each weight gets.
namespace tilestep::low_bit {

/// The kernel source shown with the picture of a group, and of the product.
inline constexpr std::string_view kSourcePath = "kernels/numbers/low_bit/quantize.cu";
inline constexpr std::string_view kProductPath = "kernels/numbers/low_bit/product.cu";

enum class Data { normal, heavy_tailed, outlier_rows, positive };
constexpr auto names_of(Data) {
  return std::to_array<std::string_view>({"normal", "heavy-tailed", "outlier-rows", "positive"});
}

/// A way to choose codes by the inputs that a layer meets (recipe/recipe.hpp).
enum class Recipe { none, gptq, awq, smooth };
constexpr auto names_of(Recipe) {
  return std::to_array<std::string_view>({"none", "gptq", "awq", "smooth"});
}

struct Params {
  Format format = Format::int4;
  Group group = Group::g32;
  Data data = Data::normal;
  double outlier = 6;   ///< of one weight, in standard deviations; 0: it is like the others
  int outlier_at = 45;  ///< which one
  Break broken = Break::none;
  Recipe recipe = Recipe::none;
  std::int64_t seed = 1;
};
/// The knobs, bound to Params.
const lab::KnobTable<Params>& knob_table();

/// W: so many output channels, each of so many inputs.
inline constexpr Matrix kMatrix{8, 256};
inline constexpr int kWeightCount = kMatrix.rows * kMatrix.columns;
/// Standard deviation of the weights, about that of a model's linear layers, and the largest magnitude.
inline constexpr double kDeviation = 0.02, kMostWeight = 0.12;

/// W in BF16 as the kernel gets it.
std::vector<std::uint16_t> weights_of(const Params& params);
/// x, the layer's input: normal numbers of deviation 1 in BF16.
std::vector<std::uint16_t> input_of(const Params& params);

/// A group as the kernel noted it, with the errors of its weights, once they have codes.
struct GroupTrace {
  float low = 0, high = 0;  ///< what its weights span
  float wanted = 0;         ///< the scale before it was rounded to its format
  float step = 0;           ///< the scale: value = number · step + offset
  float offset = 0;
  int zero = 0;      ///< the code of 0 (int4-zero-point)
  double worst = 0;  ///< the largest |value − weight|
  double rms = 0;    ///< root of the mean square of value − weight
  int nothing = 0;   ///< weights whose value is 0, though they are not
  int cut = 0;       ///< weights past the largest code by more than half a spacing
  bool operator==(const GroupTrace&) const = default;
};

/// One format on the same weights, input and knobs.
struct Ledger {
  Format format = Format::int4;
  Group group = Group::g32;
  double bits = 0;           ///< a weight, scales counted in
  double weight_error = 0;   ///< RMS of value − weight, % of the weights' RMS
  double product_error = 0;  ///< the same of W · x
  double divergence = 0;     ///< KL divergence of softmax(W · x), in nats
  bool operator==(const Ledger&) const = default;
};

/// W's way to the FMAs, by the addresses of the kernels' accesses: bytes, each of an array once a kernel.
struct Way {
  int codes = 0, scales = 0;  ///< read from device memory; with the scales what belongs to them
  int written = 0, read_back = 0;  ///< numbers in device memory
  int numbers = 0;                 ///< in registers, as they were multiplied
  int fmas = 0;
  int moved() const { return codes + scales + written + read_back; }
  bool operator==(const Way&) const = default;
};

/// A group where something was broken on purpose.
struct Wronged {
  float own_step = 0;          ///< its scale by the sound kernel
  double own_rms = 0;          ///< and the error with that
  float step = 0, offset = 0;  ///< that its codes were multiplied by, whatever is stored
  bool operator==(const Wronged&) const = default;
};

/// Inputs of the small layer that a recipe is shown on.
inline constexpr int kRecipeInputs = 32;

/// A step of a recipe: a column of gptq, an exponent that awq or smooth tries.
struct RecipeStep {
  double at = 0;     ///< the column, from 1; the exponent α
  double error = 0;  ///< of the product, in %, with what the recipe has chosen so far
  double plain = 0;  ///< with as much rounded to nearest
  /// [kRecipeInputs] RMS error of each rounded column (gptq), mean |x| (awq), largest |x| / s (smooth).
  std::vector<double> first;
  /// [kRecipeInputs] RMS by which each column to come was corrected (gptq), s (awq), largest |w| · s (smooth).
  std::vector<double> second;
  bool operator==(const RecipeStep&) const = default;
};

/// The picture's data.
struct Trace {
  Format format = Format::int4;
  Group group = Group::g32;  ///< as the format has it
  int steps = 0;             ///< groups, row by row
  std::array<int, 3>
      lines{};  ///< of kSourcePath that find the range, choose the scale, write the codes
  std::vector<float> weights;  ///< [kWeightCount]
  std::vector<int> codes;      ///< as stored, of each weight
  std::vector<float> values;   ///< that they were multiplied as
  std::vector<GroupTrace> groups;
  std::vector<Ledger> formats;  ///< all, in the order of Format, with nothing broken
  Break broken = Break::none;
  std::vector<Way>
      ways;  ///< this run's; where that is unfused the fused one too. Recordings may have none
  std::vector<Wronged> wronged;  ///< by group; none where the result is right
  std::vector<double> exact;     ///< W · x with the BF16 weights, by row; none without `ways`
  std::vector<float> y;          ///< the kernel's
  std::vector<float> sound_y;    ///< the sound kernel's, where `wronged` has groups
  Recipe recipe = Recipe::none;
  std::vector<RecipeStep> recipe_steps;  ///< none without a recipe

  bool has_product() const { return !ways.empty(); }
  bool is_wrong() const { return broken != Break::none && broken != Break::unfused; }
  int size() const { return kWeightCount / steps; }  ///< weights of a group
  int group_at(int weight) const { return weight / size(); }
  bool operator==(const Trace&) const = default;
};

/// As it is written in texts: "INT4", "MXFP4".
std::string_view label_of(Format format);

/// The numbers that a format's codes stand for, in units of the scale, by code; NaN: no code of the format.
std::vector<double> numbers_of(Format format);

/// Trace::lines in this build; and of kProductPath the lines that make or read a number and multiply it.
std::array<int, 3> phase_lines(Format format);
std::array<int, 2> product_lines(bool fused);
/// RMS of got − want, in % of want's.
double error_percent(const std::vector<float>& got, const std::vector<double>& want);
/// Throws Error naming the missing or wrong member.
Trace trace_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Trace& trace);
/// The step of the recipe with the least error; nullptr: there is none.
const RecipeStep* best_of(const Trace& trace);
/// One sentence about a run.
std::string summary_of(const Trace& trace);
/// The report's tables of a trace's data.
std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::low_bit
