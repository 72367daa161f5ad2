// The Measured tab of the lesson on fusion, and its questions. Where a bench lacks a table or column, its question is
// omitted.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"
#include "scenes/systems/fusion/scene.hpp"

namespace tilestep::scenes {
namespace {

constexpr const char* kChainName = "residual + RMSNorm + quantize";

/// What a fusion of 8192 rows is worth, and of 16.
std::optional<double> fusion_number(const lab::Report& bench, const char* rows, const char* fusion,
                                    const char* what) {
  return number_with(bench, "fusions", {{"rows", rows}, {"fusion", fusion}}, what);
}

std::optional<Question> ratio_question(const lab::Report& bench) {
  const auto times = fusion_number(bench, "8192", kChainName, "times");
  const auto bytes = fusion_number(bench, "8192", kChainName, "byte_ratio");
  if (!times || !bytes) return std::nullopt;
  return about_view(
      "Fusions", "ratio",
      ask_ratio("Residual, RMSNorm and quantization move 13 bytes per number apart and 7 together. "
                "How many "
                "times as fast are 8192 rows together?",
                *times, {3.0, 1.4, 1.0},
                fmt::format("memory is the limit, and the bytes are {:.2f} times as many ({}).",
                            *bytes, measured::where_measured(bench))));
}

std::optional<Question> decode_question(const lab::Report& bench) {
  const auto together = fusion_number(bench, "16", kChainName, "together");
  const auto apart = fusion_number(bench, "16", kChainName, "apart");
  if (!together || !apart) return std::nullopt;
  return about_view("Fusions", "decode",
                    ask_number(
                        fmt::format("16 rows of 4096 numbers, as in decoding: three launches take "
                                    "{:.1f} µs in a CUDA graph. How "
                                    "long does one take?",
                                    *apart),
                        *together, {0.9 * *apart, 0.2 * *apart, 1.1 * *apart},
                        [](double time) { return fmt::format("{:.1f} µs", time); },
                        fmt::format("rows so few are hardly any bytes, and two of three launches "
                                    "are saved: {:.1f} µs ({}).",
                                    *together, measured::where_measured(bench)),
                        0));
}

std::optional<Question> held_question(const lab::Report& bench) {
  const auto rate = [&](const char* values) {
    return number_with(bench, "held", {{"rung", values}}, "bandwidth");
  };
  const auto few = rate("16 numbers each"), many = rate("512 numbers each");
  if (!few || !many || *few <= 0) return std::nullopt;
  const double left = *many / *few;
  const std::vector<std::string> choices = {"More than 90 %", "50 to 90 %", "Less than 50 %"};
  return about_view(
      "Overfused", "overfused",
      ask("A thread that holds 512 numbers instead of 16 spills. How much of the rate is left?",
          choices[left > 0.9   ? 0
                  : left > 0.5 ? 1
                               : 2],
          choices,
          fmt::format(
              "few threads are in flight, and what does not fit into 255 registers goes to local "
              "memory ({:.0f} against {:.0f} GB/s, {}).",
              *many, *few, measured::where_measured(bench))));
}

std::optional<Question> epilogue_question(const lab::Report& bench) {
  const auto of = [&](const char* what) {
    return number_with(bench, "epilogue_savings", {{"epilogue", "SwiGLU"}, {"batch", "4096"}},
                       what);
  };
  const auto times = of("times"), less = of("intermediate"), plain = of("plain");
  if (!times || !less || !plain) return std::nullopt;
  return about_view(
      "Epilogues", "epilogue",
      ask_ratio(fmt::format("At batch 4096, SwiGLU in the epilogue of its product saves {:.0f} MB "
                            "of traffic. How many times as fast is one launch as two?",
                            *less),
                *times, {2.0, 1.5, 0.8},
                fmt::format("the product keeps the tensor cores busy for {:.0f} µs, whatever "
                            "follows it; only the second launch goes away ({}).",
                            *plain, measured::where_measured(bench))));
}

/// Which rungs of the authoring ladder a bench lacks, and why.
std::string missing_rungs(const lab::Report& bench) {
  const lab::Table* table = bench.table("authoring_missing");
  return table == nullptr || table->rows.empty() ? "" : table->text(0, 0);
}

}  // namespace

std::vector<Question> FusionScene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench, {ratio_question(bench), decode_question(bench), held_question(bench),
                          epilogue_question(bench)});
}

