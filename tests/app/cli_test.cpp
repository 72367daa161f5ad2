#include <signal.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "app/cli/terminal.hpp"
#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

using namespace tilestep::tests;
using nlohmann::json;

namespace {

const std::vector<std::string> kRun = {"run", "online-softmax", "--backend", "emulated"};

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Exit 2, nothing on standard output, and one sentence that names what is allowed.
void check_refused(const std::vector<std::string>& arguments,
                   const std::vector<std::string>& named) {
  const Outcome outcome = run_tilestep(arguments);
  INFO(outcome.err);
  for (const std::string& argument : arguments) UNSCOPED_INFO(argument);
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  CHECK(outcome.err.starts_with("tilestep: "));
  for (const std::string& name : named) check_contains(outcome.err, name);
}

/// A line of the shell, in which $0 is tilestep.
Child shell(const std::string& line) {
  return Child({"sh", "-c", line, tilestep::tests::paths::kProgram});
}

void check_no_nan(const json& value) {
  CHECK(value != "nan");
  if (value.is_structured()) {
    for (const json& part : value) check_no_nan(part);
  }
}

const json& tiles_of(const json& report) {
  const auto& tables = report.at("tables");
  const auto tiles = std::find_if(tables.begin(), tables.end(),
                                  [](const json& table) { return table.at("id") == "tiles"; });
  REQUIRE(tiles != tables.end());
  return *tiles;
}

}  // namespace

TEST_CASE("run --json has the golden table", "[cli]") {
  const Outcome outcome = run_tilestep(with(kRun, {"--json"}));
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const json report = outcome.json();
  const json golden = {{0, 3.0, 3.0, 0.000, 1.59, 11.390},
                       {1, 5.0, 5.0, 0.135, 1.32, 13.175},
                       {2, 4.0, 5.0, 1.000, 1.89, 12.880},
                       {3, 6.0, 6.0, 0.368, 1.72, 14.054}};
  const json& rows = tiles_of(report).at("rows");
  REQUIRE(rows.size() == golden.size());
  for (std::size_t r = 0; r < golden.size(); ++r) {
    REQUIRE(rows[r].size() == golden[r].size());
    for (std::size_t c = 0; c < golden[r].size(); ++c) {
      INFO("row " << r << ", column " << c);
      CHECK(rows[r][c].get<double>() == golden[r][c].get<double>());
    }
  }
}

TEST_CASE("run as CSV, Markdown and text shows the same table", "[cli]") {
  const Outcome csv = run_tilestep(with(kRun, {"--csv"}));
  CHECK(csv.code == 0);
  check_contains(csv.out, "\n1,5.0,5.0,0.135,1.32,13.175\n");
  const Outcome markdown = run_tilestep(with(kRun, {"--markdown"}));
  CHECK(markdown.code == 0);
  check_contains(markdown.out, "| 1 | 5.0 | 5.0 | 0.135 | 1.32 | 13.175 |");
  const Outcome text = run_tilestep(kRun);
  CHECK(text.code == 0);
  for (const char* part : {"0.135", "13.175", "CPU emulation", "preset=worked-example"}) {
    check_contains(text.out, part);
  }
}

TEST_CASE("run --set takes knobs before and after the lesson, apart and together", "[cli]") {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"run", "online-softmax", "--set", "preset=random", "--set", "keys=8"},
           {"run", "--set", "preset=random", "keys=8", "online-softmax"},
           {"run", "--set=preset=random", "--set=keys=8", "online-softmax"}}) {
    const Outcome outcome = run_tilestep(with(words, {"--backend", "emulated", "--json"}));
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.json().at("params").at("preset") == "random");
    CHECK(outcome.json().at("params").at("keys") == 8);
  }
}

