// The Measured tab of the low-bit lesson: W4A16 beside cuBLAS over the batch, and how fast weights are quantized, with the
// device's own copy as the roof.
#include "scenes/shared/measured.hpp"

#include "scenes/numbers/low_bit/scene.hpp"

namespace tilestep::scenes {

measured::Spec LowBitScene::measured_spec() const {
  using namespace measured;
  return {
      "quantize",
      {{.name = "Batch",
        .how = "W4A16 beside cuBLAS in BF16, one layer after the other, each with weights of its "
               "own, median. Predicted: "
               "the longer of what the bytes and the FLOPs take at the measured rates",
        .filters =
            {{.id = "linear_layer", .column = "layer", .words = "W {}", .first = "14336 × 4096"}},
        .plots = {Lines{.id = "linear_speedup",
                        .title = "W4A16, times as fast as BF16",
                        .x_label = "batch: rows of X",
                        .y_label = "×",
                        .x_log = true,
                        .rows = {.table = "linear"},
                        .x = "batch",
                        .low = "",
                        .high = "",
                        .curves = {{.column = "speedup", .label = "measured", .role = Role::sky},
                                   {.column = "predicted_speedup",
                                    .label = "predicted",
                                    .role = Role::sky,
                                    .dashed = true}}},
                  Lines{.id = "linear_time",
                        .title = "Time of X · W",
                        .x_label = "batch: rows of X",
                        .y_label = "ms",
                        .x_log = true,
                        .y_log = true,
                        .rows = {.table = "linear"},
                        .x = "batch",
                        .low = "",
                        .high = "",
                        .curves = {{.column = "time", .label = "W4A16", .role = Role::sky},
                                   {.column = "library_time",
                                    .label = "cuBLAS, BF16",
                                    .role = Role::muted},
                                   {.column = "predicted",
                                    .label = "W4A16 predicted",
                                    .role = Role::sky,
                                    .dashed = true},
                                   {.column = "library_predicted",
                                    .label = "BF16 predicted",
                                    .role = Role::muted,
                                    .dashed = true}}}},
        .needs = "linear"},
       {.name = "Quantize",
        .how = "BF16 in, codes and scales out, each byte counted once, median",
        .plots = {Bars{.id = "quantize",
                       .title = "Each format",
                       .unit = "GB/s",
                       .rows = {.table = "quantize"},
                       .label = "format",
                       .value = "bandwidth",
                       .of = "copy",
                       .roof = {"copy_bandwidth", "", "copy"}}}}}};
}

}  // namespace tilestep::scenes
