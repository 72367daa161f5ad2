// The Hopper lesson's questions about its measurements. A bench that lacks a table or a column gets no question
// about it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/matmul/hopper_gemm/scene.hpp"
#include "scenes/shared/measured.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {
namespace {

constexpr const char* kSize = "8192³";

/// Only choices clearly apart from the answer.
std::vector<double> apart(double answer, std::vector<double> others) {
  std::erase_if(others,
                [&](double other) { return other < answer * 1.12 && answer < other * 1.12; });
  return others;
}

std::string cycles(double number) {
  return fmt::format("{:.0f} cycles", number);
}

std::optional<double> rate(const lab::Report& bench, std::string_view rung,
                           std::string_view column = "tflops") {
  return number_with(bench, "ladder_measured", {{"rung", rung}, {"size", kSize}}, column);
}

/// A gain below this counts as none.
constexpr double kSame = 0.02;

std::optional<Question> stages_question(const lab::Report& bench) {
  const lab::Table* table = bench.table("stages_measured");
  if (table == nullptr) return std::nullopt;
  std::vector<std::pair<int, double>> rates;
  for (std::size_t row = 0; row < table->rows.size(); ++row) {
    const auto stages = number_in(*table, row, "stages"), tflops = number_in(*table, row, "tflops");
    if (stages && tflops) rates.emplace_back(static_cast<int>(*stages), *tflops);
  }
  if (rates.size() < 3) return std::nullopt;
  std::sort(rates.begin(), rates.end());
  const auto best = std::max_element(
      rates.begin(), rates.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto enough = std::find_if(rates.begin(), rates.end(), [&](const auto& each) {
    return each.second >= (1 - kSame) * best->second;
  });
  std::vector<std::int64_t> others;
  for (const auto& [stages, tflops] : rates) others.push_back(stages);
  return about_view(
      "Stages", "stages",
      ask_count("warp-specialized with one stage, two and so on: how many reach 98 % of its "
                "best "
                "rate?",
                enough->first, others,
                fmt::format("these cover the time from request to landing; more only take shared "
                            "memory ({:.0f} TFLOP/s with {}, {:.0f} at best, {}).",
                            enough->second, words::counted(enough->first, "stage"), best->second,
                            measured::where_measured(bench))));
}

/// The last rung against the library.
std::optional<Question> library_question(const lab::Report& bench) {
  const auto ours = rate(bench, "persistent"), share = rate(bench, "persistent", "fraction");
  if (!ours || !share) return std::nullopt;
  const std::vector<std::string> choices = {"More, by over 1 %", "As much, within 1 %",
                                            "Less, by 1 to 5 %", "Less, by over 5 %"};
  const std::size_t is = *share > 1.01 ? 0 : *share >= 0.99 ? 1 : *share >= 0.95 ? 2 : 3;
  Question question =
      of_kind("library",
              ask(fmt::format("persistent at {} against the best that cuBLASLt finds: how much of "
                              "its rate?",
                              kSize),
                  choices[is], choices,
                  fmt::format("it reaches {:.0f} TFLOP/s, {} of cuBLAS ({}).", *ours,
                              words::percent(*share), measured::where_measured(bench))));
  question.masks = {"Ladder"};
  return question;
}

std::optional<Question> wgmma_question(const lab::Report& bench) {
  const auto slow = rate(bench, "wgmma"), fast = rate(bench, "pipelined");
  return ask_faster(
      bench, {"Ladder"}, "pipelined", {fast, slow, "TFLOP/s"},
      fmt::format("At {} wgmma fills its one stage by ordinary loads; pipelined uses TMA and "
                  "more stages. How many times as fast is it?",
                  kSize),
      {1.1, 2, 4, 8}, "the instruction is the same, but it seldom waits");
}

/// The older instruction with a ring against the newer one without.
std::optional<Question> older_question(const lab::Report& bench) {
  const auto old = rate(bench, "mma-sync"), one_stage = rate(bench, "wgmma");
  if (!old || !one_stage || *one_stage <= 0) return std::nullopt;
  const std::vector<std::string> choices = {"mma-sync", "wgmma",
                                            "Neither: they differ by less than 5 %"};
  const double ratio = *old / *one_stage;
  const std::size_t is = ratio > 1.05 ? 0 : ratio < 1 / 1.05 ? 1 : 2;
  return about_view(
      "Ladder", "older",
      ask("mma-sync has the older instruction, and a ring that cp.async fills ahead. wgmma has the "
          "newer one, and one stage filled by ordinary loads. Which is faster?",
          choices[is], choices,
          fmt::format("an instruction can only run as fast as it is fed ({:.0f} against {:.0f} "
                      "TFLOP/s at {}, {}).",
                      *old, *one_stage, kSize, measured::where_measured(bench))));
}

/// Incoming tiles take shared-memory cycles too.
std::optional<Question> fed_question(const lab::Report& bench) {
  const auto of = [&](const char* column) {
    return number_with(bench, "instruction_roofs", {{"tile", "64x64"}}, column);
  };
  const auto stays = of("cycles"), fed = of("fed");
  if (!stays || !fed || *fed < 1.05 * *stays) return std::nullopt;
  return about_view(
      "Inside the SM", "fed",
      ask_number(fmt::format("On a stage that stays in shared memory a wgmma of 64 × 64 × 16 takes "
                             "{}. And in a ring that TMA keeps filling?",
                             cycles(*stays)),
                 *fed, apart(*fed, {*stays, *stays / 2, 1.5 * *stays, 2 * *stays, 4 * *stays}),
                 cycles,
                 fmt::format("reads alone take all of shared memory's cycles, and the next stage "
                             "must be delivered and written too ({}, {}).",
                             cycles(*fed), measured::where_measured(bench))));
}

/// Stores of C's tiles, with the swizzle and without.
std::optional<Question> conflict_question(const lab::Report& bench) {
  const auto passes = [&](const char* layout) {
    return number_with(bench, "store_conflicts", {{"layout", layout}}, "wavefronts");
  };
  const auto swizzled = passes("swizzled"), plain = passes("plain");
  if (!swizzled || !plain || *swizzled <= 0) return std::nullopt;
  return about_view(
      "Conflicts", "conflicts",
      ask_ratio("persistent writes C's tiles to shared memory with a swizzle, and TMA stores them. "
                "How many times as many passes would the same writes take without it?",
                *plain / *swizzled, {1, 2, 4, 16},
                fmt::format("8 rows of 128 bytes hit the same four banks and take turns ({:.0f} "
                            "passes against {:.0f}, {}).",
                            *plain, *swizzled, measured::where_measured(bench))));
}

std::optional<Question> data_question(const lab::Report& bench) {
  const auto random = number_with(bench, "data", {{"data", "random"}}, "tflops"),
             zeros = number_with(bench, "data", {{"data", "zeros"}}, "tflops");
  if (!random || !zeros || *random <= 0) return std::nullopt;
  const auto clock = [&](const char* data) {
    const auto mhz = number_with(bench, "data", {{"data", data}}, "clock_mhz");
    return mhz ? fmt::format(" at {:.0f} MHz", *mhz) : std::string();
  };
  return about_view(
      "Data", "data",
      ask_ratio(
          "A kernel multiplies zeros instead of random numbers. How many times as "
          "fast is it?",
          *zeros / *random, {1, 1.6, 2.5, 5},
          fmt::format(
              "wires that do not switch draw less power, so the clock can stay higher, although "
              "no instruction is skipped ({:.0f} TFLOP/s{} against {:.0f}{}, {}).",
              *zeros, clock("zeros"), *random, clock("random"), measured::where_measured(bench))));
}

/// The tile order with the most DRAM traffic against the one with the least.
std::optional<Question> order_question(const lab::Report& bench) {
  const lab::Table* table = bench.table("raster_bytes");
  if (table == nullptr) return std::nullopt;
  // Each order, without a cluster.
  std::vector<std::pair<double, std::string>> all;
  for (const std::string& order : distinct(*table, "raster")) {
    const lab::Table rows = rows_where(*table, "raster", order);
    std::optional<std::pair<double, double>> least;
    for (std::size_t row = 0; row < rows.rows.size(); ++row) {
      const auto cluster = number_in(rows, row, "cluster"),
                 bytes = number_in(rows, row, "dram_bytes");
      if (cluster && bytes && (!least || *cluster < least->first)) least = {*cluster, *bytes};
    }
    if (least) all.emplace_back(least->second, order);
  }
  if (all.size() < 2) return std::nullopt;
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  if (least->first <= 0 || most->first < 1.1 * least->first) return std::nullopt;
  return about_view(
      "Order", "order",
      ask_ratio(fmt::format("C's tiles can go row by row, column by column, or in groups. How "
                            "many times as many bytes does the worst order move to and from DRAM "
                            "as the best, at {}?",
                            kSize),
                most->first / least->first, {1, 1.5, 2.5, 4, 8},
                fmt::format(
                    "tiles computed at the same time share more rows of A and columns of B in some "
                    "orders than in others: {:.0f} MB ({}) against {:.0f} MB ({}), {}.",
                    most->first, most->second, least->first, least->second,
                    measured::where_measured(bench))));
}

}  // namespace

std::vector<Question> HopperGemmScene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench, {stages_question(bench), library_question(bench), wgmma_question(bench),
                          older_question(bench), fed_question(bench), conflict_question(bench),
                          order_question(bench), data_question(bench)});
}

}  // namespace tilestep::scenes