TEST_CASE("a CUDA module that is refused is named once, and emulation stands in", "[cli]") {
  const std::vector<std::string> run = {"run", "online-softmax", "--json"};
  const std::pair<std::string, const char*> modules[] = {
      {tilestep::tests::paths::kFakeModuleOther, "built from other sources"},
      {tilestep::tests::paths::kSource + std::string("/README.md"), "cannot be loaded"}};
  for (const auto& [module, why] : modules) {
    const Environment environment = {{"TILESTEP_CUDA_MODULE", module}};
    const Outcome stood_in = run_tilestep(run, "", environment);
    REQUIRE(stood_in.code == 0);
    CHECK(std::count(stood_in.err.begin(), stood_in.err.end(), '\n') == 1);
    CHECK(stood_in.err.starts_with("tilestep: the CUDA backend "));
    check_contains(stood_in.err, why);
    check_contains(stood_in.err, "; kernels run under CPU emulation instead\n");
    const json device = stood_in.json().at("device");
    CHECK(device.at("backend") == "emulated");
    check_contains(device.at("cuda_refused").get<std::string>(), why);
    // Who asks for emulation gets it without a word, who asks for CUDA the reason.
    const Outcome emulated = run_tilestep(with(run, {"--backend", "emulated"}), "", environment);
    CHECK(emulated.err.empty());
    CHECK(emulated.json().at("device").at("cuda_refused").is_null());
    const Outcome cuda = run_tilestep(with(run, {"--backend", "cuda"}), "", environment);
    CHECK(cuda.code == 3);
    check_contains(cuda.err, why);
  }
  // Nothing is wrong with a machine without CUDA.
  const Outcome absent = run_tilestep(run, "", {{"TILESTEP_CUDA_MODULE", "/no/such/module.so"}});
  CHECK(absent.code == 0);
  CHECK(absent.err.empty());
}

TEST_CASE("all-masked has no NaN anywhere", "[cli]") {
  const Outcome outcome = run_tilestep(with(kRun, {"--set", "preset=all-masked", "--json"}));
  REQUIRE(outcome.code == 0);
  check_no_nan(outcome.json());
}

TEST_CASE("bad flags, lessons, knobs and commands exit 2 and name what is allowed", "[cli]") {
  check_refused({"run"}, {"online-softmax"});
  check_refused({"shot", "tiling", "--step", "1", "--step", "2", "--out", "x.png"},
                {"--step is given more than once; allowed"});
  check_refused({"open", "no-such-lesson"}, {"online-softmax"});
  check_refused({"shot", "no-such-lesson", "--out", "x.png"}, {"online-softmax"});
  check_refused({"bench", "no-such-lesson"}, {"online-softmax", "simt", "ui", "edit"});
  check_refused({"bench", "edit", "--lesson", "no-such-lesson"}, {"online-softmax"});
  check_refused({"bench", "edit", "--backend", "recorded"}, {"emulated, cuda"});
  check_refused({"bench", "tiling", "--lesson", "tiling"}, {"--lesson works only with edit"});
  check_refused({"run", "tiling", "--set", "tile"}, {"'tile' is not of the form", "as in tile=8"});
  check_refused({"bench", "ui", "--quick"}, {"--quick does not work with ui; allowed: a lesson"});
  check_refused({"record", "no-such-lesson", "--out", "x"}, {"online-softmax"});
  check_refused(with(kRun, {"--set", "tile_width=0"}), {"1–1024"});
  check_refused(with(kRun, {"--set", "=1"}), {"knob=value"});
  check_refused(with(kRun, {"--set", "tile_width"}), {"knob=value"});
  check_refused(with(kRun, {"--set"}), {"--set"});
  check_refused({"run", "online-softmax", "--backend", "metal"},
                {"auto, cuda, emulated, recorded"});
  check_refused(with(kRun, {"--json", "--csv"}), {"--json", "--csv", "--markdown"});
  check_refused({"bench", "online-softmax", "--json", "--markdown"}, {"--json", "--markdown"});
  check_refused(with(kRun, {"--no-such-flag"}), {"--no-such-flag", "--json", "--set"});
  check_refused(with(kRun, {"extra"}), {"extra"});
  check_refused({"no-such-command"}, {"no-such-command", "run", "site", "doctor"});
  check_refused({"--no-such-flag"}, {"--no-such-flag", "--theme"});
  check_refused({"list", "--json", "extra"}, {"extra"});
  check_refused({"tour"}, {"--out"});
  check_refused({"site"}, {"--out"});
  check_refused({"site", "--out", "x", "--backend", "cuda"}, {"'cuda'", "emulated, recorded"});
  check_refused({"site", "--out", "x", "--lesson", "nothing"}, {"'nothing'", "coalescing"});
  for (const char* url : {"example.org", "https://a b", "https://a/?x", "javascript:alert(1)"}) {
    check_refused({"site", "--out", "x", "--base-url", url}, {url, "https://example.org/"});
  }
  check_refused({"record"}, {"--out"});
  check_refused({"shot", "online-softmax"}, {"--out"});
  check_refused({"shot", "online-softmax", "--out", "x.gif"}, {"'.gif'", ".png, .svg"});
  check_refused(with(kRun, {"--capsule", "mine"}), {"'mine'", ".tilestep.json"});
  check_refused({"doctor", "--yaml"}, {"--yaml", "--json"});
}

