// The Measured tab of the low-bit lesson: how fast weights are quantized, with the device's own copy as the roof.
#include "scenes/shared/measured.hpp"

#include "scenes/numbers/low_bit/scene.hpp"

namespace tilestep::scenes {

measured::Spec LowBitScene::measured_spec() const {
  using namespace measured;
  return {"quantize",
          {{.name = "Quantize",
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
