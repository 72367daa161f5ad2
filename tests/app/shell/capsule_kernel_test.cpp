// The kernel that a capsule brings: beside the user's own, and run as others' code whatever is done to it.
#include <filesystem>
#include <fstream>

#include "app/keep/capsule.hpp"
#include "kernels/base/lab/assets.hpp"
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

std::string theirs() {
  return "// theirs\n" + std::string(lab::asset(kOnePass));
}

/// As another user's window has saved it.
Capsule capsule_with(const std::string& text) {
  lab::Report report = tests::report_of("online-softmax");
  report.device.backend = "emulated";
  report.kernel = lab::EditedKernel{kOnePass, lab::hash_of(text), "g++", 1, false, {}};
  Capsule capsule = capsule_of(report, lab::KernelEdit{kOnePass, text});
  capsule.step = 2;
  return capsule_from_text(capsule_text(capsule), "it");
}

ShellOptions capsule_opening(const std::filesystem::path& drafts = {}) {
  ShellOptions options;
  options.lesson = "online-softmax";
  options.tab = Tab::kernel;
  if (!drafts.empty()) options.drafts = drafts;
  return options;
}

ShellOptions opening_capsule(const std::filesystem::path& drafts = {}) {
  ShellOptions options = capsule_opening(drafts);
  options.capsule = std::make_shared<const Capsule>(capsule_with(theirs()));
  return options;
}

struct Opened {
  explicit Opened(const ShellOptions& options = opening_capsule()) : stage(options) {
    stage.frame();
  }
  std::string label(const std::string& id) const { return stage.part(id)["label"]; }
  std::string words() const { return label("capsule_kernel_words"); }
  std::string first_line() {
    stage.click("editor");
    stage.shell.press({EditorKey::home, false, true});
    stage.frame();
    return label("editor_line_1");
  }
  void run() {
    stage.shell.key(Key::run, false);
    stage.frame();
  }
  /// Requests so far, and how many of them were for the sandbox.
  std::pair<std::size_t, int> asked() const { return {stage.lab.requests.size(), stage.lab.boxed}; }
  void answer() {
    const lab::Request& request = stage.lab.requests.back();
    lab::Report report = tests::report_of(request.lesson, request.params);
    report.device.backend = "emulated";
    if (request.kernel) {
      report.kernel =
          lab::EditedKernel{kOnePass, lab::hash_of(request.kernel->text), "g++", 1, false, {}};
    }
    stage.lab.updates.push_back({stage.lab.requests.size(), std::move(report)});
    stage.frame();
  }

  Stage stage;
};

using Asked = std::pair<std::size_t, int>;

}  // namespace

TEST_CASE("a capsule's kernel is on show as the capsule's, and nothing runs", "[ui_shell]") {
  Opened opened;
  CHECK(opened.asked() == Asked{0, 0});
  CHECK(opened.stage.map()["step"] == 2);
  CHECK(contains(opened.label("device"), "Capsule of "));
  CHECK(contains(opened.label("device"), "The capsule's kernel · Emulated on CPU"));
  CHECK(opened.stage.part("capsule_kernel")["value"] == "not trusted");
  CHECK(contains(opened.words(), "no network, no GPU, none of your files"));
  CHECK(contains(opened.words(), "read, change and send anything you can"));
  CHECK(contains(opened.label("kernel_status"), "that the capsule holds"));
  CHECK_FALSE(opened.stage.has("own_editor"));  // it would make a draft of the user's of it
  CHECK_FALSE(opened.stage.has("own_draft"));
  CHECK(opened.first_line() == "// theirs");
  // It is saved with what is on show.
  REQUIRE(opened.stage.shell.capsule().kernel);
  CHECK(opened.stage.shell.capsule().kernel->text == theirs());
}

