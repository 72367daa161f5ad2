// The Measured tab of the lesson on attention: the ladder beside cuDNN and PyTorch, the gain of a causal mask, bytes,
// busy units, and the resources of the compiled kernels.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include "scenes/attention/flash_attention/scene.hpp"

namespace tilestep::scenes {
namespace {

/// Rungs that keep scores in memory, and those that do not.
Role rung_role(std::string_view rung) {
  if (rung == "naive") return Role::purple;
  return rung.starts_with("flash") ? Role::sky : Role::muted;
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
  return {
      {.name = "Bytes",
       .how =
           "counted, of one launch; dashed: the kernel's requests, and the least that must cross",
       .filters = {head_dim},
       .plots = {bar("attention_l2", "Between multiprocessors and L2", "l2", "formula"),
                 bar("attention_dram", "Between L2 and DRAM", "dram", "least")},
       .needs = "bytes",
       .missing = kNoCounters}};
}

}  // namespace

measured::Spec FlashAttentionScene::measured_spec() const {
  measured::Spec spec{"ladder_measured", attention_rates(rung_role)};
  for (auto& more : {bytes(), attention_units(rung_role)}) {
    spec.views.insert(spec.views.end(), more.begin(), more.end());
  }
  return spec;
}

}  // namespace tilestep::scenes
