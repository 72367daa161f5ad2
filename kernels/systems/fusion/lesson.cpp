#include "kernels/systems/fusion/lesson.hpp"

#include "kernels/base/lab/knob.hpp"
#include "kernels/base/simt/launch.hpp"
#include "kernels/systems/fusion/bench/bench.hpp"
#include "kernels/systems/fusion/run/run.hpp"

namespace tilestep::fusion {
namespace {

/// The lowest compute capability that the kernels are compiled for: clusters, and conversions to E4M3.
constexpr int kLeastCapability = 90;

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  simt::require_capability(device.info(), "fusion", kLeastCapability);
  return report_of(run_of(params, device, progress));
}

}  // namespace

const lab::KnobTable<Params>& knob_table() {
  static const auto table =
      lab::KnobTable<Params>()
          .group("model")
          .integer(&Params::rows, {"rows", "Rows", "tokens", "Rows that the kernels compute."}, 1,
                   256, true)
          .integer(&Params::width, {"width", "Width", "numbers", "Numbers of a row."}, 1,
                   kMostWidth, true)
          .choice(&Params::dtype, {"dtype", "Format", "", "Number format of rows in memory."})
          .integer(&Params::batch,
                   {"batch", "Batch", "tokens", "Tokens of a step of the block, in the ledger."}, 1,
                   65536, true)
          .group("kernel")
          .choice(&Params::block_choice,
                  {"block", "Threads per row", "", "Threads of a block that share a row."},
                  {"32", "64", "128", "256", "512", "1024"})
          .text(&Params::fuse,
                {"fuse", "Fused seams", "",
                 "Seams of the decoder block that are fused, in this order: click them in the "
                 "ledger."},
                "seams from 1 to 14 with commas between, none twice, such as 8,9, nothing, or best",
                is_list_of_seams)
          .choice(&Params::broken,
                  {"break", "Break it", "", "Makes a mistake and runs it for real."})
          .group("run")
          .seed();
  return table;
}

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(kLesson,
                            "The same arithmetic in fewer trips to memory: what the next step "
                            "needs stays on the chip.",
                            knob_table(), run, bench_report, "chain")
          .with_telling(
              {{"unfused",
                "Nothing is fused: fifteen kernels, and every tensor goes out and comes back.",
                {.fuse = ""}},
               {"best",
                "All that may be fused: products take the element-wise work behind them, row "
                "kernels the rest.",
                {.fuse = "1,3,7,9,11,14"}},
               {"wide",
                "A row beyond a block's registers: four blocks of a cluster hold it in shared "
                "memory.",
                {.rows = 1, .width = 131072}},
               {"stats-before-residual",
                "The fused kernel sums squares before it adds the residual: the norm of the wrong "
                "tensor.",
                {.broken = Break::stats_before_residual}}})
          .with_trials(
              {{},
               {.rows = 3, .width = 127, .fuse = ""},
               {.rows = 5, .width = 1000, .dtype = Dtype::fp16, .block_choice = 0, .fuse = "8"},
               {.rows = 2, .width = 2056, .dtype = Dtype::fp32, .block_choice = 1, .fuse = "9"},
               {.rows = 1, .width = 16400, .dtype = Dtype::fp32, .block_choice = 5}})
          .with_small_bench([](simt::Device& device, lab::Progress& progress) {
            return bench_report(device, progress, BenchSizes::tiny());
          });
  return lesson;
}

}  // namespace tilestep::fusion