TEST_CASE("every command that runs kernels takes a lab, and no option as a host", "[cli]") {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "out").string();
  const std::vector<std::vector<std::string>> commands = {
      {"open"},
      {"run", "tiling"},
      {"bench", "tiling"},
      {"record", "tiling", "--out", out},
      {"record", "tiling", "--telling", "--out", out},
      {"shot", "tiling", "--out", out + ".png"},
      {"film", "tiling", "--out", out},
      {"site", "--out", out},
      {"tour", "--out", out}};
  for (const std::vector<std::string>& command : commands) {
    check_refused(with(command, {"--lab", "ssh:-oProxyCommand=x"}), {"cannot begin with '-'"});
  }
  CHECK(!std::filesystem::exists(out));
  const std::string without_gpu = "run:env CUDA_VISIBLE_DEVICES= '" +
                                  std::string(tilestep::tests::paths::kProgram) + "' worker";
  for (const std::vector<std::string>& what : {std::vector<std::string>{}, {"--telling"}}) {
    const Outcome record =
        run_tilestep(with({"record", "tiling", "--out", out, "--lab", without_gpu}, what));
    CHECK(record.code == 3);
    check_contains(record.err, "cuda");
  }
  CHECK(!std::filesystem::exists(out));
}

TEST_CASE("pictures refuse sizes, themes, tabs, steps and scales that are not allowed", "[cli]") {
  const std::vector<std::string> shot = {"shot", "online-softmax", "--out", "x.png"};
  for (const char* size : {"", "640", "639x400", "640x399", "7681x4320", "7680x4321", "ax400",
                           "640x400x2", "-640x400", "1e3x900", "99999999999x900"}) {
    check_refused(with(shot, {"--size", size}), {"640x400–7680x4320"});
  }
  for (const char* theme : {"", "Dark", "blue"}) {
    check_refused(with(shot, {"--theme", theme}), {"dark, light"});
  }
  check_refused(with(shot, {"--tab", "code"}),
                {"predict, data, measured, kernel, glossary, lesson"});
  check_refused(with(shot, {"--view", "code"}), {"allowed: Ladder, Beyond L2"});
  for (const char* step : {"", "-1", "1.5", "two", "99999999999999"}) {
    check_refused(with(shot, {"--step", step}), {"0–"});
  }
  for (const char* phase : {"4", "-1", "Rescale", "1.0"}) {
    check_refused(with(shot, {"--step", "1", "--phase", phase}),
                  {"maximum, rescale, weights, accumulate, or 0–3"});
  }
  check_refused(with(shot, {"--compare", "keys=0"}), {"keys", "1"});
  check_refused(with(shot, {"--compare", "no_such_knob=1"}), {"no_such_knob", "preset"});
  check_refused({"shot", "online-softmax", "--compare", "keys=8", "--out", "x.svg"}, {"PNG"});
  for (const char* scale : {"", "0.9", "2.1", "nan", "big"}) {
    check_refused(with(shot, {"--text-scale", scale}), {"1–2"});
  }
}

TEST_CASE("a name that is nearly one says which was meant", "[cli]") {
  check_refused({"run", "softmax"}, {"did you mean 'online-softmax'?", "the lessons are"});
  check_refused({"run", "colaescing"}, {"did you mean 'coalescing'?"});
  check_refused({"bnech"}, {"did you mean 'bench'?", "the commands are"});
  check_refused({"tilling"}, {"did you mean 'tiling'?"});
  check_refused({"thinking"}, {"there is no command 'thinking'; the commands are"});
  check_refused({"shot", "online-softmax", "--phase", "rescale", "--out", "x.png"},
                {"--phase", "--step"});
  // A lesson's name opens it: what is wrong here is the knob.
  check_refused({"tiling", "--set", "no_such_knob=7"}, {"no_such_knob", "padding"});
}

