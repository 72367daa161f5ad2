// The Measured tab of the lesson on many GPUs, and its questions. Where a bench lacks a table, its question is omitted.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/systems/parallelism/scene.hpp"

namespace tilestep::scenes {
namespace {

Role role_of(std::string_view name) {
  return name == "ring"                                               ? Role::sky
         : name == "tree"                                             ? Role::green
         : name == "one-shot"                                         ? Role::purple
         : name == "ours"                                             ? Role::sky
         : name.starts_with("product beside") || name == "one kernel" ? Role::green
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

/// The row of the fastest way beside the gather, of the shape that gains most.
std::optional<std::size_t> most_hidden(const lab::Table& table) {
  std::optional<std::size_t> best;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (!number_in(table, row, "best") || !number_in(table, row, "times")) continue;
    if (!best || *number_in(table, row, "times") > *number_in(table, *best, "times")) best = row;
  }
  return best;
}
std::string hidden(const lab::Report& bench) {
  const lab::Table* table = bench.table("overlap");
  const auto best = table == nullptr ? std::nullopt : most_hidden(*table);
  if (!best) return "";
  return fmt::format("{}: {:.2f} times as fast as in turn; {:.2f} if only the longer were seen.",
                     filled_in("With {columns} columns a rank, {way}", *table, *best),
                     *number_in(*table, *best, "times"), *number_in(*table, *best, "best"));
}

std::optional<Question> overlap_question(const lab::Report& bench) {
  const lab::Table* table = bench.table("overlap");
  const auto best = table == nullptr ? std::nullopt : most_hidden(*table);
  if (!best) return std::nullopt;
  return about_view(
      "Overlap", "hidden-gather",
      ask_ratio("Tokens are gathered and then multiplied, or multiplied as they come. How many "
                "times as fast is the latter?",
                *number_in(*table, *best, "times"), {0.5, 1.0, 2.0, 4.0},
                filled_in("the gather alone takes {wire} µs and the product {product} µs: {best} "
                          "times at best, {times} measured",
                          *table, *best) +
                    fmt::format(" ({}).", measured::where_measured(bench))));
}

/// How far the plan is off at most.
std::string plan_agrees(const lab::Report& bench) {
  const lab::Table* table = bench.table("planned");
  if (table == nullptr) return "";
  std::optional<std::size_t> worst;
  const auto off = [&](std::size_t row) {
    return std::abs(std::log(number_in(*table, row, "ratio").value_or(1)));
  };
  for (std::size_t row = 0; row < table->rows.size(); ++row) {
    if (!worst || off(row) > off(*worst)) worst = row;
  }
  if (!worst) return "";
  return fmt::format("The plan is off most for {}: {:.1f} ms planned, {:.1f} measured.",
                     text_in(*table, *worst, "cut"),
                     number_in(*table, *worst, "predicted").value_or(0),
                     number_in(*table, *worst, "measured").value_or(0));
}

/// "256 MB", as messages are named.
std::string size_words(double bytes) {
  for (const char* unit : {"B", "KB", "MB"}) {
    if (bytes < 1024) return fmt::format("{:.0f} {}", bytes, unit);
    bytes /= 1024;
  }
  return fmt::format("{:.0f} GB", bytes);
}
/// The largest message, our fastest kernel against NCCL.
std::string against_nccl(const lab::Report& bench, const char* id, const char* what) {
  const lab::Table* table = bench.table(id);
  if (table == nullptr) return "";
  std::optional<std::size_t> best;
  const auto at = [&](std::size_t row, const char* column) {
    return number_in(*table, row, column).value_or(0);
  };
  for (std::size_t row = 0; row < table->rows.size(); ++row) {
    if (!number_in(*table, row, "times")) continue;
    const bool larger = !best || at(row, "bytes") > at(*best, "bytes");
    const bool faster =
        best && at(row, "bytes") == at(*best, "bytes") && at(row, "times") > at(*best, "times");
    if (larger || faster) best = row;
  }
  if (!best) return "";
  return fmt::format("{} of {}, {}: {:.2f} times as fast as NCCL's.", what,
                     size_words(at(*best, "bytes")), text_in(*table, *best, "rung"),
                     at(*best, "times"));
}

measured::View moved_view(const char* name, const char* table, const char* how,
                          std::string (*headline)(const lab::Report&)) {
  using namespace measured;
  const std::string id = std::string("parallelism_") + table;
  return {.name = name,
          .how = how,
          .plots = {Lines{.id = id,
                          .x_label = "bytes",
                          .y_label = "GB/s",
                          .x_log = true,
                          .rows = {.table = table},
                          .x = "bytes",
                          .series = "rung",
                          .y = "bandwidth",
                          .low = "",
                          .high = "",
                          .role = role_of}},
          .needs = table,
          .headline = {id, headline}};
}

}  // namespace

std::vector<Question> ParallelismScene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench, {small_question(bench), growth_question(bench), overlap_question(bench)});
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
            .needs = "all_to_all"},
           moved_view("All-gather", "all_gather",
                      "bytes that a link carried, (n − 1)/n of what is gathered, over the time",
                      [](const lab::Report& bench) {
                        return against_nccl(bench, "all_gather", "An all-gather");
                      }),
           moved_view("Reduce-scatter", "reduce_scatter",
                      "bytes that a link carried, (n − 1)/n of a rank's numbers, over the time",
                      [](const lab::Report& bench) {
                        return against_nccl(bench, "reduce_scatter", "A reduce-scatter");
                      }),
           {.name = "Overlap",
            .how = "{tokens} tokens, {width} wide: gathered from all ranks and multiplied",
            .filters = {{"parallelism_columns", "columns", "{} columns", "", "of a rank"}},
            .plots = {Bars{.id = "parallelism_overlap",
                           .unit = "µs",
                           .rows = {.table = "overlap"},
                           .label = "way",
                           .value = "time",
                           .fraction = "",
                           .note = "{times} × the fastest in turn",
                           .role = role_of}},
            .needs = "overlap",
            .headline = {"overlap_hidden", hidden}},
           {.name = "Plan",
            .how = "{layers} layers, {tokens} tokens, {ranks} ranks",
            .plots = {Bars{.id = "parallelism_planned",
                           .unit = "ms",
                           .rows = {.table = "planned"},
                           .label = "cut",
                           .value = "measured",
                           .fraction = "",
                           .expected = "predicted",
                           .note = "{ratio} × the plan",
                           .role = [](std::string_view) { return Role::sky; }}},
            .needs = "planned",
            .headline = {"plan_agrees", plan_agrees}}}};
}

}  // namespace tilestep::scenes
