#include "kernels/base/lab/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/lab/fields.hpp"
#include "kernels/base/simt/source_hash.hpp"

namespace tilestep::lab {

namespace {

constexpr std::string_view kFolder = "assets/recordings/";
constexpr std::string_view kEnding = ".json";

std::string newer(const MadeBy& made_by) {
  if (made_by.version <= kRecordingVersion) return "";
  return fmt::format("it was made by a newer tilestep: its version is {}, and this one reads {}",
                     made_by.version, kRecordingVersion);
}

/// The version first, so that a newer file is not reported as malformed.
const Fields<MadeBy>& made_by_fields() {
  static const auto kFields = Fields<MadeBy>()
                                  .whole("version", &MadeBy::version, 1)
                                  .optional()
                                  .check(newer)
                                  .text("program", &MadeBy::program)
                                  .null_for("")
                                  .text("source_hash", &MadeBy::source_hash)
                                  .null_for("");
  return kFields;
}

const Fields<Recording>& fields() {
  static const auto kFields = Fields<Recording>()
                                  .inlined(&Recording::made_by, made_by_fields())
                                  .text(TILESTEP_MEMBERS(Recording, lesson, recorded_at, protocol))
                                  .object("run", &Recording::run, report_fields())
                                  .object("bench", &Recording::bench, report_fields());
  return kFields;
}

const Fields<RecordedRun>& run_fields() {
  static const auto kFields = Fields<RecordedRun>()
                                  .inlined(&RecordedRun::made_by, made_by_fields())
                                  .text(TILESTEP_MEMBERS(RecordedRun, lesson, set, recorded_at))
                                  .object("run", &RecordedRun::run, report_fields());
  return kFields;
}

/// A number measured or counted then was not measured now.
void make_recorded(Report& report, const std::string& recorded_at) {
  report.recorded_at = recorded_at;
  for (Measurement& m : report.measurements) {
    if (m.provenance == Provenance::measured || m.provenance == Provenance::counted) {
      m.provenance = Provenance::recorded;
    }
    m.device = report.device.name;
    m.recorded_at = recorded_at;
  }
}

/// The built-in recording at `path`, parsed once.
template <class Kept>
const Kept& built_in(std::string_view path, Kept (*from_json)(const nlohmann::json&)) {
  static std::mutex mutex;
  static std::map<std::string_view, std::unique_ptr<const Kept>> all;
  const std::lock_guard lock(mutex);
  std::unique_ptr<const Kept>& kept = all[path];
  if (!kept) kept = std::make_unique<Kept>(from_json(recording_json(asset(path), path)));
  return *kept;
}

/// A built-in file: "assets/recordings/<gpu>/tiling.json", or "…/tiling/naive.json".
struct File {
  std::string_view path, lesson, set;
};

std::vector<File> find_files() {
  std::vector<File> files;
  for (const Asset& asset : assets()) {
    if (!asset.path.starts_with(kFolder) || !asset.path.ends_with(kEnding)) continue;
    std::string_view name = asset.path.substr(kFolder.size());
    name.remove_suffix(kEnding.size());
    name.remove_prefix(std::min(name.find('/'), name.size() - 1) + 1);  // the GPU
    const std::size_t slash = std::min(name.find('/'), name.size());
    const std::string_view set = name.substr(std::min(slash + 1, name.size()));
    files.push_back({asset.path, name.substr(0, slash), set});
  }
  return files;
}

const std::vector<File>& files() {
  static const std::vector<File> kFiles = find_files();
  return kFiles;
}

}  // namespace

MadeBy made_by_this(std::string_view program_version) {
  return {kRecordingVersion, std::string(program_version), simt::source_hash()};
}

nlohmann::json to_json(const Recording& recording) {
  return fields().to_json(recording);
}

nlohmann::json to_json(const RecordedRun& recorded) {
  return run_fields().to_json(recorded);
}

Recording recording_from_json(const nlohmann::json& json) {
  Recording recording = fields().from_json(json, "recording");
  make_recorded(recording.run, recording.recorded_at);
  make_recorded(recording.bench, recording.recorded_at);
  return recording;
}

RecordedRun recorded_run_from_json(const nlohmann::json& json) {
  RecordedRun recorded = run_fields().from_json(json, "recorded run");
  make_recorded(recorded.run, recorded.recorded_at);
  return recorded;
}

nlohmann::json recording_json(std::string_view text, std::string_view where) {
  if (text.size() > kMostRecordingBytes) {
    throw Error(fmt::format("{} has {} bytes; a recording has at most {}", where, text.size(),
                            kMostRecordingBytes));
  }
  const auto shallow = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth <= kMostRecordingDepth) return true;
    throw Error(fmt::format("{} is not a recording: it nests more than {} objects and lists", where,
                            kMostRecordingDepth));
  };
  try {
    return nlohmann::json::parse(text, shallow);
  } catch (const nlohmann::json::parse_error& error) {
    const std::size_t last = text.find_last_not_of(" \t\r\n");
    const bool cut = last == text.npos || error.byte > last + 1;  // bytes count from 1
    throw Error(fmt::format("{} {}; record it again with tilestep record", where,
                            cut ? fmt::format("is cut off after {} bytes", text.size())
                                : fmt::format("is not JSON from byte {} on", error.byte)));
  } catch (const nlohmann::json::out_of_range&) {
    throw Error(fmt::format(
        "{} has a number that fits no double; record it again with tilestep record", where));
  }
}

std::vector<const Recording*> recordings() {
  std::vector<const Recording*> all;
  for (const File& file : files()) {
    if (file.set.empty()) all.push_back(&built_in(file.path, recording_from_json));
  }
  return all;
}

const Recording* recording(std::string_view lesson) {
  for (const File& file : files()) {
    if (file.lesson == lesson && file.set.empty()) {
      return &built_in(file.path, recording_from_json);
    }
  }
  return nullptr;
}

const Report* recorded_run(std::string_view lesson,
                           const std::function<bool(const Report& run)>& wanted) {
  const Recording* defaults = recording(lesson);
  if (defaults != nullptr && wanted(defaults->run)) return &defaults->run;
  for (const File& file : files()) {
    if (file.lesson != lesson || file.set.empty()) continue;
    const Report& run = built_in(file.path, recorded_run_from_json).run;
    if (wanted(run)) return &run;
  }
  return nullptr;
}

}  // namespace tilestep::lab
