// The Measured tab of the low-bit lesson: W4A16 and W8A8 beside cuBLAS over the batch, W8A8 of a square product, one row of
// X in each format, fused and unfused, and how fast weights are quantized.
#include "scenes/shared/measured.hpp"

#include "scenes/numbers/low_bit/scene.hpp"

namespace tilestep::scenes {
namespace {

/// W8A8's rate in a format beside the same of cuBLASLt.
measured::Bars square_bars(const char* id, const char* format, Role (*role)(std::string_view)) {
  return {.id = id,
          .title = format,
          .unit = "TFLOP/s",
          .rows = {.table = "w8a8", .column = "format", .is = format},
          .label = "rung",
          .value = "tflops",
          .of = "cuBLAS",
          .roof = {"w8a8_library_rate", format, "cuBLAS"},
          .role = role};
}

}  // namespace

measured::Spec LowBitScene::measured_spec() const {
  using namespace measured;
  return {
      "quantize",
      {{.name = "Batch",
        .how = "Few bits beside cuBLAS in BF16, layers in a CUDA graph, each with weights of its "
               "own, median. Predicted: the longer of what the bytes and the FLOPs take at the "
               "measured rates",
        .filters =
            {{.id = "linear_layer", .column = "layer", .words = "W {}", .first = "14336 × 4096"}},
        .plots =
            {Lines{
                 .id = "linear_speedup",
                 .title = "Times as fast as BF16",
                 .x_label = "batch: rows of X",
                 .y_label = "×",
                 .x_log = true,
                 .rows = {.table = "linear"},
                 .x = "batch",
                 .low = "",
                 .high = "",
                 .curves = {{.column = "speedup", .label = "W4A16", .role = Role::sky},
                            {.column = "int8_speedup", .label = "W8A8, INT8", .role = Role::orange},
                            {.column = "fp8_speedup", .label = "W8A8, FP8", .role = Role::purple},
                            {.column = "predicted_speedup",
                             .label = "W4A16 predicted",
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
                   .curves =
                       {{.column = "time", .label = "W4A16", .role = Role::sky},
                        {.column = "int8_time", .label = "W8A8, INT8", .role = Role::orange},
                        {.column = "fp8_time", .label = "W8A8, FP8", .role = Role::purple},
                        {.column = "library_time", .label = "cuBLAS, BF16", .role = Role::muted},
                        {.column = "predicted",
                         .label = "W4A16 predicted",
                         .role = Role::sky,
                         .dashed = true},
                        {.column = "library_predicted",
                         .label = "BF16 predicted",
                         .role = Role::muted,
                         .dashed = true}}}},
        .needs = "linear"},
       {.name = "W8A8",
        .plots = {square_bars("w8a8_int8", "INT8", [](std::string_view) { return Role::orange; }),
                  square_bars("w8a8_fp8", "FP8", [](std::string_view) { return Role::purple; })},
        .needs = "w8a8",
        .missing = "W8A8 is timed on Hopper GPUs alone."},
       {.name = "Formats",
        .how = "One row of X, layers in a CUDA graph, each with weights of its own. Expected: the "
               "bytes at the rate of reading memory",
        .filters =
            {{.id = "gemv_layer", .column = "layer", .words = "W {}", .first = "14336 × 4096"}},
        .plots = {Bars{.id = "gemv_time",
                       .title = "Time of W · x",
                       .unit = "ms",
                       .rows = {.table = "gemv"},
                       .label = "format",
                       .value = "time",
                       .low = "",
                       .high = "",
                       .fraction = "",
                       .expected = "bound"},
                  Bars{.id = "gemv_bandwidth",
                       .title = "Bytes over time",
                       .unit = "GB/s",
                       .rows = {.table = "gemv"},
                       .label = "format",
                       .value = "gb_per_s",
                       .low = "",
                       .high = "",
                       .fraction = "of_bound",
                       .of = "reading",
                       .roof = {"read_bandwidth", "", "reading"}}},
        .needs = "gemv"},
       {.name = "Fused or not",
        .how = "By memory: a kernel writes numbers in BF16 and cuBLAS reads them, timed together",
        .filters = {{.id = "unfused_batch", .column = "batch", .words = "batch {}", .first = "1"}},
        .plots = {Bars{.id = "unfused_time",
                       .title = "Time of X · W, {layer}",
                       .unit = "ms",
                       .rows = {.table = "unfused"},
                       .label = "format",
                       .value = "time",
                       .low = "",
                       .high = "",
                       .fraction = "",
                       .note = "{megabytes} MB"},
                  Bars{.id = "dequantize",
                       .title = "Numbers to memory alone",
                       .unit = "GB/s",
                       .rows = {.table = "dequantize"},
                       .label = "format",
                       .value = "bandwidth",
                       .of = "copy"}},
        .needs = "unfused"},
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
