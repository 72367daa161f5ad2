// The kernel's editor in a real window: real keys, a real compiler, a real worker.
#include <signal.h>

#include "tests/app/display_window.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/skip.hpp"

using namespace tilestep::tests;
using namespace std::chrono_literals;

namespace {

/// The Kernel tab of the opening lesson, with the editor open and the keyboard in it.
void open_editor(Window& window) {
  REQUIRE(eventually([&] { return window.has("score_0"); }, 60s));
  window.focus();
  window.press("k");
  REQUIRE(window.click_on("edit_kernel"));
  REQUIRE(eventually([&] { return window.value("editor") == "typing"; }));
}

bool has_compiler() {
  return has_program("g++") || has_program("clang++") || has_program("c++");
}

}  // namespace

TEST_CASE(
    "a line that is changed in a real window changes the trace, and its badge says whose it is",
    "[window]") {
  const auto display = make_display();
  if (!display) return;
  if (!has_compiler()) return skip("no kernel is edited: there is no compiler here");
  const TemporaryFolder home;
  const auto draft = home.path() / ".local/state/tilestep/drafts/online-softmax/one_pass.cu";
  {
    Window window(*display, {"--backend", "emulated"}, tilestep::tests::paths::kProgram,
                  home.path());
    open_editor(window);
    // The maximum of each tile, found by the name of its step, is one too large.
    window.press("ctrl+f");
    REQUIRE(window.steady("find_text"));
    window.type("[step: maximum]");
    REQUIRE(eventually([&] { return window.value("find_text") == "[step: maximum]"; }));
    window.press("Escape");
    window.press("Home");
    window.type("tile_max += 1; ");
    REQUIRE(eventually([&] { return window.says("tile_max += 1; "); }));
    window.press("ctrl+Return");
    CHECK(
        eventually([&] { return lower(window.label("device")).starts_with("your kernel"); }, 60s));
    CHECK(window.step() == 0);  // no key of these was the window's
    CHECK(eventually([&] { return window.says("first differs from the original at tile 1"); }));
    // A line that is none.
    window.type("nonsense ");
    window.press("ctrl+Return");
    CHECK(eventually([&] { return window.has("failure") && window.says("nonsense"); }, 60s));
    CHECK(window.says("diagnostic_"));
    ::kill(window.program().pid(), SIGKILL);  // a second after the last change nothing is lost
  }
  CHECK(file_text(draft).find("tile_max += 1; ") != std::string::npos);
  Window window(*display, {"--backend", "emulated"}, tilestep::tests::paths::kProgram, home.path());
  open_editor(window);
  CHECK(window.says("your draft"));
  window.press("Escape");
  REQUIRE(eventually([&] { return window.value("editor").empty(); }));
  window.press("Right");
  CHECK(eventually([&] { return window.step() == 1; }));
}
