#include "tests/faults/faulty_window.hpp"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "tests/catch.hpp"
#include "tests/paths.hpp"

namespace tilestep::tests {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

constexpr std::size_t kCounts = 3 * sizeof(long), kGap = 2 * sizeof(long);
constexpr const char* kDefault = "worked-example";
constexpr const char* kOther = "2";  ///< of the list of presets

}  // namespace

FaultyWindow::FaultyWindow(const Display& display) {
  // Frames are what costs here: few, and small ones.
  const fs::path settings = file("home") / ".config/tilestep/settings.json";
  fs::create_directories(settings.parent_path());
  std::ofstream(settings) << R"({"tilestep_settings": 1, "reduce_motion": true})";
  std::ofstream(file("seen"), std::ios::binary) << std::string(kCounts, '\0');
  const auto rule = [this](const std::string& words, const char* name) {
    return words + ",in:open,if:" + file(name).string() + ";";
  };
  const Environment environment = {
      {"LD_PRELOAD", tilestep::tests::paths::kFaultsShim},
      {"TILESTEP_FAULTS",
       rule("spawn,1+," + file("script").string(), "script") + rule("spawn,1+,11", "spawn") +
           rule("pipe,1,24", "pipe") + rule("pipe,2,24", "pipe_2") +
           rule("spawn,1+,/nowhere/tilestep", "exec") + rule("new,1+,12,aside", "memory") +
           rule("clock,1+,ahead", "late") + "poll,1+,soon,in:open"},
      {"TILESTEP_FAULTS_SEEN", file("seen").string()}};
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  window_ = std::make_unique<Window>(
      display, std::vector<std::string>{"--backend", "emulated", "--size", "1024x640"},
      tilestep::tests::paths::kProgram, file("home"));
  for (const auto& [name, value] : environment) ::unsetenv(name.c_str());
  REQUIRE(eventually([&] { return window_->has("score_0"); }, 60s));
  window_->focus();
}

pid_t FaultyWindow::worker() const {
  const auto workers = children_of(window_->program().pid());
  return workers.empty() ? 0 : workers.front();
}

int FaultyWindow::descriptors() const {
  const fs::path all = "/proc/" + std::to_string(window_->program().pid()) + "/fd";
  const auto now = [&all] {
    int count = 0;
    for ([[maybe_unused]] const auto& each : fs::directory_iterator(all)) ++count;
    return count;
  };
  int least = now();
  for (int i = 0; i < 5; ++i) {  // the map, while it is written, is one more
    ::timespec pause{0, 20'000'000};
    ::nanosleep(&pause, nullptr);
    least = std::min(least, now());
  }
  return least;
}

void FaultyWindow::lose_worker() {
  if (worker() != 0) ::kill(worker(), SIGKILL);
  REQUIRE(eventually([&] { return worker() == 0; }));
}

void FaultyWindow::put_in_place(const std::string& script) {
  std::ofstream(file("script")) << "#!/bin/sh\nread line\n" << script << "\n";
  fs::permissions(file("script"), fs::perms::owner_all);
  lose_worker();
}

void FaultyWindow::cannot_start(const std::string& what) {
  std::ofstream(file(what.c_str())) << what;
  lose_worker();
}

void FaultyWindow::mend() {
  for (const char* name : {"script", "spawn", "pipe", "pipe_2", "exec", "memory"})
    fs::remove(file(name));
}

void FaultyWindow::hurry(bool on) {
  if (on) {
    std::ofstream(file("late")) << "now";
  } else {
    fs::remove(file("late"));
  }
}

void FaultyWindow::choose_other() {
  REQUIRE(eventually(
      [&] {
        if (window_->value("knob_preset") != kDefault) return true;
        const std::string other = std::string("knob_preset_") + kOther;
        if (!window_->has(other)) window_->click_on("knob_preset");
        if (!eventually([&] { return window_->has(other); }, 2s)) return false;
        window_->click_on(other);
        return eventually([&] { return window_->value("knob_preset") != kDefault; }, 2s);
      },
      40s));
}

void FaultyWindow::run_again() {
  REQUIRE(eventually(
      [&] {
        if (!window_->has("failure")) return true;
        window_->click_on("run_again");
        return eventually([&] { return !window_->has("failure"); }, 3s);
      },
      40s));
}

void FaultyWindow::reset() {
  CHECK(press_until("r", [&] { return window_->value("knob_preset") == kDefault; }));
}

template <class There>
bool FaultyWindow::press_until(const char* key, There there) {
  return eventually(
      [&] {
        if (there()) return true;
        window_->press(key);
        return eventually(there, 2s);
      },
      40s);
}

bool FaultyWindow::walks() {
  if (!press_until("Home", [&] { return window_->step() == 0; })) return false;
  for (int wanted = 1; wanted <= 3; ++wanted) {
    if (!press_until("Right", [&] { return window_->step() >= wanted; })) return false;
  }
  return true;
}

json FaultyWindow::on_show() {
  const auto is_last = [&] {
    const std::string place = window_->value("scrubber");  // "3/4"
    const std::size_t slash = place.find('/');
    return slash != std::string::npos && place.substr(0, slash) == place.substr(slash + 1);
  };
  if (!press_until("End", is_last)) return {};
  const json map = window_->map();
  if (!map.is_object()) return {};
  json shown = json::object();
  for (const json& part : map.at("parts")) {
    const std::string id = part.at("id").get<std::string>();
    if (id == "failure" || id == "waiting" || id == "progress") return {};
    for (const char* kind : {"score_", "weight_", "formula_", "output", "knob_", "tile_", "m", "l",
                             "bar_", "sentence", "row_", "table"}) {
      if (id.starts_with(kind) && id != "message") shown[id] = {part.at("label"), part.at("value")};
    }
  }
  return shown;
}

void FaultyWindow::forget_gap() {
  std::ofstream(file("seen"), std::ios::binary | std::ios::in)
      .seekp(kGap)
      .write("\0\0\0\0\0\0\0\0", sizeof(long));
}

double FaultyWindow::longest_gap_ms() const {
  long longest = 0;
  std::ifstream seen(file("seen"), std::ios::binary);
  seen.seekg(kGap).read(reinterpret_cast<char*>(&longest), sizeof longest);
  return static_cast<double>(longest) / 1e6;
}

}  // namespace tilestep::tests
