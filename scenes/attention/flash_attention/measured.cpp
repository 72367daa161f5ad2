// The Measured tab of the lesson on attention: the ladder beside cuDNN and PyTorch, what a causal mask saves, bytes,
// which unit is busy, and what the compiled kernels take.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include "scenes/attention/flash_attention/scene.hpp"
#include "scenes/shared/rows.hpp"

namespace tilestep::scenes {
namespace {

/// What keeps its scores in memory, and what does not.
Role rung_role(std::string_view rung) {
  if (rung == "naive") return Role::purple;
  return rung.starts_with("flash") ? Role::sky : Role::muted;
}

/// The work of a causal mask is half of that of none.
lab::Table with_work(lab::Table table) {
  add_column(table, "work", [](std::size_t) -> lab::Cell { return 2.0; });
  return table;
}

std::vector<measured::View> rates() {
  using namespace measured;
  const Filter head_dim{"attention_head_dim", "head_dim", "{}", "128", "head dimension"};
  const Filter mask{"attention_mask", "mask", "{}", "none", "mask"};
  const Filter length{"attention_length", "length", "{}", "16384", "length"};
  return {{.name = "Ladder",
           .how = "BF16, batch 1, random numbers; 4 · length² · head dimension a head, half for "
                  "causal",
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
                           .y = "tflops",
                           .role = rung_role}}},
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
           .needs = "causal"},
          {.name = "Backward",
           .how = "BF16, batch 1; 10 · length² · head dimension a head, half for causal, whatever "
                  "is computed again",
           .filters = {{"backward_head_dim", "head_dim", "{}", "128", "head dimension"},
                       {"backward_mask", "mask", "{}", "none", "mask"},
                       {"backward_length", "length", "{}", "16384", "length"}},
           .plots = {Bars{.id = "attention_backward",
                          .unit = "TFLOP/s",
                          .rows = {.table = "backward"},
                          .label = "rung",
                          .value = "tflops",
                          .of = "cuDNN"}},
           .needs = "backward"}};
}

std::vector<measured::View> bytes() {
  using namespace measured;
  const Filter head_dim{"attention_bytes_dim", "head_dim", "{}", "128", "head dimension"};
  const auto bar = [](std::string id, std::string title, std::string value, std::string expected) {
    return Bars{.id = std::move(id),
                .title = std::move(title),
                .unit = "MB",
                .rows = {.table = "bytes"},
                .label = "rung",
                .value = std::move(value),
                .low = "",
                .high = "",
                .fraction = "",
                .expected = std::move(expected),
                .role = rung_role};
  };
  return {{.name = "Bytes",
           .how =
               "counted, of one launch; dashed: what the kernel asks for, and what must cross at "
               "least",
           .filters = {head_dim},
           .plots = {bar("attention_l2", "Between multiprocessors and L2", "l2", "formula"),
                     bar("attention_dram", "Between L2 and DRAM", "dram", "least")},
           .needs = "bytes",
           .missing = kNoCounters}};
}

std::vector<measured::View> units() {
  using namespace measured;
  const Filter head_dim{"attention_units_dim", "head_dim", "{}", "128", "head dimension"};
  const auto busy = [](std::string id, std::string title, std::string value) {
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
           .how = "counted: share of the cycles in which the unit is at work",
           .filters = {head_dim},
           .plots = {busy("attention_tensor", "Tensor cores", "tensor_pipe"),
                     busy("attention_exp", "Exponentials", "exp_pipe")},
           .needs = "pipes",
           .missing = kNoCounters},
          {.name = "Resources",
           .how = "what the compiled kernels take of a multiprocessor",
           .filters = {{"attention_resources_dim", "head_dim", "{}", "128", "head dimension"}},
           .plots = {Bars{.id = "attention_registers",
                          .title = "Registers of a thread, as compiled",
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

}  // namespace

measured::Spec FlashAttentionScene::measured_spec() const {
  measured::Spec spec{"ladder_measured", rates()};
  for (auto& more : {bytes(), units()}) {
    spec.views.insert(spec.views.end(), more.begin(), more.end());
  }
  return spec;
}

}  // namespace tilestep::scenes
