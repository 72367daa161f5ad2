#include "app/cli/exercise_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "app/cli/inspect_run.hpp"
#include "app/cli/interrupt.hpp"
#include "app/keep/place.hpp"
#include "app/worker/ask.hpp"
#include "app/worker/sandbox.hpp"
#include "kernels/base/inspect/run.hpp"
#include "kernels/base/lab/assets.hpp"
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
/// No report of a lesson is as long.
constexpr std::size_t kLongestAnswer = std::size_t{64} << 20;
constexpr std::int64_t kMostSeed = 2147483647;
/// Folders in folders that a class's may have.
constexpr int kDeepest = 16;
constexpr std::chrono::milliseconds kLook{50};

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
  template <class Ask>
  static auto in_time(Ask asks) {
    RunClock clock;
    try {
      return asks(clock);
    } catch (const Cancelled&) {
      if (!clock.late() || Interrupt::pressed()) throw;
      throw Error(
          fmt::format("it took longer than {} seconds and was ended", clock.limit().count()),
          ExitCode::check_failed);
    }
  }

 public:
  Runner(const lab::Exercise& exercise, const std::string& kernel, const ExercisePlan& plan)
      : exercise_(exercise), kernel_(kernel), plan_(plan) {
    lab_ = make_lab();
  }

  /// What the kernel's own process reports, which the kernel may have changed to its liking, and if that is good what
  /// another makes of its outputs, in which no line of the kernel runs.
  std::vector<lab::Report> run(const lab::Settings& settings, simt::ThreadOrder order) {
    lab::Request request;
    request.lesson = exercise_.lesson;
    request.params = settings;
    request.backend = plan_.backend;
    request.kernel = lab::KernelEdit{exercise_.source, kernel_};
    request.order = order;
    if (plan_.backend != "emulated") {
      return {in_time([&](RunClock& clock) { return ask(lab_.get(), request, clock); })};
    }
    LabUpdate told =
        in_time([&](RunClock& clock) { return ask_evidence(*lab_, request, "", clock); });
    std::vector<lab::Report> reports = {std::get<lab::Report>(std::move(told.what))};
    if (!reports.front().ok()) return reports;
    if (told.evidence.empty()) {
      throw Error("the kernel's process did not report its outputs", ExitCode::check_failed);
    }
    request.kernel.reset();
    if (!witness_) witness_ = make_lab();
    const LabUpdate seen = in_time([&](RunClock& clock) {
      return ask_evidence(*witness_, request, std::move(told.evidence), clock);
    });
    reports.push_back(std::get<lab::Report>(seen.what));
    return reports;
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
  std::unique_ptr<LabClient> make_lab() const {
    ProcessLabOptions options;
    options.program = plan_.program;
    options.run_deadline = kWholeLimit;
    options.command_deadline = std::chrono::seconds(30);
    options.longest_message = kLongestAnswer;
    if (plan_.sandboxed) options.address = sandboxed_lab(plan_.program, true);
    return make_process_lab(std::move(options));
  }

  const lab::Exercise& exercise_;
  const std::string& kernel_;
  const ExercisePlan& plan_;
  std::unique_ptr<LabClient> lab_;
  std::unique_ptr<LabClient> witness_;  ///< sandboxed too: outputs may be made to break it
};

lab::ExerciseVerdict refusal_of(std::string why) {
  lab::ExerciseVerdict verdict;
  verdict.sentence = fmt::format("Not checked: {}.", why);
  verdict.failed.emplace();
  verdict.failed->what = std::move(why);
  return verdict;
}

CheckedFile not_checked(const fs::path& file, const std::string& exercise, std::string why) {
  return {file.string(), exercise, refusal_of(std::move(why))};
}

struct Checked {
  lab::ExerciseVerdict verdict;
  double seconds;
};

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

/// A file as it is handed in.
struct Submission {
  std::string id, text;
  const lab::Exercise* asked = nullptr;  ///< null: it is not checked, and `why_not` says why
  std::string why_not;
};

Submission submission_of(const fs::path& file, const std::string& exercise) {
  Submission one;
  one.id = exercise;
  try {
    one.text = read_source(file);
    if (one.id.empty()) one.id = lab::exercise_id_of(one.text);
    if (one.id.empty()) {
      one.why_not =
          "its first line names no exercise; allowed: '// tilestep exercise LESSON/NAME', or "
          "--exercise LESSON/NAME";
    } else {
      one.asked = &lab::exercise(one.id);
    }
  } catch (const Error& error) {
    one.why_not = error.what();
  }
  return one;
}

