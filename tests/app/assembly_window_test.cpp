// Assembly beside the source in a real window: real keys, a real pointer, a real worker, and a compiler that is none.
#include "tests/app/display_window.hpp"
#include "tests/app/fake_cuda_tools.hpp"
#include "tests/catch.hpp"
#include "tests/skip.hpp"

using namespace tilestep::tests;
using namespace std::chrono_literals;

namespace {

/// What the window and its worker find for as long as it lives.
struct Tools {
  explicit Tools(double nvcc_seconds) : fake({.nvcc_seconds = nvcc_seconds}) {
    for (const char* name : {"TILESTEP_NVCC", "TILESTEP_CACHE"}) {
      ::setenv(name, fake.environment().at(name).c_str(), 1);
    }
  }
  ~Tools() {
    ::unsetenv("TILESTEP_NVCC");
    ::unsetenv("TILESTEP_CACHE");
  }
  FakeCudaTools fake;
};

}  // namespace

TEST_CASE("a key opens PTX in a real window, which goes on while it is compiled", "[window]") {
  const auto display = make_display();
  if (!display) return;
  const Tools tools(3);
  Window window(*display, {"--backend", "emulated"});
  REQUIRE(eventually([&] { return window.has("score_0"); }, 60s));
  window.focus();
  window.press("k");
  REQUIRE(eventually([&] { return window.is_selected("tab_kernel"); }));
  window.press("s");
  REQUIRE(eventually([&] { return window.says("Compiling one_pass.cu for sm_90a"); }));
  window.press("Right");  // a step, meanwhile
  CHECK(eventually([&] { return window.step() == 1; }));
  CHECK_FALSE(window.has("assembly"));
  REQUIRE(eventually([&] { return window.has("assembly_row_2"); }, 60s));
  CHECK(window.label("assembly") == "loop<float>");
  CHECK(window.says("40 registers"));
  REQUIRE(window.click_on("assembly_row_2"));  // of line 105
  CHECK(eventually([&] { return window.label("lit_line") == "105"; }));
  window.press("s");
  REQUIRE(eventually([&] { return window.says("FMNMX"); }, 60s));
  CHECK(window.is_selected("assembly_form_2"));
  CHECK(tools.fake.runs() == 1);
  // An edit makes it one of another text.
  REQUIRE(window.click_on("edit_kernel"));
  REQUIRE(eventually([&] { return window.value("editor") == "typing"; }));
  window.type("x");
  REQUIRE(eventually([&] { return window.value("assembly") == "stale"; }));
  window.press("ctrl+shift+Return");
  CHECK(
      eventually([&] { return window.has("assembly") && window.value("assembly").empty(); }, 60s));
  CHECK(tools.fake.runs() == 2);
}
