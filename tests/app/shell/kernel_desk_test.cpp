// A lesson's kernel under the user's hands: edited, run, refused, compared, kept. The lab is the test's own.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "app/keep/drafts.hpp"
#include "kernels/base/lab/assets.hpp"
#include "kernels/base/workbench/sources.hpp"
#include "scenes/ui/context.hpp"
#include "tests/app/child.hpp"
#include "tests/app/shell/stage.hpp"

using namespace tilestep;
using namespace tilestep::app;
using tests::contains;
using tests::file_text;
using tests::kOnePass, tests::Stage;
using ui::EditorKey;

namespace {

ShellOptions desk_opening(const std::filesystem::path& drafts = {}) {
  ShellOptions options;
  options.lesson = "online-softmax";
  options.tab = Tab::kernel;
  if (!drafts.empty()) options.drafts = drafts;
  return options;
}

/// A window whose lesson has run, with the Kernel tab in front.
struct Desk {
  explicit Desk(const ShellOptions& options = desk_opening()) : stage(options) {
    stage.lab.answer();
    stage.frame();
  }
  /// Opens the editor and types at the start of its first line.
  void edit(std::string_view text) {
    stage.click("edit_kernel");
    press(EditorKey::home, true);
    type(text);
    stage.frame();
  }
  void type(std::string_view text) {
    for (const char c : text) REQUIRE(stage.shell.type(static_cast<char32_t>(c)));
  }
  void press(EditorKey key, bool by_words = false) {
    REQUIRE(stage.shell.press({key, false, by_words}));
  }
  void run() {
    stage.shell.key(Key::run, false);
    stage.frame();
  }
  const lab::Request& asked() const { return stage.lab.requests.back(); }
  /// The newest request is answered as a worker does that has compiled it.
  void answer_own(const std::function<void(lab::Report&)>& change = [](lab::Report&) {}) {
    lab::Report report = tests::report_of(asked().lesson, asked().params);
    report.device.backend = "emulated";
    report.kernel =
        lab::EditedKernel{kOnePass, lab::hash_of(asked().kernel->text), "g++", 1, false, {}};
    change(report);
    stage.lab.updates.push_back({stage.lab.requests.size(), std::move(report)});
    stage.frame();
  }
  void refuse(LabFailure failure) {
    stage.lab.updates.push_back({stage.lab.requests.size(), std::move(failure)});
    stage.frame();
  }
  std::string label(const std::string& id) const { return stage.part(id)["label"]; }
  std::string device() const { return label("device"); }

  Stage stage;
};

LabFailure compile_failure(int line) {
  LabFailure failure{"one_pass.cu does not compile: 1 error, in line " + std::to_string(line),
                     ExitCode::check_failed};
  failure.diagnostics = {{line, 1, lab::Severity::error, "'nonsense' does not name a type"}};
  return failure;
}

}  // namespace

TEST_CASE("an edited kernel runs with its text, until the original is asked for", "[ui_shell]") {
  Desk desk;
  CHECK_FALSE(desk.stage.has("editor"));
  CHECK_FALSE(desk.asked().kernel);
  desk.edit("// mine\n");
  REQUIRE(desk.stage.has("editor"));
  CHECK(desk.stage.part("editor")["value"] == "typing");
  CHECK(desk.stage.lab.requests.size() == 1);  // nothing runs by typing
  desk.run();
  REQUIRE(desk.stage.lab.requests.size() == 2);
  REQUIRE(desk.asked().kernel);
  CHECK(desk.asked().kernel->path == kOnePass);
  CHECK(desk.asked().kernel->text == "// mine\n" + std::string(lab::asset(kOnePass)));
  CHECK(desk.asked().backend == "auto");
  CHECK_FALSE(desk.device().starts_with("Your kernel"));  // the old picture stays till then
  desk.answer_own();
  CHECK(desk.device().starts_with("Your kernel · "));
  CHECK(contains(desk.label("kernel_status"), "Its trace is the original's"));
  // A turned knob runs the user's own.
  desk.stage.shell.set_knobs({{"preset", std::string("rising")}});
  desk.stage.frame();
  REQUIRE(desk.stage.lab.requests.size() == 3);
  CHECK(desk.asked().kernel);
  desk.answer_own();
  CHECK(contains(desk.label("kernel_status"), "has not run with these knobs"));
  desk.stage.click("original_kernel");
  desk.stage.frame();
  REQUIRE(desk.stage.lab.requests.size() == 4);
  CHECK_FALSE(desk.asked().kernel);
  CHECK_FALSE(desk.stage.has("editor"));
  desk.stage.lab.answer();
  desk.stage.frame();
  CHECK_FALSE(desk.device().starts_with("Your kernel"));
  // The draft is still there.
  CHECK(desk.label("edit_kernel") == "Edit your draft");
  desk.stage.click("edit_kernel");
  desk.stage.shell.press({EditorKey::home, false, true});
  desk.stage.frame();
  CHECK(desk.label("editor_line_1") == "// mine");
}

