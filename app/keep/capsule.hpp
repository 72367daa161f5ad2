#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/report.hpp"
#include "scenes/shared/scene.hpp"

namespace tilestep::app {

/// All that is on show of a lesson, in one file: the report, and where one stands in it. It is data: what
/// opens it shows what was recorded, and runs nothing. A kernel in it is somebody else's, whoever wrote it.
struct Capsule {
  lab::Report report;  ///< names the lesson, and its settings in `params`
  std::optional<lab::Report> bench = {};
  int step = 0;                           ///< completed coarse steps
  int phase = -1;                         ///< inside step `step`; −1: its last
  std::map<std::string, int> picks = {};  ///< whom the user follows, by the name of View::picks
  std::vector<scenes::Guess> guesses = {};
  /// The edited source that the report is of; nothing: it is of the built-in one, or an older capsule.
  std::optional<lab::KernelEdit> kernel = {};
  /// Why the kernel in the file is not opened, a sentence; empty: it is opened, or there is none.
  std::string kernel_refused = {};
  std::string notes = {};    ///< the user's own words
  std::string made_at = {};  ///< "2026-01-31"
  std::string program = {};  ///< version of the tilestep that made it

  const std::string& lesson() const { return report.lesson; }
};

/// The names of capsule files: "online-softmax-2026-01-31-1.tilestep.json".
inline constexpr std::string_view kCapsuleEnding = ".tilestep.json";
/// Files above this are not read.
inline constexpr std::size_t kMostCapsuleBytes = std::size_t{64} << 20;

/// A capsule of today, by this program; with the source that was run, if the report is of that.
Capsule capsule_of(const lab::Report& report, const std::optional<lab::KernelEdit>& kernel = {});
/// {"tilestep_capsule": 1, "lesson", "settings", "step", "phase", "picks", "guesses", "report", "bench",
/// "kernel": {"path", "text", "hash"}, "notes", "made_at", "program"}; "bench" and "kernel" only if there are any.
std::string capsule_text(const Capsule& capsule);
/// The reverse; `where` names the text in errors. Throws Error for what is no capsule, is cut off, was made
/// by a newer tilestep, or does not hold together: lesson, settings, report and trace. A kernel that is none of the
/// lesson's, too long, no text, or not what the report is of is left out, and `kernel_refused` says why.
Capsule capsule_from_text(std::string_view text, std::string_view where);

/// Throws Error: (unavailable) if the file is not there, as capsule_from_text for what is in it.
Capsule read_capsule(const std::filesystem::path& path);
/// Throws Error (unavailable) where a capsule must not be written: as require_output, of a file there that is no capsule.
void require_capsule_output(const std::filesystem::path& path, bool force);
/// Throws Error (unavailable) with the reason.
void write_capsule(const std::filesystem::path& path, const Capsule& capsule, bool force);

/// Whether an argument means a file rather than a lesson: it has a folder or ends in ".json".
bool names_capsule(std::string_view argument);

/// The position of a capsule in the steps of its scene.
scenes::Cursor cursor_of(const Capsule& capsule, const scenes::StepAxis& axis);
/// Those of its picks that the picture at that place knows.
std::map<picture::Name, int> picks_of(const Capsule& capsule, const scenes::Scene& scene,
                                      scenes::Cursor cursor);

}  // namespace tilestep::app
