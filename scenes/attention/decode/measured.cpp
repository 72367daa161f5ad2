// The Measured tab of the lesson on decoding: the ladder beside a read-only kernel, formats of the cache, batches,
// short contexts, and sharing of K/V heads.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include "scenes/attention/decode/scene.hpp"
#include "scenes/shared/rows.hpp"

namespace tilestep::scenes {
namespace {

Role rung_role(std::string_view rung) {
  return rung.starts_with("paged") ? Role::sky : Role::muted;
}
Role launching_role(std::string_view launching) {
  if (launching == "a block each") return Role::purple;
  if (!launching.ends_with("256 tokens") && !launching.ends_with("kernel")) return Role::sky;
  return launching.ends_with("kernel") ? Role::yellow : Role::green;
}
/// The ratio of bits: a format's speedup if only bytes counted.
lab::Table with_bits(lab::Table table) {
  add_column(table, "bits", [&](std::size_t row) -> lab::Cell {
    const std::string format = text_in(table, row, "kv_dtype");
    return format == "int4" ? 4.0 : format == "bf16" ? 1.0 : 2.0;
  });
  return table;
}

std::vector<measured::View> speed() {
  using namespace measured;
  return {{.name = "Ladder",
           .how = "bytes a step must read and write, over its time; L2 flushed before each launch",
           .plots = {Bars{.id = "decode_ladder",
                          .unit = "GB/s",
                          .rows = {.table = "ladder_measured"},
                          .label = "rung",
                          .value = "bandwidth",
                          .of = "reading alone",
                          .role = rung_role},
                     Bars{.id = "decode_peers",
                          .title = "Peers, timed in turn",
                          .unit = "GB/s",
                          .rows = {.table = "peers"},
                          .label = "rung",
                          .value = "bandwidth",
                          .fraction = "",
                          .role = rung_role}}},
          {.name = "Bytes",
           .how = "counted in one launch; dashed: each cache byte once",
           .plots = {Bars{.id = "decode_dram",
                          .title = "Between L2 and DRAM",
                          .unit = "MB",
                          .rows = {.table = "bytes"},
                          .label = "rung",
                          .value = "dram",
                          .low = "",
                          .high = "",
                          .fraction = "",
                          .expected = "least",
                          .role = rung_role}},
           .needs = "bytes",
           .missing = kNoCounters},
          {.name = "Formats",
           .how = "time of BF16 / time; dashed: the ratio of their bits",
           .filters = {{"decode_format_page", "page_size", "{}", "16", "page"}},
           .plots = {Bars{.id = "decode_formats",
                          .unit = "×",
                          .rows = {.table = "formats", .prepare = with_bits},
                          .label = "kv_dtype",
                          .value = "speedup",
                          .low = "",
                          .high = "",
                          .fraction = "",
                          .expected = "bits",
                          .note = "{bandwidth} GB/s"}},
           .needs = "formats"}};
}

std::vector<measured::View> sweeps() {
  using namespace measured;
  return {{.name = "Batch",
           .how = "equal-length requests; bytes over time",
           .plots = {Lines{.id = "decode_batches",
                           .title = "Bandwidth",
                           .x_label = "requests",
                           .y_label = "GB/s",
                           .x_log = true,
                           .rows = {.table = "batches"},
                           .x = "batch",
                           .series = "rung",
                           .y = "bandwidth",
                           .role = launching_role}},
           .needs = "batches"},
          {.name = "Context",
           .how = "one request alone",
           .plots = {Lines{.id = "decode_contexts",
                           .title = "Time",
                           .x_label = "tokens",
                           .y_label = "ms",
                           .x_log = true,
                           .y_log = true,
                           .rows = {.table = "contexts"},
                           .x = "context",
                           .series = "rung",
                           .y = "time",
                           .low = "",
                           .high = "",
                           .role = launching_role}},
           .needs = "contexts"},
          {.name = "Sharing",
           .how = "query heads that share a K/V head; 32 query heads of 128",
           .plots = {Bars{.id = "decode_sharing",
                          .title = "Tokens per second, one layer",
                          .unit = "1/s",
                          .rows = {.table = "schemes"},
                          .label = "{scheme}, {shared_by}",
                          .value = "tokens",
                          .low = "",
                          .high = "",
                          .fraction = "",
                          .note = "{bandwidth} GB/s"}},
           .needs = "schemes"},
          {.name = "MLA",
           .how = "absorbed, 128 query heads, BF16; operations over time",
           .filters = {{"decode_latent_page", "page_size", "{}", "64", "page"}},
           .plots = {Bars{.id = "decode_latent",
                          .unit = "TFLOP/s",
                          .rows = {.table = "latent"},
                          .label = "{rung}, {requests}",
                          .value = "tflops",
                          .fraction = "",
                          .note = "{bandwidth} GB/s"}},
           .needs = "latent"}};
}

}  // namespace

measured::Spec DecodeScene::measured_spec() const {
  measured::Spec spec{"ladder_measured", speed()};
  spec.views.push_back(channels_view());
  for (measured::View& view : sweeps()) spec.views.push_back(std::move(view));
  return spec;
}

}  // namespace tilestep::scenes
