#include <fmt/format.h>
#include <imgui.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/cli/bench_parts.hpp"
#include "app/cli/output.hpp"
#include "app/file.hpp"
#include "app/window/canvas.hpp"
#include "app/window/frame_pace.hpp"
#include "app/worker/lab_set.hpp"
#include "kernels/catalog.hpp"
#include "scenes/ui/context.hpp"

namespace tilestep::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRuns = 5;                       ///< of which the middle counts
constexpr std::chrono::minutes kPatience{6};   ///< nvcc may take five
constexpr std::chrono::milliseconds kLook{4};  ///< between two looks for an answer

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// What one press of Ctrl+Enter led to.
struct Press {
  double picture_ms = 0;  ///< until the frame that shows it was built
  double longest_frame_ms = 0;
  KernelRun run;
};

/// A window as the user has it, with a worker of its own; of its frames all but what OpenGL draws.
class Bench {
 public:
  Bench(const std::string& program, const std::string& lesson, const std::string& backend)
      : lab_(make_labs(options_of(program), {})), shell_(*lab_, shell_of(lesson, backend)) {
    ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;  // as OpenGL's has
    ImGui::GetIO().MousePos = {-1e6f, -1e6f};
    wait([&] { return shell_.has_report(); });
    shell_.edit_kernel();
    frame();
  }

  /// Changes the source by a blank, and runs it.
  Press press() {
    if (!shell_.type(U' ')) throw Error("the kernel's editor did not open", ExitCode::unavailable);
    longest_ms_ = 0;
    const auto start = Clock::now();
    shell_.key(Key::run, false);
    pace_.input();
    std::optional<KernelRun> run;
    wait([&] {
      run = shell_.kernel_run();
      return run.has_value();
    });
    frame();
    if (!run->failure.empty()) throw Error(run->failure, ExitCode::unavailable);
    return {ms_since(start), longest_ms_, *run};
  }

 private:
  static ProcessLabOptions options_of(const std::string& program) {
    ProcessLabOptions options;
    options.program = program;
    return options;
  }
  static ShellOptions shell_of(const std::string& lesson, const std::string& backend) {
    ShellOptions options;
    options.lesson = lesson;
    options.backend = backend;
    options.tab = Tab::kernel;
    return options;
  }

  /// As the window's loop does: frames when they are due, and between them nothing.
  template <class Until>
  void wait(Until until) {
    const auto start = Clock::now();
    while (true) {
      if (shell_.update()) pace_.news();
      if (until()) return;
      if (Clock::now() - start > kPatience) {
        throw Error("no answer within six minutes", ExitCode::unavailable);
      }
      const Motion motion{shell_.animating(), true, shell_.working(), shell_.timing()};
      if (pace_.next_in_s(seconds(), motion).value_or(1) <= 0) {
        pace_.drawn(seconds());
        frame();
      } else {
        std::this_thread::sleep_for(kLook);
      }
    }
  }

  void frame() {
    const auto start = Clock::now();
    if (shell_.prepare_fonts(1, {kBenchWidth, kBenchHeight})) {
      unsigned char* pixels = nullptr;
      int width = 0, height = 0;
      ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
    }
    settle(shell_, {kBenchWidth, kBenchHeight}, 1);
    longest_ms_ = std::max(longest_ms_, ms_since(start));
  }

  double seconds() const { return ms_since(start_) / 1e3; }

  const ImGuiScope imgui_;
  const Clock::time_point start_ = Clock::now();
  std::unique_ptr<LabClient> lab_;
  Shell shell_;
  FramePace pace_;
  double longest_ms_ = 0;
};

nlohmann::json measure(const EditBench& what, const std::string& lesson,
                       const std::string& backend) {
  Bench bench(what.program, lesson, backend);
  const Press first = bench.press();  // it may make the precompiled header, and warms caches
  std::vector<double> fresh, compile, longest;
  KernelRun run;
  for (int i = 0; i < kRuns; ++i) {
    const Press press = bench.press();
    run = press.run;
    if (!run.kernel || run.kernel->cached) {
      throw Error("a kernel that should have been compiled was found", ExitCode::unavailable);
    }
    fresh.push_back(press.picture_ms);
    compile.push_back(run.kernel->compile_ms);
    longest.push_back(press.longest_frame_ms);
  }
  return {{"lesson", lesson},
          {"source", run.path},
          {"backend", backend},
          {"device", run.device},
          {"compiler", run.kernel->compiler},
          {"first_ms", first.picture_ms},
          {"fresh_ms", fresh},
          {"picture_ms", middle(fresh)},
          {"compile_ms", middle(compile)},
          {"longest_frame_ms", *std::max_element(longest.begin(), longest.end())}};
}

}  // namespace

BenchPart bench_edits(const EditBench& what) {
  // Nothing is found of what was compiled before, and nothing of this is kept.
  const ScratchFolder scratch;
  ::setenv("TILESTEP_CACHE", scratch.path().c_str(), 1);
  BenchPart part;
  part.table = {
      "edits",
      fmt::format("From Ctrl+Enter to the picture: an edited kernel compiled and run, median of "
                  "{}, {} processors",
                  kRuns, std::thread::hardware_concurrency()),
      {{"lesson", "lesson", "", -1},
       {"source", "source", "", -1},
       {"device", "ran on", "", -1},
       {"picture", "picture", "s", 2},
       {"compile", "compiling", "s", 2},
       {"first", "the first", "s", 2},
       {"frame", "longest frame", "ms", 1}},
      {}};
  nlohmann::json all = nlohmann::json::array();
  TerminalProgress progress;
  for (const std::string& backend : what.backends) {
    for (const lab::Lesson* lesson : lessons()) {
      const std::string& id = lesson->info().id;
      const bool chosen =
          what.lessons.empty() || std::count(what.lessons.begin(), what.lessons.end(), id) > 0;
      if (!chosen) continue;
      progress.report(0, fmt::format("{}, {}", id, backend));
      const nlohmann::json one = measure(what, id, backend);
      const std::string source = one.at("source");
      part.table.rows.push_back(
          {id, source.substr(source.rfind('/') + 1), one.at("device").get<std::string>(),
           one.at("picture_ms").get<double>() / 1e3, one.at("compile_ms").get<double>() / 1e3,
           one.at("first_ms").get<double>() / 1e3, one.at("longest_frame_ms").get<double>()});
      all.push_back(one);
    }
  }
  part.json = {{"processors", std::thread::hardware_concurrency()}, {"edits", std::move(all)}};
  return part;
}

}  // namespace tilestep::app
