// The Measured tab of the lesson on sparse attention, and its questions. Where a bench lacks a table, its question is
// omitted.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include "scenes/attention/sparse_attention/scene.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"

namespace tilestep::scenes {
namespace {

std::optional<Question> window_question(const lab::Report& bench) {
  const auto times = number_with(bench, "lists", {{"rung", "window 4096"}}, "times");
  const auto allowed = number_with(bench, "lists", {{"rung", "window 4096"}}, "allowed");
  if (!times || !allowed) return std::nullopt;
  return about_view("Tiles", "window-gain",
                    ask_ratio("65,536 tokens, causal. How many times as fast is a window of 4096?",
                              *times, {16.0, 4.0, 2.0},
                              fmt::format("its tiles are {:.1f} times fewer than a causal mask's, "
                                          "not 16 ({}).",
                                          *allowed, measured::where_measured(bench))));
}

std::optional<Question> block_question(const lab::Report& bench) {
  const auto of = [&](const char* rung) {
    return number_with(bench, "lists", {{"rung", rung}}, "times");
  };
  const auto few = of("5 % of the blocks"), half = of("50 % of the blocks");
  if (!few || !half) return std::nullopt;
  return about_view(
      "Tiles", "block-gain",
      ask_ratio("Blocks of 128 × 128, half of them left out: twice as fast or so. And with 95 % "
                "of them left out?",
                *few, {10.0, 40.0, 2.0},
                fmt::format("whole tiles are left out, so that little else is left: {:.2f} times "
                            "at 50 % ({}).",
                            *half, measured::where_measured(bench))));
}

std::optional<Question> choice_question(const lab::Report& bench) {
  const auto more =
      number_with(bench, "index", {{"context", "65536"}, {"rung", "scores and top-k"}}, "more");
  if (!more) return std::nullopt;
  return about_view(
      "Indexer", "choice-cost",
      ask_number(
          "The best 2048 of 65,536 scores: how much longer than the scores "
          "alone does it take to choose them too?",
          *more, {100.0, 200.0, 50.0}, [](double one) { return fmt::format("{:.0f} %", one); },
          fmt::format("few tokens pass the floor once it has risen, and no "
                      "score goes to memory ({}).",
                      measured::where_measured(bench))));
}

}  // namespace

std::vector<Question> SparseAttentionScene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench, {window_question(bench), block_question(bench), choice_question(bench)});
}

measured::Spec SparseAttentionScene::measured_spec() const {
  using namespace measured;
  return {"lists",
          {{.name = "Tiles",
            .how = "the same kernel with fewer tiles in its lists, 128 numbers a head, BF16: times "
                   "as fast as with all; dashed: what its tiles allow",
            .plots = {Bars{.id = "sparse_lists",
                           .unit = "×",
                           .rows = {.table = "lists"},
                           .label = "rung",
                           .value = "times",
                           .low = "",
                           .high = "",
                           .fraction = "",
                           .expected = "allowed",
                           .note = "{share} % of the tiles"}}},
           {.name = "Indexer",
            .how = "528 queries of 64 heads, E4M3; beside cuBLASLt, which stores each head's "
                   "products",
            .filters = {{"sparse_context", "context", "{} tokens", "65536", "context"}},
            .plots = {Bars{.id = "sparse_index",
                           .unit = "TFLOP/s",
                           .rows = {.table = "index"},
                           .label = "rung",
                           .value = "tflops"}},
            .needs = "index"},
           {.name = "Decoding",
            .how = "2048 rows of 1152 bytes a request, gathered through a page table, beside "
                   "reading as many bytes",
            .plots = {Bars{.id = "sparse_decode",
                           .unit = "GB/s",
                           .rows = {.table = "decode"},
                           .label = "rung",
                           .value = "bandwidth"}},
            .needs = "decode"}}};
}

}  // namespace tilestep::scenes
