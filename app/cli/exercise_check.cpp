#include "app/cli/exercise_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <system_error>

#include "app/cli/interrupt.hpp"
#include "app/worker/ask.hpp"
#include "app/worker/sandbox.hpp"
#include "kernels/base/lab/race.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/workbench/guarded.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// The worker ends a run itself, after 10 seconds and with the line; this is for what it cannot end.
constexpr std::chrono::seconds kRunLimit{11}, kSanitizerLimit{100};
/// Compiling has its own limit; this ends a worker that never begins.
constexpr std::chrono::minutes kWholeLimit{5};
constexpr std::int64_t kMostSeed = 2147483647;

/// Gives a run up that takes longer than kRunLimit, not counting what comes before it.
class RunClock final : public lab::Progress {
 public:
  void report(double, std::string_view note) override {
    const bool compiling = note.find("compil") != std::string_view::npos;
    // A kernel that failed on a GPU is run again, for its line.
    const bool sanitizes = note == workbench::kSanitizing;
    const bool again = sanitizes || note == workbench::kEmulating;
    if (again) limit_ = sanitizes ? kSanitizerLimit : kRunLimit;
    if (compiling || before_run_ || again) since_ = Clock::now();
    before_run_ = compiling;
  }
  void wait(std::string_view) override { since_ = Clock::now(); }
  bool cancelled() const override { return Interrupt::pressed() || late(); }
  bool late() const { return !before_run_ && Clock::now() - since_ > limit_; }
  std::chrono::seconds limit() const { return limit_; }

 private:
  Clock::time_point since_ = Clock::now();
  std::chrono::seconds limit_ = kRunLimit;
  bool before_run_ = false;
};

/// Ends with Ctrl-C alone.
class Interruptible final : public lab::Progress {
 public:
  void report(double, std::string_view) override {}
  bool cancelled() const override { return Interrupt::pressed(); }
};

class Runner {
 public:
  Runner(const lab::Exercise& exercise, const std::string& kernel, const ExercisePlan& plan)
      : exercise_(exercise), kernel_(kernel), plan_(plan) {
    ProcessLabOptions options;
    options.program = plan.program;
    options.run_deadline = kWholeLimit;
    options.command_deadline = std::chrono::seconds(30);
    if (plan.sandboxed) options.address = sandboxed_lab(scratch_.path(), plan.program, true);
    lab_ = make_process_lab(std::move(options));
  }

  lab::Report run(const lab::Settings& settings, simt::ThreadOrder order) {
    lab::Request request;
    request.lesson = exercise_.lesson;
    request.params = settings;
    request.backend = plan_.backend;
    request.kernel = lab::KernelEdit{exercise_.source, kernel_};
    request.order = order;
    RunClock clock;
    try {
      return ask(lab_.get(), request, clock);
    } catch (const Cancelled&) {
      if (!clock.late() || Interrupt::pressed()) throw;
      throw Error(
          fmt::format("it took longer than {} seconds and was ended", clock.limit().count()),
          ExitCode::check_failed);
    }
  }

  lab::Report race(const lab::ExerciseSpeed& speed) {
    lab::Request request;
    request.lesson = exercise_.lesson;
    request.action = lab::Request::Action::bench;
    request.params[lab::kRaceParam] = lab::text_of({speed.id, speed.variant, speed.rung});
    request.backend = plan_.backend;
    request.kernel = lab::KernelEdit{exercise_.source, kernel_};
    Interruptible progress;
    return ask(lab_.get(), request, progress);
  }

 private:
  const lab::Exercise& exercise_;
  const std::string& kernel_;
  const ExercisePlan& plan_;
  ScratchFolder scratch_;
  std::unique_ptr<LabClient> lab_;  // ends before its folder goes
};

CheckedFile not_checked(const fs::path& file, const std::string& exercise, std::string why) {
  CheckedFile checked{file.string(), exercise, {}};
  checked.verdict.sentence = fmt::format("Not checked: {}.", why);
  checked.verdict.failed.emplace();
  checked.verdict.failed->what = std::move(why);
  return checked;
}

}  // namespace

