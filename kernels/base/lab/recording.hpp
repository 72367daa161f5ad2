#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/report.hpp"

namespace tilestep::lab {

/// The newest form of a recording that this program reads, and the one that it writes. Files from
/// before there was a number are of version 1.
inline constexpr int kRecordingVersion = 2;
/// A recording travels inside the program and in the repository: what is larger is a mistake.
inline constexpr std::size_t kMostRecordingBytes = 300'000;
/// Objects and lists inside each other.
inline constexpr int kMostRecordingDepth = 32;

/// What made a recording; empty in those that do not say.
struct MadeBy {
  int version = 1;          ///< of the file's form
  std::string program;      ///< version of tilestep
  std::string source_hash;  ///< of its kernels: simt::source_hash()
};
/// By this program.
MadeBy made_by_this(std::string_view program_version);

/// What `tilestep record` keeps of one lesson on one GPU: the bench, and the run of the defaults.
struct Recording {
  std::string lesson;
  std::string recorded_at;  ///< ISO date
  std::string protocol;     ///< how it was measured, in a sentence or two
  Report run;
  Report bench;
  MadeBy made_by = {};
};
/// And a run of one of the lesson's telling settings, in a file of its own.
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
/// larger or deeper than a recording is.
nlohmann::json recording_json(std::string_view text, std::string_view where);

/// Those that were built into the program: assets/recordings/<gpu>/<lesson>.json and
/// assets/recordings/<gpu>/<lesson>/<set>.json. Each is parsed when it is first asked for, and kept.
/// Any thread may ask.
std::vector<const Recording*> recordings();
/// The recording of `lesson`, if there is one.
const Recording* recording(std::string_view lesson);
/// The first run recorded of `lesson` that is `wanted`, that of the defaults first; else nullptr. Those
/// behind it are not parsed.
const Report* recorded_run(std::string_view lesson,
                           const std::function<bool(const Report& run)>& wanted);

}  // namespace tilestep::lab
