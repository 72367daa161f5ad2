#include "app/cli/verify_recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/cli/output.hpp"
#include "app/keep/place.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/simt/source_hash.hpp"
#include "kernels/catalog.hpp"
#include "kernels/replay.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kDefaults = "defaults";  ///< how the set of a lesson's own file is called

void remark_build(const lab::MadeBy& made_by, Verified& to) {
  to.same_build = made_by.source_hash == simt::source_hash();
  if (made_by.source_hash.empty()) {
    to.remarks.emplace_back("it does not say which build made it");
  } else if (made_by.source_hash != simt::source_hash()) {
    to.remarks.push_back(
        fmt::format("it was made from other kernel sources than this program's{}",
                    made_by.program.empty() ? "" : ", tilestep " + made_by.program));
  }
}

/// Members that this program does not know are of a later one, or a slip.
void remark_unknown(const json& file, const json& known, Verified& to) {
  for (const auto& [name, value] : file.items()) {
    if (!known.contains(name)) to.remarks.push_back(fmt::format("'{}' is not understood", name));
  }
}

void require_lesson(const lab::Report& report, const char* what, std::string_view lesson) {
  if (report.lesson == lesson) return;
  throw Error(fmt::format("its {} is of the lesson '{}', not '{}'", what, report.lesson, lesson));
}

/// A recording is found by its name.
void require_name(const fs::path& path, const std::string& lesson, const std::string& set) {
  const fs::path name =
      set == kDefaults ? fs::path(lesson + ".json") : fs::path(lesson) / (set + ".json");
  const fs::path named =
      set == kDefaults ? path.filename() : path.parent_path().filename() / path.filename();
  if (named == name) return;
  throw Error(
      fmt::format("it is the recording of '{}', which must be called {}", lesson, name.string()));
}

void remark_set(const lab::Lesson& lesson, const lab::RecordedRun& recorded, Verified& to) {
  for (const lab::Telling& set : lesson.telling()) {
    if (set.name != recorded.set) continue;
    if (set.settings != lesson.knobs().completed(recorded.run.params)) {
      to.remarks.push_back(fmt::format("'{}' has other settings now", set.name));
    }
    return;
  }
  to.remarks.push_back(
      fmt::format("'{}' no longer has telling settings of that name", lesson.info().id));
}

void remark_paths(std::string text, const std::vector<std::string>& paths, Verified& to) {
  constexpr std::size_t kMostNamed = 3;
  if (paths.empty()) return;
  const std::size_t named = std::min(paths.size(), kMostNamed);
  text += joined(std::span(paths).first(named));
  if (paths.size() > named) text += fmt::format(" and {} more", paths.size() - named);
  to.remarks.push_back(std::move(text));
}

/// The run that a file keeps, once the file is known to hold together.
lab::Report checked(const json& file, const fs::path& path, Verified& to) {
  const bool has_bench = file.is_object() && file.contains("bench");
  if (file.is_object() && !has_bench && !file.contains("set")) {
    throw Error("it is not a recording: it has neither a 'bench' nor the name of a 'set'");
  }
  lab::Report run;
  if (has_bench) {
    lab::Recording recording = lab::recording_from_json(file);
    to.lesson = recording.lesson, to.set = kDefaults;
    remark_unknown(file, to_json(recording), to);
    remark_build(recording.made_by, to);
    require_lesson(recording.bench, "bench", recording.lesson);
    const lab::Knobs& knobs = lesson(recording.lesson).knobs();
    require_lesson(recording.run, "run", recording.lesson);
    if (knobs.completed(recording.run.params) != knobs.defaults()) {
      throw Error("its run does not use the default knobs");
    }
    run = std::move(recording.run);
  } else {
    lab::RecordedRun recorded = lab::recorded_run_from_json(file);
    to.lesson = recorded.lesson, to.set = recorded.set;
    remark_unknown(file, to_json(recorded), to);
    remark_build(recorded.made_by, to);
    remark_set(lesson(recorded.lesson), recorded, to);
    require_lesson(recorded.run, "run", recorded.lesson);
    run = std::move(recorded.run);
  }
  require_name(path, to.lesson, to.set);
  to.made = fmt::format("recorded on {} on {}", run.device.name, run.recorded_at);
  return run;
}

