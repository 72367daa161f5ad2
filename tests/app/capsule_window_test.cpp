// A capsule with a kernel in a real window: real keys, a real compiler, a real sandbox.
#include <cstdlib>
#include <fstream>

#include "tests/app/display_window.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/skip.hpp"

using namespace tilestep::tests;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

/// A capsule of a kernel whose maximum of each tile is one too large; empty where nothing compiles here.
fs::path make_capsule(const fs::path& folder) {
  std::string text = file_text(std::string(tilestep::tests::paths::kSource) +
                               "/kernels/attention/online_softmax/one_pass.cu");
  const std::string where = "    const float m_new = fmaxf(m, tile_max);";
  REQUIRE(text.find(where) != text.npos);
  text.insert(text.find(where), "    tile_max += 1;\n");
  std::ofstream(folder / "one_pass.cu") << text;
  const fs::path capsule = folder / "theirs.tilestep.json";
  const Outcome made =
      run_tilestep({"run", "online-softmax", "--backend", "emulated", "--kernel",
                    (folder / "one_pass.cu").string(), "--capsule", capsule.string()});
  INFO(made.err);
  REQUIRE(fs::exists(capsule));
  return capsule;
}

/// Programs as they are here, but for bubblewrap.
class WithoutBubblewrap {
 public:
  explicit WithoutBubblewrap(const fs::path& folder) : was_(std::getenv("PATH")) {
    for (const char* programs : {"/usr/local/bin", "/usr/bin"}) {
      std::error_code error;
      for (const auto& each : fs::directory_iterator(programs, error)) {
        if (each.path().filename() == "bwrap") continue;
        fs::create_symlink(each.path(), folder / each.path().filename(), error);
      }
    }
    ::setenv("PATH", folder.c_str(), 1);
  }
  ~WithoutBubblewrap() { ::setenv("PATH", was_.c_str(), 1); }

 private:
  std::string was_;
};

/// What the window says in the header of whose kernel it is.
bool is_of(const Window& window, const std::string& words) {
  return window.label("device").find(words) != std::string::npos;
}

void show_kernel(Window& window) {
  const bool ready = eventually([&] { return window.has("score_0"); }, 60s);
  INFO("the last map: " << window.map().dump());
  REQUIRE(ready);
  window.focus();
  window.press("k");
  REQUIRE(eventually([&] { return window.has("capsule_kernel"); }));
}

}  // namespace

TEST_CASE("a capsule's kernel runs in the sandbox from a real window, and the user's draft stays",
          "[window]") {
  const auto display = make_display();
  if (!display) return;
  if (!has_program("g++") && !has_program("c++")) return skip("there is no compiler here");
  if (!has_program("bwrap") ||
      Child({"bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"}).finish(20s) != 0) {
    return skip("no kernel is run in a sandbox: bubblewrap does not start here");
  }
  const TemporaryFolder folder, home;
  const fs::path capsule = make_capsule(folder.path());
  const fs::path draft = home.path() / ".local/state/tilestep/drafts/online-softmax/one_pass.cu";
  fs::create_directories(draft.parent_path());
  std::ofstream(draft) << "// mine alone\n";

  Window window(*display, {"open", capsule.string(), "--questions", "off"},
                tilestep::tests::paths::kProgram, home.path());
  show_kernel(window);
  CHECK(window.value("capsule_kernel") == "not trusted");
  CHECK(is_of(window, "Capsule of "));
  CHECK(window.says("none of your files"));
  // A line of the user's among theirs: it is still theirs.
  REQUIRE(window.click_on("editor"));
  REQUIRE(eventually([&] { return window.value("editor") == "typing"; }));
  window.press("ctrl+Home");
  window.type("// more");
  REQUIRE(eventually([&] { return window.label("editor_line_1").starts_with("// more"); }));
  window.press("Return");
  window.press("ctrl+Return");
  CHECK(eventually([&] { return is_of(window, "The capsule's kernel, in a sandbox · "); }, 60s));
  CHECK_FALSE(window.has("failure"));
  window.press("Escape");
  REQUIRE(window.click_on("original_kernel"));
  CHECK(eventually([&] { return !is_of(window, "kernel"); }, 60s));
  REQUIRE(window.click_on("show_capsule_kernel"));
  CHECK(eventually([&] { return window.says("first differs from the original at tile 1"); }, 60s));
  CHECK(file_text(draft) == "// mine alone\n");
}

TEST_CASE("without bubblewrap a real window runs a capsule's kernel on trust alone", "[window]") {
  const auto display = make_display();
  if (!display) return;
  if (!has_program("g++") && !has_program("c++")) return skip("there is no compiler here");
  const TemporaryFolder folder, home, programs;
  const fs::path capsule = make_capsule(folder.path());
  const WithoutBubblewrap without(programs.path());
  {
    Window window(*display, {"open", capsule.string(), "--questions", "off"},
                  tilestep::tests::paths::kProgram, home.path());
    show_kernel(window);
    CHECK(window.says("apt-get install bubblewrap"));
    window.press("ctrl+Return");
    REQUIRE(eventually([&] { return window.has("failure"); }, 60s));
    check_contains(window.value("failure"), "bubblewrap is not installed");
    check_contains(window.value("failure"), "--trust");
    CHECK(is_of(window, "Capsule of "));  // nothing has run
  }
  Window window(*display, {"open", capsule.string(), "--questions", "off", "--trust"},
                tilestep::tests::paths::kProgram, home.path());
  show_kernel(window);
  CHECK(window.value("capsule_kernel") == "trusted");
  window.press("ctrl+Return");
  CHECK(eventually(
      [&] { return !is_of(window, "Capsule of ") && is_of(window, "The capsule's kernel · "); },
      60s));
}
