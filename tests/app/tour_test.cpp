#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/skip.hpp"

using namespace tilestep::tests;
namespace fs = std::filesystem;

namespace {

struct PictureSize {
  unsigned width = 0, height = 0;
};

/// Width and height out of the header of a PNG file; checks its signature.
PictureSize png_size(const fs::path& path) {
  const std::string bytes = file_text(path);
  INFO(path);
  REQUIRE(bytes.size() > 24);
  CHECK(bytes.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  CHECK(bytes.substr(12, 4) == "IHDR");
  const auto number = [&bytes](std::size_t at) {
    unsigned value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    }
    return value;
  };
  return {number(16), number(20)};
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a shot has the size asked for and a map of what is on it", "[tour]") {
  if (!pictures_work()) return;
  TemporaryFolder folder;
  const std::string png = (folder.path() / "a.png").string();
  const std::string map = (folder.path() / "a.json").string();
  for (const auto& [size, theme] : std::vector<std::pair<std::string, std::string>>{
           {"1440x900", "dark"}, {"1024x640", "light"}, {"2560x1440", "dark"}}) {
    const Outcome outcome =
        run_tilestep({"shot", "online-softmax", "--step", "2", "--size", size, "--theme", theme,
                      "--backend", "emulated", "--out", png, "--ui-map", map});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const PictureSize drawn = png_size(png);
    CHECK(std::to_string(drawn.width) + "x" + std::to_string(drawn.height) == size);
    const auto parts = nlohmann::json::parse(file_text(map));
    CHECK(parts.at("lesson") == "online-softmax");
    CHECK(parts.at("step") == 2);
    CHECK(parts.at("parts").size() > 10);
  }
}

TEST_CASE("a sheet has every stop of a lesson, each another picture", "[tour]") {
  if (!pictures_work()) return;
  TemporaryFolder folder;
  const std::string out = folder.path().string();
  const std::vector<std::string> sheet = {"tour",   "--sheet", "--lesson", "coalescing",
                                          "--size", "640x400", "--out",    out};
  const Outcome outcome = run_tilestep(sheet);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out == (folder.path() / "coalescing.png").string() + "\n");
  const int stops = count_of(
      file_text(fs::path(paths::kSource) / "assets" / "lessons" / "memory" / "coalescing.md"),
      "<!-- stop:");
  const PictureSize size = png_size(folder.path() / "coalescing.png");
  CHECK(size.width == 3 * 328 + 8);
  CHECK(size.height == static_cast<unsigned>((stops + 2) / 3 * 208 + 8));
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
  const Outcome alone = run_tilestep({"tour", "--out", out, "--size", "640x400"});
  CHECK(alone.code == 2);
  CHECK(alone.err.find("--sheet") != std::string::npos);
}

TEST_CASE("a capsule gives the picture of the run that it keeps", "[tour]") {
  if (!pictures_work()) return;
  TemporaryFolder folder;
  const auto named = [&](const char* name) { return (folder.path() / name).string(); };
  const auto run = [](const std::vector<std::string>& words) {
    const Outcome outcome = run_tilestep(words);
    INFO(outcome.err);
    CHECK(outcome.code == 0);
  };
  const std::vector<std::string> place = {"--step", "2", "--phase", "rescale"};
  const auto shot = [&](std::vector<std::string> words, const std::string& out) {
    words.insert(words.begin(), "shot");
    words.insert(words.end(), place.begin(), place.end());
    words.insert(words.end(), {"--out", out});
    run(words);
    return file_text(out);
  };
  run({"run", "online-softmax", "--backend", "emulated", "--set", "preset=rising", "--capsule",
       named("a.tilestep.json")});
  for (const char* out : {"a.svg", "b.svg"}) CHECK(!fs::exists(named(out)));
  const std::string kept = shot({named("a.tilestep.json")}, named("a.svg"));
  CHECK((kept == shot({"online-softmax", "--backend", "emulated", "--set", "preset=rising"},
                      named("b.svg"))));
  CHECK((kept != shot({"online-softmax", "--backend", "emulated"}, named("c.svg"))));
}

TEST_CASE("a shot of two runs holds both", "[tour]") {
  if (!pictures_work()) return;
  TemporaryFolder folder;
  const std::string map = (folder.path() / "map.json").string();
  const Outcome outcome = run_tilestep({"shot", "coalescing", "--set", "stride=32", "--compare",
                                        "stride=1", "--step", "1", "--backend", "emulated", "--out",
                                        (folder.path() / "a.png").string(), "--ui-map", map});
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  const auto parts = nlohmann::json::parse(file_text(map));
  std::map<std::string, std::string> values;
  for (const auto& part : parts.at("parts")) values[part.at("id")] = part.at("value");
  CHECK(values.at("run_a") == "stride 1");
  CHECK(values.at("run_b") == "stride 32");
  CHECK(values.count("a.lane_0") == 1);
  CHECK(values.count("lane_0") == 1);
}

TEST_CASE("a shot of a stop outlines what the stop before moved", "[tour]") {
  if (!pictures_work()) return;
  TemporaryFolder folder;
  const std::string map = (folder.path() / "map.json").string();
  const Outcome outcome =
      run_tilestep({"shot", "coalescing", "--stop", "4", "--backend", "emulated", "--out",
                    (folder.path() / "a.png").string(), "--ui-map", map});
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  check_contains(file_text(map), "\"moved_31\"");  // its own
  check_contains(file_text(map), "\"moved_1_0\"");
}

