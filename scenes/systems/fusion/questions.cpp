// The questions of the lesson on fusion before a step, and the events of its trace.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenes/shared/words.hpp"
#include "scenes/systems/fusion/scene.hpp"

namespace tilestep::scenes {

using fusion::Phase, fusion::Step;
using words::counted, words::significant;

std::optional<Question> FusionScene::chain_question(int next) const {
  const auto say = [](double bytes) { return significant(bytes, 3) + " B"; };
  const Cursor before{next - 1, fusion::kPhases - 1}, after{next, fusion::kPhases - 1};
  if (next == 1) {
    return of_kind(
        "flops",
        ask("Three kernels become one. What becomes of the arithmetic?", "It stays the same",
            {"A third of it is left", "Half of it is left", "It grows a little"},
            "the same sums and products are computed; only the trips between them go."));
  }
  if (next == 2) {
    const double moved = moved_by(trace_.unfused, after);
    const int bytes = bytes_of(trace_.dtype);
    return of_kind(
        "round-trip",
        ask_to_set(fmt::format(
                       "Unfused, {} have moved, and the norm is a launch of its own. How many have "
                       "moved after it?",
                       say(moved_by(trace_.unfused, before))),
                   {"traffic_rows"}, "bytes", moved, 0.5,
                   fmt::format("it reads h and writes n, {} bytes each: {}.", bytes, say(moved))));
  }
  const double now = moved_by(trace_.fused, before), end = moved_by(trace_.fused, after);
  const bool same = trace_.fused.launch[2] == trace_.fused.launch[1];
  return of_kind(
      "codes",
      ask_number(fmt::format("Fused, {} have moved. How many in all, once the codes are written?",
                             say(now)),
                 end, {now + 2, now + 3, now + 4, now + 0.5, now}, say,
                 same ? "n is still in registers; a code is a byte."
                      : "n is read again, and a code is a byte.",
                 0));
}

/// Before a kernel of the block.
std::optional<Question> FusionScene::kernel_question(int kernel) const {
  if (kernel == 0) {
    const int launches = trace_.kernels();
    int fused = 0;
    for (const fusion::SeamTrace& seam : trace_.seams) fused += seam.fused ? 1 : 0;
    return of_kind(
        "launches",
        ask_count(
            fmt::format(
                "A decoder block has {} operations. With {} fused, how many launches are left?",
                fusion::kOps, counted(fused, "seam")),
            launches, {fusion::kOps, launches + 1, launches - 1, launches + 2},
            "each fused seam takes one launch away."));
  }
  const int first = first_op(kernel);
  if (first > 0) {
    fusion::Group pair{first - 1, first};
    const std::string why = fusion::why_not(pair);
    const bool tile =
        fusion::kind_of(static_cast<fusion::Op>(first - 1)) == fusion::Kind::attention;
    if (tile && !why.empty()) {
      return of_kind(
          "whole-row",
          ask("Why is the quantization that follows not in the attention kernel?",
              "A scale needs all heads",
              {"It cannot store FP8", "It has no registers left", "It would change the result"},
              why + "."));
    }
  }
  const Sums sums = sums_of(kernel);
  const auto say = [](double bytes) { return significant(bytes, 3) + " B"; };
  const double moves = sums.read + sums.written;
  return of_kind(
      "kernel-bytes",
      ask_number(fmt::format("Next: {}. How many bytes per number of the width does it move?",
                             operations(kernel)),
                 moves, {moves + sums.saved, sums.read, 2 * moves, moves + 2}, say,
                 sums.saved > 0
                     ? fmt::format("{} more stay on the chip.", say(sums.saved))
                     : fmt::format("it reads {} and writes {}.", say(sums.read), say(sums.written)),
                 0.01));
}

std::optional<Question> FusionScene::question(const View& view) const {
  const int next = view.cursor.tile + 1;
  if (next > trace_.length()) return std::nullopt;
  std::optional<Question> question =
      next <= fusion::kChain ? chain_question(next) : kernel_question(next - fusion::kChain - 1);
  return placed(std::move(question), report_, picture::Key{"gap"});
}

void FusionScene::find_events() {
  events_.clear();
  for (int at = 1; at < fusion::kChain; ++at) {
    const auto i = static_cast<std::size_t>(at);
    if (trace_.fused.launch[i] == trace_.fused.launch[i - 1]) {
      events_.push_back(
          {{at + 1, 0}, at == 1 ? "h is still in registers" : "n is still in registers"});
    }
  }
  if (trace_.result.wrong > 0) {
    events_.push_back({{fusion::kChain, static_cast<int>(Phase::write)}, trace_.result.outcome});
  }
  events_.push_back({{fusion::kChain + 1, 0}, "the block's first kernel"});
}

}  // namespace tilestep::scenes
