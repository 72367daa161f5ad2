// The decoding lesson's questions before a step, and the events of its trace.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/attention/decode/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using decode::Break, decode::PartTrace;
using words::counted, words::number, words::significant;

/// Once: does a larger batch feed the tensor cores?
Question DecodeScene::batch_question() const {
  const decode::LayerShape layer = params_.layer();
  const double point = decode::intensity(layer, params_.kv_dtype, params_.scales);
  const bool right = point >= decode::kRidge;
  const std::string same = right ? "Arithmetic, at any batch" : "Memory, at any batch";
  return of_kind(
      "batch-and-roof",
      ask(fmt::format("What limits the attention of {} as the batch grows?",
                      name_of(params_.scheme)),
          same,
          {right ? "Memory, at any batch" : "Arithmetic, at any batch",
           "Memory first, arithmetic from some batch on"},
          fmt::format("each request has its own cache, so twice the batch reads twice the bytes: "
                      "it stays at {} FLOP per byte, and the ridge is at {:.0f}.",
                      significant(point, 3), decode::kRidge)));
}

/// Before the merge: the weight of the part with the lowest maximum?
std::optional<Question> DecodeScene::weight_question() const {
  if (trace_.parts.size() < 2 || trace_.broken == Break::unmerged_splits) return std::nullopt;
  const PartTrace* least = &trace_.parts.front();
  for (const PartTrace& part : trace_.parts) {
    if (part.m < least->m) least = &part;
  }
  const int split = trace_.item_of(*least).split;
  const auto weight = static_cast<double>(least->weight);
  const double even = 1.0 / static_cast<double>(trace_.parts.size());
  return of_kind(
      "merge-weight",
      ask_number(
          fmt::format("What factor scales part {} in the merge?", split), weight,
          {1.0, even, weight * 2, weight / 3, 0.75}, [](double value) { return number(value, 3); },
          fmt::format("its weight is e^(m − M): its own m = {}, and M is the largest m.",
                      number(static_cast<double>(least->m), 2)),
          0));
}

/// Before the look back: how many blocks were at work on average?
Question DecodeScene::at_work_question() const {
  const double mean = trace_.mean_at_work();
  const double blocks = trace_.blocks;
  return of_kind(
      "at-work",
      ask_number(
          fmt::format("{} ran on {} multiprocessors{}. How many were at work on average, "
                      "from the first block's start to the last one's end?",
                      counted(trace_.blocks, "block"), decode::kMultiprocessors,
                      trace_.clocked() ? "" : ", if all tiles take equally long"),
          mean, {blocks, decode::kMultiprocessors, blocks / 2, mean / 2, mean * 2},
          [](double value) { return number(value, 1); },
          "a block that finishes early idles until the longest ends: it is the sum of block times "
          "over the launch time.",
          0));
}

std::optional<Question> DecodeScene::question_before(int next) const {
  if (next == 1) return batch_question();
  if (next == trace_.length()) return at_work_question();
  if (trace_.act_of(next) == decode::Act::read) {
    auto asked = next == 2 ? end_question() : std::nullopt;
    return asked ? asked : busy_question(next);
  }
  return weight_question();
}

std::optional<Question> DecodeScene::question(const View& view) const {
  const int next = view.cursor.tile + 1;
  if (next > trace_.length()) return std::nullopt;
  // Below the cache there is room.
  return placed(question_before(next), report_, picture::Key{"below"});
}

// ---- events -------------------------------------------------------------------------------------------------

void DecodeScene::find_events() {
  events_.push_back({{1, 0}, "the kernel begins to read"});
  if (trace_.merged) events_.push_back({{trace_.answered(), 0}, "the parts are merged"});
}

}  // namespace tilestep::scenes
