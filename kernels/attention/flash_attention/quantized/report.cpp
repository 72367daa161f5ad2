// What a run with scores of 8 bits says of their price.

#include "kernels/attention/flash_attention/run/run.hpp"
#include "kernels/base/lab/check.hpp"

namespace tilestep::flash_attention {

void add_quantized(lab::Report& report, const Run& run) {
  if (!run.sound.plan.quantized) return;
  using lab::column, lab::real;
  lab::Table table{"quantized",
                   "What 8 bits cost: errors against double on the inputs in BF16",
                   {column("format", "Q and K"), real("score_rms", "scores: rms error", "", 5),
                    real("o_rms", "O: rms error / rms of O", "", 5),
                    real("o_largest", "O: largest error / rms of O", "", 5)}};
  for (const QuantizedRow& row : run.quantized.rows) {
    table.add({name_of_row(row), row.score_rms, row.o_rms, row.o_largest});
  }
  report.add(std::move(table));
  report.add(lab::none_wrong(
      "quantized_numbers", run.quantized.wrong_numbers,
      "Numbers of Q and K in 8 bits, times their scale, that are more than half a step away from "
      "those that they stand for; scales and means that are not their tile's."));
  report.add(lab::none_wrong(
      "quantized_scores", run.quantized.wrong_scores,
      "Scores further from those in double than half a step of each number of Q and K explains."));
  report.add(
      lab::none_wrong("quantized_outputs", run.quantized.wrong_rows,
                      "Formats whose O or log-sum-exp is further from what its 8-bit numbers "
                      "come to in double than rounding explains."));
}

}  // namespace tilestep::flash_attention
