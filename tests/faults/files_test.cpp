#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/catch.hpp"
#include "tests/faults/case.hpp"
#include "tests/skip.hpp"

using namespace tilestep::tests;

namespace {

/// A command that writes files, and one of them that is there before.
struct Writer {
  const char* name;
  std::vector<std::string> words;
  std::string old;
};
const std::vector<Writer>& writers() {
  static const std::vector<Writer> kWriters = {
      {"run --capsule", with(kRun, {"--force", "--capsule", "@/a.tilestep.json"}),
       "a.tilestep.json"},
      {"shot SVG", kSvg, "a.svg"},
      {"shot --ui-map", with(kSvg, {"--ui-map", "@/map/a.json"}), "map/a.json"},
      {"worksheet",
       {"worksheet", "online-softmax", "--force", "--seed", "3", "--out", "@/sheets"},
       "sheets/online-softmax-3.html"},
  };
  return kWriters;
}

/// What can go wrong with a file, as the rules of shim.cpp have it.
struct FileFault {
  const char* name;
  const char* rules;
  const char* says;
};
constexpr FileFault kFileFaults[] = {
    {"the part cannot be made", "open,1,13,.part", "Permission denied"},
    {"no descriptor is left", "open,1,24,.part", "Too many open files"},
    {"the disk is full", "write,1,28,.part", "No space left on device"},
    {"the disk is broken", "write,1,5,.part", "Input/output error"},
    {"the quota is used up at the close", "close,1,122,.part", "Disk quota exceeded"},
    {"the rename fails", "rename,1,18", "Invalid cross-device link"},
};

}  // namespace

TEST_CASE("what cannot be written whole is not written, by any command", "[fault_files]") {
  if (!can_inject()) return;
  std::vector<Fault> faults;
  for (const Writer& writer : writers()) {
    for (const FileFault& each : kFileFaults) {
      Fault fault{std::string(writer.name) + ": " + each.name, writer.words, each.rules};
      fault.says = {"cannot be written", each.says};
      fault.old = {writer.old};
      faults.push_back(fault);
    }
    if (!contains(writer.old, "/")) continue;
    Fault folder{std::string(writer.name) + ": its folder cannot be made", writer.words,
                 "mkdir,1,28"};
    folder.says = {"cannot be made", "No space left on device"};
    faults.push_back(folder);
  }
  check_faults(faults);
}

TEST_CASE("a system that takes half of each write, or is interrupted, gets it all",
          "[fault_files]") {
  if (!can_inject()) return;
  std::vector<Fault> faults;
  for (const Writer& writer : writers()) {
    Fault fault{std::string(writer.name) + ": short writes", writer.words, "write,1+,short,.part",
                0};
    fault.again = false;
    faults.push_back(fault);
    fault.name = std::string(writer.name) + ": interrupted";
    fault.rules = "write,1,4,.part";
    faults.push_back(fault);
  }
  check_faults(faults);
}

