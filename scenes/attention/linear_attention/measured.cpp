// The Measured tab of the lesson on linear attention, and its questions. Where a bench lacks a table, its question is
// omitted.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include "scenes/attention/linear_attention/scene.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"

namespace tilestep::scenes {
namespace {

constexpr const char* kGate = "chunked, gate";

std::optional<double> times_at(const lab::Report& bench, const char* length) {
  return number_with(bench, "timed_lengths", {{"rung", kGate}, {"length", length}}, "times");
}

std::optional<Question> long_question(const lab::Report& bench) {
  const auto times = times_at(bench, "16384");
  if (!times) return std::nullopt;
  return about_view(
      "Length", "long-text",
      ask_ratio("16,384 tokens: how many times as fast as flash-3 is linear attention "
                "by chunks?",
                *times, {1.0, 30.0, 100.0},
                fmt::format("flash-3 works {:.0f} tokens back on average, a chunk "
                            "only to its own begin ({}).",
                            16384 / 2.0, measured::where_measured(bench))));
}

/// The first length at which it is faster.
std::optional<Question> crossing_question(const lab::Report& bench) {
  constexpr const char* kLengths[] = {"512", "1024", "2048", "4096", "8192", "16384", "32768"};
  std::string first = "at none";
  for (const char* length : kLengths) {
    const auto times = times_at(bench, length);
    if (!times) return std::nullopt;
    if (*times <= 1) continue;
    first = fmt::format("{} tokens", length);
    break;
  }
  return about_view("Length", "crossing",
                    ask("From which length on is it faster than flash-3?", first,
                        {"512 tokens", "2048 tokens", "8192 tokens", "32768 tokens", "at none"},
                        fmt::format("short texts have few keys to look at, and the chunks wait for "
                                    "each other's state ({}).",
                                    measured::where_measured(bench))));
}

std::optional<Question> chunk_time_question(const lab::Report& bench) {
  const auto time = [&](const char* chunk) {
    return number_with(bench, "chunk_sizes", {{"rule", "gate"}, {"chunk", chunk}}, "time");
  };
  const auto small = time("16"), large = time("64");
  if (!small || !large) return std::nullopt;
  return about_view(
      "Chunks", "chunk-time",
      ask_ratio("Chunks of 64 in place of 16: how many times as fast?", *small / *large,
                {1.0, 16.0, 0.25},
                fmt::format("a quarter of the states, one after another, against longer products "
                            "within ({}).",
                            measured::where_measured(bench))));
}

}  // namespace

std::vector<Question> LinearAttentionScene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench,
                  {long_question(bench), crossing_question(bench), chunk_time_question(bench)});
}

measured::Spec LinearAttentionScene::measured_spec() const {
  using namespace measured;
  return {
      "timed_lengths",
      {{.name = "Length",
        .how = "16 heads of 128 numbers, causal, batch 1; flash-3 in turn with the others, whose "
               "Q and K are of length 1",
        .plots = {Lines{.id = "linear_lengths",
                        .x_label = "tokens",
                        .y_label = "ms",
                        .x_log = true,
                        .y_log = true,
                        .rows = {.table = "timed_lengths"},
                        .x = "length",
                        .series = "rung",
                        .y = "time",
                        .low = "",
                        .high = ""}}},
       {.name = "Chunks",
        .how = "the same tokens by chunks of all sizes",
        .plots = {Bars{.id = "linear_chunks",
                       .unit = "ms",
                       .rows = {.table = "chunk_sizes"},
                       .label = "{rule}, chunks of {chunk}",
                       .value = "time",
                       .low = "",
                       .high = "",
                       .fraction = "",
                       .note = "{bandwidth} GB/s"}},
        .needs = "chunk_sizes"}}};
}

}  // namespace tilestep::scenes
