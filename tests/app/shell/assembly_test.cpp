// PTX and SASS beside a lesson's source, in the whole window. The lab is the test's own: nothing is compiled.
#include "kernels/base/lab/assets.hpp"
#include "tests/app/child.hpp"
#include "tests/app/shell/stage.hpp"

using namespace tilestep;
using namespace tilestep::app;
using tests::contains;
using tests::kOnePass, tests::Stage;
using ui::EditorKey;
using workbench::AssemblyForm;

namespace {

ShellOptions assembly_opening(bool edits = false) {
  ShellOptions options;
  options.lesson = "online-softmax";
  options.tab = Tab::kernel;
  options.edits = edits;
  return options;
}

workbench::AssemblyKernel kernel_of(std::string symbol, std::string name,
                                    std::vector<workbench::AssemblyLine> lines) {
  workbench::AssemblyKernel kernel;
  kernel.symbol = std::move(symbol);
  kernel.name = std::move(name);
  kernel.lines = std::move(lines);
  kernel.registers = 40;
  kernel.spill_store_bytes = 8;
  kernel.spill_load_bytes = 12;
  kernel.shared_bytes = 256;
  kernel.stack_bytes = 16;
  return kernel;
}

/// A window whose lesson has run, with the Kernel tab in front.
struct Listing {
  explicit Listing(const ShellOptions& options = assembly_opening()) : stage(options) {
    stage.lab.answer();
    stage.frame();
  }
  std::size_t asked() const { return stage.lab.assembly_requests.size(); }
  const workbench::AssemblyRequest& request() const { return stage.lab.assembly_requests.back(); }
  void say(decltype(LabUpdate::what) what) {
    stage.lab.updates.push_back({stage.lab.assembly_ticket(), std::move(what)});
    stage.frame();
  }
  /// The newest question is answered: the first instruction names the text that it is of.
  void answer(const std::string& mark = "first") {
    workbench::Assembly assembly;
    assembly.info = {kOnePass, lab::hash_of(request().kernel.text), "nvcc 13.0", 1, false, {}};
    std::vector<workbench::AssemblyLine> lines = {{"mov.u32 %" + mark + ", 1;", 105},
                                                  {".reg .b32 %r<3>;", 0}};
    for (int i = 0; i < 200; ++i) lines.push_back({"add.f32 %f1, %f2, %f3;", 200 + i});
    lines.push_back({"mul.rn.f32 %f4, %f1, %f2;", 70, {124}});
    assembly.kernels = {kernel_of("_Z4loopIfEvPT_", "loop<float>", lines),
                        kernel_of("_Z5otherv", "other", {{"ret;", 160}})};
    say(std::make_shared<const workbench::Assembly>(std::move(assembly)));
  }
  std::string label(const std::string& id) const { return stage.part(id)["label"]; }
  std::string value(const std::string& id) const { return stage.part(id)["value"]; }
  /// What of the listing is in sight.
  bool lists(const std::string& words) const {
    for (const auto& part : stage.map()["parts"]) {
      if (part["id"].get<std::string>().starts_with("assembly_row_") &&
          contains(part["label"].get<std::string>(), words)) {
        return true;
      }
    }
    return false;
  }
  void point_at(const std::string& id) {
    const auto rect = stage.part(id)["rect"].get<std::vector<float>>();
    ImGui::GetIO().MousePos = {rect[0] + rect[2] / 2, rect[1] + rect[3] / 2};
    stage.frame();
  }

  Stage stage;
};

}  // namespace

