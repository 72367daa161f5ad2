// Questions about the measurements of the lesson on decoding. Where a bench lacks a table or column, its question is
// omitted.
#include <fmt/format.h>

#include "scenes/attention/decode/scene.hpp"
#include "scenes/shared/measured.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {
namespace {

/// How close to a read-only kernel.
std::optional<Question> read_question(const lab::Report& bench) {
  const auto share =
      number_with(bench, "ladder_measured", {{"rung", "paged-balanced"}}, "fraction");
  if (!share) return std::nullopt;
  const std::vector<std::string> choices = {"More than 95 %", "85 to 95 %", "60 to 85 %",
                                            "Less than 60 %"};
  const std::size_t is = *share > 0.95 ? 0 : *share >= 0.85 ? 1 : *share >= 0.6 ? 2 : 3;
  return about_view("Ladder", "read",
                    ask("paged-balanced looks up its pages, multiplies on tensor cores and merges "
                        "parts. How much of a read-only kernel's bandwidth does it reach?",
                        choices[is], choices,
                        fmt::format("it reaches {} of it ({}).", words::percent(*share),
                                    measured::where_measured(bench))));
}

/// A pass over K and V per query head, against one per group.
std::optional<Question> repeat_question(const lab::Report& bench) {
  const auto time = [&](const char* rung) {
    return number_with(bench, "ladder_measured", {{"rung", rung}}, "time");
  };
  const auto apart = time("paged-repeat-kv"), together = time("paged-balanced");
  if (!apart || !together || *together <= 0) return std::nullopt;
  const auto bytes = [&](const char* rung) {
    return number_with(bench, "bytes", {{"rung", rung}}, "dram");
  };
  std::string because = fmt::format("the other takes {:.3g} against {:.3g} ms, {}", *apart,
                                    *together, measured::where_measured(bench));
  if (const auto more = bytes("paged-repeat-kv"), once = bytes("paged-balanced"); more && once) {
    because +=
        fmt::format(", and DRAM delivers {:.0f} MB instead of {:.0f}, counted", *more, *once);
  }
  return about_view(
      "Ladder", "repeat",
      ask_ratio("Eight query heads share a K/V head. paged-repeat-kv reads the cache once for "
                "each. How many times as fast is paged-balanced, which does all eight together?",
                *apart / *together, {1.2, 2, 4, 8, 16}, because + "."));
}

/// One request alone, with and without splits.
std::optional<Question> split_question(const lab::Report& bench) {
  const auto rate = [&](const char* launching) {
    return number_with(bench, "batches", {{"batch", "1"}, {"rung", launching}}, "bandwidth");
  };
  const auto one = rate("a block each"), pieces = rate("equal pieces");
  return ask_faster(bench, {"Batch"}, "split", {pieces, one, "GB/s"},
                    "One request with four K/V heads: four blocks, or pieces for all "
                    "multiprocessors, merged. How many times as fast are the pieces?",
                    {1.2, 4, 10, 20, 33}, "four blocks leave most multiprocessors idle");
}

std::optional<Question> format_question(const lab::Report& bench) {
  const auto speedup = [&](const char* format) {
    return number_with(bench, "formats", {{"kv_dtype", format}, {"page_size", "16"}}, "speedup");
  };
  const auto four = speedup("int4"), eight = speedup("fp8");
  if (!four || !eight) return std::nullopt;
  return about_view(
      "Formats", "format",
      ask_ratio("An INT4 cache has a quarter of BF16's bytes, plus a scale per token. How many "
                "times as fast is a step?",
                *four, {1, 1.5, 2, 2.5, 3, 4},
                fmt::format("numbers must be unpacked, and scales are bytes too ({:.2f} times, and "
                            "{:.2f} times in FP8, {}).",
                            *four, *eight, measured::where_measured(bench))));
}

/// Eight query heads per K/V head, against one.
std::optional<Question> sharing_question(const lab::Report& bench) {
  const auto tokens = [&](const char* scheme) {
    return number_with(bench, "schemes", {{"scheme", scheme}}, "tokens");
  };
  const auto alone = tokens("mha"), group = tokens("gqa");
  if (!alone || !group || *alone <= 0) return std::nullopt;
  return about_view("Sharing", "sharing",
                    ask_ratio("With GQA eight query heads share a K/V head. How many times MHA's "
                              "tokens per second is that?",
                              *group / *alone, {1, 2, 4, 8, 16},
                              fmt::format("a step's time follows its bytes ({:.3g} times, {}).",
                                          *group / *alone, measured::where_measured(bench))));
}

}  // namespace

std::vector<Question> DecodeScene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench, {sharing_question(bench), split_question(bench), repeat_question(bench),
                          read_question(bench), format_question(bench)});
}

}  // namespace tilestep::scenes