TEST_CASE("a shot of the same step is the same picture", "[tour]") {
  if (!pictures_work()) return;
  TemporaryFolder folder;
  const auto draw = [&](const char* name, const char* step) {
    const fs::path path = folder.path() / name;
    const Outcome outcome = run_tilestep({"shot", "online-softmax", "--step", step, "--backend",
                                          "emulated", "--out", path.string()});
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    return file_text(path);
  };
  const std::string first = draw("1.png", "1");
  CHECK((first == draw("again.png", "1")));
  CHECK((first != draw("2.png", "2")));
}

namespace {

/// The bytes of a picture, and what `doctor` says of the fonts, with `folder` as TILESTEP_FONTS.
struct FontTrial {
  std::string picture;
  std::string doctor;
};
FontTrial try_fonts(const fs::path& folder) {
  TemporaryFolder out;
  const std::string png = (out.path() / "a.png").string();
  Environment fonts;
  if (!folder.empty()) fonts["TILESTEP_FONTS"] = folder.string();
  const Outcome shot =
      run_tilestep({"shot", "online-softmax", "--backend", "emulated", "--out", png}, "", fonts);
  INFO(shot.err);
  CHECK(shot.code == 0);
  return {file_text(png), run_tilestep({"doctor"}, "", fonts).out};
}

/// The font file of that name that the program was built from.
fs::path font_file(const std::string& name) {
  for (const auto& entry : fs::recursive_directory_iterator("/usr/share/fonts")) {
    if (entry.path().filename() == name) return entry.path();
  }
  FAIL(name << " is not there");
  return {};
}

}  // namespace

TEST_CASE("pictures look the same on a machine without any fonts", "[tour]") {
  if (!pictures_work()) return;
  TemporaryFolder folder;
  const std::string png = (folder.path() / "a.png").string();
  // A file system of this process alone hides the fonts.
  const std::string hidden = "mount -t tmpfs none /usr/share/fonts && exec ";
  if (Child probe({"unshare", "-m", "sh", "-c", hidden + "true"});
      probe.finish(std::chrono::seconds(20)) != 0) {
    WARN("skipped: the system's fonts cannot be hidden here");
    return;
  }
  Child child(
      {"unshare", "-m", "sh", "-c",
       hidden + "env HOME=/nowhere \"$0\" shot online-softmax --backend emulated --out \"$1\"",
       tilestep::tests::paths::kProgram, png});
  CHECK(child.finish(std::chrono::seconds(60)) == 0);
  CHECK((file_text(png) == try_fonts({}).picture));
}

TEST_CASE("a font that the user names is used where it can be, and doctor says which", "[tour]") {
  if (!pictures_work()) return;
  const FontTrial built_in = try_fonts({});
  check_contains(built_in.doctor, "Inter, built in (SIL Open Font License");
  check_contains(built_in.doctor, "JetBrains Mono, built in (SIL Open Font License");

  TemporaryFolder folder;
  const fs::path named = folder.path() / "Inter-Regular.ttf";
  fs::copy_file(font_file("JetBrainsMono-Regular.ttf"), named);
  const FontTrial other = try_fonts(folder.path());
  CHECK((other.picture != built_in.picture));
  check_contains(other.doctor, "Inter: " + named.string());
}

TEST_CASE("a font that the user names and that is none leaves the built-in one", "[tour]") {
  if (!pictures_work()) return;
  const FontTrial built_in = try_fonts({});
  TemporaryFolder folder;
  const fs::path named = folder.path() / "Inter-Regular.otf";
  const auto check_refused = [&](const std::string& reason) {
    const FontTrial trial = try_fonts(folder.path());
    CHECK((trial.picture == built_in.picture));
    check_contains(trial.doctor, named.string() + " cannot be used: " + reason);
    fs::remove_all(named);
  };
  const std::string whole = file_text(font_file("Inter-Regular.otf"));
  std::ofstream(named) << "no font";
  check_refused("it is no OpenType font");
  std::ofstream(named) << whole.substr(0, whole.size() / 2);
  check_refused("it is damaged");
  std::ofstream(named) << "OTTO";
  fs::resize_file(named, 100 << 20);
  check_refused("it is larger than 32 MiB");
  REQUIRE(::mkfifo(named.c_str(), 0600) == 0);
  check_refused("it is not a file");
  fs::create_directory(named);
  check_refused("it is not a file");
  // The header is right, the glyphs are not.
  std::string broken = whole;
  std::fill(broken.begin() + 4096, broken.end(), '\xFF');
  std::ofstream(named) << broken;
  CHECK((try_fonts(folder.path()).picture == built_in.picture));
}

TEST_CASE("a picture that cannot be written exits 3 with the reason", "[tour]") {
  if (!pictures_work()) return;
  TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "not a folder";
  const std::string png = (folder.path() / "file" / "a.png").string();
  const Outcome outcome = run_tilestep({"shot", "online-softmax", "--out", png});
  CHECK(outcome.code == 3);
  check_contains(outcome.err, "'" + (folder.path() / "file").string() + "'");
  const Outcome device = run_tilestep({"shot", "online-softmax", "--out", "/dev/full"});
  CHECK(device.code == 3);
  check_contains(device.err, "'/dev/full'");
}

TEST_CASE("where the disk is full an old picture survives", "[tour]") {
  if (!pictures_work()) return;
  TemporaryFolder folder;
  const fs::path png = folder.path() / "a.png";
  std::ofstream(png) << "old and good";
  Child child({"sh", "-c", "ulimit -f 8; exec \"$0\" shot online-softmax --force --out \"$1\"",
               tilestep::tests::paths::kProgram, png.string()});
  CHECK(child.finish(std::chrono::seconds(60)) == 3);
  check_contains(child.err(), "File too large");
  CHECK(file_text(png) == "old and good");
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}
