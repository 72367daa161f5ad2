#pragma once

#include <string>
#include <vector>

#include "tests/app/child.hpp"

/// A fault from outside (see shim.cpp, and the shell's `ulimit`), and what a user is to see of it.
namespace tilestep::tests {

/// Commands that go wrong in many ways; `with` adds words.
inline const std::vector<std::string> kRun = {"run", "online-softmax", "--backend", "emulated"};
inline const std::vector<std::string> kSvg = {"shot",      "online-softmax", "--force",
                                              "--backend", "emulated",       "--step",
                                              "2",         "--out",          "@/a.svg"};

inline std::vector<std::string> with(std::vector<std::string> words,
                                     const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// One command with one fault. '@' stands for the case's own folder, where it also runs, with HOME there.
struct Fault {
  std::string name;
  std::vector<std::string> words;      ///< of the command line
  std::string rules = {};              ///< TILESTEP_FAULTS, see shim.cpp
  int code = 3;                        ///< exit code
  std::vector<std::string> says = {};  ///< parts of its one sentence, on standard error
  std::string before = {};             ///< shell commands that run first, with the fault alone
  std::string redirect = {};           ///< of the shell: ">/dev/full"
  std::vector<std::string> old =
      {};  ///< files that were there, good, and must survive as they were
  Environment environment = {};
  bool again = true;        ///< afterwards the same without the fault is right
  int lines = 1;            ///< on standard error, if it fails
  std::string input = {};   ///< on its standard input
  std::string always = {};  ///< shell commands that run first, with the fault or without
  std::vector<std::string> prints = {};  ///< parts of its standard output, which is printable then
};

/// Files whose name begins so may be anything: they are what the fault is about.
inline constexpr const char* kScratch = "scratch";

/// What a command left: its outcome, and the files of its folder with their bytes.
struct Aftermath {
  Outcome outcome;
  std::map<std::string, std::string> files;
  long calls = 0, failures = 0;  ///< as the shim counted them
};

/// Runs `fault` in `folder`.
Aftermath run_with(const Fault& fault, const std::filesystem::path& folder, bool faulty = true);

/// Runs it, checks all that every fault promises (the exit code, one clean sentence, no half file, no
/// part, old files as they were, the next run right) and returns what was left.
Aftermath check_fault(const Fault& fault);

/// The run `next`, after a fault, gave all that the run `clean` gave where nothing was ever wrong.
void check_as(const Aftermath& next, const Aftermath& clean);

/// Checks each, and says how many there were.
void check_faults(const std::vector<Fault>& faults);

/// A sentence as a user may see it: one line (or `lines`) that begins with "tilestep: ", is UTF-8, has no
/// control characters and is not endless.
void check_sentences(const std::string& text, int lines = 1);

/// True if the shim's library can be loaded: not into programs with sanitizers, not on other systems.
bool can_inject();

}  // namespace tilestep::tests
