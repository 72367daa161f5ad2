// The low-bit lesson's questions. Weights are on screen from the start, so that the choice of question gives nothing away.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/numbers/low_bit/scene.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using low_bit::Format, low_bit::GroupTrace;
using words::significant;

void LowBitScene::plan_questions() {
  const std::size_t last = trace_.groups.size() - 1;
  // Before the product's own step; a recording may end with the last group.
  const std::size_t product = trace_.has_product() ? last + 1 : last;
  asked_.assign(product + 1, Ask::nothing);
  // Where scales or zero points are wrong, what usually holds does not.
  if (!trace_.is_wrong()) asked_[product] = Ask::product;
  if (last >= 1 && product != 1 && !trace_.is_wrong()) asked_[1] = Ask::zeros;
  if (last >= 3 && !trace_.is_wrong()) asked_[2] = Ask::scale;
  if (last >= 4) asked_[3] = Ask::bits;
  if (last >= 5 && !trace_.is_wrong()) asked_[4] = Ask::landing;
}

std::optional<Question> LowBitScene::question(const View& view) const {
  const int next = view.cursor.tile;
  if (has_recipe()) return std::nullopt;
  if (next >= std::ssize(asked_) || view.cursor.phase != 2) return std::nullopt;
  switch (asked_[static_cast<std::size_t>(next)]) {
    case Ask::nothing:
      return std::nullopt;
    case Ask::zeros:
      return placed(zeros_question(next), report_, {"group"});
    case Ask::scale:
      return placed(scale_question(next), report_, {"group"});
    case Ask::bits:
      return placed(bits_question(), report_, {"group"});
    case Ask::landing:
      return landing_question(next);
    case Ask::product:
      return placed(product_question(), report_, {"low_bit"});
  }
  return std::nullopt;
}

std::optional<Question> LowBitScene::zeros_question(int next) const {
  const GroupTrace& group = at(next);
  const int size = trace_.size();
  return of_kind(
      "zeros",
      ask_count(fmt::format("Group {}'s largest weight is {}. How many of its {} weights will be "
                            "stored as 0?",
                            next + 1, weight_text(largest(next)), size),
                group.nothing, {0, size / 4, size / 2, size - 1},
                fmt::format("codes are {} apart, and what is nearer to 0 than to the first of them "
                            "is 0.",
                            significant(static_cast<double>(group.step), 3))));
}

std::optional<Question> LowBitScene::scale_question(int next) const {
  const double now = static_cast<double>(at(next).step),
               before = static_cast<double>(at(next - 1).step);
  const char* answer = now < before   ? "It is smaller"
                       : now > before ? "It is larger"
                                      : "It is the same";
  return of_kind(
      "scale",
      ask(fmt::format("Group {}'s largest weight is {}, group {}'s {}. How does its scale compare?",
                      next + 1, weight_text(largest(next)), next, weight_text(largest(next - 1))),
          answer, {"It is smaller", "It is the same", "It is larger"},
          fmt::format("each group has a scale of its own: {} after {}.", significant(now, 3),
                      significant(before, 3))));
}

std::optional<Question> LowBitScene::bits_question() const {
  const low_bit::Ledger& own = trace_.formats[static_cast<std::size_t>(trace_.format)];
  const int bits = code_bits(trace_.format);
  return of_kind("bits", ask_number(
                             fmt::format("How many bits does a weight take as {}, its share of the "
                                         "scale counted?",
                                         label_of(trace_.format)),
                             own.bits, {double(bits), bits + 1.0, bits + 2.0, bits * 2.0},
                             [](double n) { return significant(n, 4); },
                             fmt::format("{} weights share {} bits of scale: {} + {}/{}.",
                                         trace_.size(), scale_bits(trace_.format), bits,
                                         scale_bits(trace_.format), trace_.size()),
                             0));
}

/// About the weight that is farthest from its code.
std::optional<Question> LowBitScene::landing_question(int next) const {
  const auto error = [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    return std::abs(trace_.values[at] - trace_.weights[at]);
  };
  const int size = trace_.size(), first = next * size, most = largest(next);
  int weight = first;
  for (int i = first; i < first + size; ++i) {
    if (i != most && error(i) > error(weight)) weight = i;
  }
  const auto value = static_cast<double>(trace_.values[static_cast<std::size_t>(weight)]);
  const auto step = static_cast<double>(at(next).step);
  return of_kind(
      "landing",
      ask_to_set(
          fmt::format("Group {}'s largest weight is {}. On which line will weight {}, {}, land?",
                      next + 1, weight_text(most), weight, weight_text(weight)),
          {"group"}, "value", value, std::max(step / 2, 0.002),
          fmt::format("the scale is {}, and the nearest code stands for {}.", significant(step, 3),
                      significant(value, 3))));
}