TEST_CASE("progress is printed, handed in, put together for a class, and forgotten", "[cli]") {
  TemporaryFolder folder;
  const Environment environment = {{"XDG_STATE_HOME", folder.path().string()}};
  const auto tilestep = [&](const std::vector<std::string>& words) {
    return run_tilestep(with({"progress"}, words), "", environment);
  };
  CHECK(tilestep({"--json"}).json().at("lessons").empty());
  std::filesystem::create_directories(folder.path() / "tilestep");
  std::ofstream(folder.path() / "tilestep" / "progress.json")
      << R"({"tilestep_progress": 1, "lessons": {"coalescing": {"stops": ["The good case", "gone"],)"
         R"( "asked": ["share"], "exercises": ["coalescing/pad-the-tile"]},)"
         R"( "first-steps": {"stops": [], "right": [], "asked": [],)"
         R"( "exercises": ["first-steps/6-count-dice", "gone"]}}})";
  check_contains(tilestep({}).out, "coalescing");
  const auto room = folder.path() / "class";
  std::filesystem::create_directory(room);
  for (const char* student : {"ada", "bob"}) {
    CHECK(tilestep({"--export", (room / (student + std::string(".json"))).string()}).code == 0);
  }
  std::ofstream(room / "eve.json") << "[]";
  const Outcome all = tilestep({"--class", room.string(), "--csv"});
  CHECK(all.code == 1);
  check_contains(all.err, "skipped");
  check_contains(all.err, "eve.json");
  check_contains(all.out, "student,lesson,");
  check_contains(all.out, "ada,coalescing,1,");  // a stop that is no more does not count
  check_contains(all.out, "bob,coalescing,1,");
  check_contains(all.out, "bob,first-steps,0,0,0,0,1,8,0,0,0\n");
  CHECK(tilestep({"--class", room.string()}).code == 2);
  CHECK(tilestep({"--csv"}).code == 2);
  CHECK(tilestep({"--reset"}).code == 0);
  CHECK(tilestep({"--json"}).json().at("lessons").empty());
}

TEST_CASE("help and -v are understood, and the list fits a terminal", "[cli]") {
  CHECK(run_tilestep({"help"}).out == run_tilestep({"--help"}).out);
  CHECK(run_tilestep({"help", "bench"}).out == run_tilestep({"bench", "--help"}).out);
  CHECK(run_tilestep({"-v"}).out == run_tilestep({"--version"}).out);
  const std::string narrow = run_tilestep({"list"}, "", {{"COLUMNS", "70"}}).out;
  std::istringstream lines(narrow.substr(narrow.find("    pattern")));
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    CHECK(tilestep::app::display_width(line) <= 70);
  }
  check_contains(run_tilestep({"list"}).out, "or nothing; nothing if not set]\n");
}

TEST_CASE("the course can be listed", "[cli]") {
  const Outcome course = run_tilestep({"list", "--course", "--json"});
  REQUIRE(course.code == 0);
  const auto rows = course.json().at("course");
  CHECK(rows.at(0).at("lesson") == "coalescing");
  CHECK(rows.at(0).at("stops").size() > 5);
  check_contains(run_tilestep({"list", "--course"}).out, "afterwards you can: ");
  check_refused({"list", "--markdown"}, {"--course"});
  check_refused({"list", "--course", "--markdown", "--json"}, {"only one"});
}

TEST_CASE("a capsule that is none is refused before anything opens", "[cli]") {
  TemporaryFolder folder;
  const std::string file = (folder.path() / "a.tilestep.json").string();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{file}, {"open", file}, {"shot", file, "--out", "x.png"}}) {
    const Outcome absent = run_tilestep(words);
    CHECK(absent.code == 3);
    check_contains(absent.err, "'" + file + "' cannot be read: No such file");
  }
  std::ofstream(file) << "{\"tilestep_capsule\": 7}";
  check_refused({file}, {file, "newer tilestep"});
  std::ofstream(file) << "{\"tilestep_capsule\": 1";
  check_refused({"open", file}, {file, "cut off"});
  CHECK(run_tilestep(with(kRun, {"--capsule", file})).code == 0);
  check_refused({"open", file, "--set", "keys=8"}, {"--set", "capsule"});
  check_refused({"shot", file, "--compare", "keys=8", "--out", "x.png"}, {"--compare", "capsule"});
  check_refused({"shot", file, "--step", "1", "--phase", "x", "--out", "x.png"}, {"rescale"});
  const Outcome unwritable = run_tilestep(with(kRun, {"--capsule", file + "/a.json"}));
  CHECK(unwritable.code == 3);
  // Nobody's file is replaced, nor what a link leads to, unless it is forced.
  const std::string other = (folder.path() / "package.json").string(),
                    link = (folder.path() / "link.tilestep.json").string();
  std::ofstream(other) << "{\"name\": \"somebody's\"}";
  const Outcome refused = run_tilestep(with(kRun, {"--capsule", other}));
  CHECK(refused.code == 2);
  check_contains(refused.err, "another kind of file is there; --force replaces it");
  CHECK(file_text(other) == "{\"name\": \"somebody's\"}");
  std::filesystem::create_symlink(file, link);
  check_contains(run_tilestep(with(kRun, {"--capsule", link})).err, "it is a link to");
  CHECK(run_tilestep(with(kRun, {"--capsule", other, "--force"})).code == 0);
  check_contains(file_text(other), "\"tilestep_capsule\"");
  CHECK(run_tilestep(with(kRun, {"--capsule", other})).code == 0);
}

