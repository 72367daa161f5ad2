// Questions about the measurements of the lesson on attention. A bench without a table or column gets no question
// about it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/attention/flash_attention/scene.hpp"
#include "scenes/shared/measured.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {
namespace {

std::optional<double> rate(const lab::Report& bench, std::string_view rung) {
  return rate_of(bench, "ladder_measured", rung, "4096");
}

/// With and without a matrix of scores.
std::optional<Question> stored_question(const lab::Report& bench) {
  const auto naive = rate(bench, "naive"), flash = rate(bench, "flash-2");
  return ask_faster(bench, {"Ladder"}, "stored", {flash, naive, "TFLOP/s"},
                    "naive and flash-2 compute the same products, at head dimension 128 and length "
                    "4096. How many times as fast is flash-2, which stores no score?",
                    {1.2, 2, 4, 8, 16}, "no score goes through memory");
}

/// Which loop is the outer one.
std::optional<Question> loops_question(const lab::Report& bench) {
  const auto first = rate(bench, "flash-1"), second = rate(bench, "flash-2");
  return ask_faster(
      bench, {"Ladder"}, "loops", {second, first, "TFLOP/s"},
      "flash-1 runs a block per head, keys in the outer loop; flash-2 a block per query tile. How "
      "many times as fast is flash-2, at head dimension 128 and length 4096?",
      {1.2, 2, 4, 8, 16, 32}, "O stays in registers, and all multiprocessors have work");
}

std::optional<Question> causal_question(const lab::Report& bench) {
  const auto of = [&](const char* length) {
    return number_with(bench, "causal",
                       {{"rung", "flash-2"}, {"head_dim", "128"}, {"length", length}}, "ratio");
  };
  const auto is_short = of("1024"), is_long = of("16384");
  if (!is_short || !is_long) return std::nullopt;
  return about_view(
      "Causal", "causal-gain",
      ask_ratio(
          "A causal mask halves the work. How many times as fast is flash-2 with it, at length "
          "1024 and head dimension 128?",
          *is_short, {1, 1.3, 1.6, 2, 2.5, *is_long},
          fmt::format("a launch ends with its longest block, which sees all keys, and at 1024 "
                      "there are only 128 blocks in all ({:.2f}×, and {:.2f}× at 16384, {}).",
                      *is_short, *is_long, measured::where_measured(bench))));
}

/// Counted bytes of the same attention.
std::optional<Question> dram_question(const lab::Report& bench) {
  const auto of = [&](const char* rung) {
    return number_with(bench, "bytes", {{"rung", rung}, {"head_dim", "128"}}, "dram");
  };
  const auto naive = of("naive"), flash = of("flash-2");
  if (!naive || !flash || *flash <= 0) return std::nullopt;
  return about_view(
      "Bytes", "dram",
      ask_ratio("How many times as many bytes does naive move to and from DRAM as flash-2, with 16 "
                "heads of 128 at length 8192?",
                *naive / *flash, {2, 8, 30, 60, 120},
                fmt::format("naive writes every score and reads it back ({:.0f} MB against {:.0f} "
                            "MB, counted, {}).",
                            *naive, *flash, measured::where_measured(bench))));
}

}  // namespace

std::vector<Question> FlashAttentionScene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench, {stored_question(bench), loops_question(bench), causal_question(bench),
                          dram_question(bench)});
}

}  // namespace tilestep::scenes
