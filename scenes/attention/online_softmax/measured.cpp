// The Measured tab of the online-softmax lesson: the ladder at one width, with the device's own copy
// as the roof, and by threads per row: where L1 serves the repeated reads of the lower rungs and
// where it does not.
#include "scenes/shared/measured.hpp"

#include "scenes/attention/online_softmax/scene.hpp"

namespace tilestep::scenes {
measured::Spec OnlineSoftmaxScene::measured_spec() const {
  using namespace measured;
  const Roof copy{"copy_bandwidth", "", "copy"};
  return {
      "ladder_blocks",
      {{.name = "Ladder",
        .how = "FP32, one read and one write of each element counted, median",
        .filters = {{"measured_columns", "columns", "{}", "8192", "columns"}},
        .plots = {Bars{.id = "ladder",
                       .title = "Each rung at its best block size",
                       .unit = "GB/s",
                       .rows = {.table = "ladder_measured"},
                       .label = "rung",
                       .value = "bandwidth",
                       .fraction = "",
                       .of = "copy",
                       .roof = copy},
                  Lines{.id = "ladder_by_threads",
                        .title = "By threads per row",
                        .x_label = "threads/row",
                        .y_label = "useful GB/s",
                        .x_log = true,
                        .rows = {.table = "ladder_blocks"},
                        .x = "threads",
                        .series = "rung",
                        .y = "bandwidth",
                        .roof = copy}}},
       {.name = "Beyond L2",
        .how = "more rows of {columns} columns in flight than any cache holds",
        .plots = {Bars{.id = "uncached",
                       .title = "Each rung where every read goes to memory",
                       .unit = "GB/s",
                       .rows = {.table = "ladder_uncached"},
                       .label = "rung",
                       .value = "bandwidth",
                       .fraction = "of_one_read",
                       .of = "one read",
                       .roof = copy},
                  Bars{.id = "uncached_share",
                       .title = "Throughput relative to one read; dashed: predicted from the reads",
                       .unit = "%",
                       .rows = {.table = "ladder_uncached"},
                       .label = "rung",
                       .value = "of_one_read",
                       .low = "",
                       .high = "",
                       .expected = "expected",
                       .times = 100,
                       .note = "{reads|read}/element"}},
        .needs = "ladder_uncached"}}};
}

}  // namespace tilestep::scenes
