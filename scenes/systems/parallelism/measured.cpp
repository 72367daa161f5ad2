// The Measured tab of the lesson on many GPUs, and its questions. Where a bench lacks a table, its question is omitted.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/systems/parallelism/scene.hpp"

namespace tilestep::scenes {
namespace {

Role role_of(std::string_view name) {
  return name == "ring"       ? Role::sky
         : name == "tree"     ? Role::green
         : name == "one-shot" ? Role::purple
         : name == "ours"     ? Role::sky
                              : Role::muted;
}

std::optional<double> cell(const lab::Report& bench, const char* rung, const char* bytes,
                           const char* what) {
  return number_with(bench, "all_reduce", {{"rung", rung}, {"bytes", bytes}}, what);
}

std::optional<Question> small_question(const lab::Report& bench) {
  const auto ring = cell(bench, "ring", "16384", "time"),
             once = cell(bench, "one-shot", "16384", "time");
  if (!ring || !once) return std::nullopt;
  return about_view("Latency", "small-message",
                    ask_ratio("16 KB: how many times as long as all at once does a ring take?",
                              *ring / *once, {0.5, 1.0, 2.0, 4.0, 8.0},
                              fmt::format("a beat costs a trip over the link: {:.1f} µs against "
                                          "{:.1f} µs ({}).",
                                          *ring, *once, measured::where_measured(bench))));
}

std::optional<Question> growth_question(const lab::Report& bench) {
  const auto small = cell(bench, "ring", "1024", "time"),
             large = cell(bench, "ring", "65536", "time");
  if (!small || !large) return std::nullopt;
  return about_view(
      "Latency", "message-times-64",
      ask_ratio("A ring adds up 1 KB, and then 64 KB. How many times as long does it take?",
                *large / *small, {64.0, 32.0, 8.0, 2.0, 1.0},
                fmt::format("up to there nearly all is latency: {:.1f} µs and {:.1f} µs "
                            "({}).",
                            *small, *large, measured::where_measured(bench))));
}

}  // namespace

std::vector<Question> ParallelismScene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench, {small_question(bench), growth_question(bench)});
}

measured::Spec ParallelismScene::measured_spec() const {
  using namespace measured;
  return {"all_reduce",
          {{.name = "Latency",
            .how = "calls in graphs, a GPU for each rank: time by the bytes of a rank's message",
            .plots = {Lines{.id = "parallelism_latency",
                            .x_label = "bytes",
                            .y_label = "µs",
                            .x_log = true,
                            .y_log = true,
                            .rows = {.table = "all_reduce"},
                            .x = "bytes",
                            .series = "rung",
                            .y = "time",
                            .role = role_of}}},
           {.name = "Bandwidth",
            .how = "bytes that a link carried, 2(n − 1)/n of the message, over the time",
            .plots = {Lines{.id = "parallelism_bandwidth",
                            .x_label = "bytes",
                            .y_label = "GB/s",
                            .x_log = true,
                            .rows = {.table = "all_reduce"},
                            .x = "bytes",
                            .series = "rung",
                            .y = "bandwidth",
                            .low = "",
                            .high = "",
                            .role = role_of}}},
           {.name = "All-to-all",
            .how = "each rank sends a block to each other one",
            .filters = {{"parallelism_bytes", "bytes", "{} B", "", "per rank"}},
            .plots = {Bars{.id = "parallelism_exchange",
                           .unit = "GB/s",
                           .rows = {.table = "all_to_all"},
                           .label = "rung",
                           .value = "bandwidth",
                           .low = "",
                           .high = "",
                           .fraction = "",
                           .note = "{time} µs",
                           .role = role_of}},
            .needs = "all_to_all"}}};
}

}  // namespace tilestep::scenes