lab::ExerciseVerdict check_one(const lab::Exercise& exercise, const std::string& text,
                               const ExercisePlan& plan) {
  return exercise.is_program() ? check_program(exercise, text, plan)
                               : check_kernel(exercise, text, plan);
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
      [&] { return seeds(device); }, plan.until);
  if (plan.backend != "cuda") return lab::leave_speed(exercise, std::move(verdict));
  return lab::judge_speed(exercise, std::move(verdict),
                          [&](const lab::ExerciseSpeed& speed) { return runner.race(speed); });
}

lab::ExerciseVerdict check_program(const lab::Exercise& exercise, const std::string& text,
                                   const ExercisePlan& plan) {
  const fs::path name = exercise.name + ".cu";
  const auto stop = [] { return Interrupt::pressed(); };
  ProgramPlan run{plan.program, name.string(), {}};
  run.trust = !plan.sandboxed;
  run.stop = stop;
  const std::string_view solved = lab::asset(exercise.program);
  lab::ExerciseVerdict verdict = lab::judge_program(exercise, text, [&](std::string_view source) {
    if (plan.sandboxed && source != solved) return run_in_sandbox(run, source);
    const workbench::Compiled compiled =
        inspect::compile_program(name, source, {.tell = {}, .stop = stop});
    return run_compiled(run, compiled.folder / workbench::kHostModule);
  });
  if (plan.backend == "cuda") {
    verdict.sentence += " A whole program is judged under emulation, with --backend cuda too.";
  }
  return verdict;
}

std::vector<fs::path> kernels_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  constexpr auto kSkips = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(folder, kSkips, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code none;
    if (at.depth() == kDeepest) at.disable_recursion_pending();
    const bool file = fs::is_regular_file(at->symlink_status(none));
    if (at->path().extension() == ".cu" && file) files.push_back(at->path());
  }
  if (files.empty()) {
    throw Error(fmt::format(
        "there is no kernel (.cu) in '{}'; `tilestep exercise reset` writes one", folder.string()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

CheckedFile check_file(const fs::path& file, const std::string& exercise,
                       const ExercisePlan& plan) {
  const Submission one = submission_of(file, exercise);
  if (one.asked == nullptr) return not_checked(file, one.id, one.why_not);
  const Clock::time_point began = Clock::now();
  lab::ExerciseVerdict verdict = check_one(*one.asked, one.text, plan);
  return {file.string(), one.id, std::move(verdict), seconds_since(began), one.text};
}

void check_class(const std::vector<fs::path>& files, const std::string& exercise,
                 const ExercisePlan& plan, const std::function<void(const CheckedFile&)>& take) {
  std::vector<Submission> all;
  std::map<std::pair<std::string, std::string>, std::size_t> first;  // by exercise and text
  std::vector<std::size_t> checked_as, to_check;
  for (const fs::path& file : files) {
    all.push_back(submission_of(file, exercise));
    const auto found = first.try_emplace({all.back().id, all.back().text}, all.size() - 1).first;
    checked_as.push_back(all.back().asked == nullptr ? all.size() - 1 : found->second);
    if (checked_as.back() == all.size() - 1) to_check.push_back(all.size() - 1);
  }
  std::vector<std::promise<Checked>> verdicts(files.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < to_check.size(); i = next++) {
      const Submission& one = all[to_check[i]];
      std::promise<Checked>& verdict = verdicts[to_check[i]];
      const Clock::time_point began = Clock::now();
      try {
        lab::ExerciseVerdict found =
            one.asked == nullptr ? refusal_of(one.why_not) : check_one(*one.asked, one.text, plan);
        verdict.set_value({std::move(found), seconds_since(began)});
      } catch (const Cancelled&) {
        next = to_check.size();
        verdict.set_exception(std::current_exception());
      } catch (const std::exception& error) {
        verdict.set_value({refusal_of(error.what()), seconds_since(began)});
      }
    }
  };
  // A GPU is timed on by one at a time.
  const unsigned cores =
      plan.backend == "cuda" ? 1 : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::future<void>> running;
  for (std::size_t i = 0; i < std::min<std::size_t>(cores, to_check.size()); ++i) {
    running.push_back(std::async(std::launch::async, work));
  }
  std::vector<std::shared_future<Checked>> results;
  for (auto& verdict : verdicts) results.push_back(verdict.get_future().share());
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto& result = results[checked_as[i]];
    while (result.wait_for(kLook) != std::future_status::ready) {
      if (Interrupt::pressed()) throw Cancelled();
    }
    take({files[i].string(), all[i].id, result.get().verdict, result.get().seconds, all[i].text});
  }
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
  return {{"file", checked.file},      {"exercise", checked.exercise},
          {"ok", verdict.ok},          {"sentence", lab::shown(verdict.sentence)},
          {"hint", verdict.hint},      {"failed", std::move(failed)},
          {"goal", std::move(goals)},  {"runs", verdict.runs},
          {"seconds", checked.seconds}};
}

}  // namespace tilestep::app