TEST_CASE("PTX stands beside the built-in source when it is asked for, and is asked for once",
          "[ui_shell]") {
  Listing desk;
  CHECK(desk.asked() == 0);
  CHECK_FALSE(desk.stage.has("assembly"));
  desk.stage.click("assembly_form_1");
  REQUIRE(desk.asked() == 1);
  CHECK(desk.request() == workbench::AssemblyRequest{"online-softmax",
                                                     {kOnePass, std::string(lab::asset(kOnePass))},
                                                     AssemblyForm::ptx,
                                                     90});
  CHECK(contains(desk.label("assembly_status"), "…"));  // and frames go on
  desk.say(LabProgress{0, "compiling one_pass.cu for sm_90a", false});
  CHECK(desk.label("assembly_status") == "Compiling one_pass.cu for sm_90a …");
  desk.stage.shell.key(Key::right, false);
  desk.stage.frame();
  CHECK(desk.stage.map()["step"] == 1);
  desk.answer();
  CHECK(desk.value("assembly").empty());
  CHECK(desk.label("assembly") == "loop<float>");
  CHECK(desk.label("assembly_resources") ==
        "40 registers · spills: 8 B stored, 12 B loaded · 256 B shared · 16 B stack");
  CHECK(contains(desk.label("assembly_status"), "PTX for sm_90a, chosen"));
  CHECK(contains(desk.label("assembly_status"), "not measured"));
  CHECK(contains(desk.label("assembly_status"), "nvcc 13.0"));
  CHECK(desk.stage.lab.requests.size() == 1);  // nothing ran for it
  // Source alone and back, another tab and back: it is kept.
  desk.stage.click("assembly_form_0");
  CHECK_FALSE(desk.stage.has("assembly"));
  desk.stage.click("assembly_form_1");
  desk.stage.click("tab_data");
  desk.stage.click("tab_kernel");
  CHECK(desk.stage.has("assembly"));
  CHECK(desk.asked() == 1);
  // Another form, another GPU: other questions.
  desk.stage.click("assembly_form_2");
  REQUIRE(desk.asked() == 2);
  CHECK(desk.request().form == AssemblyForm::sass);
  CHECK_FALSE(desk.stage.has("assembly"));  // PTX is no SASS
  desk.stage.click("assembly_gpu");
  desk.stage.click("assembly_gpu_1");
  REQUIRE(desk.asked() == 3);
  CHECK(desk.request().capability == 80);
}

TEST_CASE("lines and instructions light each other, and a press brings the other into sight",
          "[ui_shell]") {
  Listing desk;
  desk.stage.click("assembly_form_1");
  desk.answer();
  REQUIRE(desk.lists("mov.u32 %first"));
  CHECK_FALSE(desk.stage.has("lit_line"));
  desk.point_at("assembly_row_1");
  CHECK(desk.value("assembly_row_1") == "lit");
  CHECK(desk.value("assembly_row_2").empty());  // of no line of this source
  desk.stage.click("assembly_row_1");
  desk.stage.frame();
  CHECK(desk.label("lit_line") == "105");
  // Step 1 ends in line 124, whose product was inlined from another line: it is lit, too.
  desk.stage.shell.key(Key::right, false);
  desk.stage.frame();
  ImGui::GetIO().MousePos = {-1e6f, -1e6f};
  desk.stage.frame();
  CHECK(desk.value("source_line") == "124");
  CHECK_FALSE(desk.lists("mov.u32 %first"));
  REQUIRE(desk.stage.has("assembly_row_203"));
  CHECK(desk.value("assembly_row_203") == "lit");
  desk.point_at("assembly_row_203");
  CHECK(desk.stage.has("lit_line"));  // its call
  // Another kernel by its name; a line of the first one leads back.
  desk.stage.click("assembly_kernel");
  desk.stage.click("assembly_kernel_1");
  CHECK(desk.label("assembly") == "other");
  desk.stage.shell.key(Key::home, false);
  desk.stage.frame();
  desk.stage.shell.key(Key::right, false);
  desk.stage.frame();
  CHECK(desk.label("assembly") == "loop<float>");
}

TEST_CASE("the caret lights its instructions, and a pressed instruction takes it along",
          "[ui_shell]") {
  Listing desk(assembly_opening(true));
  desk.stage.shell.key(Key::s, false);
  desk.stage.frame();
  desk.answer();
  desk.stage.click("editor");
  for (int i = 0; i < 400; ++i) REQUIRE(desk.stage.shell.press({EditorKey::up}));
  for (int i = 1; i < 124; ++i) REQUIRE(desk.stage.shell.press({EditorKey::down}));
  ImGui::GetIO().MousePos = {-1e6f, -1e6f};
  desk.stage.frame();
  REQUIRE(desk.value("editor_caret").starts_with("124:"));
  REQUIRE(desk.stage.has("assembly_row_203"));
  CHECK(desk.value("assembly_row_203") == "lit");
  desk.stage.click("assembly_row_203");
  ImGui::GetIO().MousePos = {-1e6f, -1e6f};
  desk.stage.click("editor");
  CHECK(desk.stage.has("editor_line_70"));  // in sight
}

