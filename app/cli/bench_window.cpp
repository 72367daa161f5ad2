#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "app/cli/bench_parts.hpp"
#include "app/cli/child_program.hpp"
#include "app/file.hpp"
#include "app/window/watch.hpp"
#include "kernels/base/simt/error.hpp"
#include "kernels/base/workbench/program.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr int kStarts = 5;  ///< of which the middle counts

/// The display of this session, or one of our own that nobody sees; neither: none.
class Screen {
 public:
  Screen() {
    for (const char* name : {"WAYLAND_DISPLAY", "DISPLAY"}) {
      const char* value = std::getenv(name);
      if (value == nullptr || *value == '\0') continue;
      words_ = fmt::format("{} {}", name, value);
      return;
    }
    if (workbench::find_program("Xvfb").empty()) return;
    server_ = std::make_unique<ChildProgram>(
        std::vector<std::string>{"Xvfb", "-displayfd", "1", "-screen", "0", "1600x1000x24",
                                 "-nolisten", "tcp", "-noreset"},
        std::map<std::string, std::string>{});
    if (const auto number = server_->read_line(20s)) {
      words_ = "Xvfb";
      environment_ = {{"DISPLAY", ":" + *number}};
    }
  }
  const std::string& words() const { return words_; }  ///< empty: there is none
  const std::map<std::string, std::string>& environment() const { return environment_; }

 private:
  std::unique_ptr<ChildProgram> server_;
  std::string words_;
  std::map<std::string, std::string> environment_;
};

/// A window that watches itself.
class Watched {
 public:
  Watched(const std::string& program, const Screen& screen, const ScratchFolder& folder,
          const std::string& lesson)
      : began_ms_(shared_clock_ms()),
        child_({program, "open", lesson, "--backend", "emulated", "--questions", "off", "--size",
                fmt::format("{}x{}", kBenchWidth, kBenchHeight)},
               with(screen.environment(), folder)) {}

  /// Milliseconds from its start until its first picture was shown, and what it then had of memory.
  std::pair<double, double> first_picture() {
    const json line = next(60s);
    return {line.at("first_picture_at_ms").get<double>() - began_ms_,
            line.at("resident_mb").get<double>()};
  }
  json rest() { return next(120s); }

 private:
  static std::map<std::string, std::string> with(std::map<std::string, std::string> environment,
                                                 const ScratchFolder& folder) {
    environment["XDG_CONFIG_HOME"] = folder.path().string();
    environment["TILESTEP_WATCH"] = "1";
    return environment;
  }
  json next(std::chrono::milliseconds limit) {
    const auto line = child_.read_line(limit);
    if (!line) throw Error("the window was started but reports nothing", ExitCode::unavailable);
    return json::parse(*line);
  }

  double began_ms_;
  ChildProgram child_;
};

json of_windows(const std::string& program, const Screen& screen) {
  const ScratchFolder folder;  // for the settings: the user's own stay as they are
  json starts = json::array(), walks = json::array();
  std::vector<double> first_ms, first_mb;
  for (int start = 0; start < kStarts; ++start) {
    const auto [ms, mb] =
        Watched(program, screen, folder, std::string(kOpeningLesson)).first_picture();
    first_ms.push_back(ms);
    first_mb.push_back(mb);
    starts.push_back(ms);
  }
  double most_mb = 0;
  int idle_frames = 0;
  for (const lab::Lesson* lesson : lessons()) {
    Watched window(program, screen, folder, lesson->info().id);
    const auto [ms, mb] = window.first_picture();
    const json rest = window.rest();
    most_mb = std::max(most_mb, rest.at("resident_mb").get<double>());
    idle_frames += rest.at("idle_frames").get<int>();
    walks.push_back({{"lesson", lesson->info().id}, {"first_picture_ms", ms}, {"first_mb", mb}});
    walks.back().update(rest);
  }
  return {{"by", "window"},
          {"display", screen.words()},
          {"first_picture_ms", middle(first_ms)},
          {"starts_ms", std::move(starts)},
          {"first_resident_mb", middle(first_mb)},
          {"resident_mb", most_mb},
          {"idle_frames", idle_frames},
          {"walks", std::move(walks)}};
}

/// From the start of `tilestep shot` to its end: that is later than the picture is there.
json of_shots(const std::string& program) {
  const ScratchFolder folder;  // for the settings: the user's own stay as they are
  json starts = json::array();
  std::vector<double> all_ms, all_mb;
  for (int start = 0; start < kStarts; ++start) {
    const double began_ms = shared_clock_ms();
    ChildProgram child({program, "shot", std::string(kOpeningLesson), "--backend", "emulated",
                        "--out", (folder.path() / "picture.png").string()},
                       {});
    const double mb = child.finish();
    if (mb < 0) continue;  // there is no OpenGL either
    all_ms.push_back(shared_clock_ms() - began_ms);
    all_mb.push_back(mb);
    starts.push_back(all_ms.back());
  }
  json out = {{"by", "shot"},        {"display", nullptr},     {"first_picture_ms", nullptr},
              {"starts_ms", starts}, {"resident_mb", nullptr}, {"idle_frames", nullptr}};
  if (all_ms.empty()) return out;
  out["first_picture_ms"] = middle(all_ms);
  out["resident_mb"] = middle(all_mb);
  return out;
}

}  // namespace

BenchPart bench_window(const std::string& program) {
  const Screen screen;
  const json figures = screen.words().empty() ? of_shots(program) : of_windows(program, screen);
  BenchPart part;
  part.table = {
      "window",
      screen.words().empty()
          ? "The window: no display, so `tilestep shot` was timed from start to end"
          : fmt::format("The window on {}, from the start of the program", screen.words()),
      {{"what", "what", "", -1}, {"value", "value", "", 1}, {"unit", "unit", "", -1}},
      {}};
  const auto add = [&](const char* what, const char* name, const char* unit) {
    if (!figures.contains(name) || figures.at(name).is_null()) return;
    part.table.rows.push_back(
        {std::string(what), figures.at(name).get<double>(), std::string(unit)});
  };
  add("first picture, median", "first_picture_ms", "ms");
  add("memory with the first picture", "first_resident_mb", "MB");
  add("peak memory after a walk through a lesson", "resident_mb", "MB");
  add("frames drawn in 2 s with nothing to do, all lessons", "idle_frames", "");
  part.json = {{"window", figures}};
  return part;
}

}  // namespace tilestep::app
