// What was kept, a capsule or a recording, and is broken, huge, deep, newer or no file by now.
#include "tests/catch.hpp"
#include "tests/faults/case.hpp"
#include "tests/paths.hpp"

using namespace tilestep::tests;

namespace {

/// A kept file with a fault, which the next run finds good again.
struct Kept {
  std::string name;
  std::string before;  ///< shell commands in its folder, where $F is its name
  int code;
  std::string says;
  std::string rules = {};
};

const std::string kDeep = "head -c 100000 /dev/zero | tr '\\0' ";

/// What can happen to any JSON file; `file` is its name, as a rule has it.
std::vector<Kept> any_file(const std::string& file) {
  return {
      {"missing", "rm $F", 3, ""},
      {"a folder", "rm $F; mkdir $F", 3, "it is a folder"},
      {"a pipe", "rm $F; mkfifo $F", 3, "not a file"},
      {"a device", "ln -sf /dev/zero $F", 3, "not a file"},
      {"a link to itself", "rm $F; ln -s $F $F", 3, "symbolic links"},
      {"empty", ": >$F", 2, ""},
      {"cut off at 1 byte", "truncate -s 1 $F", 2, "cut off after 1 byte"},
      {"cut off at 1000 bytes", "truncate -s 1000 $F", 2, "cut off after 1000"},
      {"cut off at its last bracket", "truncate -s -2 $F", 2, "cut off"},
      {"zeros", "head -c 4096 /dev/zero >$F", 2, "not JSON"},
      {"huge", "truncate -s 1G $F", 2, ""},
      {"deep arrays", kDeep + "'[' >$F", 2, ""},
      {"deep arrays with an end", "{ " + kDeep + "'['; " + kDeep + "']'; } >$F", 2, ""},
      {"deep objects", "{ yes '{\"a\":' | head -n 20000; echo 1; yes '}' | head -n 20000; } >$F", 2,
       ""},
      {"another file's JSON", "echo '{\"a\": 1}' >$F", 2, ""},
      {"broken UTF-8", "sed -i 's/online-softmax/online\\xff\\xfesoftmax/' $F", 2, ""},
      {"of a lesson that is none, with escapes",
       "sed -i 's/\"lesson\": *\"online-softmax\"/\"lesson\": \"gone\\\\u001b[31m\"/' $F", 2,
       "gone"},
      {"no descriptor is left", "", 3, "Too many open files", "open,1,24," + file},
      {"the disk is broken", "", 3, "Input/output error", "read,1,5," + file},
      {"reading is interrupted", "", 0, "", "read,1,4," + file},
      {"reading comes in bytes", "", 0, "", "read,1+,short," + file},
  };
}

}  // namespace

TEST_CASE("a capsule that is broken, huge, deep, newer or no file", "[fault_inputs]") {
  const std::string kFile = "a.tilestep.json";
  const TemporaryFolder made;
  REQUIRE(run_with({"a capsule",
                    {"run", "online-softmax", "--backend", "emulated", "--capsule", "@/" + kFile}},
                   made.path())
              .outcome.code == 0);
  std::vector<Kept> kept = any_file(kFile);
  kept.push_back(
      {"newer", "sed -i 's/\"tilestep_capsule\": 1/\"tilestep_capsule\": 99/' $F", 2, "99"});
  kept.push_back(
      {"a number too large",
       "sed -i 's/\"tilestep_capsule\": 1/\"tilestep_capsule\": 18446744073709551615/' $F", 2,
       kFile});
  std::vector<Fault> faults;
  for (const Kept& each : kept) {
    if (!each.rules.empty() && !can_inject()) continue;
    const std::string file = "@/scratch/" + kFile;
    Fault fault{"shot, a capsule: " + each.name,
                {"shot", file, "--force", "--out", "@/a.svg"},
                each.rules,
                each.code};
    fault.always =
        "rm -rf scratch; mkdir scratch; cp '" + (made.path() / kFile).string() + "' " + file;
    fault.before =
        "cd scratch; F=" + kFile + "; " + (each.before.empty() ? ":" : each.before) + "; cd ..";
    if (each.code != 0) fault.says = {each.says, kFile};
    faults.push_back(fault);
    if (each.code == 0) continue;  // without a display that is what `open` says
    fault.name = "open, a capsule: " + each.name;
    fault.words = {"open", file};
    faults.push_back(fault);
  }
  check_faults(faults);
}

TEST_CASE("a recording that is broken, huge, deep, newer or no file", "[fault_inputs]") {
  const std::string kFolder = "scratch/online-softmax", kFile = "rising.json";
  std::vector<Kept> kept = any_file(kFile);
  kept.push_back(
      {"newer", "sed -i '0,/\"version\": *[0-9]*/s//\"version\": 99/' $F", 2, "newer tilestep"});
  kept.push_back({"of another set", "sed -i 's/\"set\": *\"rising\"/\"set\": \"falling\"/' $F", 2,
                  "must be called"});
  kept.push_back({"beside its name", "mv $F other.json", 2, "must be called"});
  kept.push_back({"with another number", "sed -i 's/2.2185473/2.3185473/' $F", 1, "differs"});
  std::vector<Fault> faults;
  for (const Kept& each : kept) {
    if (!each.rules.empty() && !can_inject()) continue;
    // Another one beside it is good, and called so.
    Fault fault{
        "verify-recording: " + each.name, {"verify-recording", "@/scratch"}, each.rules, each.code};
    fault.always =
        "rm -rf scratch; mkdir scratch; cp -r '" + std::string(tilestep::tests::paths::kSource) +
        "/assets/recordings/nvidia-h200/online-softmax' scratch; rm " + kFolder + "/bf16*";
    fault.before = "cd " + kFolder + "; F=" + kFile + "; " +
                   (each.before.empty() ? ":" : each.before) + "; cd ../..";
    fault.lines = 0;
    fault.prints = {"same    @/scratch/online-softmax/no-rescale.json", each.says};
    if (each.name == "missing") fault.code = 0;
    if (each.code != 0 && each.name != "missing") {
      fault.prints.push_back(each.code == 1 ? "differs @" : "refused @/scratch/online-softmax/");
    }
    faults.push_back(fault);
  }
  const auto folder = [&](const std::string& name, const std::string& before, int code,
                          const std::string& says) {
    Fault fault = faults.front();
    fault.name = "verify-recording: " + name;
    fault.before = before;
    fault.code = code;
    fault.lines = 1;
    fault.prints = {};
    fault.says = {says};
    faults.push_back(fault);
  };
  folder("no folder", "rm -rf scratch", 3, "there is no folder '@/scratch'");
  folder("an empty folder", "rm -rf scratch; mkdir scratch", 3, "there is no recording");
  folder("a link to itself for a folder", "rm -rf scratch; ln -s scratch scratch", 3, "@/scratch");
  folder("more files than one has", "cd scratch; for i in $(seq 1100); do : >$i.json; done; cd ..",
         2, "more than 1000 files");
  check_faults(faults);
}
