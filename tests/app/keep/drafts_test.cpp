#include "app/keep/drafts.hpp"

#include <fstream>

#include "app/keep/own_editor.hpp"
#include "tests/app/child.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;
namespace fs = std::filesystem;

namespace {

constexpr const char* kDrafted = "kernels/memory/coalescing/access.cu";

DraftOf of(std::string_view original = "built in\n") {
  return {"coalescing", kDrafted, original};
}

void write(const fs::path& path, std::string_view text) {
  std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("a draft is in its file half a second after the first change, and comes back", "[keep]") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "coalescing" / "access.cu";
  {
    Drafts drafts(folder.path());
    CHECK_FALSE(drafts.load(of()));
    CHECK_FALSE(drafts.due_s());
    drafts.keep(of(), "one\n", 10);
    drafts.keep(of(), "two\n", 10.4);  // goes on typing
    CHECK(drafts.due_s() == 10.5);
    drafts.write_due(10.49);
    CHECK_FALSE(fs::exists(file));
    drafts.write_due(10.5);
    CHECK(file_text(file) == "two\n");
    CHECK_FALSE(drafts.due_s());
    drafts.keep(of(), "three\n", 20);  // and the window closes
  }
  CHECK(file_text(file) == "three\n");
  Drafts later(folder.path());
  const auto draft = later.load(of());
  REQUIRE(draft);
  CHECK(draft->text == "three\n");
  CHECK_FALSE(draft->of_other_build);
  // Of another text of the source it says so, also once it is typed on.
  CHECK(later.load(of("of the next build\n"))->of_other_build);
  later.keep(of("of the next build\n"), "four\n", 30);
  later.write();
  CHECK(later.load(of("of the next build\n"))->of_other_build);
  CHECK(later.take_remark().empty());
}

TEST_CASE("who starts over has the draft of before beside the new one", "[keep]") {
  const TemporaryFolder folder;
  Drafts drafts(folder.path());
  drafts.keep(of("old\n"), "mine\n", 1);
  drafts.write();
  drafts.start_over(of("new\n"), "new\n", 2);
  drafts.write();
  CHECK_FALSE(drafts.load(of("new\n")));  // the original is no draft
  CHECK(file_text(folder.path() / "coalescing" / "access.cu.before-1") == "mine\n");
  drafts.keep(of("new\n"), "mine again\n", 3);
  drafts.write();
  REQUIRE(drafts.load(of("new\n")));
  CHECK_FALSE(drafts.load(of("new\n"))->of_other_build);
}

TEST_CASE("what another program saves is seen, and never written over", "[keep]") {
  const TemporaryFolder folder;
  Drafts drafts(folder.path());
  const fs::path file = drafts.path(of());
  CHECK_FALSE(drafts.changed_outside(of()));
  drafts.keep(of(), "mine\n", 1);
  drafts.write();
  CHECK_FALSE(drafts.changed_outside(of()));
  write(file, "from the editor\n");
  CHECK(drafts.changed_outside(of()) == "from the editor\n");
  CHECK_FALSE(drafts.changed_outside(of()));  // once
  write(file, "saved meanwhile\n");
  drafts.keep(of(), "typed here\n", 2);
  drafts.write();
  CHECK(file_text(file) == "typed here\n");
  CHECK(file_text(file.string() + ".other-1") == "saved meanwhile\n");
  CHECK(contains(drafts.take_remark(), "access.cu.other-1"));
}

TEST_CASE("drafts that cannot be kept say so once, and nothing is thrown", "[keep]") {
  Drafts none(std::nullopt);
  none.keep(of(), "x", 1);
  CHECK_FALSE(none.due_s());
  CHECK_FALSE(none.load(of()));
  CHECK(none.path(of()).empty());
  const TemporaryFolder folder;
  write(folder.path() / "coalescing", "a file where the folder should be");
  Drafts drafts(folder.path());
  drafts.keep(of(), "x", 1);
  drafts.write();
  CHECK(contains(drafts.take_remark(), "the draft was not saved: "));
  drafts.keep(of(), "y", 2);
  drafts.write();
  CHECK(drafts.take_remark().empty());
  fs::remove(folder.path() / "coalescing");
  drafts.keep(of(), "z", 3);
  drafts.write();
  CHECK(file_text(drafts.path(of())) == "z");
  // A draft that grew beyond all measure is left where it is.
  write(drafts.path(of()), std::string(2 << 20, 'x'));
  CHECK_FALSE(drafts.load(of()));
  CHECK(contains(drafts.take_remark(), "larger"));
}

TEST_CASE("the user's editor is the one that the environment names", "[keep]") {
  const auto all = [](const std::string&) { return true; };
  const auto none = [](const std::string&) { return false; };
  const fs::path file = "/home/ada/with space.cu";
  using Words = std::vector<std::string>;
  CHECK(editor_command({"code --wait", "vi", ""}, file, all) == Words{"code", "--wait", file});
  CHECK(editor_command({"", "gedit", ""}, file, all) == Words{"gedit", file});
  CHECK(editor_command({"", "/usr/bin/vim -p", ""}, file, all) ==
        Words{"x-terminal-emulator", "-e", "/usr/bin/vim", "-p", file});
  CHECK(editor_command({"", "emacs -nw", "kitty"}, file, all) ==
        Words{"kitty", "-e", "emacs", "-nw", file});
  CHECK(editor_command({"emacs", "", ""}, file, all) == Words{"emacs", file});
  CHECK(editor_command({"", " ", ""}, file, all) == Words{"xdg-open", file});
  const auto refusal = [&](const EditorChoice& choice, const auto& is_there) {
    return error_of([&] { editor_command(choice, file, is_there); });
  };
  CHECK(contains(refusal({"", "", ""}, none), "set VISUAL or EDITOR"));
  CHECK(contains(refusal({"", "gedit", ""}, none), "$EDITOR names 'gedit', which is not in PATH"));
  const auto no_terminal = [](const std::string& name) { return name == "vim"; };
  CHECK(contains(refusal({"", "vim", ""}, no_terminal), "needs a terminal"));
}

TEST_CASE("a detached program runs in a session of its own and is forgotten when it ends",
          "[keep]") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "out";
  DetachedProgram program({"sh", "-c", "ps -o sid= -p $$ > '" + file.string() + "' || :"});
  CHECK(eventually([&] { return program.ended(); }));
  CHECK(program.ended());
  CHECK_THROWS_AS(DetachedProgram({"/no/such/editor", "x"}), Error);
}
