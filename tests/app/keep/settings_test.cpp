#include "app/keep/settings.hpp"

#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;
namespace fs = std::filesystem;

namespace {

KeptSettings settings_sample() {
  KeptSettings settings;
  settings.light = true;
  settings.text_scale = 1.5;
  settings.predictions = false;
  settings.reduce_motion = true;
  settings.speed = 2;
  settings.tour_seen = true;
  settings.width = 1600;
  settings.height = 1000;
  settings.last = KeptSettings::Place{"coalescing", {{"stride", std::int64_t{8}}}, 3};
  return settings;
}

struct Place {
  TemporaryFolder folder;
  fs::path path = folder.path() / "tilestep" / "settings.json";

  void write(const std::string& text) const {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  fs::path aside(int n) const { return path.string() + ".damaged-" + std::to_string(n); }
};

}  // namespace

TEST_CASE("settings come back as they were kept", "[keep]") {
  const Place place;
  SettingsFile first(place.path);
  CHECK(first.load() == KeptSettings{});
  first.save(settings_sample());
  CHECK(first.take_remark().empty());
  SettingsFile second(place.path);
  CHECK(second.load() == settings_sample());
  CHECK(second.take_remark().empty());
  // What is the same is not written again.
  fs::remove(place.path);
  second.save(settings_sample());
  CHECK_FALSE(fs::exists(place.path));
  KeptSettings other = settings_sample();
  other.speed = 4;
  second.save(other);
  CHECK(SettingsFile(place.path).load() == other);
}

TEST_CASE("settings of an older tilestep lack nothing", "[keep]") {
  const Place place;
  place.write(R"({"tilestep_settings": 1, "theme": "light", "colour": "blue"})");
  SettingsFile file(place.path);
  KeptSettings expected;
  expected.light = true;
  CHECK(file.load() == expected);
  CHECK(file.take_remark().empty());
}

TEST_CASE("damaged settings are set aside with a sentence", "[keep]") {
  for (const char* text : {"", "{", "[]", "{\"tilestep_settings\": 0}"}) {
    INFO(text);
    const Place place;
    place.write(text);
    SettingsFile file(place.path);
    CHECK(file.load() == KeptSettings{});
    const std::string said = file.take_remark();
    check_contains(said, place.aside(1).string());
    CHECK(said.find('\n') == std::string::npos);
    CHECK(file_text(place.aside(1)) == text);
    CHECK_FALSE(fs::exists(place.path));
    file.save(settings_sample());
    CHECK(SettingsFile(place.path).load() == settings_sample());
  }
}

TEST_CASE("one damaged member of the settings takes no other with it", "[keep]") {
  for (const char* bad :
       {R"("speed": "x")", R"("speed": 1e9)", R"("text_scale": "nan")", R"("tour_seen": 1)",
        R"("window": [-1, -1])", R"("window": [1])", R"("last": {"lesson": "tiling"})"}) {
    INFO(bad);
    const Place place;
    place.write(std::string(R"({"tilestep_settings": 1, "theme": "light", )") + bad + "}");
    SettingsFile file(place.path);
    KeptSettings expected;
    expected.light = true;
    CHECK(file.load() == expected);
    const std::string said = file.take_remark();
    check_contains(said, place.aside(1).string());
    check_contains(said, "the rest of them apply");
    // They are whole again at once: a program that is killed now loses nothing more.
    SettingsFile again(place.path);
    CHECK(again.load() == expected);
    CHECK(again.take_remark().empty());
  }
}

TEST_CASE("of damaged settings the last three are kept", "[keep]") {
  const Place place;
  for (int n = 1; n <= 5; ++n) {
    place.write("{ broken " + std::to_string(n));
    SettingsFile(place.path).load();
    for (int i = 1; i <= 3; ++i) {  // as if a minute had gone by
      std::error_code none;
      const auto when = fs::last_write_time(place.aside(i), none);
      if (!none) fs::last_write_time(place.aside(i), when - std::chrono::minutes(1));
    }
  }
  CHECK_FALSE(fs::exists(place.aside(4)));
  CHECK(file_text(place.aside(1)) == "{ broken 4");
  CHECK(file_text(place.aside(2)) == "{ broken 5");
  CHECK(file_text(place.aside(3)) == "{ broken 3");
}

TEST_CASE("a window without a size keeps none", "[keep]") {
  const Place place;
  KeptSettings unseen = settings_sample();
  unseen.width = unseen.height = -1;
  SettingsFile(place.path).save(unseen);
  SettingsFile file(place.path);
  KeptSettings expected = unseen;
  expected.width = KeptSettings{}.width;
  expected.height = KeptSettings{}.height;
  CHECK(file.load() == expected);
  CHECK(file.take_remark().empty());
}

TEST_CASE("settings of a newer tilestep are left as they are", "[keep]") {
  const Place place;
  const std::string text = R"({"tilestep_settings": 2, "theme": {"name": "light"}})";
  place.write(text);
  SettingsFile file(place.path);
  CHECK(file.load() == KeptSettings{});
  check_contains(file.take_remark(), "newer tilestep");
  file.save(settings_sample());
  CHECK(file_text(place.path) == text);
}

TEST_CASE("where settings cannot be kept one sentence says so, once", "[keep]") {
  const Place place;
  std::ofstream(place.folder.path() / "tilestep") << "not a folder";
  SettingsFile file(place.path);
  CHECK(file.load() == KeptSettings{});
  file.save(settings_sample());
  check_contains(file.take_remark(), "the settings were not saved: ");
  file.save(KeptSettings{});
  CHECK(file.take_remark().empty());
}

TEST_CASE("a last place that is no more is forgotten, the rest holds", "[keep]") {
  const Place place;
  KeptSettings gone = settings_sample();
  for (const KeptSettings::Place& last :
       {KeptSettings::Place{"no-such-lesson", {}, 0},
        KeptSettings::Place{"coalescing", {{"colour", true}}, 0},
        KeptSettings::Place{"coalescing", {{"stride", std::int64_t{-1}}}, 0}}) {
    gone.last = last;
    place.write(settings_text(gone));
    SettingsFile file(place.path);
    KeptSettings expected = gone;
    expected.last.reset();
    CHECK(file.load() == expected);
    CHECK(file.take_remark().empty());
  }
}
