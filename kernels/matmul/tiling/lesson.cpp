#include "kernels/matmul/tiling/lesson.hpp"

#include "kernels/base/lab/replay.hpp"
#include "kernels/matmul/tiling/bench/bench.hpp"
#include "kernels/matmul/tiling/kernels.hpp"

namespace tilestep::tiling {
namespace {

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  progress.report(0, "making the matrices");
  return report_of(gather(params, device, progress));
}

/// A compiled kernel's resources are those of the timed one. Rungs with a picture have other tiles there
/// than the knobs set.
std::optional<lab::Settings> case_of(const lab::Measurement& m) {
  if (m.id != "registers_per_thread" && m.id != "blocks_per_multiprocessor" &&
      m.id != "occupancy_limit") {
    return std::nullopt;
  }
  lab::Settings knobs = {{"variant", m.variant}};
  for (const Variant variant : {Variant::naive, Variant::coalesced, Variant::shared_tile}) {
    if (m.variant == name_of(variant)) knobs["tile"] = std::int64_t{kTimedTile};
  }
  if (m.variant == name_of(Variant::shared_tile)) knobs["padding"] = true;
  return knobs;
}

}  // namespace

const lab::KnobTable<Params>& knob_table() {
  static const auto table =
      lab::KnobTable<Params>()
          .group("kernel")
          .choice(&Params::variant, {"variant",
                                     "Which rung of the ladder runs. Rungs above shared-tile are "
                                     "drawn by each thread's elements of C."})
          .integer(&Params::tile,
                   {"tile",
                    "Edge of a tile; a block has tile × tile threads. Rungs above shared-tile have "
                    "their own tiles."},
                   4, 32)
          .group("model")
          .integer(&Params::m, {"m", "Rows of A and C."}, 1, 256, true)
          .integer(&Params::n, {"n", "Columns of B and C."}, 1, 256, true)
          .integer(&Params::k, {"k", "Columns of A, rows of B: products per element of C."}, 1, 256,
                   true)
          .group("kernel")
          .toggle(&Params::padding, {"padding",
                                     "Pads the rows of the A tile in shared memory, so that a "
                                     "warp's stores hit different banks."})
          .choice(&Params::remove_barrier,
                  {"remove_barrier", "Remove a barrier", "",
                   "Removes a barrier from shared-tile and runs it in many thread orders."})
          .group("run")
          .seed();
  return table;
}

/// The parts of a run that depend on the GPU that it ran on.
static const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay{
      .of_machine = {{"measurements.registers_per_thread", "as its compiler has it"},
                     {"measurements.blocks_per_multiprocessor", "its limits"},
                     {"measurements.occupancy_limit", "its limits"},
                     {"trace.races", "in which order its threads ran"},
                     {"tables.races", "in which order its threads ran"},
                     {"measurements.race_orders", "in which order its threads ran"},
                     {"measurements.race_share", "in which order its threads ran"}},
      .rounding = 0x1p-19,
      .rounding_why =
          "32 times 2^-24, what FP32 rounds by: each of 32 products along k is added by a fused "
          "multiply-add on a GPU, which rounds once, not twice."};
  return kReplay;
}

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(
          kLesson, "A tile in shared memory moves the limit; registers turn its reuse into speed.",
          knob_table(), run, bench_report, "k_tiles")
          .with_cases(case_of)
          .with_telling({{"naive",
                          "Two global loads per product: the cost that tiles avoid.",
                          {.variant = Variant::naive}},
                         {"bank-conflicts",
                          "Tiles of 32 load each element once for 32 products, but a warp's stores "
                          "down the A tile all hit one bank.",
                          {.tile = 32}},
                         {"no-barrier",
                          "Without the barrier after the load a warp can read elements that "
                          "another has not stored yet.",
                          {.remove_barrier = RemovedBarrier::after_load}}})
          .with_trials({{.variant = Variant::naive, .m = 37, .n = 45, .k = 21},
                        {.variant = Variant::coalesced, .m = 37, .n = 45, .k = 21},
                        {.variant = Variant::shared_tile, .m = 37, .n = 45, .k = 21},
                        {.variant = Variant::register_tile_1d, .m = 37, .n = 45, .k = 21},
                        {.variant = Variant::register_tile_2d, .m = 37, .n = 45, .k = 21},
                        {.variant = Variant::vectorized, .m = 37, .n = 45, .k = 21},
                        {.variant = Variant::double_buffered, .m = 37, .n = 45, .k = 21},
                        {.variant = Variant::warp_tile, .m = 37, .n = 45, .k = 21},
                        {.variant = Variant::tensor_core, .m = 37, .n = 45, .k = 21},
                        {.tile = 16, .m = 50, .n = 20, .k = 33, .padding = true}})
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::tiling
