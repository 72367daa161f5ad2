#include "app/file.hpp"

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>

#include "kernels/base/simt/error.hpp"
#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"

using namespace tilestep::tests;
using tilestep::Error;
using tilestep::app::write_file;
using tilestep::app::write_output;
namespace fs = std::filesystem;

namespace {

/// The sentence with which writing is refused, which exits 3.
std::string refusal(const fs::path& path, std::string_view bytes) {
  try {
    write_file(path, bytes);
  } catch (const Error& error) {
    CHECK(error.code() == tilestep::ExitCode::unavailable);
    return error.what();
  }
  FAIL("the file was written");
  return "";
}

/// While it lives no file of this process may grow beyond `bytes`, as on a disk that fills up.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const ::rlimit limit{bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  ::rlimit before_{};
  ::sighandler_t handler_;
};

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

const std::string kLarge(100'000, 'x');

}  // namespace

TEST_CASE("a file is written whole, with its folder, over what was there", "[file]") {
  TemporaryFolder folder;
  const fs::path path = folder.path() / "a" / "b" / "c.txt";
  write_file(path, "first");
  CHECK(file_text(path) == "first");
  write_file(path, kLarge);
  CHECK((file_text(path) == kLarge));
  CHECK(names_in(path.parent_path()) == std::vector<std::string>{"c.txt"});
}

TEST_CASE("where there is no room the old file survives and nothing is left beside it", "[file]") {
  TemporaryFolder folder;
  const fs::path path = folder.path() / "a.txt";
  write_file(path, "old and good");
  std::string said;
  {
    const FileSizeLimit limit(4096);
    said = refusal(path, kLarge);
  }
  check_contains(said, "File too large");
  CHECK(file_text(path) == "old and good");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"a.txt"});
}

TEST_CASE("a full disk is named as the reason", "[file]") {
  TemporaryFolder folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    WARN("skipped: no file system can be mounted here");
    return;
  }
  const fs::path path = folder.path() / "a.txt";
  write_file(path, "old and good");
  const std::string said = refusal(path, kLarge);
  const std::string left = file_text(path);
  const auto names = names_in(folder.path());
  ::umount(folder.path().c_str());
  check_contains(said, "No space left on device");
  CHECK(left == "old and good");
  CHECK(names == std::vector<std::string>{"a.txt"});
}

TEST_CASE("devices, pipes and folders are refused and stay what they are", "[file]") {
  TemporaryFolder folder;
  check_contains(refusal(folder.path(), "x"), "folder");
  const fs::path pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  check_contains(refusal(pipe, "x"), "not a file");
  CHECK(fs::is_fifo(pipe));
  if (!fs::exists("/dev/full")) return;
  check_contains(refusal("/dev/full", "x"), "not a file");
  CHECK(fs::is_character_file("/dev/full"));
  const fs::path link = folder.path() / "link";
  fs::create_symlink("/dev/full", link);
  check_contains(refusal(link, "x"), "/dev/full");
}

TEST_CASE("a link stays a link and a file keeps its permissions", "[file]") {
  TemporaryFolder folder;
  const fs::path file = folder.path() / "file", link = folder.path() / "link";
  write_file(file, "first");
  ::chmod(file.c_str(), 0640);
  fs::create_symlink("file", link);
  write_file(link, "second");
  CHECK(fs::is_symlink(link));
  CHECK(file_text(file) == "second");
  CHECK(fs::status(file).permissions() == fs::perms(0640));
  fs::create_symlink("new", folder.path() / "dangling");
  write_file(folder.path() / "dangling", "third");
  CHECK(file_text(folder.path() / "new") == "third");
  if (::geteuid() == 0) {
    WARN("skipped: root may write to what is write-protected");
    return;
  }
  ::chmod(file.c_str(), 0440);
  check_contains(refusal(file, "x"), "Permission denied");
}

TEST_CASE("an output replaces what is of its own kind, and nothing else unless it is forced",
          "[file]") {
  TemporaryFolder folder;
  const std::string png = "\x89PNG\r\n\x1a\n and a picture";
  const auto said = [](const fs::path& path, std::string_view bytes) -> std::string {
    try {
      write_output(path, bytes, false);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const fs::path picture = folder.path() / "a.png", other = folder.path() / "b.png",
                 empty = folder.path() / "empty.png", link = folder.path() / "link.png",
                 map = folder.path() / "map.json";
  CHECK(said(picture, png) == "");
  CHECK(said(picture, png + "!") == "");
  CHECK(file_text(picture) == png + "!");
  write_file(empty, "");
  CHECK(said(empty, png) == "");
  write_file(other, "int main() {}\n");
  check_contains(said(other, png), "another kind of file is there; --force replaces it");
  CHECK(file_text(other) == "int main() {}\n");
  write_output(other, png, true);
  CHECK(file_text(other) == png);
  fs::create_symlink("a.png", link);
  check_contains(said(link, png), "it is a link to 'a.png'");
  write_output(link, png, true);
  CHECK(fs::is_symlink(link));
  CHECK(file_text(picture) == png);
  // Where the name says nothing more exact, the first words of the text do.
  write_file(map, "{\n  \"name\": \"somebody's package\"\n}\n");
  check_contains(said(map, "{\n  \"controls\": []\n}\n"), "another kind of file");
  write_output(map, "{\n  \"controls\": []\n}\n", true);
  CHECK(said(map, "{\n  \"controls\": [1]\n}\n") == "");
  const fs::path table = folder.path() / "steps.csv";
  write_file(table, "surname,first name\n");
  check_contains(said(table, "step,tile_max\n0,1\n"), "another kind of file");
  CHECK(said(table, "surname,first name\nA,B\n") == "");
}

TEST_CASE("no output replaces the program that runs", "[file]") {
  const std::string before = file_text("/proc/self/exe").substr(0, 64);
  for (const bool force : {false, true}) {
    std::string said;
    try {
      write_output("/proc/self/exe", "\x89PNG\r\n\x1a\n", force);
    } catch (const Error& error) {
      said = error.what();
    }
    check_contains(said, "it is tilestep itself");
  }
  CHECK(file_text("/proc/self/exe").substr(0, 64) == before);
}