TEST_CASE("a capsule's kernel goes to the sandbox, edited or not, until it is trusted",
          "[ui_shell]") {
  Opened opened;
  opened.run();
  CHECK(opened.asked() == Asked{1, 1});
  CHECK(opened.stage.lab.requests.back().kernel->text == theirs());
  opened.answer();
  CHECK(contains(opened.label("device"), "The capsule's kernel, in a sandbox · "));
  opened.stage.shell.set_knobs({{"preset", std::string("rising")}});
  opened.stage.frame();
  CHECK(opened.asked() == Asked{2, 2});
  opened.answer();
  // A letter more, all of it replaced, undone, or begun anew: it is theirs.
  opened.first_line();
  opened.stage.shell.type('x');
  opened.run();
  CHECK(opened.asked() == Asked{3, 3});
  CHECK(opened.stage.lab.requests.back().kernel->text != theirs());
  opened.answer();
  opened.stage.shell.press({EditorKey::undo});
  opened.run();
  CHECK(opened.asked() == Asked{4, 4});
  opened.answer();
  opened.stage.click("start_kernel_over");
  opened.run();
  CHECK(opened.asked() == Asked{5, 5});
  CHECK(opened.stage.lab.requests.back().kernel->text == theirs());
  opened.answer();
  // Another lesson and back, with the knobs changed in between.
  opened.stage.shell.set_knobs({{"preset", std::string("worked-example")}});
  opened.stage.frame();
  CHECK(opened.asked() == Asked{6, 6});
  opened.stage.click("lesson_coalescing");
  const std::size_t others = opened.stage.lab.requests.size();
  opened.stage.click("lesson_online-softmax");
  opened.stage.frame();
  CHECK(opened.stage.lab.boxed == static_cast<int>(6 + opened.stage.lab.requests.size() - others));
  opened.answer();
  // Trusted it is run as the user's own is; that alone runs nothing.
  const auto before = opened.asked();
  opened.stage.click("trust_kernel");
  opened.stage.frame();
  CHECK(opened.asked() == before);
  CHECK(opened.stage.part("capsule_kernel")["value"] == "trusted");
  CHECK_FALSE(opened.stage.has("trust_kernel"));
  CHECK(contains(opened.words(), "with all your rights"));
  opened.run();
  CHECK(opened.asked() == Asked{before.first + 1, before.second});
  opened.answer();
  CHECK(contains(opened.label("device"), "The capsule's kernel · "));
  // The next capsule is not trusted because this one was.
  opened.stage.shell.open(capsule_with(theirs()));
  opened.stage.frame();
  CHECK(opened.stage.part("capsule_kernel")["value"] == "not trusted");
  opened.run();
  CHECK(opened.asked() == Asked{before.first + 2, before.second + 1});
}

TEST_CASE("the user's own draft is left alone by a capsule, and is one press away", "[ui_shell]") {
  const tests::TemporaryFolder folder;
  const auto file = folder.path() / "online-softmax" / "one_pass.cu";
  std::filesystem::create_directories(file.parent_path());
  const std::string mine = "// mine\n" + std::string(lab::asset(kOnePass));
  std::ofstream(file) << mine;
  Opened opened(opening_capsule(folder.path()));
  opened.first_line();
  for (const char c : std::string("// more of theirs")) opened.stage.shell.type(char32_t(c));
  opened.run();
  opened.answer();
  opened.stage.shell.keep_drafts();
  CHECK(file_text(file) == mine);
  opened.stage.click("own_draft");
  opened.stage.frame();
  CHECK_FALSE(opened.stage.has("capsule_kernel"));
  CHECK(opened.asked() == Asked{2, 1});  // the user's own needs no sandbox
  CHECK(opened.stage.lab.requests.back().kernel->text == mine);
  opened.answer();
  CHECK(opened.label("device").starts_with("Your kernel · "));
  CHECK(opened.first_line() == "// mine");
  // And back, with what was typed there.
  opened.stage.click("show_capsule_kernel");
  opened.stage.frame();
  CHECK(opened.asked() == Asked{3, 2});
  CHECK(contains(opened.stage.lab.requests.back().kernel->text, "// more of theirs"));
  opened.answer();
  opened.stage.click("original_kernel");
  opened.stage.frame();
  CHECK(opened.asked() == Asked{4, 2});
  CHECK_FALSE(opened.stage.lab.requests.back().kernel);
  opened.answer();
  CHECK(opened.stage.has("show_capsule_kernel"));
  opened.stage.click("edit_kernel");
  CHECK(opened.first_line() == "// mine");
  opened.stage.shell.keep_drafts();
  CHECK(file_text(file) == mine);
  CHECK(std::distance(std::filesystem::directory_iterator(file.parent_path()), {}) == 1);
}

