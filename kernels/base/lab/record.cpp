#include "kernels/base/lab/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/base/lab/quick.hpp"
#include "kernels/base/lab/timing.hpp"

namespace tilestep::lab {
namespace {

/// The report to keep: without queueing times and data from older recordings.
Report kept(Report report) {
  report.turn.reset();
  std::erase_if(report.measurements,
                [](const Measurement& number) { return !number.recorded_at.empty(); });
  return report;
}

Request request_of(const Lesson& lesson, Settings settings, Request::Action action) {
  return {lesson.info().id, std::move(settings), action, "cuda"};
}

Report run_of(const Lesson& lesson, const Telling& set, const Ask& ask) {
  try {
    return kept(ask(request_of(lesson, set.settings, Request::Action::run)));
  } catch (const Cancelled&) {
    throw;
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error& error) {
    throw Error(fmt::format("'{}' of '{}': {}", set.name, lesson.info().id, error.what()),
                error.code());
  }
}

/// One number per line, without indentation, which would be most of the file.
RecordingFile file(std::string name, const nlohmann::json& json) {
  RecordingFile file{std::move(name),
                     json.dump(0, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
  if (file.text.size() > kMostRecordingBytes) {
    throw Error(fmt::format("the recording {} has {} bytes; at most {} are kept", file.name,
                            file.text.size(), kMostRecordingBytes),
                ExitCode::check_failed);
  }
  return file;
}

}  // namespace

bool Recorded::ok() const {
  return recording.run.ok() && recording.bench.ok() &&
         std::all_of(runs.begin(), runs.end(),
                     [](const RecordedRun& recorded) { return recorded.run.ok(); });
}

std::vector<RecordedRun> record_telling(const Lesson& lesson, const Ask& ask,
                                        std::string_view recorded_at,
                                        std::string_view program_version) {
  std::vector<RecordedRun> runs;
  for (const Telling& set : lesson.telling()) {
    runs.push_back({std::string(lesson.info().id), set.name, std::string(recorded_at),
                    run_of(lesson, set, ask), made_by_this(program_version)});
  }
  return runs;
}

Recorded record(const Lesson& lesson, const Ask& ask, std::string_view recorded_at,
                std::string_view program_version) {
  Recorded all;
  Recording& recording = all.recording;
  recording.lesson = lesson.info().id;
  recording.recorded_at = recorded_at;
  recording.protocol = kProtocol;
  recording.made_by = made_by_this(program_version);
  recording.run = kept(ask(request_of(lesson, {}, Request::Action::run)));
  // Before the bench, which takes minutes, so that errors in them show immediately.
  all.runs = record_telling(lesson, ask, recorded_at, program_version);
  recording.bench = kept(ask(request_of(lesson, {}, Request::Action::bench)));
  if (const std::string what = left_out(recording.bench); !what.empty()) {
    throw Error(fmt::format("a quick bench of '{}' is not a recording: it omits {}",
                            recording.lesson, what),
                ExitCode::check_failed);
  }
  return all;
}

std::vector<RecordingFile> files_of(const std::vector<RecordedRun>& runs) {
  std::vector<RecordingFile> files;
  for (const RecordedRun& one : runs) {
    files.push_back(file(fmt::format("{}/{}.json", one.lesson, one.set), to_json(one)));
  }
  return files;
}

std::vector<RecordingFile> files_of(const Recorded& recorded) {
  std::vector<RecordingFile> files = files_of(recorded.runs);
  files.insert(files.begin(),
               file(recorded.recording.lesson + ".json", to_json(recorded.recording)));
  return files;
}

}  // namespace tilestep::lab