int verify_all(const std::string& folder, bool as_json) {
  json files = json::array();
  ExitCode worst = ExitCode::good;
  std::set<std::string> lessons;
  for (const fs::path& path : find_recordings(folder)) {
    const Verified verified = [&path] {
      TerminalProgress progress;
      return verify(path, progress);
    }();
    worst = std::max(worst, verified.code);
    if (verified.refused.empty()) lessons.insert(verified.lesson);
    if (as_json) {
      files.push_back(json_of(verified));
    } else {
      // What is in a file may be anything.
      print_line(lab::shown(line_of(verified)));
      for (const std::string& text : verified.remarks) print_line("        " + lab::shown(text));
    }
  }
  json rounding = json::object();
  for (const std::string& id : lessons) {
    const lab::Replay& replay = lesson(id).replay();
    json of_machine = json::array();
    for (const auto& part : replay.of_machine) {
      of_machine.push_back({{"path", part.path}, {"why", part.why}});
    }
    rounding[id] = {{"rounding", replay.rounding},
                    {"why", replay.rounding_why},
                    {"of_machine", std::move(of_machine)}};
    if (as_json || replay.rounding == 0) continue;
    print_line(fmt::format("rounding in {}: up to {:.2g} of the largest number of a list. {}", id,
                           replay.rounding, replay.rounding_why));
  }
  if (as_json) {
    print(json_text({{"ok", worst == ExitCode::good},
                     {"files", std::move(files)},
                     {"lessons", std::move(rounding)}}));
  }
  return static_cast<int>(worst);
}

}  // namespace

std::vector<fs::path> find_recordings(const fs::path& folder) {
  std::error_code failed;
  const fs::file_status status = fs::status(folder, failed);
  if (!fs::exists(status)) {
    throw Error(fmt::format("there is no folder '{}' with recordings", folder.string()),
                ExitCode::unavailable);
  }
  if (!fs::is_directory(status)) return {folder};
  std::vector<fs::path> paths;
  fs::recursive_directory_iterator entries(folder, failed), end;
  for (; !failed && entries != end; entries.increment(failed)) {
    if (entries->path().extension() == ".json") paths.push_back(entries->path());
    if (paths.size() > kMostRecordings) {
      throw Error(fmt::format("there are more than {} files *.json below '{}'", kMostRecordings,
                              folder.string()));
    }
  }
  if (failed) {
    throw Error(
        fmt::format("the folder '{}' cannot be read: {}", folder.string(), failed.message()),
        ExitCode::unavailable);
  }
  if (paths.empty()) {
    throw Error(fmt::format("there is no recording (*.json) below '{}'", folder.string()),
                ExitCode::unavailable);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Verified verify(const fs::path& path, lab::Progress& progress) {
  Verified verified;
  verified.path = path;
  try {
    const std::string text = read_file(path, lab::kMostRecordingBytes);
    const lab::Report run = checked(lab::recording_json(text, "it"), path, verified);
    verified.comparison = replayed(run, verified.same_build, progress);
    remark_paths("words have changed since: ", verified.comparison.other_words, verified);
    remark_paths("not in it yet: ", verified.comparison.not_recorded, verified);
    if (verified.comparison.difference) verified.code = ExitCode::check_failed;
  } catch (const Cancelled&) {
    throw;
  } catch (const Error& error) {
    verified.refused = error.what();
    verified.code = error.code() == ExitCode::unavailable ? error.code() : ExitCode::bad_input;
  }
  return verified;
}

std::string line_of(const Verified& verified) {
  const std::string path = verified.path.string();
  if (!verified.refused.empty()) return fmt::format("refused {}: {}", path, verified.refused);
  const std::string what =
      fmt::format("{}: {} at {}, {}", path, verified.lesson, verified.set, verified.made);
  const lab::Comparison& c = verified.comparison;
  if (c.difference) return fmt::format("differs {}: {}", what, c.difference->sentence());
  if (c.close == 0) return fmt::format("same    {}: {} values", what, c.compared);
  return fmt::format(
      "same    {}: {} values, of which {} within rounding, at most {:.2g} of it in {}", what,
      c.compared, c.close, c.farthest, c.farthest_path);
}

json json_of(const Verified& verified) {
  const lab::Comparison& c = verified.comparison;
  json difference;
  if (c.difference) {
    difference = {{"path", c.difference->path},
                  {"recorded", c.difference->recorded},
                  {"replayed", c.difference->replayed},
                  {"sentence", c.difference->sentence()}};
  }
  const auto or_null = [](const std::string& text) { return text.empty() ? json() : json(text); };
  return {{"path", verified.path.string()},
          {"lesson", or_null(verified.lesson)},
          {"set", or_null(verified.set)},
          {"ok", verified.code == ExitCode::good},
          {"refused", or_null(verified.refused)},
          {"difference", std::move(difference)},
          {"compared", c.compared},
          {"within_rounding", c.close},
          {"farthest", c.farthest},
          {"remarks", verified.remarks}};
}

void add_verify_recording(CLI::App& app, Invocation& invocation) {
  struct Arguments {
    std::string folder;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "verify-recording", "Replay recordings under emulation and compare the reports");
  command->add_option("DIR", arguments->folder, "Folder of recordings, or a single recording")
      ->required();
  command->add_flag("--json", arguments->json, "As JSON");
  command->callback([arguments, &invocation] {
    invocation.action = [arguments] { return verify_all(arguments->folder, arguments->json); };
  });
}

}  // namespace tilestep::app
