// Shared by the Measured tabs of attention's forward passes.
#include "scenes/shared/measured.hpp"

#include "scenes/attention/shared/matrix.hpp"
#include "scenes/shared/rows.hpp"

namespace tilestep::scenes {
namespace {

/// A causal mask halves the work.
lab::Table with_work(lab::Table table) {
  add_column(table, "work", [](std::size_t) -> lab::Cell { return 2.0; });
  return table;
}

}  // namespace

std::vector<measured::View> attention_rates(measured::Roles rung_role) {
  using namespace measured;
  const Filter head_dim{"attention_head_dim", "head_dim", "{}", "128", "head dimension"};
  const Filter mask{"attention_mask", "mask", "{}", "none", "mask"};
  const Filter length{"attention_length", "length", "{}", "16384", "length"};
  return {{.name = "Ladder",
           .how = "BF16, batch 1, random; 4 · length² · head dimension per head, half if causal",
           .filters = {head_dim, mask, length},
           .plots = {Bars{.id = "attention_ladder",
                          .unit = "TFLOP/s",
                          .rows = {.table = "ladder_measured"},
                          .label = "rung",
                          .value = "tflops",
                          .of = "cuDNN",
                          .role = rung_role},
                     Bars{.id = "attention_peers",
                          .title = "Peers, in turn with them",
                          .unit = "TFLOP/s",
                          .rows = {.table = "peers"},
                          .label = "rung",
                          .value = "tflops",
                          .fraction = "",
                          .role = rung_role}}},
          {.name = "Lengths",
           .how = "the same rungs from short to long",
           .filters = {head_dim, mask},
           .plots = {Lines{.id = "attention_lengths",
                           .title = "Rate",
                           .x_label = "length",
                           .y_label = "TFLOP/s",
                           .x_log = true,
                           .rows = {.table = "ladder_measured"},
                           .x = "length",
                           .series = "rung",
                           .y = "tflops"}}},
          {.name = "Causal",
           .how = "dashed: the work, which a causal mask halves",
           .filters = {head_dim, length},
           .plots = {Bars{.id = "causal_ratio",
                          .title = "Time without a mask / time with it",
                          .unit = "×",
                          .rows = {.table = "causal", .prepare = with_work},
                          .label = "rung",
                          .value = "ratio",
                          .low = "",
                          .high = "",
                          .fraction = "",
                          .expected = "work",
                          .note = "{time_full} → {time_causal} ms",
                          .role = rung_role}},
           .needs = "causal"}};
}

std::vector<measured::View> attention_units(measured::Roles rung_role) {
  using namespace measured;
  const Filter head_dim{"attention_units_dim", "head_dim", "{}", "128", "head dimension"};
  const auto busy = [rung_role](std::string id, std::string title, std::string value) {
    return Bars{.id = std::move(id),
                .title = std::move(title),
                .unit = "%",
                .rows = {.table = "pipes"},
                .label = "rung",
                .value = std::move(value),
                .low = "",
                .high = "",
                .fraction = "",
                .role = rung_role};
  };
  return {{.name = "Units",
           .how = "counted: share of cycles in which the unit is busy",
           .filters = {head_dim},
           .plots = {busy("attention_tensor", "Tensor cores", "tensor_pipe"),
                     busy("attention_exp", "Exponentials", "exp_pipe")},
           .needs = "pipes",
           .missing = kNoCounters},
          {.name = "Resources",
           .how = "resources that the compiled kernels use",
           .filters = {{"attention_resources_dim", "head_dim", "{}", "128", "head dimension"}},
           .plots = {Bars{.id = "attention_registers",
                          .title = "Registers per thread, as compiled",
                          .rows = {.table = "resources", .prepare = with_kib},
                          .label = "configuration",
                          .value = "registers",
                          .low = "",
                          .high = "",
                          .fraction = "",
                          .note = "{kib} KiB shared",
                          .role = rung_role}},
           .needs = "resources"}};
}

}  // namespace tilestep::scenes
