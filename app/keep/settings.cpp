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

/// What is absent keeps its default, since an older file has less; so does what is damaged, which `damage` names: one bad
/// member takes no other with it.
KeptSettings settings_from(const Place& root, std::string& damage) {
  KeptSettings kept;
  const auto member = [&](const char* name, const auto& read) {
    try {
      if (const auto at = root.find(name)) read(*at);
    } catch (const Error& error) {
      damage += (damage.empty() ? "" : "; ") + std::string(error.what());
    }
  };
  member("theme", [&](const Place& at) {
    if (at.text() != "dark" && at.text() != "light") at.refuse("dark, light");
    kept.light = at.text() == "light";
  });
  member("predictions", [&](const Place& at) { kept.predictions = at.flag(); });
  member("reduce_motion", [&](const Place& at) { kept.reduce_motion = at.flag(); });
  member("tour_seen", [&](const Place& at) { kept.tour_seen = at.flag(); });
  member("text_scale", [&](const Place& at) { kept.text_scale = real_within(at, 1, 2); });
  member("speed", [&](const Place& at) { kept.speed = real_within(at, 0.1, 10); });
  member("window", [&](const Place& at) {
    at.require_size(2);
    const Place wide = at.at(std::size_t{0}), high = at.at(std::size_t{1});
    const int width = wide.whole<int>(kLeastPixels, kMostPixels);
    kept.height = high.whole<int>(kLeastPixels, kMostPixels);
    kept.width = width;
  });
  member("last", [&](const Place& at) {
    KeptSettings::Place last;
    const Place lesson = at.at("lesson"), knobs = at.at("settings"), step = at.at("step");
    last.lesson = lesson.text();
    last.settings = lab::settings_from_json(knobs);
    last.step = step.whole<int>(0, kMostSteps);
    kept.last = std::move(last);
  });
  return kept;
}

bool is_size(int pixels) {
  return pixels >= kLeastPixels && pixels <= kMostPixels;
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
               {"tour_seen", settings.tour_seen}};
  // Of a window that was never drawn, or is an icon, there is no size.
  if (is_size(settings.width) && is_size(settings.height)) {
    text["window"] = {settings.width, settings.height};
  }
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
          "the settings in '{}' are from a newer tilestep; they are left alone, and this one "
          "starts with its defaults and saves none",
          path_->string());
      return {};
    }
    std::string damage;
    KeptSettings kept = settings_from(root, damage);
    if (kept.last && !is_there(*kept.last)) kept.last.reset();
    if (damage.empty()) {
      written_ = text;
    } else if (set_aside(damage, "the rest of them apply")) {
      save(kept);
    }
    return kept;
  } catch (const json::exception&) {
    set_aside("it is not complete JSON", "the defaults apply");
  } catch (const Error& error) {
    if (error.code() == ExitCode::unavailable) {  // not damaged, but not for us to read
      writable_ = false;
      remark_ = fmt::format("{}; the defaults apply, and nothing is saved", error.what());
    } else {
      set_aside(error.what(), "the defaults apply");
    }
  }
  return {};
}

bool SettingsFile::set_aside(const std::string& reason, const char* holds) {
  const fs::path to = aside_name(*path_);
  std::error_code failed;
  fs::rename(*path_, to, failed);
  if (failed) {
    writable_ = false;
    remark_ = fmt::format("the settings in '{}' are damaged ({}) and cannot be set aside: {}",
                          path_->string(), reason, failed.message());
    return false;
  }
  remark_ = fmt::format("the settings were damaged ({}) and are set aside as '{}'; {}", reason,
                        to.string(), holds);
  return true;
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
    remark_ = fmt::format("the settings were not saved: {}", error.what());
  }
}

}  // namespace tilestep::app