TEST_CASE("assembly of another text is never shown as if it were this one's", "[ui_shell]") {
  Listing desk(assembly_opening(true));
  desk.stage.shell.key(Key::s, false);
  desk.stage.frame();
  desk.answer("before");
  CHECK(desk.value("assembly").empty());
  CHECK_FALSE(desk.stage.has("assembly_stale"));
  desk.stage.click("editor");
  REQUIRE(desk.stage.shell.press({EditorKey::home, false, true}));
  for (const char c : std::string("// x\n")) {
    REQUIRE(desk.stage.shell.type(static_cast<char32_t>(c)));
  }
  desk.stage.frame();
  CHECK(desk.asked() == 1);  // not by every letter
  CHECK(desk.stage.has("assembly_stale"));
  CHECK(desk.value("assembly") == "stale");
  // Its lines are those of the text as it stands now.
  desk.stage.shell.press({EditorKey::escape});
  desk.stage.click("assembly_again");
  REQUIRE(desk.asked() == 2);
  CHECK(desk.request().kernel.text == "// x\n" + std::string(lab::asset(kOnePass)));
  CHECK(desk.value("assembly") == "stale");  // until it is there
  // What comes for a text that has gone meanwhile is not this one's either.
  desk.stage.click("editor");
  REQUIRE(desk.stage.shell.press({EditorKey::home, false, true}));
  REQUIRE(desk.stage.shell.type(U'y'));
  desk.answer("between");
  CHECK(desk.value("assembly") == "stale");
  CHECK(desk.stage.has("assembly_stale"));
  desk.stage.shell.key(Key::run, true);  // Ctrl+Shift+Enter
  desk.stage.frame();
  REQUIRE(desk.asked() == 3);
  CHECK(desk.request().kernel.text.starts_with("y// x\n"));
  CHECK(desk.stage.lab.requests.size() == 1);  // compiled, not run
  desk.answer("after");
  CHECK(desk.value("assembly").empty());
  CHECK_FALSE(desk.stage.has("assembly_stale"));
  // Undone, the text is one whose answer is kept.
  REQUIRE(desk.stage.shell.press({EditorKey::undo}));
  desk.stage.frame();
  CHECK(desk.value("assembly").empty());
  CHECK(desk.asked() == 3);
  // A run of the text makes its assembly, too.
  REQUIRE(desk.stage.shell.type(U'z'));
  desk.stage.shell.key(Key::run, false);
  desk.stage.frame();
  CHECK(desk.asked() == 4);
  CHECK(desk.stage.lab.requests.size() == 2);
}

TEST_CASE("what fails is said with its lines, is not tried by itself, and can be tried again",
          "[ui_shell]") {
  Listing desk(assembly_opening(true));
  desk.stage.shell.key(Key::s, false);
  desk.stage.frame();
  LabFailure failure{"one_pass.cu does not compile: line 3: expected a ';'",
                     ExitCode::check_failed};
  failure.diagnostics = {{1, 1, lab::Severity::error, "expected a ';'"}};
  desk.say(failure);
  CHECK(contains(desk.label("assembly_failure"), "does not compile"));
  desk.stage.click("editor");
  REQUIRE(desk.stage.shell.press({EditorKey::home, false, true}));
  desk.stage.frame();
  CHECK(desk.label("diagnostic_1") == "Error: expected a ';'");
  for (int i = 0; i < 3; ++i) desk.stage.frame();
  CHECK(desk.asked() == 1);
  desk.stage.click("assembly_do");
  REQUIRE(desk.asked() == 2);
  desk.stage.click("assembly_do");  // Stop
  desk.stage.frame();
  CHECK(contains(desk.label("assembly_status"), "stopped"));
  CHECK(desk.asked() == 2);
  desk.stage.click("assembly_do");
  CHECK(desk.asked() == 3);
  desk.say(LabFailure{"there is no nvcc here, which makes PTX and SASS; install the CUDA Toolkit",
                      ExitCode::unavailable});
  CHECK(contains(desk.label("assembly_failure"), "install the CUDA Toolkit"));
}

TEST_CASE("the key goes round, and the lab's own GPU is the one that is meant", "[ui_shell]") {
  ShellOptions options = assembly_opening();
  options.tab = Tab::data;
  Stage stage(options);
  lab::Report report = tests::report_of("online-softmax", stage.lab.requests.back().params);
  report.device.backend = "cuda";
  report.device.name = "NVIDIA H200";
  report.device.compute_capability = 103;
  stage.lab.updates.push_back({1, std::move(report)});
  stage.frame();
  stage.shell.key(Key::s, false);
  stage.frame();
  REQUIRE(stage.lab.assembly_requests.size() == 1);
  CHECK(stage.lab.assembly_requests.back().capability == 103);
  CHECK(stage.part("assembly_gpu")["value"] == "sm_103a");
  CHECK(stage.has("assembly_form_1"));
  stage.shell.key(Key::s, false);
  CHECK(stage.lab.assembly_requests.back().form == AssemblyForm::sass);
  stage.shell.key(Key::s, false);
  stage.frame();
  CHECK_FALSE(stage.has("assembly_status"));
  stage.shell.key(Key::s, true);  // back
  stage.frame();
  CHECK(stage.part("assembly_form_2")["value"] == "selected");
}
