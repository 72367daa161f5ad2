#include <algorithm>
#include <fstream>
#include <set>

#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/skip.hpp"

using namespace tilestep::tests;
namespace fs = std::filesystem;

namespace {

Outcome film(const fs::path& out, const Environment& environment, const std::string& rate = "8") {
  const std::vector<std::string> words = {"film",     "online-softmax", "--force",   "--from",
                                          "1",        "--to",           "2",         "--backend",
                                          "emulated", "--fps",          rate,        "--size",
                                          "640x400",  "--out",          out.string()};
  return run_tilestep(words, "", environment);
}

std::uint32_t number_at(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes.at(at + i));
  }
  return value;
}

std::vector<std::string> frames_in(const fs::path& folder) {
  std::vector<std::string> frames;
  for (int n = 0;; ++n) {
    std::string name = std::to_string(n);
    name = "frame-" + std::string(4 - name.size(), '0') + name + ".png";
    if (!fs::exists(folder / name)) return frames;
    frames.push_back(file_text(folder / name));
  }
}

/// A program `ffmpeg` that writes its arguments to its last one, after "file:".
void write_ffmpeg(const fs::path& folder, const std::string& ends) {
  fs::create_directories(folder);
  std::ofstream(folder / "ffmpeg")
      << "#!/bin/sh\nfor last; do :; done\nfor word; do echo \"$word\"; "
         "done > \"${last#file:}\"\necho spoken\nexit "
      << ends << "\n";
  fs::permissions(folder / "ffmpeg", fs::perms::owner_all);
}

const Environment kNoFfmpeg = {{"PATH", "/nowhere"}};

}  // namespace

TEST_CASE("a film's frames show the picture on its way, the same each time", "[film]") {
  if (!pictures_work()) return;
  TemporaryFolder folder;
  const fs::path out = folder.path() / "a" / "film";
  fs::create_directories(out);
  std::ofstream(out / "notes.txt") << "mine";
  const Outcome made = film(out, kNoFfmpeg);
  INFO(made.err);
  REQUIRE(made.code == 0);
  check_contains(made.err, "for a video install ffmpeg and run `ffmpeg ");
  const auto frames = frames_in(out);
  check_contains(made.out, std::to_string(frames.size()) + " frames in " + out.string());
  REQUIRE(frames.size() > 8);
  for (const std::string& frame : frames) {
    REQUIRE(frame.size() > 24);
    CHECK(number_at(frame, 16) == 640);
    CHECK(number_at(frame, 20) == 400);
  }
  // It rests at both ends, and moves between them.
  CHECK(frames[0] == frames[1]);
  CHECK(frames[frames.size() - 1] == frames[frames.size() - 2]);
  CHECK(std::set<std::string>(frames.begin(), frames.end()).size() >= 6);
  // A shorter one over it leaves none of its frames behind, and what is no frame.
  REQUIRE(film(out, kNoFfmpeg, "4").code == 0);
  CHECK(frames_in(out).size() < frames.size());
  CHECK(std::distance(fs::directory_iterator(out), fs::directory_iterator()) ==
        static_cast<std::ptrdiff_t>(frames_in(out).size() + 1));
  REQUIRE(film(out, kNoFfmpeg).code == 0);
  CHECK((frames_in(out) == frames));
}

TEST_CASE("an animated PNG needs no other program", "[film]") {
  if (!pictures_work()) return;
  TemporaryFolder folder;
  const fs::path out = folder.path() / "film.apng";
  REQUIRE(film(out, kNoFfmpeg).code == 0);
  const std::string bytes = file_text(out);
  CHECK(bytes.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  CHECK(bytes.substr(12, 4) == "IHDR");
  CHECK(bytes.substr(37, 4) == "acTL");
  CHECK(number_at(bytes, 41) >= 6);
  CHECK(bytes.substr(bytes.size() - 8, 4) == "IEND");
  std::uint32_t sequence = 0;  // numbers its frames and their data in order
  std::size_t at = 8;
  while (at < bytes.size()) {
    const std::string type = bytes.substr(at + 4, 4);
    if (type == "fcTL" || type == "fdAT") CHECK(number_at(bytes, at + 8) == sequence++);
    at += 12 + number_at(bytes, at);
  }
  CHECK(at == bytes.size());
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("a video is made by ffmpeg, and without it the frames are there", "[film]") {
  if (!pictures_work()) return;
  TemporaryFolder folder;
  const fs::path out = folder.path() / "it's a film.webm";
  const fs::path frames = folder.path() / "it's a film-frames";
  const Outcome without = film(out, kNoFfmpeg);
  CHECK(without.code == 3);
  check_contains(without.err, "there is no ffmpeg");
  check_contains(without.err, ".apng");
  const std::size_t count = frames_in(frames).size();
  CHECK(count > 8);
  CHECK_FALSE(fs::exists(out));

  const fs::path programs = folder.path() / "programs";
  write_ffmpeg(programs, "0");
  const Outcome made = film(out, {{"PATH", "/nowhere:" + programs.string() + ":/bin"}});
  INFO(made.err);
  CHECK(made.code == 0);
  check_contains(made.out, out.string());
  CHECK(made.out.find("spoken") == std::string::npos);
  const std::string arguments = file_text(out);
  check_contains(arguments, "\n-framerate\n8\n");
  check_contains(arguments, "\n-frames:v\n" + std::to_string(count) + "\n");
  check_contains(arguments, "\n" + (frames / "frame-%04d.png").string() + "\n");
  write_ffmpeg(programs, "7");
  const Outcome failed = film(out, {{"PATH", programs.string() + ":/bin"}});
  CHECK(failed.code == 3);
  check_contains(failed.err, "ffmpeg ended with 7");
}
