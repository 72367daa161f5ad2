// The Measured tab of the tiling lesson: the ladder beside cuBLAS, the roofline, the compiled
// kernels' resources and the hardware's counts.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenes/matmul/tiling/scene.hpp"
#include "scenes/shared/rows.hpp"

namespace tilestep::scenes {
namespace {

constexpr const char* kTensorCore = "tensor-core";

Role rung_role(std::string_view rung) {
  if (rung.find("attention") != std::string_view::npos) return Role::green;
  return rung.starts_with(kTensorCore) ? Role::purple : Role::sky;
}

/// The ladder has rungs of two formats; the library's rows have theirs in their name.
lab::Table with_format(lab::Table ladder) {
  add_column(ladder, "format", [&](std::size_t row) {
    const std::string rung = text_in(ladder, row, "rung");
    const bool bf16 = rung == kTensorCore || rung.find("BF16") != std::string::npos;
    return lab::Cell(bf16 ? "BF16" : "FP32");
  });
  return ladder;
}

constexpr const char* kCounted = "Bytes as counted";

/// Labels read "rung size³" or "rung size³, counted bytes"; derived ones are whole names. Counted
/// ones come first, so that they are the first choice.
lab::Table with_bytes(lab::Table dots) {
  const auto label = [&](std::size_t row) { return text_in(dots, row, "label"); };
  const auto derived = [&](std::size_t row) {
    return text_in(dots, row, "provenance") == "derived";
  };
  add_column(dots, "bytes", [&](std::size_t row) -> lab::Cell {
    if (derived(row)) return {};
    const bool counted = label(row).find("counted") != std::string::npos;
    return counted ? kCounted : "Each matrix once";
  });
  add_column(dots, "name", [&](std::size_t row) -> lab::Cell {
    return derived(row) ? label(row) : label(row).substr(0, label(row).find(' '));
  });
  add_column(dots, "detail", [&](std::size_t row) -> lab::Cell {
    const std::string formula = text_in(dots, row, "formula");
    return derived(row) ? formula : fmt::format("{}: {}", label(row), formula);
  });
  const std::size_t bytes = dots.columns.size() - 3;
  std::stable_partition(dots.rows.begin(), dots.rows.end(),
                        [&](const auto& row) { return row[bytes] == lab::Cell(kCounted); });
  return dots;
}

/// Rungs with several compiled configurations get the configuration in their name.
lab::Table with_configuration(lab::Table resources) {
  add_column(resources, "name", [&](std::size_t row) -> lab::Cell {
    const std::string rung = text_in(resources, row, "rung");
    std::string configuration = text_in(resources, row, "configuration");
    const lab::Table same = rows_where(resources, "rung", rung);
    if (same.rows.size() < 2) return rung;
    // Tiles of one size differ in the last word.
    if (rung == "shared-tile") {
      configuration = configuration.substr(configuration.rfind(' ') + 1);
      if (text_in(resources, row, "configuration").find("not") != std::string::npos) {
        configuration = "not " + configuration;
      }
    } else {
      configuration = configuration.substr(0, configuration.find(','));
    }
    return fmt::format("{}, {}", rung, configuration);
  });
  return with_kib(std::move(resources));
}

measured::Bars ladder(const char* id, const char* title, const char* format) {
  return {.id = id,
          .title = title,
          .unit = "TFLOP/s",
          .rows = {.table = "ladder_measured",
                   .column = "format",
                   .is = format,
                   .prepare = with_format},
          .label = "rung",
          .value = "tflops",
          .of = "cuBLAS",
          .role = rung_role};
}

}  // namespace

measured::Spec TilingScene::measured_spec() const {
  using namespace measured;
  return {
      "ladder_measured",
      {{.name = "Ladder",
        .how = "random data, median; whiskers hold 80 % of the samples",
        .filters = {{"measured_size", "size", "{}³"}},
        .plots = {ladder("ladder_fp32", "FP32 on CUDA cores", "FP32"),
                  ladder("ladder_bf16", "BF16 on tensor cores: an axis of its own", "BF16")}},
       {.name = "Roofline",
        .how = "filled: measured, hollow: derived; solid: measured roofs, dashed: datasheet",
        .filters = {{"roofline_bytes", "bytes"}},
        .plots = {Roofline{.id = "roofline",
                           .rows = {.table = "roofline", .prepare = with_bytes},
                           .label = "name",
                           .roofs = {{"copy_bandwidth", "copy"},
                                     {"library_fp32", "cuBLAS FP32"},
                                     {"library_bf16", "cuBLAS BF16"},
                                     {"datasheet_bandwidth", "datasheet", true},
                                     {"datasheet_fp32", "datasheet FP32", true},
                                     {"datasheet_bf16", "datasheet BF16", true}},
                           .role = rung_role}}},
       // Rates of two formats do not fit one axis; their shares of what shared memory allows do.
       {.name = "Shared memory",
        .plots = {Bars{.id = "shared_ceiling",
                       .title = "Fraction of the shared-memory limit",
                       .unit = "%",
                       .rows = {.table = "shared_ceiling"},
                       .label = "rung",
                       .value = "share",
                       .times = 100,
                       .note = "{tflops} of {ceiling} TFLOP/s",
                       .role = rung_role},
                  Bars{.id = "shared_bytes",
                       .title = "Shared-memory bytes per FLOP",
                       .unit = "B",
                       .rows = {.table = "shared_ceiling"},
                       .label = "rung",
                       .value = "shared_bytes",
                       .role = rung_role}},
        .needs = "shared_ceiling"},
       counters_view(rung_role),
       {.name = "Occupancy",
        .how = "resources of the compiled kernels; beside the bars: blocks × threads per "
               "multiprocessor",
        .plots = {Bars{.id = "occupancy",
                       .title = "Resident warps, relative to the maximum",
                       .unit = "%",
                       .rows = {.table = "resources", .prepare = with_configuration},
                       .label = "name",
                       .value = "occupancy",
                       .times = 100,
                       .note = "{blocks} × {threads}",
                       .role = rung_role},
                  Bars{.id = "registers",
                       .title = "Registers per thread",
                       .rows = {.table = "resources", .prepare = with_configuration},
                       .label = "name",
                       .value = "registers",
                       .note = "{kib} KiB shared",
                       .role = rung_role}},
        .needs = "resources"}}};
}

}  // namespace tilestep::scenes