TEST_CASE("films and worksheets refuse what they cannot make, and name what they can", "[cli]") {
  const std::vector<std::string> film = {"film", "online-softmax", "--out", "x.apng"};
  check_refused({"film", "--out", "x"}, {"online-softmax"});
  check_refused({"film", "online-softmax"}, {"--out", ".webm", ".apng"});
  check_refused({"film", "online-softmax", "--out", "x.avi"}, {"'.avi'", ".webm, .mp4, .gif"});
  check_refused(with(film, {"--from", "2", "--to", "2"}), {"--from 2 --to 2"});
  check_refused(with(film, {"--from", "-1"}), {"--from", "0–"});
  check_refused(with(film, {"--to", "end"}), {"--to", "'end'"});
  for (const char* rate : {"0", "61", "2.5", ""})
    check_refused(with(film, {"--fps", rate}), {"1–60"});
  check_refused(with(film, {"--size", "1x1"}), {"640x400–7680x4320"});
  check_refused(with(film, {"--set", "keys=0"}), {"keys"});
  check_refused({"worksheet"}, {"online-softmax"});
  check_refused({"worksheet", "no-such-lesson", "--seed", "1", "--out", "x"}, {"online-softmax"});
  check_refused({"worksheet", "coalescing", "--out", "x"}, {"--seed"});
  check_refused({"worksheet", "coalescing", "--seed", "1"}, {"--out"});
  for (const char* seed : {"", "-1", "one", "1.5", "2147483648"}) {
    check_refused({"worksheet", "coalescing", "--seed", seed, "--out", "x"}, {"0–2147483647"});
  }
  TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "not a folder";
  const std::string file = (folder.path() / "file").string();
  const Outcome outcome = run_tilestep({"worksheet", "coalescing", "--seed", "1", "--out", file});
  CHECK(outcome.code == 3);
  check_contains(outcome.err, file);
}

TEST_CASE("a stop of the guided path is a place to open at", "[cli]") {
  const std::vector<std::string> shot = {"shot", "online-softmax", "--out", "x.svg"};
  for (const char* stop : {"0", "", "x", "-1"}) {
    check_refused(with(shot, {"--stop", stop}), {"from 1"});
  }
  check_refused(with(shot, {"--stop", "99"}), {"99", "stops 1–"});
  check_refused(with(shot, {"--stop", "1", "--step", "2"}), {"--step"});
}

TEST_CASE("--version and --help print and exit 0", "[cli]") {
  const Outcome version = run_tilestep({"--version"});
  CHECK(version.code == 0);
  check_matches(version.out, "tilestep [0-9]+\\.[0-9]+\\.[0-9]+\n");
  const Outcome licenses = run_tilestep({"--licenses"});
  CHECK(licenses.code == 0);
  for (const char* part : {"Inter", "JetBrains Mono", "SIL OPEN FONT LICENSE", "Dear ImGui"}) {
    check_contains(licenses.out, part);
  }
  const Outcome help = run_tilestep({"--help"});
  CHECK(help.code == 0);
  for (const char* command : {"open", "list", "run", "bench", "record", "shot", "film", "site",
                              "tour", "worksheet", "worker", "assembly", "doctor"}) {
    check_contains(help.out, command);
    CHECK(run_tilestep({command, "--help"}).code == 0);
  }
}

TEST_CASE("what stands beside the source is PTX or SASS", "[cli]") {
  check_refused({"shot", "online-softmax", "--assembly", "llvm", "--out", "x.png"},
                {"--assembly", "llvm", "ptx", "sass"});
}

