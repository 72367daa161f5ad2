#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/lab/recording.hpp"

namespace tilestep::lab {

/// What is kept of one lesson on one GPU: its recording, and a run of each of its telling settings.
struct Recorded {
  Recording recording;
  std::vector<RecordedRun> runs;

  bool ok() const;
};

/// Answers a request that names the backend "cuda": this process, or a lab.
using Ask = std::function<Report(const Request&)>;

/// Runs and times `lesson` where `ask` does: a run of the defaults, one of each telling settings, and the
/// bench. Throws Error, which names the settings that it was at.
Recorded record(const Lesson& lesson, const Ask& ask, std::string_view recorded_at,
                std::string_view program_version);

/// A file below the folder of a GPU: "tiling.json", "tiling/naive.json".
struct RecordingFile {
  std::string name;
  std::string text;
};
/// Throws Error (check failed) for one that is larger than kMostRecordingBytes.
std::vector<RecordingFile> files_of(const Recorded& recorded);

}  // namespace tilestep::lab