lab::ExerciseVerdict check_kernel(const lab::Exercise& exercise, const std::string& kernel,
                                  const ExercisePlan& plan) {
  Runner runner(exercise, kernel, plan);
  std::random_device device;
  std::uniform_int_distribution<std::int64_t> seeds(0, kMostSeed);
  lab::ExerciseVerdict verdict = lab::judge(
      exercise, kernel, lesson(exercise.lesson).knobs(),
      [&](const lab::Settings& settings, simt::ThreadOrder order) {
        return runner.run(settings, order);
      },
      [&] { return seeds(device); });
  if (plan.backend != "cuda") return lab::leave_speed(exercise, std::move(verdict));
  return lab::judge_speed(exercise, std::move(verdict),
                          [&](const lab::ExerciseSpeed& speed) { return runner.race(speed); });
}

std::vector<fs::path> kernels_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code none;
    if (at->path().extension() == ".cu" && at->is_regular_file(none)) files.push_back(at->path());
  }
  if (error) {
    throw Error(fmt::format("the folder '{}' cannot be read: {}", folder.string(), error.message()),
                ExitCode::unavailable);
  }
  if (files.empty()) {
    throw Error(fmt::format(
        "there is no kernel (.cu) in '{}'; `tilestep exercise reset` writes one", folder.string()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string read_kernel(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) {
    throw Error(fmt::format("'{}' is no file", file.string()), ExitCode::unavailable);
  }
  const auto size = fs::file_size(file, error);
  if (!error && size > kLongestKernel) {
    throw Error(
        fmt::format("'{}' has {} bytes; allowed: up to {}", file.string(), size, kLongestKernel));
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (error || !stream) {
    throw Error(fmt::format("'{}' cannot be read", file.string()), ExitCode::unavailable);
  }
  return text;
}

CheckedFile check_file(const fs::path& file, const std::string& exercise,
                       const ExercisePlan& plan) {
  std::string text, id = exercise;
  const lab::Exercise* asked = nullptr;
  try {
    text = read_kernel(file);
    if (id.empty()) id = lab::exercise_id_of(text);
    if (id.empty()) {
      return not_checked(file, "",
                         "its first line names no exercise; allowed: '// tilestep exercise "
                         "LESSON/NAME', or --exercise LESSON/NAME");
    }
    asked = &lab::exercise(id);
  } catch (const Error& error) {
    return not_checked(file, id, error.what());
  }
  return {file.string(), id, check_kernel(*asked, text, plan)};
}

nlohmann::json to_json(const CheckedFile& checked) {
  const lab::ExerciseVerdict& verdict = checked.verdict;
  nlohmann::json goals = nlohmann::json::array();
  for (const lab::GoalResult& goal : verdict.goals) {
    goals.push_back({{"goal", goal.text}, {"value", nullptr}, {"ok", goal.ok}});
    if (goal.value) goals.back()["value"] = *goal.value;
    if (!goal.judged) goals.back()["ok"] = nullptr;
  }
  nlohmann::json failed;
  if (verdict.failed) {
    const lab::ExerciseFailure& failure = *verdict.failed;
    failed = {{"kind", name_of(failure.kind)},
              {"checks", failure.checks},
              {"case", failure.case_name},
              {"order", name_of(failure.order)},
              {"other_order_passes", failure.other_order_passes},
              {"value", lab::to_json(lab::KnobValue(failure.value))},
              {"bound", lab::to_json(lab::KnobValue(failure.bound))},
              {"line", failure.line}};
  }
  return {{"file", checked.file},     {"exercise", checked.exercise},
          {"ok", verdict.ok},         {"sentence", lab::shown(verdict.sentence)},
          {"hint", verdict.hint},     {"failed", std::move(failed)},
          {"goal", std::move(goals)}, {"runs", verdict.runs}};
}

}  // namespace tilestep::app
