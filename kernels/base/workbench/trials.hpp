#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/simt/backends.hpp"
#include "kernels/base/workbench/edited.hpp"

/// Whether an edited kernel is right at its lesson's trial settings as well, and what it takes more than the original.
namespace tilestep::workbench {

/// The result of one trial.
struct Trial {
  enum class Result { right, wrong, not_tried };  ///< not_tried: there was no time left for it
  /// That differ from the defaults: "preset=masked keys=40"; "defaults"; "the bench at small sizes".
  std::string knobs;
  Result result = Result::right;
  std::string found;  ///< the error, as the end of a sentence: "the check output finds NaN"
  std::string cost;   ///< of a right one what `cost_of` says
};
constexpr auto names_of(Trial::Result) {
  return std::to_array<std::string_view>({"right", "wrong", "not tried"});
}

struct TrialRun {
  const lab::Lesson& lesson;
  const EditedKernels& kernels;
  std::string path;                             ///< of the edited source
  std::span<const simt::KernelEntry> original;  ///< as they were built in
  /// Where its threads run in other orders first (orders.hpp): a run with these knobs had no time for that.
  std::optional<lab::Settings> orders_at = std::nullopt;
  /// Beyond which no other setting is begun.
  std::chrono::milliseconds budget = std::chrono::seconds(20);
};

/// Runs the edited kernel at those of the lesson's trial settings that launch a kernel of its source, each in two orders
/// of the threads, under emulation; where none does, in the lesson's small bench. The report has the table `trials`, the check `trials` and a summary in a sentence. Where
/// a setting ends the process the report says so (`device_lost`), and the others were not tried. Throws Cancelled; Error
/// (unavailable) where the memory is not enough. With `orders_at` it has the check `thread_order` as well; where that fails, nothing is
/// tried elsewhere.
lab::Report run_trials(const TrialRun& run, lab::Progress& progress);

/// Those of a report of `run_trials`, in its order.
std::vector<Trial> trials_of(const lab::Report& report);
/// The first wrong one; nullptr: none is.
const Trial* first_wrong(const std::vector<Trial>& trials);
/// In a sentence: "Right with all 6 settings that tell." or "Wrong with preset=masked: the check output finds NaN."
std::string sentence_of(const std::vector<Trial>& trials);
/// "preset=masked keys=40" of knobs that differ from the defaults; "defaults".
std::string words_of(const lab::Settings& differing);

/// What an edited kernel asks of the machine more than the original with the same knobs, where their traces have it: what
/// grew most of sectors, conflicts, loads and bytes. "16 times the sectors a request of the original (512 against 32)"; empty: nothing.
std::string cost_of(const lab::Report& edited, const lab::Report& original);

}  // namespace tilestep::workbench