TEST_CASE("devices, pipes, folders and missing folders as the file to write", "[fault_files]") {
  std::vector<Fault> faults;
  const auto refused = [&](const std::string& name, std::vector<std::string> words,
                           std::vector<std::string> says, const std::string& before = {}) {
    Fault fault{name, std::move(words), ""};
    fault.says = std::move(says);
    fault.before = before;
    fault.again = false;
    faults.push_back(fault);
  };
  const auto svg_to = [](const std::string& file) {
    std::vector<std::string> words = kSvg;
    words.back() = file;
    return words;
  };
  refused("a folder is there", svg_to("@/dir.svg"), {"'@/dir.svg'", "it is a folder"},
          "mkdir dir.svg");
  refused("a pipe is there", svg_to("@/pipe.svg"), {"not a file"}, "mkfifo pipe.svg");
  refused("a link to a device", svg_to("@/link.svg"), {"not a file"}, "ln -s /dev/full link.svg");
  refused("a link to itself", svg_to("@/loop.svg"), {"cannot be written"},
          "ln -s loop.svg loop.svg");
  refused("a file in place of the folder", svg_to("@/file/a.svg"),
          {"the folder '@/file' cannot be made"}, "touch file");
  refused("the capsule is a device", with(kRun, {"--force", "--capsule", "@/d/a.tilestep.json"}),
          {"not a file"}, "mkdir d; ln -s /dev/null d/a.tilestep.json");
  refused("the map of a picture is a folder", with(kSvg, {"--ui-map", "@"}), {"it is a folder"});
  refused("worksheets into a file", {"worksheet", "coalescing", "--seed", "1", "--out", "@/file"},
          {"@/file"}, "touch file");
  refused("the course into a file", {"site", "--out", "@/file"}, {"@/file"}, "touch file");
  refused("a film into a file",
          {"film", "online-softmax", "--force", "--backend", "emulated", "--to", "1", "--fps", "2",
           "--size", "640x400", "--out", "@/file"},
          {"@/file"}, "touch file");
  refused("a picture where nothing can be written", svg_to("/proc/a.svg"), {"/proc"});
  refused("a picture on a device",
          {"shot", "online-softmax", "--backend", "emulated", "--out", "/dev/full"},
          {"'/dev/full'", "not a file"});
  check_faults(faults);
}

TEST_CASE("two outputs in one file are refused, however they are spelled", "[fault_files]") {
  std::vector<Fault> faults;
  for (const char* map : {"@/a.svg", "@/./a.svg", "a.svg", "@/link.svg"}) {
    Fault fault{std::string("--ui-map ") + map, with(kSvg, {"--ui-map", map}), "", 2};
    fault.says = {"--out and --ui-map both name", "give each a file of its own"};
    fault.before = "ln -s a.svg link.svg";
    fault.again = false;
    faults.push_back(fault);
  }
  check_faults(faults);
}

TEST_CASE("a file size limit and a full disk leave no half file", "[fault_files]") {
  std::vector<Fault> faults;
  for (const Writer& writer : writers()) {
    Fault fault{std::string(writer.name) + ": a limit of 2 KB", writer.words, ""};
    fault.before = "ulimit -f 4";
    fault.says = {"cannot be written", "File too large"};
    fault.old = {writer.old};
    faults.push_back(fault);
  }
  const std::vector<std::string> png = {"shot",     "online-softmax", "--force", "--backend",
                                        "emulated", "--out",          "@/a.png"};
  Fault picture{"shot PNG: a limit of 8 KB", png, ""};
  picture.before = "ulimit -f 16";
  picture.says = {"File too large"};
  picture.old = {"a.png"};
  faults.push_back(picture);
  Fault film{"film: a limit of 2 KB",
             {"film", "online-softmax", "--force", "--backend", "emulated", "--to", "1", "--fps",
              "2", "--size", "640x400", "--out", "@/film"},
             ""};
  film.before = "ulimit -f 4";
  film.says = {"File too large"};
  faults.push_back(film);
  check_faults(faults);
}

TEST_CASE("a full file system of its own", "[fault_files]") {
  const TemporaryFolder folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=16k") != 0) {
    return skip("a full disk is not tested: no file system can be mounted here");
  }
  std::ofstream(folder.path() / "a.svg") << "old and good";
  Fault fault{"shot SVG on a full disk", kSvg, ""};
  fault.words.back() = (folder.path() / "a.svg").string();
  const TemporaryFolder home;
  const Aftermath after = run_with(fault, home.path());
  const std::string left = file_text(folder.path() / "a.svg");
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path()))
    ++files;
  ::umount(folder.path().c_str());
  INFO(after.outcome.err);
  CHECK(after.outcome.code == 3);
  check_sentences(after.outcome.err);
  CHECK(contains(after.outcome.err, "No space left on device"));
  CHECK(left == "old and good");
  CHECK(files == 1);
}

