// What a user may write into a kernel, written into it in a real window: each time one sentence, a window that draws on,
// and a next run that is right.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/catch.hpp"
#include "tests/faults/case.hpp"
#include "tests/faults/faulty_window.hpp"
#include "tests/part.hpp"
#include "tests/paths.hpp"
#include "tests/skip.hpp"

using namespace tilestep::tests;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

constexpr const char* kSource = "kernels/attention/online_softmax/one_pass.cu";
constexpr std::string_view kLine = "float o_new = times<Format>(o, rescale);";

/// The source with `before` put before one of its lines.
std::string edited_with(const std::string& before) {
  std::string text = file_text(std::filesystem::path(tilestep::tests::paths::kSource) / kSource);
  const std::size_t at = text.find(kLine);
  REQUIRE(at != std::string::npos);
  return text.insert(at, before);
}

std::string nonsense() {
  std::string text = edited_with("");
  for (int line = 0; line < 2000; ++line) text += "nonsense_" + std::to_string(line) + " x;\n";
  return text;
}

struct WrongKernel {
  const char* name;
  std::string text;
  const char* says;
};
std::vector<WrongKernel> all_wrong() {
  const std::string other = "kernels/matmul/tiling/shared_tile.cu";
  return {
      {"a loop without an end", edited_with("for (volatile int turn = 0; turn < 1;) turn = 0; "),
       "still runs after 10 seconds"},
      {"a wild pointer", edited_with("*reinterpret_cast<volatile int*>(0x123456) = 1; "),
       "0x123456"},
      {"2000 lines that do not compile", nonsense(), "does not compile: line "},
      {"a system file", "#include \"/etc/passwd\"\n" + edited_with(""), "does not compile"},
      {"an empty file", "\n", "is empty"},
      {"another lesson's kernel",
       file_text(std::filesystem::path(tilestep::tests::paths::kSource) / other),
       "does not compile"}};
}

/// The window with its editor open, whose text another program writes.
class EditedWindow {
 public:
  explicit EditedWindow(FaultyWindow& window)
      : window_(window),
        draft_(window.home() / ".local/state/tilestep/drafts/online-softmax/one_pass.cu") {
    window_->press("k");
    REQUIRE(window_->click_on("edit_kernel"));
    REQUIRE(window_->click_on("own_editor"));
    REQUIRE(eventually([&] { return std::filesystem::exists(draft_); }));
    window_->press("Escape");  // the keys are the picture's again
    REQUIRE(eventually([&] { return window_->value("editor").empty(); }));
  }
  /// It runs then by itself.
  void save(const std::string& text) {
    const std::filesystem::path beside = draft_.string() + ".new";
    std::ofstream(beside, std::ios::binary) << text;
    std::filesystem::rename(beside, draft_);
  }
  /// Runs a right kernel, and says what is on show then.
  json run_right() {
    save(edited_with("/* " + std::to_string(++runs_) + " */ "));
    REQUIRE(eventually(
        [&] {
          return !window_->has("failure") &&
                 lower(window_->label("device")).starts_with("your kernel");
        },
        60s));
    json shown;
    REQUIRE(eventually([&] { return !(shown = window_.on_show()).is_null(); }, 40s));
    return shown;
  }

 private:
  FaultyWindow& window_;
  std::filesystem::path draft_;
  int runs_ = 0;
};

}  // namespace

TEST_CASE(
    "a window draws on whatever is written into its kernel, says what it was, and its next run is "
    "right",
    "[fault_edits]") {
  if (!can_inject()) return;
  if (!has_program("g++") && !has_program("clang++") && !has_program("c++")) {
    return skip("no kernel is edited: there is no compiler here");
  }
  const auto display = make_display();
  if (!display) return;
  ::setenv("VISUAL", "true", 1);
  FaultyWindow window(*display);
  ::unsetenv("VISUAL");
  EditedWindow edited(window);
  const json right = edited.run_right();  // the first one waits for more than the others
  double good_ms = 1e9;
  for (int tries = 0; tries < 3 && good_ms > 100; ++tries) {
    window.forget_gap();
    CHECK(edited.run_right() == right);
    REQUIRE(window.walks());
    good_ms = std::min(good_ms, window.longest_gap_ms());
  }
  // A window that waits for the compiler or the run stands still for seconds; a loaded machine alone costs a tenth of one.
  const double most_ms = std::max(1000.0, 10 * good_ms);
  std::printf("a right kernel: %.0f ms\n", good_ms);
  Part part("kernels that are wrong", 3);
  for (const WrongKernel& wrong : all_wrong()) {
    if (part.skips()) continue;
    INFO(wrong.name);
    double gap_ms = 0;
    for (int tries = 0; tries < 3; ++tries) {  // others may have had the processors
      window.forget_gap();
      edited.save(wrong.text);
      CHECK(eventually([&] { return window->has("failure"); }, 60s));
      const std::string sentence = window->value("failure");
      INFO("on screen: " << sentence);
      CHECK(contains(sentence, wrong.says));
      CHECK(sentence.size() < 600);
      CHECK(window.walks());
      gap_ms = window.longest_gap_ms();
      CHECK(edited.run_right() == right);
      CHECK(window->program().alive());
      if (gap_ms <= most_ms) break;
    }
    std::printf("%s: %.0f ms\n", wrong.name, gap_ms);
    CHECK(gap_ms <= most_ms);
  }
}
