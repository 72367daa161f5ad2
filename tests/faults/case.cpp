#include "tests/faults/case.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/skip.hpp"

namespace tilestep::tests {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kOld = "old and good";
constexpr std::size_t kLongestLine = 2000;
constexpr std::uintmax_t kMostRead = 1 << 24;

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string in_folder(const std::string& text, const fs::path& folder) {
  return replaced(text, "@", folder.string());
}

/// Regular files below `folder`, by their names in it.
std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  std::error_code failed;
  for (auto each = fs::recursive_directory_iterator(folder, failed);
       each != fs::recursive_directory_iterator(); each.increment(failed)) {
    if (failed) break;
    if (!each->is_regular_file(failed)) continue;
    // Of an enormous one the size is enough.
    const std::uintmax_t size = each->file_size(failed);
    files[each->path().lexically_relative(folder).string()] =
        size > kMostRead ? std::to_string(size) : file_text(each->path());
  }
  return files;
}

/// What the same command gives where nothing is wrong, in a folder of its own; each is run once.
const Aftermath& clean_run(const Fault& fault) {
  static std::map<std::vector<std::string>, Aftermath> known;
  std::vector<std::string> key = fault.words;
  key.push_back(fault.input);
  key.push_back(fault.always);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  const TemporaryFolder folder;
  Fault clean = fault;
  clean.before.clear();
  Aftermath after = run_with(clean, folder.path(), false);
  UNSCOPED_INFO(after.outcome.err);
  return known.emplace(key, std::move(after)).first->second;
}

bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

bool is_printable(const std::string& text) {
  return is_utf8(text) && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return c == '\n' || (c >= 0x20 && c != 0x7f);
         });
}

void check_left(const Fault& fault, const Aftermath& after, const Aftermath& clean) {
  for (const auto& [name, bytes] : after.files) {
    if (name.starts_with(kScratch)) continue;
    INFO("left: " << name << ", " << bytes.size() << " bytes");
    CHECK(name.find(".part") == std::string::npos);
    const bool was_there = std::find(fault.old.begin(), fault.old.end(), name) != fault.old.end();
    const auto right = clean.files.find(name);
    // A file is as it was before, or as a good run makes it: never a part of that.
    const bool whole = right != clean.files.end() && right->second == bytes;
    if (right != clean.files.end() || was_there) CHECK((whole || (was_there && bytes == kOld)));
  }
  for (const std::string& name : fault.old) {
    INFO("old: " << name);
    CHECK(after.files.contains(name));
  }
}

}  // namespace

Aftermath run_with(const Fault& fault, const fs::path& folder, bool faulty) {
  const TemporaryFolder notes;
  const fs::path seen = notes.path() / "seen";
  std::ofstream(seen, std::ios::binary) << std::string(3 * sizeof(long), '\0');
  const char* other = std::getenv("TILESTEP_TEST_PROGRAM");
  std::string script = "cd '" + folder.string() + "' || exit 99\n";
  script += in_folder(fault.always, folder) + "\n";
  if (faulty) script += in_folder(fault.before, folder) + "\n";
  script += "exec ";
  // Not the shell's own calls are to fail.
  if (faulty && !fault.rules.empty()) {
    script += "env LD_PRELOAD=" + std::string(tilestep::tests::paths::kFaultsShim) +
              " \"TILESTEP_FAULTS=" + in_folder(fault.rules, folder) + "\" TILESTEP_FAULTS_SEEN='" +
              seen.string() + "' ";
  }
  script += "\"$@\"";
  if (faulty) script += " " + in_folder(fault.redirect, folder);
  std::vector<std::string> words = {"bash", "-c", script, "sh",
                                    other == nullptr ? tilestep::tests::paths::kProgram : other};
  for (const std::string& word : fault.words) words.push_back(in_folder(word, folder));
  Environment environment = {{"HOME", folder.string()}, {"XDG_CONFIG_HOME", ""},
                             {"DISPLAY", ""},           {"WAYLAND_DISPLAY", ""},
                             {"LC_ALL", "C.UTF-8"},     {"MESA_SHADER_CACHE_DISABLE", "true"}};
  if (faulty) {
    for (const auto& [name, value] : fault.environment) {
      environment[name] = in_folder(value, folder);
    }
  }
  Child child(words, environment);
  child.write(fault.input);
  child.close_input();
  Aftermath after;
  after.outcome.code = child.finish(120s);
  after.outcome.out = replaced(child.out(), folder.string(), "@");
  after.outcome.err = replaced(child.err(), folder.string(), "@");
  after.files = files_in(folder);
  for (auto& [name, bytes] : after.files) bytes = replaced(bytes, folder.string(), "@");
  std::ifstream counted(seen, std::ios::binary);
  counted.read(reinterpret_cast<char*>(&after.calls), sizeof after.calls);
  counted.read(reinterpret_cast<char*>(&after.failures), sizeof after.failures);
  return after;
}

void check_sentences(const std::string& text, int lines) {
  CHECK(std::count(text.begin(), text.end(), '\n') == lines);
  CHECK(text.starts_with("tilestep: "));
  CHECK(is_printable(text));
  CHECK(text.size() <= kLongestLine * static_cast<std::size_t>(lines));
}

Aftermath check_fault(const Fault& fault) {
  INFO("the fault: " << fault.name);
  static const Aftermath kNone;
  const Aftermath& clean = fault.again || fault.code == 0 ? clean_run(fault) : kNone;
  const TemporaryFolder folder;
  for (const std::string& name : fault.old) {
    fs::create_directories((folder.path() / name).parent_path());
    std::ofstream(folder.path() / name) << kOld;
  }
  Aftermath after = run_with(fault, folder.path());
  {
    INFO("exit code " << after.outcome.code << "; on standard error: " << after.outcome.err);
    CHECK(after.outcome.code == fault.code);
    if (!fault.rules.empty()) CHECK(after.failures > 0);
    if (fault.code != 0 && fault.lines > 0) check_sentences(after.outcome.err, fault.lines);
    for (const std::string& part : fault.says) {
      INFO("to be said: " << part);
      CHECK(contains(after.outcome.err, part));
    }
    for (const std::string& part : fault.prints) {
      INFO("to be printed: " << part << "; printed: " << after.outcome.out);
      CHECK(contains(after.outcome.out, part));
      CHECK(is_printable(after.outcome.out));
    }
    check_left(fault, after, clean);
  }
  if (!fault.again) return after;
  const Aftermath next = run_with(fault, folder.path(), false);
  check_as(next, clean);
  return after;
}

void check_as(const Aftermath& next, const Aftermath& clean) {
  INFO("the next run: exit code " << next.outcome.code
                                  << "; on standard error: " << next.outcome.err);
  CHECK(next.outcome.code == clean.outcome.code);
  CHECK((next.outcome.out == clean.outcome.out));
  for (const auto& [name, bytes] : clean.files) {
    if (name.starts_with(kScratch)) continue;
    INFO("the next run's file: " << name);
    const auto right = next.files.find(name);
    CHECK((right != next.files.end() && right->second == bytes));
  }
}

void check_faults(const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) check_fault(fault);
  std::printf("%zu faults\n", faults.size());
}

bool can_inject() {
  static const bool can = [] {
    const TemporaryFolder folder;
    Fault probe;
    probe.words = {"--version"};
    probe.rules = "write,1,5,no such path";
    return run_with(probe, folder.path()).outcome.code == 0;
  }();
  if (!can) skip("no fault is injected: the library with them cannot be loaded here");
  return can;
}

}  // namespace tilestep::tests