TEST_CASE("without a display the window says so, suggests the pages and exits 3", "[cli]") {
  const Outcome outcome = run_tilestep({}, "", {{"DISPLAY", ""}, {"WAYLAND_DISPLAY", ""}});
  CHECK(outcome.code == 3);
  check_contains(outcome.err, "tilestep site");
}

TEST_CASE("what cannot be written exits 3 with the reason", "[cli]") {
  TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "not a folder";
  const std::string below_a_file = (folder.path() / "file" / "x").string();
  const Outcome site = run_tilestep({"site", "--out", below_a_file});
  CHECK(site.code == 3);
  check_contains(site.err, below_a_file);
}

TEST_CASE("a full standard output exits 3", "[cli]") {
  if (!std::filesystem::exists("/dev/full")) return;
  for (const char* command : {"list", "list --json", "--help", "--version", "run --help"}) {
    Child child = shell(std::string("exec \"$0\" ") + command + " >/dev/full");
    INFO(command);
    CHECK(child.finish(std::chrono::seconds(30)) == 3);
    check_contains(child.err(), "standard output: No space left on device");
  }
}

TEST_CASE("a closed standard output exits 3, whatever else is closed", "[cli]") {
  Child closed = shell("exec \"$0\" list >&-");
  CHECK(closed.finish(std::chrono::seconds(30)) == 3);
  check_contains(closed.err(), "standard output");
  Child both = shell("exec \"$0\" list >&- 2>&-");
  CHECK(both.finish(std::chrono::seconds(30)) == 3);
  Child bad_input = shell("exec \"$0\" list --bad 2>/dev/full");
  CHECK(bad_input.finish(std::chrono::seconds(30)) == 2);
  // The reader is gone, as after `| head`.
  Child gone = shell("sleep 0.2; exec \"$0\" list");
  gone.close_output();
  CHECK(gone.finish(std::chrono::seconds(30)) == 128 + SIGPIPE);
  CHECK(gone.err().empty());
}

TEST_CASE("where the disk fills up the pages keep the old files and leaves no parts", "[cli]") {
  TemporaryFolder folder;
  const auto page = folder.path() / "online-softmax" / "index.html";
  const auto first = folder.path() / "index.html";
  for (const auto& old : {page, first}) {
    std::filesystem::create_directories(old.parent_path());
    std::ofstream(old) << "old and good";
  }
  // Blocks of 512 bytes; no signal is ignored for it beforehand.
  Child child = shell("ulimit -f 8; exec \"$0\" site --lesson online-softmax --force --out '" +
                      folder.path().string() + "'");
  CHECK(child.finish(std::chrono::seconds(60)) == 3);
  check_contains(child.err(), "File too large");
  CHECK(file_text(page) == "old and good");
  CHECK(file_text(first) == "old and good");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    CHECK(entry.path().extension() != ".part");
  }
}

TEST_CASE("doctor says what works, as text and as JSON", "[cli]") {
  // It tries OpenGL out, and what the driver keeps until the process ends is no leak of ours.
  const Environment no_leak_check = {{"ASAN_OPTIONS", "detect_leaks=0"}, {"COLUMNS", "2000"}};
  const Outcome text = run_tilestep({"doctor"}, "", no_leak_check);
  CHECK(text.code == 0);
  const Outcome narrow =
      run_tilestep({"doctor"}, "", {{"ASAN_OPTIONS", "detect_leaks=0"}, {"COLUMNS", "60"}});
  for (std::size_t at = 0; at < narrow.out.size();) {
    const std::size_t end = std::min(narrow.out.find('\n', at), narrow.out.size());
    CHECK(tilestep::app::display_width(std::string_view(narrow.out).substr(at, end - at)) <= 60);
    at = end + 1;
  }
  const Outcome outcome = run_tilestep({"doctor", "--json"}, "", no_leak_check);
  REQUIRE(outcome.code == 0);
  std::set<std::string> ids;
  const json said = outcome.json();
  for (const json& part : said.at("parts")) {
    ids.insert(part.at("id").get<std::string>());
    CHECK(part.at("ok").is_boolean());
    CHECK(!part.at("what").get<std::string>().empty());
    // What does not work comes with what to do.
    if (!part.at("ok").get<bool>()) CHECK(part.at("to_do").is_string());
    check_contains(text.out, part.at("what").get<std::string>());
  }
  for (const char* id : {"cuda", "emulator", "counters", "compiler", "sandbox", "sanitizer",
                         "window", "pictures", "font", "recordings"}) {
    CHECK(ids.contains(id));
  }
}
