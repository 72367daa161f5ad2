#pragma once

#include <cstddef>

#include "kernels/attention/flash_attention_3/kernels.hpp"
#include "kernels/attention/flash_attention_3/lesson.hpp"
#include "kernels/attention/flash_attention_3/params.hpp"
#include "kernels/attention/shared/excerpt.hpp"
#include "kernels/attention/shared/reference.hpp"

/// The parts that the lesson's answers are put together from.
namespace tilestep::flash_attention_3 {

/// The part of a problem that a run explains.
using Excerpt = ExcerptOf<Params>;
Excerpt excerpt_of(const Params& params);

/// How the kernels round: from the last key to the first. The explained one's O is FP32, the timed one's is BF16.
enum class OutputOf { explained, timed };
Roundings roundings_of(OutputOf output);

/// What an explained run wrote and noted, on the host.
struct Outcome {
  TilePlan plan;
  std::vector<float> o, lse;
  /// [heads × q_tiles × k_tiles]: block and order follow from the schedule, and begin and end are −1 but for the chosen
  /// block's.
  std::vector<Visit> visits;
  std::vector<Step> steps;    ///< of the chosen query
  Ledger asked{}, formula{};  ///< of the chosen block
  int blocks = 0;             ///< of the launch
  int block = 0;              ///< that has the chosen query
  std::vector<Event> events;  ///< of the chosen block
};
/// Throws Error (unavailable) on a GPU other than Hopper: explained.cpp.
Outcome run_explained(simt::Device& device, const Params& params, const Inputs& inputs,
                      const Chosen& chosen = {});

/// What a run has gathered.
struct Run {
  Params params;    ///< as asked for
  Excerpt excerpt;  ///< what of it ran
  Chosen chosen;
  Outcome sound;    ///< of the kernel with nothing left out
  Reference exact;  ///< and what it should be
  Trace trace;      ///< of what was asked for: of the broken kernel, where one is
};

/// Runs the explained kernel: run.cpp.
Run run_of(const Params& params, simt::Device& device, lab::Progress& progress);

/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Run& run);

/// Adds what a block asks TMA for one tile of queries of one head; `output_bytes` of a number of O.
void add_tile(Ledger& ledger, const TilePlan& plan, const attention::Task& task, int q_tile,
              std::size_t output_bytes);
/// The bytes that a launch asks for: by formula, for any length.
Ledger ledger_of(const TilePlan& plan, const attention::Task& task,
                 std::size_t output_bytes = kElementBytes);
/// Bytes of memory that each tensor takes.
Held held_by(const attention::Task& task);

/// Multiplications and additions of both products of all heads, whole tiles.
double flops_of(const TilePlan& plan, const attention::Task& task);

}  // namespace tilestep::flash_attention_3
