#include "app/keep/settings.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>

#include "app/file.hpp"
#include "app/keep/place.hpp"
#include "kernels/base/lab/json.hpp"
#include "kernels/base/lab/report.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;
using lab::Place;
using nlohmann::json;

constexpr int kVersion = 1;
constexpr std::size_t kMostBytes = 1 << 20;
constexpr int kLeastPixels = 100, kMostPixels = 1 << 16, kMostSteps = 1'000'000;
constexpr const char* kMark = "tilestep_settings";

double real_within(const Place& at, double least, double most) {
  const double value = at.real<double>();
  if (!(value >= least && value <= most)) at.refuse(fmt::format("{}–{}", least, most));
  return value;
}

/// What is absent keeps its default: an older file has less.
KeptSettings settings_from(const Place& root) {
  KeptSettings kept;
  if (const auto theme = root.find("theme")) {
    if (theme->text() != "dark" && theme->text() != "light") theme->refuse("dark, light");
    kept.light = theme->text() == "light";
  }
  const auto flag = [&root](const char* name, bool& to) {
    if (const auto at = root.find(name)) to = at->flag();
  };
  flag("predictions", kept.predictions);
  flag("reduce_motion", kept.reduce_motion);
  flag("tour_seen", kept.tour_seen);
  if (const auto at = root.find("text_scale")) kept.text_scale = real_within(*at, 1, 2);
  if (const auto at = root.find("speed")) kept.speed = real_within(*at, 0.1, 10);
  if (const auto at = root.find("window")) {
    at->require_size(2);
    kept.width = at->at(std::size_t{0}).whole<int>(kLeastPixels, kMostPixels);
    kept.height = at->at(std::size_t{1}).whole<int>(kLeastPixels, kMostPixels);
  }
  if (const auto at = root.find("last")) {
    KeptSettings::Place last;
    const Place lesson = at->at("lesson"), knobs = at->at("settings"), step = at->at("step");
    last.lesson = lesson.text();
    last.settings = lab::settings_from_json(knobs);
    last.step = step.whole<int>(0, kMostSteps);
    kept.last = std::move(last);
  }
  return kept;
}

/// Lessons and knobs come and go with the program: a place that is no more is no damage.
bool is_there(const KeptSettings::Place& place) {
  try {
    lesson(place.lesson).knobs().completed(place.settings);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string settings_text(const KeptSettings& settings) {
  json text = {{kMark, kVersion},
               {"theme", settings.light ? "light" : "dark"},
               {"text_scale", settings.text_scale},
               {"predictions", settings.predictions},
               {"reduce_motion", settings.reduce_motion},
               {"speed", settings.speed},
               {"tour_seen", settings.tour_seen},
               {"window", {settings.width, settings.height}}};
  if (settings.last) {
    text["last"] = {{"lesson", settings.last->lesson},
                    {"settings", lab::to_json(settings.last->settings)},
                    {"step", settings.last->step}};
  }
  return text.dump(1) + "\n";
}

SettingsFile::SettingsFile() {
  if (const auto folder = config_folder()) path_ = *folder / "settings.json";
}

KeptSettings SettingsFile::load() {
  if (!path_) return {};
  std::error_code failed;
  if (!fs::exists(*path_, failed)) return {};
  std::string text;
  try {
    text = read_file(*path_, kMostBytes);
    const json parsed = json::parse(text);
    const Place root(parsed, "the settings");
    const Place mark = root.at(kMark);
    if (mark.whole<std::int64_t>(1) > kVersion) {
      writable_ = false;
      remark_ = fmt::format(
          "the settings in '{}' are of a newer tilestep; they are left as they are, and this one "
          "starts with its defaults and keeps none",
          path_->string());
      return {};
    }
    KeptSettings kept = settings_from(root);
    written_ = text;
    if (kept.last && !is_there(*kept.last)) kept.last.reset();
    return kept;
  } catch (const json::exception&) {
    set_aside("it is no whole JSON");
  } catch (const Error& error) {
    if (error.code() == ExitCode::unavailable) {  // not damaged, but not for us to read
      writable_ = false;
      remark_ = fmt::format("{}; the defaults hold, and nothing is kept", error.what());
    } else {
      set_aside(error.what());
    }
  }
  return {};
}

void SettingsFile::set_aside(const std::string& reason) {
  std::error_code failed;
  fs::path aside;
  for (int n = 1; aside.empty() || fs::exists(aside, failed); ++n) {
    aside = path_->string() + fmt::format(".damaged-{}", n);
  }
  fs::rename(*path_, aside, failed);
  if (failed) {
    writable_ = false;
    remark_ = fmt::format("the settings in '{}' are damaged ({}) and cannot be set aside: {}",
                          path_->string(), reason, failed.message());
    return;
  }
  remark_ =
      fmt::format("the settings were damaged ({}) and are set aside as '{}'; the defaults hold",
                  reason, aside.string());
}

void SettingsFile::save(const KeptSettings& settings) {
  if (!path_ || !writable_) return;
  std::string text = settings_text(settings);
  if (text == written_) return;
  try {
    write_file(*path_, text);
    written_ = std::move(text);
  } catch (const Error& error) {
    writable_ = false;
    remark_ = fmt::format("the settings are not kept: {}", error.what());
  }
}

}  // namespace tilestep::app