std::optional<Question> LowBitScene::product_question() const {
  const low_bit::Ledger& own = trace_.formats[static_cast<std::size_t>(trace_.format)];
  const double off = trace_.has_product() ? product_error() : own.product_error;
  const double ratio = off / own.weight_error;
  const char* answer = ratio > 2 ? "Far more" : ratio < 0.5 ? "Far less" : "About as much";
  return of_kind(
      "product",
      ask("A row's product with x adds up 256 weights times inputs. By how much is W · x "
          "off, in % of its size, compared with the weights?",
          answer, {"Far less", "About as much", "Far more"},
          fmt::format("errors add up like the terms do, at random: weights are {} % off, "
                      "the product {} %.",
                      significant(own.weight_error, 3), significant(off, 3))));
}

std::vector<Question> LowBitScene::measured_questions(const lab::Report& bench) const {
  const auto time = [&](const char* rung) {
    return number_with(bench, "quantize", {{"rung", rung}}, "time");
  };
  const auto share = number_with(bench, "quantize", {{"rung", "int8"}}, "fraction");
  std::optional<Question> of_copy;
  const auto rate = number_with(bench, "quantize", {{"rung", "int8"}}, "bandwidth");
  if (share && rate && *share > 0.9) {
    of_copy = about_view(
        "Quantize", "of-copy",
        ask_number(
            "What share of a plain copy's bandwidth does quantizing to INT8 reach?", 100 * *share,
            {70, 40, 10}, [](double percent) { return fmt::format("{:.0f} %", percent); },
            fmt::format("a weight's three bytes take longer to move than finding ranges and "
                        "rounding, which are done meanwhile ({:.0f} GB/s, {}).",
                        *rate, measured::where_measured(bench)),
            0));
  }
  const auto product = [&](const char* batch, const char* column) {
    return number_with(bench, "linear", {{"layer", "14336 × 4096"}, {"batch", batch}}, column);
  };
  const auto ternary = [&](const char* format) {
    return number_with(bench, "gemv", {{"layer", "14336 × 4096"}, {"format", format}}, "time");
  };
  const auto unfused = [&](const char* format) {
    return number_with(bench, "unfused", {{"batch", "1"}, {"format", format}}, "time");
  };
  return asked_of(
      bench,
      {of_copy,
       ask_faster(
           bench, {"Batch"}, "batch-one",
           {product("1", "library_time"), product("1", "time"), "ms", 4},
           "W, 14336 × 4096, has 3.9 times fewer bytes in INT4 than in BF16. How many times as "
           "fast is X · W for one row of X?",
           {1, 3.9, 7.8},
           "at batch 1 reading W is most of the time, and what a launch takes besides is the same"),
       ask_faster(bench, {"Batch"}, "batch-many",
                  {product("512", "library_time"), product("512", "time"), "ms", 4},
                  "W is 14336 × 4096, X has 512 rows. How many times as fast is X · W with W in "
                  "INT4 as in BF16?",
                  {1.5, 2, 3.9},
                  "by then the tensor cores are the limit, and they multiply BF16 in either case"),
       ask_faster(bench, {"Batch"}, "both-sides",
                  {product("512", "library_time"), product("512", "fp8_time"), "ms", 4},
                  "W, 14336 × 4096, and X with 512 rows are both in FP8. How many times as fast is "
                  "X · W as in BF16?",
                  {0.9, 1, 4},
                  "the tensor cores multiply FP8 twice as fast, and what surrounds them is no "
                  "faster"),
       ask_faster(
           bench, {"Fused or not"}, "fused",
           {unfused("INT4, by memory"), unfused("INT4, fused"), "ms", 4},
           "W, 14336 × 4096, is in INT4, X has one row. Numbers in BF16 can be written to memory "
           "for "
           "cuBLAS, or made in the kernel that multiplies. How many times as fast is the second?",
           {1, 2, 4},
           "the numbers are written and read again, two bytes a weight each time, where the codes "
           "have half a byte"),
       ask_faster(
           bench, {"Formats"}, "additions",
           {ternary("ternary, tables"), ternary("ternary"), "ms", 4},
           "Ternary weights need additions alone. One kernel adds up entries of tables, another "
           "has the tensor cores multiply by −1, 0 and 1: W is 14336 × 4096, X has one row. How "
           "many times as fast is the second?",
           {0.25, 0.5, 1},
           "a look-up for four weights is an access to shared memory, which serves one warp a "
           "cycle; the tensor cores do not wait in that line"),
       ask_faster(
           bench, {"Quantize"}, "half-the-code", {time("int8"), time("int4"), "ms", 3},
           "INT4's codes are half as large as INT8's. How many times as fast does a kernel "
           "write them?",
           {1, 1.5, 2, 4},
           "both kernels read two bytes a weight and do as much with it; only what they write is "
           "halved")});
}

std::vector<std::string> LowBitScene::stage_knobs() const {
  if (has_recipe()) return {"recipe"};
  if (low_bit::has_own_group(trace_.format)) return {"format", "outlier"};
  return {"format", "group", "outlier"};
}

}  // namespace tilestep::scenes