TEST_CASE("without a sandbox a capsule's kernel is not run, and the tab says what to do",
          "[ui_shell]") {
  Opened opened;
  opened.stage.lab.no_sandbox = "bubblewrap is not installed (Debian: apt-get install bubblewrap)";
  opened.stage.frame();
  CHECK(contains(opened.words(), "not run: bubblewrap is not installed (Debian: apt-get install"));
  CHECK(contains(opened.words(), "--trust"));
  opened.run();
  CHECK(opened.asked() == Asked{0, 0});
  CHECK(contains(opened.stage.part("failure")["value"].get<std::string>(), "bubblewrap"));
  CHECK(contains(opened.label("kernel_status"), "bubblewrap"));
  opened.stage.click("trust_kernel");
  opened.run();
  CHECK(opened.asked() == Asked{1, 0});
  // Started with --trust.
  ShellOptions options = opening_capsule();
  options.trust = true;
  Opened trusted(options);
  CHECK(trusted.stage.part("capsule_kernel")["value"] == "trusted");
  trusted.run();
  CHECK(trusted.asked() == Asked{1, 0});
}

TEST_CASE("a capsule's kernel is not sent to another machine", "[ui_shell]") {
  ShellOptions options = opening_capsule();
  options.labs = {parse_lab("ssh:ada@gpu1")};
  Opened opened(options);
  opened.run();
  CHECK(opened.asked() == Asked{0, 0});
  CHECK(contains(opened.stage.part("failure")["value"].get<std::string>(), "not at ada@gpu1"));
  opened.stage.click("trust_kernel");
  opened.run();
  CHECK(opened.asked() == Asked{1, 0});
  CHECK(opened.stage.lab.labs.back() == 1);
}

TEST_CASE("of a capsule whose kernel is refused the picture opens, with the sentence",
          "[ui_shell]") {
  auto text = nlohmann::json::parse(capsule_text(capsule_with(theirs())));
  text["kernel"]["path"] = "/etc/passwd";
  ShellOptions options = capsule_opening();
  options.capsule = std::make_shared<const Capsule>(capsule_from_text(text.dump(), "the capsule"));
  Opened opened(options);
  CHECK(opened.stage.map()["step"] == 2);
  CHECK_FALSE(opened.stage.has("capsule_kernel"));
  CHECK(contains(opened.stage.map().dump(), "the kernel in the capsule is not opened"));
  CHECK(contains(opened.label("device"), "An edited kernel · "));
  opened.stage.shell.set_knobs({{"preset", std::string("rising")}});
  opened.stage.frame();
  CHECK(opened.asked() == Asked{1, 0});
  CHECK_FALSE(opened.stage.lab.requests.back().kernel);
}

TEST_CASE("a capsule without a kernel takes the place of one that brought one", "[ui_shell]") {
  Opened opened;
  REQUIRE(opened.stage.has("capsule_kernel"));
  opened.stage.shell.open(capsule_of(tests::report_of("online-softmax"), {}));
  opened.stage.frame();
  CHECK_FALSE(opened.stage.has("capsule_kernel"));
  CHECK_FALSE(opened.stage.has("show_capsule_kernel"));
  CHECK_FALSE(opened.stage.shell.capsule().kernel);
}
