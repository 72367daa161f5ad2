// Questions of the lesson on attention's gradients: before a step, and about its measurements.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <cmath>

#include "scenes/attention/attention_backward/scene.hpp"
#include "scenes/shared/measured.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using attention::LedgerRow;
using words::counted, words::number;

/// What the forward pass must leave.
Question AttentionBackwardScene::kept_question() const {
  return about({"ledger"},
               ask("Q, K and V are there anyway. What else must the forward pass leave?",
                   "O, one number per query",
                   {"The matrix of weights, and O", "O, one number per key", "Nothing else"},
                   "O gives D = rowsum(dO ∘ O), and exp(s − log-sum-exp) is the weight itself: no "
                   "maximum or sum to find."));
}

/// Recomputed weights: five products instead of four.
Question AttentionBackwardScene::products_question() const {
  return about({"scores"},
               ask_count("With stored weights a tile needs four products: dP, dV, dQ and dK. How "
                         "many does this pass compute per tile of scores?",
                         5, {4, 6, 8, 10},
                         "S = Q K^T is recomputed first: a quarter more multiplications, and no "
                         "matrix in memory."));
}

/// Blocks own keys; dQ has no owner.
Question AttentionBackwardScene::adders_question() const {
  const int blocks = steps_in_all();
  return about({"outputs"},
               ask_count(fmt::format("A block has a tile of keys, and walks over the queries. How "
                                     "many blocks add to tile {} of dQ?",
                                     trace_.chosen.q_tile),
                         blocks, {1, 2, 2 * blocks, blocks / 2},
                         "each tile of keys that it sees has a block, and they add in memory, "
                         "atomically, in any order."));
}

/// Recompute or store? By the memory held between the passes, for the whole request.
Question AttentionBackwardScene::keep_or_recompute_question() const {
  double kept = 0;
  for (const LedgerRow& row : trace_.ledger) {
    kept += static_cast<double>(row.kept);
  }
  const auto length = static_cast<double>(trace_.shape.asked_length);
  const double pitch = std::ceil(length / 8) * 8;  // of a row of weights in memory
  const double weights = trace_.shape.asked_heads * length * pitch * attention::kElementBytes;
  const double ratio = (kept + weights) / kept;
  return about(
      {"ledger"},
      ask_ratio(fmt::format("Recompute or store? For {} of length {}: how many times as much "
                            "memory is held between the passes if weights are stored?",
                            counted(trace_.shape.asked_heads, "head"), trace_.shape.asked_length),
                ratio, {1, 1.25, 2, 4, 16, 64, 256},
                fmt::format("{} would be held instead of {}; recomputing costs a quarter more "
                            "multiplications on the same tiles and has no matrix to read back.",
                            bytes_text(kept + weights), bytes_text(kept))));
}

/// exp(s − lse), where the score follows from the weight.
Question AttentionBackwardScene::weight_question(int step) const {
  const std::optional<int> key = heaviest_key(moment({step + 1, 0}));
  const double weight = key ? static_cast<double>(trace_.row.p[static_cast<std::size_t>(*key)]) : 0;
  const double lse = static_cast<double>(trace_.row.lse);
  return ask_to_set(
      fmt::format("A key of the next tile has a score of {} with query {}, whose log-sum-exp is "
                  "{}. What is its weight?",
                  number(std::log(weight) + lse, 2), trace_.chosen.query, number(lse, 2)),
      {"weights_row"}, "weight", weight, 0.05 * most_weight(),
      fmt::format("exp({} − {}) = {}.", number(std::log(weight) + lse, 2), number(lse, 2),
                  number(weight, 3)));
}

/// Each kind once, where it comes up first.
std::optional<Question> AttentionBackwardScene::question(const View& view) const {
  const int next = view.cursor.tile;
  if (!asks_at(view)) return std::nullopt;
  const bool last = next + 1 == steps_in_all();
  if (broken() && last && next > 0)
    return asked("outcome", outcome_question(trace_, "kernels were", "dQ, dK and dV", true));
  if (next == 0) {
    return asked(
        "visited",
        visited_question(
            trace_, "must be recomputed", {0},
            "no weight was kept, and a tile is skipped only where no query sees any of its keys."));
  }
  if (last) return asked("keep-or-recompute", keep_or_recompute_question());
  if (next == 1) return asked("kept", kept_question());
  if (next == 2) return asked("products", products_question());
  if (next == 3) return asked("adders", adders_question());
  if (next == 4 && heaviest_key(moment({next + 1, 0}))) {
    return of_kind("weight", weight_question(next));
  }
  return std::nullopt;
}

// ---- measured -----------------------------------------------------------------------------------------

namespace {

/// The same products on the same tensor cores, fed differently.
std::optional<Question> hopper_question(const lab::Report& bench) {
  const auto plain = rate_of(bench, "backward", "backward-recompute", "16384"),
             hopper = rate_of(bench, "backward", "backward-hopper", "16384");
  return ask_faster(
      bench, {"Backward"}, "hopper", {hopper, plain, "TFLOP/s"},
      "backward-hopper computes the same five products, with TMA and whole warpgroups. "
      "How many times as fast is it, at head dimension 128 and length 16384?",
      {1, 1.3, 2, 3, 4, 6}, "operands come from shared memory, and TMA adds up dQ");
}

}  // namespace

std::vector<Question> AttentionBackwardScene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench, {hopper_question(bench),
                          library_question(bench, "Backward", "backward", "backward-hopper")});
}

measured::Spec AttentionBackwardScene::measured_spec() const {
  using namespace measured;
  return {"backward",
          {{.name = "Backward",
            .how = "BF16, batch 1; 10 · length² · head dimension per head, half if causal, "
                   "whatever is recomputed",
            .filters = {{"backward_head_dim", "head_dim", "{}", "128", "head dimension"},
                        {"backward_mask", "mask", "{}", "none", "mask"},
                        {"backward_length", "length", "{}", "16384", "length"}},
            .plots = {Bars{.id = "attention_backward",
                           .unit = "TFLOP/s",
                           .rows = {.table = "backward"},
                           .label = "rung",
                           .value = "tflops",
                           .of = "cuDNN"},
                      Bars{.id = "backward_peers",
                           .title = "Peers, in turn with them",
                           .unit = "TFLOP/s",
                           .rows = {.table = "backward_peers"},
                           .label = "rung",
                           .value = "tflops",
                           .fraction = ""}}}}};
}

}  // namespace tilestep::scenes