TEST_CASE("standard output, error and input closed, full or gone", "[fault_output]") {
  const std::vector<std::vector<std::string>> commands = {{"list"},
                                                          {"list", "--json"},
                                                          {"--help"},
                                                          {"--version"},
                                                          {"--licenses"},
                                                          {"run", "--help"},
                                                          kRun,
                                                          with(kRun, {"--json"}),
                                                          with(kRun, {"--csv"}),
                                                          with(kRun, {"--markdown"}),
                                                          with(kRun, {"--all"}),
                                                          {"bench", "online-softmax"},
                                                          {"bench", "online-softmax", "--json"}};
  std::vector<Fault> faults;
  for (const auto& words : commands) {
    std::string name;
    for (const std::string& word : words) name += word + " ";
    const auto add = [&](const std::string& what, const std::string& redirect, int lines,
                         const std::string& says) {
      Fault fault{name + what, words, "", 3};
      fault.redirect = redirect;
      fault.lines = lines;
      fault.says = {says};
      faults.push_back(fault);
    };
    const int lines =
        words.front() == "bench" ? 2 : 1;  // it first says where its numbers come from
    add("into a full device", ">/dev/full", lines, "standard output: No space left on device");
    add("with no standard output", ">&-", lines, "standard output: Bad file descriptor");
  }
  // Whoever closes standard error is told by the exit code alone.
  for (const char* redirect : {">/dev/full 2>/dev/full", ">&- 2>&-", "<&- >&- 2>&-"}) {
    Fault fault{std::string("list ") + redirect, {"list"}, "", 3};
    fault.redirect = redirect;
    fault.lines = 0;
    faults.push_back(fault);
  }
  for (const char* redirect : {"2>/dev/full", "2>&-", "<&-", "<&- 2>&-"}) {
    Fault fault{std::string("list ") + redirect, {"list"}, "", 0};
    fault.redirect = redirect;
    faults.push_back(fault);
    Fault usage{std::string("list --bad ") + redirect, {"list", "--bad"}, "", 2};
    usage.redirect = redirect;
    usage.lines = contains(redirect, "2>") ? 0 : 1;
    usage.again = false;
    faults.push_back(usage);
  }
  Fault written{"a picture with no standard output", kSvg, "", 0};
  written.redirect = "<&- >&- 2>&-";
  faults.push_back(written);
  Fault worker{"a worker with no standard output", {"worker"}, "", 0};
  worker.redirect = ">&- 2>&-";

  worker.again = false;
  faults.push_back(worker);
  check_faults(faults);
}

TEST_CASE("what is echoed is short and printable", "[fault_output]") {
  const std::string escape = "\x1b]0;title\x07\x1b[31mred", broken = "caf\xe9\xff",
                    lines = "one\ntwo\r\tthree";
  const std::string long_one(50'000, 'x'), quotes(20'000, '\''),
      separators = "a\u2028b\u202ec\u0085d";
  std::vector<Fault> faults;
  const auto refused = [&](const std::string& what, std::vector<std::string> words) {
    Fault fault{what, std::move(words), "", 2};
    fault.again = false;
    faults.push_back(fault);
  };
  for (const auto& [what, value] : std::map<std::string, std::string>{{"escapes", escape},
                                                                      {"broken UTF-8", broken},
                                                                      {"lines", lines},
                                                                      {"length", long_one},
                                                                      {"quotes", quotes},
                                                                      {"separators", separators}}) {
    refused(what + " as a command", {value});
    refused(what + " as an option", {"list", "--" + value});
    refused(what + " as a lesson", {"run", value + "!"});
    refused(what + " as a knob", {"run", "online-softmax", "--set", value + "=1"});
    refused(what + " as a value", {"run", "online-softmax", "--set", "preset=" + value});
    refused(what + " as a size", {"shot", "online-softmax", "--size", value, "--out", "@/a.png"});
    refused(what + " as a kind of file", {"shot", "online-softmax", "--out", "@/a." + value});
  }
  for (const Fault& fault : faults) {
    const Aftermath after = check_fault(fault);
    INFO(fault.name << ": " << after.outcome.err);
    for (const char* part :
         {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}) {  // at most 200 of them, in two halves
      std::size_t count = 0;
      for (const char c : after.outcome.err) count += c == part[0] ? 1 : 0;
      CHECK(count < 300);
    }
  }
  std::printf("%zu faults\n", faults.size());
}
