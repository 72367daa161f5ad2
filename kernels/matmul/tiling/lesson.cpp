#include "kernels/matmul/tiling/lesson.hpp"

#include <string>
#include <vector>

#include "kernels/matmul/tiling/report.hpp"

namespace tilestep::tiling {
namespace {

struct VariantText {
  const char* name;
  const char* what_changed;
  const char* source;
};
constexpr VariantText kVariantTexts[kVariants] = {
    {"naive",
     "The starting point: one element of C a thread, threadIdx.x running down the rows, so that "
     "the "
     "lanes of a warp load addresses a whole row apart.",
     "kernels/matmul/tiling/shared_tile.cu"},
    {"coalesced",
     "threadIdx.x runs across the columns: a warp's loads of B and its stores to C are neighbours "
     "and need few memory sectors.",
     "kernels/matmul/tiling/shared_tile.cu"},
    {"shared-tile",
     "The block loads a tile of A and one of B into shared memory once and reads every element of "
     "them once for each of its rows or columns.",
     "kernels/matmul/tiling/shared_tile.cu"},
    {"register-tile-1d",
     "Eight rows of C a thread: an element of B stays in a register for eight products, so that "
     "nine shared reads serve eight products instead of sixteen.",
     "kernels/matmul/tiling/register_tile.cu"},
    {"register-tile-2d",
     "Eight by eight elements of C a thread: sixteen shared reads serve sixty-four products.",
     "kernels/matmul/tiling/register_tile.cu"},
    {"vectorized",
     "float4 loads and reads, from an A tile that is turned on its way into shared memory: a "
     "quarter of the memory instructions for the same bytes.",
     "kernels/matmul/tiling/register_tile.cu"},
    {"double-buffered",
     "cp.async brings the next tiles into a second stage of shared memory while the current ones "
     "are multiplied, without passing through registers.",
     "kernels/matmul/tiling/double_buffered.cu"},
    {"warp-tile",
     "Each warp has a rectangle of C whose lanes share what they read; deeper tiles in three or "
     "four stages, and blocks in an order that keeps their tiles in L2.",
     "kernels/matmul/tiling/warp_tile.cu"},
    {"tensor-core",
     "BF16 inputs and mma.sync on tensor cores with FP32 accumulators: one instruction of a warp "
     "makes 2048 products instead of 32.",
     "kernels/matmul/tiling/tensor_core.cu"},
};

const VariantText& text_of(Variant variant) {
  return kVariantTexts[static_cast<std::size_t>(variant)];
}

const std::vector<std::string>& removed_barrier_names() {
  static const std::vector<std::string> names = {"none", "after-load", "after-multiply"};
  return names;
}

std::vector<std::string> variant_names() {
  std::vector<std::string> names;
  for (const VariantText& text : kVariantTexts) names.emplace_back(text.name);
  return names;
}

/// Lets the device ask whether the run was given up, for as long as the run lasts.
class StopWhenCancelled {
 public:
  StopWhenCancelled(simt::Device& device, const lab::Progress& progress) : device_(device) {
    device_.stop_when([&progress] { return progress.cancelled(); });
  }
  ~StopWhenCancelled() { device_.stop_when({}); }
  StopWhenCancelled(const StopWhenCancelled&) = delete;
  StopWhenCancelled& operator=(const StopWhenCancelled&) = delete;

 private:
  simt::Device& device_;
};

class TilingLesson final : public lab::Lesson {
 public:
  const lab::LessonInfo& info() const override {
    static const lab::LessonInfo info{
        std::string(kLessonId), "Tiling and roofline", "Matrix product",
        "Load a tile once, use it many times: what limits a kernel is the trips to memory.",
        "k_tiles"};
    return info;
  }

  const lab::Knobs& knobs() const override {
    static const lab::Knobs knobs = knob_table().knobs();
    return knobs;
  }

  lab::Report run(const lab::Settings& settings, simt::Device& device,
                  lab::Progress& progress) const override {
    const Params params = params_from(settings);
    const StopWhenCancelled stop(device, progress);
    progress.report(0, "making the matrices");
    const Outcome outcome = gather(params, device, progress);
    lab::Report report = make_report(outcome, device.info());
    progress.report(1, "done");
    return report;
  }

  lab::Report bench(simt::Device& device, lab::Progress& progress) const override {
    const StopWhenCancelled stop(device, progress);
    return bench_report(device, progress);
  }
};

}  // namespace

std::string_view to_text(Variant variant) {
  return text_of(variant).name;
}
std::string_view what_changed(Variant variant) {
  return text_of(variant).what_changed;
}
std::string_view source_path(Variant variant) {
  return text_of(variant).source;
}
std::string_view to_text(RemovedBarrier removed) {
  return removed_barrier_names().at(static_cast<std::size_t>(removed));
}

const lab::KnobTable<Params>& knob_table() {
  static const lab::KnobTable<Params> table = [] {
    lab::KnobTable<Params> t;
    t.choice(&Params::variant,
             {"variant", "Variant", "",
              "Which rung of the ladder runs; the first three have a picture of their own, the "
              "others are shown beside shared-tile's."},
             variant_names())
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
                 "Makes the rows of the A tile in shared memory a little longer, so that a warp's "
                 "stores fall into different banks."})
        .choice(&Params::remove_barrier,
                {"remove_barrier", "Remove a barrier", "",
                 "Breaks shared-tile on purpose and runs it in many orders of its threads."},
                removed_barrier_names())
        .integer(&Params::seed, {"seed", "Seed", "", "Chooses the random numbers."}, 0, 2147483647);
    return t;
  }();
  return table;
}

Params params_from(const lab::Settings& settings) {
  return knob_table().params(settings);
}

const lab::Lesson& lesson() {
  static const TilingLesson lesson;
  return lesson;
}

}  // namespace tilestep::tiling
