#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/report.hpp"

namespace tilestep::lab {

/// The newest recording format that this program reads, and the one it writes. Files from before
/// formats were numbered count as version 1.
inline constexpr int kRecordingVersion = 2;
/// Recordings are built into the program and kept in the repository: a larger one is a mistake.
inline constexpr std::size_t kMostRecordingBytes = 300'000;
/// Maximum nesting of objects and lists.
inline constexpr int kMostRecordingDepth = 32;

/// What made a recording; empty if it does not say.
struct MadeBy {
  int version = 1;          ///< of the file's form
  std::string program;      ///< version of tilestep
  std::string source_hash;  ///< of its kernels: simt::source_hash()
};
/// By this program.
MadeBy made_by_this(std::string_view program_version);

/// The output of `tilestep record` for one lesson on one GPU: the bench, and a run with the defaults.
struct Recording {
  std::string lesson;
  std::string recorded_at;  ///< ISO date
  std::string protocol;     ///< how it was measured, in a sentence or two
  Report run;
  Report bench;
  MadeBy made_by = {};
};
/// A run of one of the lesson's telling settings, in a separate file.
struct RecordedRun {
  std::string lesson;
  std::string set;  ///< Telling::name
  std::string recorded_at;
  Report run;
  MadeBy made_by = {};
};
nlohmann::json to_json(const Recording& recording);
nlohmann::json to_json(const RecordedRun& recorded);
/// Throws Error saying what is wrong.
Recording recording_from_json(const nlohmann::json& json);
RecordedRun recorded_run_from_json(const nlohmann::json& json);

/// The text of such a file as JSON. Throws Error saying what is wrong with `where`: not JSON, cut off,
/// too large or nested too deeply.
nlohmann::json recording_json(std::string_view text, std::string_view where);

/// The recordings built into the program: assets/recordings/<gpu>/<lesson>.json and
/// assets/recordings/<gpu>/<lesson>/<set>.json. Each is parsed on first use, and kept.
/// Thread-safe.
std::vector<const Recording*> recordings();
/// The recording of `lesson`, if there is one.
const Recording* recording(std::string_view lesson);
/// The first recorded run of `lesson` that is `wanted`, starting with the defaults; otherwise nullptr.
/// Later ones are not parsed.
const Report* recorded_run(std::string_view lesson,
                           const std::function<bool(const Report& run)>& wanted);

}  // namespace tilestep::lab
