// The whole window over a real worker, offscreen, for as long as one wants: knobs, steps, lessons, tabs, while
// the worker is killed again and again. What was asked for comes, and nothing is left behind.
//
// TILESTEP_SOAK in the environment says how many actions there are.
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <vector>

#include "app/keep/capsule.hpp"
#include "app/shell/shell.hpp"
#include "app/window/canvas.hpp"
#include "app/worker/lab_client.hpp"
#include "kernels/answer.hpp"
#include "kernels/catalog.hpp"
#include "tests/app/child.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace std::chrono_literals;

namespace {

const ImVec2 kSize = {1280, 720};
constexpr int kKillEvery = 1000, kWaitEvery = 40, kCompareEvery = 500, kSamples = 20;

/// Enough of them that each lesson has been seen by the time that sizes are compared.
int actions_wanted() {
  const char* named = std::getenv("TILESTEP_SOAK");
  const int enough = 400 * static_cast<int>(tilestep::lessons().size());
  return named == nullptr ? enough : std::max(1000, std::atoi(named));
}

std::size_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// Bytes of this process in memory, without what the allocator merely keeps.
double resident_mib() {
  ::malloc_trim(0);
  std::size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of.at(of.size() / 2);
}

std::unique_ptr<LabClient> process_lab() {
  ProcessLabOptions options;
  options.program = tilestep::tests::paths::kProgram;
  options.run_deadline = 120s;
  options.bench_deadline = 30s;  // one may be started by the space bar
  return make_process_lab(options);
}

/// Somebody at the window who never rests.
class User {
 public:
  explicit User(unsigned seed) : random_(seed), lab_(process_lab()), shell_(*lab_, options()) {
    ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;  // as OpenGL's has
    if (shell_.prepare_fonts(1, kSize)) upload_fonts();
    settle();
  }

  void act(int number) {
    switch (below(20)) {
      case 0:
        key({Key::digit_1, Key::digit_2, Key::digit_3, Key::digit_4, Key::digit_5, Key::up,
             Key::down});
        break;
      case 1:
        key({Key::d, Key::m, Key::k, Key::g, Key::l, Key::bracket_left, Key::bracket_right});
        break;
      case 2:
        key({Key::r, Key::b, Key::t, Key::p, Key::question, Key::escape, Key::find, Key::n,
             Key::tab, Key::space});
        break;
      case 3:
        shell_.key(Key::escape, false);
        break;
      case 4:
        ImGui::GetIO().MousePos = {static_cast<float>(below(1280)), static_cast<float>(below(720))};
        break;
      case 5:
      case 6:
      case 7:
      case 8:
      case 9:
      case 10:
        turn_a_knob();
        break;
      default:
        key({Key::right, Key::right, Key::right, Key::left, Key::page_down, Key::page_up,
             Key::period, Key::comma, Key::home, Key::end});
    }
    if (below(2) == 0) frame();  // as in a window, what happens between two frames comes together
    if (number % kKillEvery == kKillEvery - 1) kill_worker();
    if (number % kWaitEvery == kWaitEvery - 1) settle();
    if (number % kCompareEvery == kCompareEvery - 1) compare();
  }

  /// Until what was asked for is there.
  void settle() {
    REQUIRE(tests::eventually(
        [&] {
          shell_.update();
          return !shell_.update_due_s() && !shell_.working();
        },
        240s));
    shell_.update();
    frame();
  }

  /// The same state each time, so that the sizes of two moments can be compared: all lessons at their
  /// defaults, nothing open.
  void rest() {
    for (const Key lesson :
         {Key::digit_1, Key::digit_2, Key::digit_3, Key::digit_4, Key::digit_5}) {
      for (int n = 0; n < 3; ++n) shell_.key(Key::escape, false);
      shell_.key(lesson, false);
      settle();
      shell_.key(Key::r, false);
      settle();
      restore();
      settle();
    }
  }

  int kills = 0, compared = 0;

 private:
  static ShellOptions options() {
    ShellOptions options;
    options.backend = "emulated";
    options.still = true;
    return options;
  }
  static void upload_fonts() {
    unsigned char* pixels = nullptr;
    int width = 0, height = 0;
    ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
  }

