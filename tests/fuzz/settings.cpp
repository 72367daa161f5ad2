// The settings file, which must never keep the window from opening.
#include "app/keep/settings.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/fuzz.hpp"

namespace tilestep::fuzz {
namespace {

namespace fs = std::filesystem;

/// A folder that is gone when the program is.
struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "tilestep-fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

const std::vector<nlohmann::json>& whole() {
  static const std::vector<nlohmann::json> all = [] {
    app::KeptSettings kept;
    kept.light = kept.tour_seen = true;
    kept.text_scale = 1.25;
    kept.last = app::KeptSettings::Place{
        "online-softmax", {{"keys", std::int64_t{8}}, {"preset", std::string("rising")}}, 3};
    return std::vector<nlohmann::json>{nlohmann::json::parse(app::settings_text(kept))};
  }();
  return all;
}

void read(std::string_view bytes) {
  static const Folder folder;
  const fs::path path = folder.path / "settings.json";
  std::ofstream(path, std::ios::binary) << text_of(bytes, whole());
  app::SettingsFile file(path);
  const app::KeptSettings kept = file.load();
  if (file.take_remark().empty()) {
    file.save(kept);
    require(app::SettingsFile(path).load() == kept, "settings read as they were written");
  } else {
    app::SettingsFile again(path);
    require(again.load() == kept, "what is good in damaged settings is kept");
    const std::string still = again.take_remark();
    require(still.empty() || still.find("newer") != still.npos, "settings are mended at once");
  }
  for (const auto& each : fs::directory_iterator(folder.path)) fs::remove(each);
}

const Target kTarget("settings", read);

}  // namespace
}  // namespace tilestep::fuzz
