// The Measured tab of the Hopper lesson: the ladder beside cuBLAS, stages, what an instruction needs, and
// what the compiled kernels take and the hardware counts.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include "scenes/matmul/hopper_gemm/scene.hpp"
#include "scenes/shared/rows.hpp"

namespace tilestep::scenes {
namespace {

Role rung_role(std::string_view rung) {
  if (rung.starts_with("mma-sync")) return Role::muted;
  return rung.find("fp8") != std::string_view::npos ? Role::purple : Role::sky;
}

/// A row for each counter of a rung, so that one of them can be chosen.
lab::Table by_metric(lab::Table counters) {
  lab::Table all{counters.id,
                 counters.title,
                 {"rung", {"metric", "", "", -1}, {"unit", "", "", -1}, {"value", "", "", -1}},
                 {}};
  for (std::size_t column = 1; column < counters.columns.size(); ++column) {
    const lab::Column& metric = counters.columns[column];
    for (std::size_t row = 0; row < counters.rows.size(); ++row) {
      if (!number_in(counters, row, metric.id)) continue;
      all.add(
          {text_in(counters, row, "rung"), metric.label, metric.unit, counters.rows[row][column]});
    }
  }
  return all;
}

/// Rungs of which several configurations were compiled say which.
lab::Table with_configuration(lab::Table table) {
  add_column(table, "name", [&](std::size_t row) -> lab::Cell {
    const std::string rung = text_in(table, row, "rung");
    const bool one = rows_where(table, "rung", rung).rows.size() < 2;
    return one ? rung : fmt::format("{}, {}", rung, text_in(table, row, "configuration"));
  });
  add_column(table, "kib", [&](std::size_t row) -> lab::Cell {
    const auto bytes = number_in(table, row, "shared");
    return bytes ? lab::Cell(fmt::format("{:.0f}", *bytes / 1024)) : lab::Cell();
  });
  return table;
}

}  // namespace

measured::Spec HopperGemmScene::measured_spec() const {
  using namespace measured;
  return {"ladder_measured",
          {{.name = "Ladder",
            .how = "random data, median of rounds taken in turn; whiskers hold 80 % of the samples",
            .filters = {{"measured_size", "size", "{}"}},
            .plots = {Bars{.id = "hopper_ladder",
                           .unit = "TFLOP/s",
                           .rows = {.table = "ladder_measured"},
                           .label = "rung",
                           .value = "tflops",
                           .of = "cuBLAS",
                           .role = rung_role}}},
           {.name = "Stages",
            .plots = {Lines{.id = "by_stages",
                            .x_label = "stages",
                            .y_label = "TFLOP/s",
                            .rows = {.table = "stages_measured"},
                            .x = "stages",
                            .curves = {{.column = "tflops", .label = "measured"}},
                            .marked_x = trace_.stages > 0 ? std::optional<double>(trace_.stages)
                                                          : std::nullopt}},
            .needs = "stages_measured"},
           {.name = "Inside the SM",
            .how = "bars: measured, dashed: the tensor cores alone",
            .plots = {Bars{.id = "instruction_cycles",
                           .title = "Cycles of one wgmma, 64 × n × 16",
                           .unit = "cycles",
                           .rows = {.table = "instruction_roofs"},
                           .label = "tile",
                           .value = "cycles",
                           .expected = "tensor_cycles",
                           .note = "shared memory {read_cycles}"},
                      Bars{.id = "instruction_share",
                           .title = "Share of the tensor cores' rate",
                           .unit = "%",
                           .rows = {.table = "instruction_roofs"},
                           .label = "tile",
                           .value = "share",
                           .times = 100}},
            .needs = "instruction_roofs"},
           {.name = "FP8",
            .plots = {Bars{.id = "fp8_rates",
                           .unit = "TFLOP/s",
                           .rows = {.table = "fp8"},
                           .label = "rung",
                           .value = "tflops",
                           .of = "cuBLAS",
                           .role = rung_role},
                      Bars{.id = "fp8_errors",
                           .title = "Mean relative error of C",
                           .unit = "%",
                           .rows = {.table = "fp8_error"},
                           .label = "sums",
                           .value = "mean_error",
                           .role = rung_role}},
            .needs = "fp8"},
           {.name = "Data",
            .plots = {Bars{.id = "by_data",
                           .unit = "TFLOP/s",
                           .rows = {.table = "data"},
                           .label = "data",
                           .value = "tflops"}},
            .needs = "data"},
           {.name = "Configurations",
            .plots = {Bars{.id = "configurations",
                           .unit = "TFLOP/s",
                           .rows = {.table = "configurations", .prepare = with_configuration},
                           .label = "name",
                           .value = "tflops",
                           .of = "cuBLAS",
                           .role = rung_role}},
            .needs = "configurations"},
           {.name = "Counters",
            .filters = {{"counter", "metric"}},
            .plots = {Bars{.id = "counter",
                           .title = "{metric}",
                           .unit = "{unit}",
                           .rows = {.table = "counters", .prepare = by_metric},
                           .label = "rung",
                           .role = rung_role}},
            .needs = "counters",
            .missing = kNoCounters},
           {.name = "Resources",
            .how = "what the compiled kernels take of a multiprocessor",
            .plots = {Bars{.id = "registers",
                           .title = "Registers of a thread, as compiled",
                           .rows = {.table = "resources", .prepare = with_configuration},
                           .label = "name",
                           .value = "registers",
                           .note = "{kib} KiB shared",
                           .role = rung_role}},
            .needs = "resources"}}};
}

}  // namespace tilestep::scenes
