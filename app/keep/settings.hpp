#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "kernels/base/lab/knob.hpp"

namespace tilestep::app {

/// Settings that the window keeps between sessions.
struct KeptSettings {
  bool light = false;       ///< the theme
  double text_scale = 1;    ///< 1–2
  bool predictions = true;  ///< → asks before it reveals
  bool reduce_motion = false;
  double speed = 1;                ///< of playback, 0.1–10
  bool tour_seen = false;          ///< one has left Home, which the first start opens
  int width = 1440, height = 900;  ///< of the window

  /// Where the user was last.
  struct Place {
    std::string lesson;
    lab::Settings settings;
    int step = 0;
    bool operator==(const Place&) const = default;
  };
  std::optional<Place> last = {};

  bool operator==(const KeptSettings&) const = default;
};

/// The settings file of this machine, or one that a test names.
class SettingsFile {
 public:
  /// config_folder() / "settings.json"; without such a folder nothing is kept.
  SettingsFile();
  explicit SettingsFile(std::filesystem::path path) : path_(std::move(path)) {}

  /// Never throws: what is damaged is set aside as "settings.json.damaged-1" to "-3", the oldest making room, and its
  /// good members hold, for the others the defaults; one of a
  /// newer tilestep is left as it is, and nothing is saved over it. `remark` says so in a sentence then. A last place
  /// that this tilestep does not know is forgotten.
  KeptSettings load();
  /// Writes the file, whole or not at all, unless it says that already. Never throws; `remark` says why where
  /// it cannot be written, once.
  void save(const KeptSettings& settings);
  /// Messages since the last call; empty: none.
  std::string take_remark() { return std::exchange(remark_, {}); }

 private:
  bool set_aside(const std::string& reason, const char* holds);

  std::optional<std::filesystem::path> path_;
  bool writable_ = true;  ///< not a newer one's, and no failure so far
  std::string written_;   ///< the file's content
  std::string remark_;
};

/// {"tilestep_settings": 1, "theme", …}
std::string settings_text(const KeptSettings& settings);

}  // namespace tilestep::app