measured::Spec FusionScene::measured_spec() const {
  using namespace measured;
  return {"fusions",
          {{.name = "Fusions",
            .how = "in CUDA graphs, L2 cold; times as fast together, dashed: the ratio of bytes",
            .filters = {{"fusion_rows", "rows", "{}", "8192", "rows"}},
            .plots = {Bars{.id = "fusion_times",
                           .unit = "×",
                           .rows = {.table = "fusions"},
                           .label = "fusion",
                           .value = "times",
                           .low = "",
                           .high = "",
                           .fraction = "",
                           .expected = "byte_ratio",
                           .note = "{together} µs"}}},
           {.name = "Savings",
            .how = "in CUDA graphs, L2 cold; dashed: predicted from bytes and launches",
            .filters = {{"fusion_saved_rows", "rows", "{}", "16", "rows"}},
            .plots = {Bars{.id = "fusion_savings",
                           .unit = "µs",
                           .rows = {.table = "fusions"},
                           .label = "fusion",
                           .value = "saving",
                           .low = "",
                           .high = "",
                           .fraction = "",
                           .expected = "predicted"}}},
           {.name = "Widths",
            .how = "the same bytes in rows of all widths, as a share of a copy",
            .plots = {Lines{.id = "fusion_widths",
                            .x_label = "numbers of a row",
                            .y_label = "of the device's copy",
                            .x_log = true,
                            .rows = {.table = "widths"},
                            .x = "width",
                            .series = "rung",
                            .y = "fraction",
                            .low = "",
                            .high = "",
                            .marked_x = static_cast<double>(trace_.width)}},
            .needs = "widths"},
           {.name = "Overfused",
            .how = "rows of 16384 numbers, held by ever fewer threads",
            .plots = {Bars{.id = "fusion_held",
                           .unit = "GB/s",
                           .rows = {.table = "held"},
                           .label = "rung",
                           .value = "bandwidth",
                           .fraction = "",
                           .note = "{registers} registers, {local} B spilled"}},
            .needs = "held"},
           {.name = "Epilogues",
            .how = "a product in BF16 and what follows it, in CUDA graphs: times as fast in one "
                   "launch as in two, dashed: by bytes and FLOPs",
            .filters = {{"fusion_epilogue", "epilogue", "{}", "SwiGLU", "epilogue"}},
            .plots = {Bars{.id = "fusion_epilogue_times",
                           .unit = "×",
                           .rows = {.table = "epilogue_savings"},
                           .label = "batch {batch}",
                           .value = "times",
                           .low = "",
                           .high = "",
                           .fraction = "",
                           .expected = "predicted",
                           .note = "{intermediate} MB less"}},
            .needs = "epilogue_savings"},
           {.name = "Products",
            .how = "a product in BF16 and what follows it, in CUDA graphs",
            .filters = {{"fusion_product", "epilogue", "{}", "SwiGLU", "epilogue"},
                        {"fusion_batch", "batch", "{}", "4096", "batch"}},
            .plots = {Bars{.id = "fusion_epilogues",
                           .unit = "TFLOP/s",
                           .rows = {.table = "epilogues"},
                           .label = "rung",
                           .value = "tflops",
                           .fraction = "",
                           .note = "{megabytes} MB"}},
            .needs = "epilogues"},
           {.name = "Q, K and V",
            .how = "three products of one X as one, in CUDA graphs: times as fast",
            .plots = {Bars{.id = "fusion_packing",
                           .unit = "×",
                           .rows = {.table = "packing"},
                           .label = "{batch} rows",
                           .value = "times",
                           .low = "",
                           .high = "",
                           .fraction = "",
                           .note = "{together} µs"}},
            .needs = "packing"},
           {.name = "Authoring",
            .how = "residual, RMSNorm and quantization, written in four ways, in CUDA graphs, L2 "
                   "cold",
            .filters = {{"fusion_authored_rows", "rows", "{}", "8192", "rows"}},
            .plots = {Bars{.id = "fusion_authoring",
                           .unit = "GB/s",
                           .rows = {.table = "authoring"},
                           .label = "rung",
                           .value = "bandwidth",
                           .fraction = "",
                           .note = "{lines} lines of code, {each} µs"}},
            .needs = "authoring",
            .footnote = {"fusion_authoring_missing", missing_rungs}},
           {.name = "Cross entropy",
            .how = "each logit read once, as a share of a copy's rate",
            .plots = {Bars{.id = "fusion_losses",
                           .unit = "GB/s",
                           .rows = {.table = "losses"},
                           .label = "{vocabulary} logits",
                           .value = "bandwidth",
                           .of = "copy"}},
            .needs = "losses"},
           {.name = "Sampling",
            .how = "tokens from logits that are read once, L2 cold, as a share of a read's rate",
            .filters = {{"fusion_sampled", "format", "{}", "bf16", "format"}},
            .plots = {Bars{.id = "fusion_sampling",
                           .unit = "GB/s",
                           .rows = {.table = "sampling"},
                           .label = "{rule}: {rows} x {vocabulary}",
                           .value = "bandwidth",
                           .of = "read"}},
            .needs = "sampling"}}};
}

}  // namespace tilestep::scenes
