// The Hopper lesson's questions before a step.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenes/matmul/hopper_gemm/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using hopper_gemm::Break, hopper_gemm::What;

namespace {

/// The first event of a kind for a k-tile from `number` on; −1: none.
int first_of(const hopper_gemm::Trace& trace, What what, int number = 0) {
  const auto found =
      std::find_if(trace.events.begin(), trace.events.end(), [&](const hopper_gemm::Event& event) {
        return event.what == what && event.number >= number;
      });
  return found == trace.events.end() ? -1 : static_cast<int>(found - trace.events.begin());
}

}  // namespace

// ---- answers by reasoning -----------------------------------------------------------------------

/// Before the first copies.
Question HopperGemmScene::threads_question() const {
  const int all = 128 * (trace_.consumers + (has_producer() ? 1 : 0));
  const std::string text =
      fmt::format("{} bytes arrive in a stage. How many of this block's {} threads request them?",
                  trace_.stage_bytes, all);
  return ask_count(
      text, has_tma() ? 1 : all, {1, 32, 128, all},
      has_tma() ? "it names a box by its first row and column; the copy engine handles addresses, "
                  "edges and swizzle."
                : fmt::format("each of {} computes addresses and moves 16 bytes at a time.", all));
}

/// Before the first bytes are announced: on the ring's own scale.
Question HopperGemmScene::announced_question() const {
  const int b = trace_.stage_bytes - a_bytes();
  return ask_to_set(
      fmt::format("A k-tile has {} rows of A and {} of B, each 128 bytes long. How many bytes must "
                  "the stage's barrier wait for?",
                  trace_.rows, trace_.columns),
      {"stage_bytes"}, "bytes", trace_.stage_bytes, 0.05 * trace_.stage_bytes,
      fmt::format("{} · 128 + {} · 128 = {} + {} = {}, and rows outside the matrix count too: "
                  "they arrive as zeros.",
                  trace_.rows, trace_.columns, a_bytes(), b, trace_.stage_bytes));
}

Question HopperGemmScene::swizzle_question() const {
  const int rows = trace_.rows + trace_.columns;
  return ask_count(
      fmt::format("A stage's {} rows use a {}-byte swizzle. How many bytes of shared memory does "
                  "that cost?",
                  rows, trace_.swizzle),
      0, {16 * rows, trace_.stage_bytes / 8, trace_.swizzle, 128},
      "16-byte chunks only change places within their lines; padding would cost 16 bytes per "
      "row.");
}

/// Before the producer needs a stage that is still in use.
Question HopperGemmScene::empty_question() const {
  return about(
      {"empty_barriers"},
      ask("The producer has used every stage once. What does it wait for before it fills the "
          "next one?",
          "Its empty barrier", {"Its full barrier", "__syncthreads()", "Nothing: it goes on"},
          fmt::format("each consumer warp arrives there once its products have read the stage, {} "
                      "arrivals in all; the full barrier is for the consumers.",
                      4 * trace_.readers() * trace_.cluster)));
}

Question HopperGemmScene::consumer_question() const {
  if (trace_.readers() < trace_.consumers) {
    return ask("Consumer 1 reads nothing of this k-tile. Why?",
               "It has its own tile, and multiplies once the tensor cores are handed over",
               {"It multiplies the tile's other 64 rows with the next k-tile",
                "It fetches the next k-tile", "It has the tile's other columns"},
               "the block's tiles go to the two consumers in turn, so one can store while the "
               "other multiplies.");
  }
  const bool two = trace_.consumers > 1;
  const int b = trace_.stage_bytes - a_bytes();
  return ask(
      two ? "What does the second consumer warpgroup buy?"
          : "What would a second consumer warpgroup buy?",
      "Every byte of B is used for twice as many products",
      {"Each product takes half as long", "Each thread needs half as many sums",
       "The barriers are no longer needed"},
      fmt::format(
          "both read the same {} bytes of B and each adds 64 rows of A, so a block's tile has 128 "
          "rows instead of 64; each warpgroup still has its own 64 × {} accumulators.",
          b, trace_.columns));
}

/// How far copies can run ahead of the first products; how far they do depends on the timing of the run.
std::optional<Question> HopperGemmScene::ahead_question() const {
  if (first_of(trace_, What::issues) < 0 || trace_.stages < 2 || all_k_tiles() < 2) {
    return std::nullopt;
  }
  const int most = std::min(trace_.stages, all_k_tiles());
  return ask_count(
      fmt::format("The first k-tile is in flight. Copies of how many k-tiles can be issued before "
                  "the first is multiplied? The ring has {} stages.",
                  trace_.stages),
      most, {1, 2, most, most - 1, most + 1},
      "the producer does not wait for the bytes it has requested, only for a free "
      "stage.");
}

// ---- answers only from the run -------------------------------------------------------------------

Question HopperGemmScene::outcome_question() const {
  const std::vector<std::string> choices = {"C comes out right", "Some of C is wrong",
                                            "It hangs: a wait never ends",
                                            "The GPU ends it with an error"};
  const std::string& outcome = trace_.broken.outcome;
  const std::size_t is = outcome == "hang"                       ? 2
                         : outcome == "ended by the GPU"         ? 3
                         : outcome == "right" || outcome.empty() ? 0
                                                                 : 1;
  std::string why = trace_.broken.report;
  if (why.empty()) why = is == 0 ? "the fault did not show" : "numbers differ from the reference";
  if (why.back() == '.') why.pop_back();
  if (!trace_.broken.where.empty()) why += fmt::format(" ({})", trace_.broken.where);
  return ask(
      fmt::format("The kernel is broken on purpose: {}. What happens?", name_of(params_.broken)),
      choices[is], choices, lowered(why) + ".");
}

std::optional<Question> HopperGemmScene::question(const View& view) const {
  const int next = view.cursor.tile;
  if (next >= trace_.steps()) return std::nullopt;
  const auto asked = [&](const char* kind, Question question) {
    return std::optional(shuffled(of_kind(kind, std::move(question)), report_));
  };
  const auto before = [&](int event) { return event >= 0 && next == event; };
  const auto after = [&](int event) { return event >= 0 && next == event + 1; };
  if (broken() && next == trace_.steps() - 1) return asked("outcome", outcome_question());
  if (before(first_of(trace_, What::expects)) && has_tma() &&
      params_.broken != Break::wrong_bytes) {
    return of_kind("announced", announced_question());
  }
  if (before(first_of(trace_, What::copies)))
    return asked("threads", about({"ring"}, threads_question()));
  if (after(first_of(trace_, What::copies))) {
    if (auto ahead = ahead_question()) return asked("ahead", about({"ring"}, std::move(*ahead)));
  }
  const int reused = first_of(trace_, What::waits_empty, trace_.stages);
  if (before(reused) && params_.broken != Break::skip_empty_wait) {
    return asked("empty-barrier", empty_question());
  }
  if (after(first_of(trace_, What::issues)) && trace_.swizzle > 0) {
    return asked("swizzle", about({"swizzle"}, swizzle_question()));
  }
  if (after(first_of(trace_, What::waited)))
    return asked("consumers", about({"sums"}, consumer_question()));
  return std::nullopt;
}

std::vector<std::string> HopperGemmScene::stage_knobs() const {
  return {"variant", "stages", "consumers"};
}

}  // namespace tilestep::scenes
