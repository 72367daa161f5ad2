#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/lab/recording.hpp"

namespace tilestep::lab {

/// The recordings of one lesson on one GPU: the main one, and a run of each of its telling settings.
struct Recorded {
  Recording recording;
  std::vector<RecordedRun> runs;

  bool ok() const;
};

/// Answers a request for the backend "cuda": in this process, or in a lab.
using Ask = std::function<Report(const Request&)>;

/// Runs and times `lesson` through `ask`: a run with the defaults, one with each telling settings, and the
/// bench. Throws Error naming the settings that failed.
Recorded record(const Lesson& lesson, const Ask& ask, std::string_view recorded_at,
                std::string_view program_version);
/// Only the runs of the telling settings, which take seconds.
std::vector<RecordedRun> record_telling(const Lesson& lesson, const Ask& ask,
                                        std::string_view recorded_at,
                                        std::string_view program_version);

/// A file in the folder of a GPU: "tiling.json", "tiling/naive.json".
struct RecordingFile {
  std::string name;
  std::string text;
};
/// Throws Error (check failed) for a recording larger than kMostRecordingBytes.
std::vector<RecordingFile> files_of(const Recorded& recorded);
std::vector<RecordingFile> files_of(const std::vector<RecordedRun>& runs);

}  // namespace tilestep::lab