  int below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  void key(std::initializer_list<Key> keys) {
    shell_.key(*(keys.begin() + below(static_cast<int>(keys.size()))), below(4) == 0);
  }

  void frame() {
    shell_.update();
    if (shell_.prepare_fonts(1, kSize)) upload_fonts();
    app::settle(shell_, kSize, 1);
  }

  /// A knob of the lesson on show at one of its values, numbers staying small.
  void turn_a_knob() {
    const lab::Knobs& knobs = tilestep::lesson(shell_.lesson()).knobs();
    const lab::Knob& knob =
        knobs.all()[static_cast<std::size_t>(below(static_cast<int>(knobs.all().size())))];
    lab::KnobValue value = knob.initial;
    switch (knob.kind) {
      case lab::KnobKind::integer:
        value = static_cast<std::int64_t>(std::min(knob.max, knob.min + below(64)));
        break;
      case lab::KnobKind::real:
        value = std::min(knob.max, knob.min + below(100) / 100.0);
        break;
      case lab::KnobKind::toggle:
        value = below(2) == 0;
        break;
      case lab::KnobKind::choice:
        value =
            knob.choices[static_cast<std::size_t>(below(static_cast<int>(knob.choices.size())))];
        break;
      case lab::KnobKind::text:
        break;
    }
    shell_.set_knobs({{knob.id, value}});
  }

  void kill_worker() {
    for (const pid_t child : tests::children_of(::getpid())) {
      ::kill(child, SIGKILL);
      ++kills;
    }
  }

  /// The run on show is the one that the same settings give here; after a kill it comes when it is asked for
  /// again.
  void compare() {
    shell_.key(Key::escape, false);
    settle();
    shell_.key(Key::escape, false);
    for (int tries = 0; tries < 2 && !matches(); ++tries) {
      restore();
      settle();
    }
    CHECK(matches());
    ++compared;
  }

  bool matches() {
    const std::string lesson = shell_.lesson();
    if (!shell_.has_report()) return false;
    const lab::Report shown = shell_.capsule().report;
    lab::NoProgress unwatched;
    const lab::Report here =
        answer({lesson, shown.params, lab::Request::Action::run, "emulated"}, unwatched);
    return lab::to_json(shown) == lab::to_json(here);
  }

  /// All knobs at their defaults: a run that no lesson refuses.
  void restore() { shell_.set_knobs(tilestep::lesson(shell_.lesson()).knobs().defaults()); }

  std::mt19937 random_;
  ImGuiScope imgui_;
  std::unique_ptr<LabClient> lab_;
  Shell shell_;
};

}  // namespace

TEST_CASE("a window at work for long keeps its size, and leaves nothing behind", "[soak]") {
  const int actions = actions_wanted();
  const std::size_t files_before = open_files();
  REQUIRE(tests::children_of(::getpid()).empty());
  std::vector<double> early, late;
  int kills = 0, compared = 0;
  {
    User user(13);
    for (int n = 0; n < actions; ++n) {
      user.act(n);
      if ((n + 1) % (actions / kSamples) != 0) continue;
      user.rest();
      const double mib = resident_mib();
      const double share = (n + 1.0) / actions;
      if (share > 0.2 && share <= 0.45) early.push_back(mib);
      if (share > 0.75) late.push_back(mib);
      std::printf("%d actions, %d kills, %.1f MiB\n", n + 1, user.kills, mib);
      std::fflush(stdout);
    }
    kills = user.kills;
    compared = user.compared;
  }
  const double before = median(early), after = median(late);
  std::printf("%d actions, %d kills, %d runs compared: %.1f MiB early, %.1f MiB late (%+.1f %%)\n",
              actions, kills, compared, before, after, 100 * (after / before - 1));
  // What is seen for the first time takes its place, for some thousand actions.
  CHECK(after <= before * (actions < 20000 ? 1.2 : 1.05));
  CHECK(open_files() == files_before);
  CHECK(tests::children_of(::getpid()).empty());
  CHECK(kills >= actions / kKillEvery);
  CHECK(compared == actions / kCompareEvery);
}
