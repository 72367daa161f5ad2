#include "kernels/matmul/tiling/lesson.hpp"

#include "kernels/matmul/tiling/report.hpp"

namespace tilestep::tiling {
namespace {

struct VariantText {
  const char* what_changed;
  const char* source;
};
constexpr VariantText kVariantTexts[kVariants] = {
    {"The starting point: one element of C a thread, threadIdx.x running down the rows, so that "
     "the lanes of a warp load addresses a whole row apart.",
     "kernels/matmul/tiling/shared_tile.cu"},
    {"threadIdx.x runs across the columns: a warp's loads of B and its stores to C are neighbours "
     "and need few memory sectors.",
     "kernels/matmul/tiling/shared_tile.cu"},
    {"The block loads a tile of A and one of B into shared memory once and reads every element of "
     "them once for each of its rows or columns.",
     "kernels/matmul/tiling/shared_tile.cu"},
    {"Eight rows of C a thread: an element of B stays in a register for eight products, so that "
     "nine shared reads serve eight products instead of sixteen.",
     "kernels/matmul/tiling/register_tile.cu"},
    {"Eight by eight elements of C a thread: sixteen shared reads serve sixty-four products.",
     "kernels/matmul/tiling/register_tile.cu"},
    {"float4 loads and reads, from an A tile that is turned on its way into shared memory: a "
     "quarter of the memory instructions for the same bytes.",
     "kernels/matmul/tiling/register_tile.cu"},
    {"cp.async brings the next tiles into a second stage of shared memory while the current ones "
     "are multiplied, without passing through registers.",
     "kernels/matmul/tiling/double_buffered.cu"},
    {"Each warp has a rectangle of C whose lanes share what they read; deeper tiles in three or "
     "four stages, and blocks in an order that keeps their tiles in L2.",
     "kernels/matmul/tiling/warp_tile.cu"},
    {"BF16 inputs and mma.sync on tensor cores with FP32 accumulators: one instruction of a warp "
     "makes 2048 products instead of 32.",
     "kernels/matmul/tiling/tensor_core.cu"},
};

const VariantText& text_of(Variant variant) {
  return kVariantTexts[static_cast<std::size_t>(variant)];
}

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  progress.report(0, "making the matrices");
  return report_of(gather(params, device, progress));
}

}  // namespace

std::string_view what_changed(Variant variant) {
  return text_of(variant).what_changed;
}
std::string_view source_path(Variant variant) {
  return text_of(variant).source;
}

const lab::KnobTable<Params>& knob_table() {
  static const auto table =
      lab::KnobTable<Params>()
          .choice(
              &Params::variant,
              {"variant", "Variant", "",
               "Which rung of the ladder runs; the first three have a picture of their own, the "
               "others are shown beside shared-tile's."})
          .integer(&Params::tile,
                   {"tile", "Tile", "",
                    "Edge of the picture's tiles; a block has tile x tile threads. Rungs above "
                    "shared-tile have tiles of their own."},
                   4, 32)
          .integer(&Params::m, {"m", "M", "", "Rows of A and of C."}, 1, 256, true)
          .integer(&Params::n, {"n", "N", "", "Columns of B and of C."}, 1, 256, true)
          .integer(&Params::k, {"k", "K", "", "Columns of A, rows of B: products an element of C."},
                   1, 256, true)
          .toggle(&Params::padding,
                  {"padding", "Padding", "",
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
