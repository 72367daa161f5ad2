// The cost of 8 bits: five runs on the same numbers, one bar each, at the end of the run.
#include <fmt/format.h>

#include <algorithm>

#include "scenes/attention/flash_attention/scene.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using flash_attention::QuantizedRow;
using words::significant;

namespace {

std::string share_of(double error) {
  return significant(100 * error, 2) + " %";
}

}  // namespace

double FlashAttentionScene::worst_error() const {
  double worst = 0;
  for (const QuantizedRow& row : trace_.quantized) worst = std::max(worst, row.o_rms);
  return worst;
}

/// One bar per format: the error of O. The run's own is marked.
Box FlashAttentionScene::quantized(const FlashMoment& now) const {
  const bool known = now.through && now.step > 0;
  std::vector<Box> rows;
  for (int i = 0; i < std::ssize(trace_.quantized); ++i) {
    const QuantizedRow& row = trace_.quantized[static_cast<std::size_t>(i)];
    const bool own = row.format == trace_.dtype && row.smooth_k == trace_.smooth_k;
    Bars bar{items("o_error", std::vector{known ? static_cast<float>(row.o_rms) : 0.0f}), "error",
             "one"};
    bar.items.ids = {i};
    bar.items.about = {{Name("format"), {i}}};
    bar.items.state.all = !known ? State::to_come : own ? State::current : State::plain;
    Box made = box({"format", i}, {std::move(bar)}, text(name_of_row(row)),
                   {.least_height = 0.86f, .most_height = 1.5f, .left = 8.4f, .right = 3.6f});
    if (known) made.value = text(share_of(row.o_rms));
    rows.push_back(std::move(made));
  }
  return labelled(
      {"quantized"}, std::move(rows),
      text("O by format of Q and K: rms error / rms of O", "error of O by format", "error of O"),
      {.close = true, .rank = 2, .weight = 0.4f});
}

std::string FlashAttentionScene::explain_quantized(const FlashMoment& now, const Key& key) const {
  if (key.i < 0 || key.i >= std::ssize(trace_.quantized)) return {};
  const QuantizedRow& row = trace_.quantized[static_cast<std::size_t>(key.i)];
  std::string said = fmt::format("Q and K multiplied as {}", name_of_row(row));
  if (!now.through || now.step == 0) return said;
  said += fmt::format("\nO: off by {} rms, {} at most, of its own rms", share_of(row.o_rms),
                      share_of(row.o_largest));
  if (flash_attention::is_quantized(row.format)) {
    said += fmt::format("\nscores: off by {} rms", significant(row.score_rms, 2));
  }
  return said + "\nagainst double on the same BF16 numbers";
}

std::string FlashAttentionScene::quantized_sentence() const {
  double plain = 0, smooth = 0;
  for (const QuantizedRow& row : trace_.quantized) {
    if (row.format == trace_.dtype) (row.smooth_k ? smooth : plain) = row.o_rms;
  }
  return fmt::format("O is off by {} in {} with K as is, {} without K's mean, and {} in BF16.",
                     share_of(plain), name_of(trace_.dtype), share_of(smooth),
                     share_of(trace_.quantized[0].o_rms));
}

Question FlashAttentionScene::quantized_question() const {
  const auto& rows = trace_.quantized;
  const auto worst = std::max_element(
      rows.begin(), rows.end(),
      [](const QuantizedRow& a, const QuantizedRow& b) { return a.o_rms < b.o_rms; });
  std::vector<std::string> others;
  for (const std::size_t row : {3u, 1u, 4u, 2u, 0u}) others.push_back(name_of_row(rows[row]));
  std::string why;
  for (const QuantizedRow& row : rows) {
    why += fmt::format("{}{} {}", why.empty() ? "" : ", ", name_of_row(row), share_of(row.o_rms));
  }
  return about(
      {"quantized"},
      ask(fmt::format(
              "The same {} numbers went through five kernels. Which Q and K put O furthest off?",
              name_of(trace_.data)),
          name_of_row(*worst), others, "its error is the largest relative to O: " + why + "."));
}

}  // namespace tilestep::scenes
