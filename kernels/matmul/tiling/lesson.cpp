#include "kernels/matmul/tiling/lesson.hpp"

#include "kernels/matmul/tiling/bench.hpp"

namespace tilestep::tiling {
namespace {

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  progress.report(0, "making the matrices");
  return report_of(gather(params, device, progress));
}

}  // namespace

const lab::KnobTable<Params>& knob_table() {
  static const auto table =
      lab::KnobTable<Params>()
          .choice(
              &Params::variant,
              {"variant",
               "Which rung of the ladder runs; the first three have a picture of their own, the "
               "others are shown beside shared-tile's."})
          .integer(&Params::tile,
                   {"tile",
                    "Edge of the picture's tiles; a block has tile x tile threads. Rungs above "
                    "shared-tile have tiles of their own."},
                   4, 32)
          .integer(&Params::m, {"m", "Rows of A and of C."}, 1, 256, true)
          .integer(&Params::n, {"n", "Columns of B and of C."}, 1, 256, true)
          .integer(&Params::k, {"k", "Columns of A, rows of B: products an element of C."}, 1, 256,
                   true)
          .toggle(&Params::padding,
                  {"padding",
                   "Makes the rows of the A tile in shared memory a little longer, so that a "
                   "warp's stores fall into different banks."})
          .choice(&Params::remove_barrier,
                  {"remove_barrier", "Remove a barrier", "",
                   "Breaks shared-tile on purpose and runs it in many orders of its threads."})
          .seed();
  return table;
}

const lab::Lesson& lesson() {
  static const lab::LessonOf<Params> lesson(
      kLesson, "Load a tile once, use it many times: what limits a kernel is the trips to memory.",
      knob_table(), run, bench_report, "k_tiles");
  return lesson;
}

}  // namespace tilestep::tiling