TEST_CASE("while a kernel compiles its seconds are counted, and it can be cancelled",
          "[ui_shell]") {
  Desk desk;
  desk.edit("// mine\n");
  desk.run();
  CHECK(contains(desk.label("kernel_status"), "Compiling and running … 0 s"));
  desk.stage.lab.updates.push_back(
      {desk.stage.lab.requests.size(), LabProgress{0, "compiling your kernel"}});
  desk.stage.frame();
  CHECK(contains(desk.label("kernel_status"), "Running: compiling your kernel … 0 s"));
  desk.stage.click("cancel_run");
  desk.stage.frame();
  CHECK(desk.stage.lab.cancelled == std::vector<Ticket>{desk.stage.lab.requests.size()});
  CHECK_FALSE(desk.stage.has("cancel_run"));
  CHECK_FALSE(desk.stage.has("failure"));
  desk.run();  // again
  CHECK(desk.stage.lab.requests.size() == 3);
  CHECK(desk.stage.has("cancel_run"));
}

TEST_CASE("a call opens the body of its function, and the next step goes back to its own line",
          "[ui_shell]") {
  const auto line_of = [](std::string_view part) {
    const std::string_view text = lab::asset(kOnePass);
    const std::size_t at = text.find(part);
    REQUIRE(at != text.npos);
    return std::to_string(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n') + 1);
  };
  Desk desk;
  desk.stage.shell.key(Key::right, false);
  desk.stage.frame();
  REQUIRE(desk.stage.has("source_line"));
  CHECK_FALSE(desk.stage.has("back_to_step"));
  desk.stage.click("word_" + line_of("tile_sum = block_reduce(") + "_block_reduce");
  desk.stage.frame();
  CHECK(desk.label("lit_line") == line_of("__device__ float block_reduce("));
  CHECK(desk.stage.has("word_" + line_of("value = warp_reduce(value, lanes, combine)") +
                       "_warp_reduce"));
  desk.stage.click("back_to_step");
  desk.stage.frame();
  CHECK_FALSE(desk.stage.has("lit_line"));
  CHECK(desk.stage.has("source_line"));
  // A step does so too.
  desk.stage.click("word_" + line_of("tile_sum = block_reduce(") + "_block_reduce");
  CHECK(desk.stage.has("back_to_step"));
  desk.stage.shell.key(Key::right, false);
  desk.stage.frame();
  CHECK_FALSE(desk.stage.has("back_to_step"));
}

TEST_CASE("every source with device code can be opened and edited, headers too", "[ui_shell]") {
  ShellOptions options;
  options.lesson = "hopper-gemm";
  options.tab = Tab::kernel;
  Desk desk(options);
  const std::string own = desk.stage.part("kernel_source")["value"];
  desk.stage.click("kernel_source");
  const auto sources = workbench::editable_sources("hopper-gemm");
  const auto header = std::find_if(sources.begin(), sources.end(),
                                   [](const std::string& path) { return path.ends_with(".hpp"); });
  REQUIRE(header != sources.end());
  desk.stage.click(fmt::format("kernel_source_{}", header - sources.begin()));
  const std::string name(workbench::name_of_file(*header));
  CHECK(desk.stage.part("kernel_source")["value"] == name);
  CHECK(name != own);
  desk.edit("// mine\n");
  desk.run();
  REQUIRE(desk.asked().kernel);
  CHECK(desk.asked().kernel->path == *header);
}

TEST_CASE("a function of a header that lessons share opens too, and is read, not edited",
          "[ui_shell]") {
  ShellOptions options;
  options.lesson = "hopper-gemm";
  options.tab = Tab::kernel;
  Desk desk(options);
  desk.stage.shell.key(Key::right, false);
  desk.stage.frame();
  const auto sources = workbench::editable_sources("hopper-gemm");
  const std::string name = desk.stage.part("kernel_source")["value"];
  const auto path = std::find_if(sources.begin(), sources.end(), [&](const std::string& source) {
    return workbench::name_of_file(source) == name;
  });
  REQUIRE(path != sources.end());
  // The first call on show of a function that a shared header defines.
  std::string word;
  workbench::Definition body;
  for (const auto& [function, its] : workbench::functions_in_reach("hopper-gemm", *path)) {
    for (int line = 1; word.empty() && line < 1000; ++line) {
      const std::string id = fmt::format("word_{}_{}", line, function);
      if (workbench::is_shared_header(its.path) && desk.stage.has(id)) word = id, body = its;
    }
  }
  REQUIRE_FALSE(word.empty());
  desk.stage.click(word);
  desk.stage.frame();
  CHECK(desk.label("lit_line") == std::to_string(body.line));
  CHECK_FALSE(desk.stage.has("edit_kernel"));
  desk.stage.shell.edit_kernel();
  desk.stage.frame();
  CHECK_FALSE(desk.stage.has("editor"));
  CHECK(contains(desk.stage.part("message")["value"].get<std::string>(),
                 "not edited: Back to the step, then Edit"));
  desk.stage.click("back_to_step");
  desk.stage.frame();
  CHECK(desk.stage.has("edit_kernel"));
  CHECK(desk.stage.has("source_line"));
}

TEST_CASE("what is wrong stands at its line, and moves with it", "[ui_shell]") {
  Desk desk;
  desk.edit("nonsense\n");
  desk.run();
  desk.refuse(compile_failure(1));
  CHECK(desk.label("diagnostic_1") == "Error: 'nonsense' does not name a type");
  CHECK(desk.stage.has("failure"));  // the one sentence, as ever
  CHECK(contains(desk.stage.part("failure")["value"].get<std::string>(), "does not compile"));
  CHECK(contains(desk.label("kernel_status"), "does not compile"));
  CHECK(desk.stage.has("original_kernel"));
  desk.press(EditorKey::home, true);
  desk.press(EditorKey::enter);
  desk.stage.frame();
  CHECK_FALSE(desk.stage.has("diagnostic_1"));
  CHECK(desk.stage.has("diagnostic_2"));
  desk.press(EditorKey::down);
  desk.stage.frame();
  // Where the line itself was changed nothing is said of it any more.
  desk.press(EditorKey::up);
  desk.type("x");
  desk.stage.frame();
  CHECK_FALSE(desk.stage.has("diagnostic_2"));
  desk.run();
  desk.refuse({"no compiler is installed: install g++ (Debian, Ubuntu: apt install g++)",
               ExitCode::unavailable});
  CHECK(contains(desk.label("kernel_status"), "install g++"));
  CHECK(contains(desk.stage.part("failure")["value"].get<std::string>(), "install g++"));
}

TEST_CASE("letters are the editor's while it has the keys, and the window's after Esc",
          "[ui_shell]") {
  Desk desk;
  desk.edit("d");
  CHECK(desk.label("editor_line_1").starts_with("d"));
  for (const Key key : {Key::d, Key::t, Key::right, Key::space, Key::r, Key::p, Key::digit_2}) {
    desk.stage.shell.key(key, false);
    desk.stage.frame();
    CHECK(desk.stage.has("editor"));
    CHECK(desk.stage.map()["step"] == 0);
    CHECK(desk.stage.map()["lesson"] == "online-softmax");
  }
  CHECK(desk.stage.shell.context().look().theme == ui::ThemeKind::dark);
  CHECK_FALSE(desk.stage.shell.context().look().presenter);
  // The palette has the keys while it is open.
  desk.stage.shell.key(Key::find, false);
  desk.stage.frame();
  CHECK_FALSE(desk.stage.shell.type('x'));
  desk.stage.shell.key(Key::escape, false);
  desk.stage.frame();
  CHECK(desk.stage.shell.type('x'));
  desk.press(EditorKey::escape);
  CHECK_FALSE(desk.stage.shell.type('x'));
  CHECK_FALSE(desk.stage.shell.press({EditorKey::left}));
  desk.stage.shell.key(Key::right, false);
  desk.stage.frame();
  CHECK(desk.stage.map()["step"] == 1);
  // Ctrl+F comes back to it, from wherever one is.
  desk.stage.shell.key(Key::find_text, false);
  desk.stage.frame();
  CHECK(desk.stage.has("find_text"));
  CHECK(desk.stage.shell.type('x'));
  // Another tab takes the keys away.
  desk.press(EditorKey::escape);
  desk.press(EditorKey::escape);
  desk.stage.click("editor");
  CHECK(desk.stage.shell.type('x'));
  desk.stage.click("tab_data");
  CHECK_FALSE(desk.stage.shell.type('x'));
  desk.stage.click("tab_kernel");
  CHECK_FALSE(desk.stage.shell.type('x'));
  CHECK(desk.stage.has("editor"));
}

TEST_CASE("a draft is kept while one types, and is there again in the next window", "[ui_shell]") {
  const tests::TemporaryFolder folder;
  const auto file = folder.path() / "online-softmax" / "one_pass.cu";
  const std::string original(lab::asset(kOnePass));
  {
    Desk desk(desk_opening(folder.path()));
    CHECK(desk.label("edit_kernel") == "Edit");
    CHECK_FALSE(desk.stage.shell.update_due_s());
    desk.edit("// kept");
    REQUIRE(desk.stage.shell.update_due_s());
    CHECK(*desk.stage.shell.update_due_s() <= 1);
    CHECK(tests::eventually([&] {
      desk.stage.shell.update();
      return std::filesystem::exists(file);
    }));
    CHECK(file_text(file) == "// kept" + original);
    desk.type("!");
  }
  CHECK(file_text(file) == "// kept!" + original);  // at the end
  {
    Desk desk(desk_opening(folder.path()));
    CHECK(desk.label("edit_kernel") == "Edit your draft");
    CHECK_FALSE(desk.asked().kernel);  // it is not run by itself
    desk.stage.click("edit_kernel");
    desk.stage.shell.press({EditorKey::home, false, true});
    desk.stage.frame();
    CHECK(desk.label("editor_line_1").starts_with("// kept!"));
    CHECK(contains(desk.label("kernel_status"), "your draft"));
  }
  std::ofstream(file.string() + ".original") << "0123456789abcdef\n";  // of another build
  Desk desk(desk_opening(folder.path()));
  desk.stage.click("edit_kernel");
  CHECK(contains(desk.label("kernel_status"), "an older source"));
  desk.stage.click("start_kernel_over");
  desk.stage.shell.keep_drafts();
  CHECK(file_text(file) == original);
  CHECK(file_text(file.string() + ".before-1") == "// kept!" + original);
}

TEST_CASE("the first step that differs from the original is named, and one press away",
          "[ui_shell]") {
  Desk desk;
  desk.edit("// wrong\n");
  desk.run();
  desk.answer_own([](lab::Report& report) {
    for (lab::Table& table : report.tables) {
      if (table.id != "tiles") continue;
      table.rows.at(1).at(2) = 77.0;
      table.rows.at(2).at(2) = 78.0;
    }
    report.checks.at(0).ok = false;
  });
  const std::string said = desk.label("kernel_status");
  CHECK(contains(said, "Wrong by the checks: "));
  CHECK(contains(said, "First differs from the original at tile 2"));
  CHECK(contains(said, "is 77"));
  desk.stage.click("go_to_difference");
  CHECK(desk.stage.map()["step"] == 2);
  // Compare has the original beside it at once.
  desk.stage.shell.key(Key::b, false);
  desk.stage.frame();
  CHECK(desk.stage.part("run_a")["value"] == "the built-in kernel");
  CHECK(desk.stage.part("run_b")["value"] == "the edited kernel");
}

TEST_CASE("what the user's own editor saves is run", "[ui_shell]") {
  const tests::TemporaryFolder folder;
  const auto program = folder.path() / "editor";
  std::ofstream(program) << "#!/bin/sh\necho \"$1\" > \"$0.opened\"\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  ::setenv("VISUAL", program.c_str(), 1);
  const auto file = folder.path() / "drafts" / "online-softmax" / "one_pass.cu";
  Desk desk(desk_opening(folder.path() / "drafts"));
  desk.edit("// mine\n");
  desk.stage.click("own_editor");
  ::unsetenv("VISUAL");
  CHECK(file_text(file) == "// mine\n" + std::string(lab::asset(kOnePass)));
  CHECK(tests::eventually(
      [&] { return file_text(program.string() + ".opened") == file.string() + "\n"; }));
  CHECK(desk.stage.lab.requests.size() == 1);
  std::ofstream(file) << "// saved there\n";
  CHECK(tests::eventually([&] {
    desk.stage.shell.update();
    return desk.stage.lab.requests.size() == 2;
  }));
  REQUIRE(desk.asked().kernel);
  CHECK(desk.asked().kernel->text == "// saved there\n");
  desk.stage.frame();
  CHECK(desk.label("editor_line_1") == "// saved there");
}
