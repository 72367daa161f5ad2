// The Measured tab of the Hopper lesson: the ladder beside cuBLAS, stages, an instruction's needs, bank
// conflicts, the order of tiles, the compiled kernels' resources and the hardware's counters.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include "scenes/matmul/hopper_gemm/scene.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {
namespace {

Role rung_role(std::string_view rung) {
  if (rung.starts_with("mma-sync") || rung.starts_with("peer,")) return Role::muted;
  return rung.find("fp8") != std::string_view::npos ? Role::purple : Role::sky;
}

Role one_role(std::string_view) {
  return Role::sky;
}

/// The right layout, and the one that pays for being wrong.
Role layout_role(std::string_view name) {
  return name.starts_with("swizzled") ? Role::sky : Role::purple;
}

Role cluster_role(std::string_view name) {
  return name.ends_with("2 blocks") ? Role::sky : Role::purple;
}

/// Passes as counted; without counters, derived from the addresses traced in the kernel.
lab::Table with_passes(lab::Table table) {
  bool counted = has_column(table, "counted");
  for (std::size_t row = 0; row < table.rows.size() && counted; ++row) {
    counted = number_in(table, row, "counted").has_value();
  }
  const std::string from = counted ? "counted" : "traced";
  add_column(table, "passes", [&](std::size_t row) -> lab::Cell {
    const auto number = number_in(table, row, from);
    return number ? lab::Cell(*number) : lab::Cell();
  });
  add_column(table, "from", [&](std::size_t) -> lab::Cell { return from; });
  add_column(table, "beside", [&](std::size_t row) -> lab::Cell {
    const auto traced = number_in(table, row, "traced");
    return counted && traced ? lab::Cell(fmt::format("traced {:g}", *traced)) : lab::Cell();
  });
  return table;
}

/// Each FP8 variant has its own peer, so these are bars and not a roof.
lab::Table with_peers(lab::Table table) {
  add_column(table, "name", [&](std::size_t row) -> lab::Cell {
    const std::string rung = text_in(table, row, "rung");
    if (!rung.starts_with("cuBLAS")) return rung;
    return rung.find("scales") != std::string::npos ? "peer, scaled" : "peer, per tensor";
  });
  add_column(table, "beside", [&](std::size_t row) -> lab::Cell {
    const auto share = number_in(table, row, "fraction");
    const bool peer = text_in(table, row, "rung").starts_with("cuBLAS");
    return share && !peer ? lab::Cell(words::percent(*share) + " of its peer") : lab::Cell();
  });
  return table;
}

/// Beside each rate, its clock and its tensor-core share.
lab::Table with_factors(lab::Table table) {
  add_column(table, "factors", [&](std::size_t row) -> lab::Cell {
    const auto mhz = number_in(table, row, "clock_mhz"),
               share = number_in(table, row, "pipe_share");
    if (!mhz || !share) return {};
    return fmt::format("{:.0f} MHz × {:.1f} %", *mhz, *share);
  });
  return table;
}

/// Rungs compiled in several configurations say which.
lab::Table with_configuration(lab::Table table) {
  add_column(table, "name", [&](std::size_t row) -> lab::Cell {
    const std::string rung = text_in(table, row, "rung");
    const bool one = rows_where(table, "rung", rung).rows.size() < 2;
    return one ? rung : fmt::format("{}, {}", rung, text_in(table, row, "configuration"));
  });
  return with_kib(std::move(table));
}

}  // namespace

measured::Spec HopperGemmScene::measured_spec() const {
  using namespace measured;
  const auto marked = trace_.stages > 0 ? std::optional<double>(trace_.stages) : std::nullopt;
  return {
      "ladder_measured",
      {{.name = "Ladder",
        .how = "random data, median of interleaved rounds; whiskers hold 80 % of the samples",
        .filters = {{"measured_size", "size", "{}"}},
        .plots = {Bars{.id = "hopper_ladder",
                       .unit = "TFLOP/s",
                       .rows = {.table = "ladder_measured"},
                       .label = "rung",
                       .value = "tflops",
                       .of = "cuBLAS",
                       .role = rung_role}}},
       {.name = "Stages",
        .how = "dashed: a copy's time, shared by all stages but the one multiplied, or the "
               "products' time",
        .plots = {Lines{.id = "by_stages",
                        .title = "Rate",
                        .x_label = "stages",
                        .y_label = "TFLOP/s",
                        .rows = {.table = "stages_measured"},
                        .x = "stages",
                        .curves = {{.column = "tflops", .label = "measured"}},
                        .marked_x = marked},
                  Lines{.id = "cycles_by_stages",
                        .title = "Cycles per k-tile",
                        .x_label = "stages",
                        .y_label = "cycles",
                        .rows = {.table = "stages_measured"},
                        .x = "stages",
                        .curves = {{.column = "cycles", .label = "measured"},
                                   {.column = "predicted",
                                    .label = "predicted",
                                    .role = Role::muted,
                                    .dashed = true}},
                        .marked_x = marked}},
        .needs = "stages_measured"},
       {.name = "By depth",
        .how = "8192 × 8192 × k: the shorter k, the larger the share of stores",
        .plots = {Lines{
            .id = "by_depth",
            .title = "Rate",
            .x_label = "k",
            .y_label = "TFLOP/s",
            .rows = {.table = "by_depth"},
            .x = "k",
            .curves = {{.column = "persistent", .label = "persistent", .role = Role::muted},
                       {.column = "ping_pong", .label = "ping-pong"}}}},
        .needs = "by_depth"},
       {.name = "Inside the SM",
        .how = "cycles per wgmma, 64 × n × 16; dashed: the tensor cores' limit",
        .plots = {Bars{.id = "instruction_cycles",
                       .title = "A resident stage",
                       .unit = "cycles",
                       .rows = {.table = "instruction_roofs"},
                       .label = "tile",
                       .value = "cycles",
                       .expected = "tensor_cycles",
                       .note = "reads {read_cycles}",
                       .role = one_role},
                  Bars{.id = "fed_cycles",
                       .title = "A ring that TMA fills from L2",
                       .unit = "cycles",
                       .rows = {.table = "instruction_roofs"},
                       .label = "tile",
                       .value = "fed",
                       .expected = "tensor_cycles",
                       .note = "reads {read_cycles}, writes {write_cycles}; {delivered} B/cycle",
                       .role = one_role}},
        .needs = "instruction_roofs"},
       {.name = "Conflicts",
        .how = "{from}: shared-memory passes for 16 bytes of 8 rows each, by row length; "
               "dashed: derived; right: stores while TMA writes too",
        .plots = {Bars{.id = "passes_{access}",
                       .title = "{access}",
                       .unit = "passes",
                       .rows = {.table = "conflicts", .prepare = with_passes},
                       .label = "{layout}, {row_bytes} B",
                       .value = "passes",
                       .expected = "derived",
                       .note = "{beside}",
                       .each = "access",
                       .role = layout_role},
                  Bars{.id = "store_conflicts",
                       .title = "Conflicts in persistent's stores",
                       .rows = {.table = "store_conflicts"},
                       .label = "layout",
                       .value = "conflicts",
                       .note = "of {wavefronts}",
                       .role = layout_role}},
        .needs = "conflicts"},
       {.name = "Order",
        .how = "counted: bytes that persistent moves, by the order of C's tiles",
        .plots = {Bars{.id = "order_dram",
                       .title = "DRAM traffic",
                       .unit = "MB",
                       .rows = {.table = "raster_bytes"},
                       .label = "{raster}, {cluster|block}",
                       .value = "dram_bytes",
                       .role = cluster_role},
                  Bars{.id = "order_l2",
                       .title = "L2 reads",
                       .unit = "MB",
                       .rows = {.table = "raster_bytes"},
                       .label = "{raster}, {cluster|block}",
                       .value = "l2_bytes",
                       .role = cluster_role}},
        .needs = "raster_bytes"},
       {.name = "FP8",
        .how = "C in BF16; peers: cuBLAS, without fast accumulation or with the same scales",
        .plots = {Bars{.id = "fp8_rates",
                       .title = "Rate",
                       .unit = "TFLOP/s",
                       .rows = {.table = "fp8", .prepare = with_peers},
                       .label = "name",
                       .value = "tflops",
                       .note = "{beside}",
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
        .how = "rate = clock × share of the tensor cores × 4096 FLOP × multiprocessors",
        .plots = {Bars{.id = "by_data",
                       .unit = "TFLOP/s",
                       .rows = {.table = "data", .prepare = with_factors},
                       .label = "data",
                       .value = "tflops",
                       .note = "{factors}",
                       .role = one_role}},
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
       counters_view(rung_role),
       {.name = "Resources",
        .how = "resources of the compiled kernels",
        .plots = {Bars{.id = "registers",
                       .title = "Registers per thread, as compiled",
                       .rows = {.table = "resources", .prepare = with_configuration},
                       .label = "name",
                       .value = "registers",
                       .note = "{kib} KiB shared",
                       .role = rung_role}},
        .needs = "resources"}}};
}

}  // namespace tilestep::scenes
