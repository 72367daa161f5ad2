#include "app/cli/site.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/cli/output.hpp"
#include "app/cli/site/site_page.hpp"
#include "app/file.hpp"
#include "app/window/window.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;

/// More at once take memory and no less time: the longest lesson decides.
constexpr unsigned kMostWorkers = 8;

/// The next lesson to be made, for all workers: memory that a forked process shares.
class Counter {
 public:
  Counter() {
    void* memory = ::mmap(nullptr, sizeof(std::atomic<std::size_t>), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw Error("there is no memory left", ExitCode::unavailable);
    next_ = new (memory) std::atomic<std::size_t>(0);
  }
  ~Counter() { ::munmap(next_, sizeof *next_); }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  std::size_t take() { return next_->fetch_add(1); }

 private:
  std::atomic<std::size_t>* next_;
};

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Makes lessons until none is left, each into files of the scratch folder. Runs in a process of its own: ImGui's
/// context and the emulator are there once a process.
void work(const SiteRequest& request, Counter& counter, const fs::path& scratch) {
  SiteOptions options = request.options;
  std::unique_ptr<LabClient> lab;
  if (request.lab.elsewhere()) lab = make_lab(request.lab, request.program);
  options.lab = lab.get();
  const SvgPress press(1280, 800);
  lab::NoProgress progress;
  for (std::size_t n = counter.take(); n < request.lessons.size(); n = counter.take()) {
    const lab::Lesson& lesson = *request.lessons[n];
    const LessonSite made = make_lesson_site(lesson, press, options, progress);
    const std::string& id = lesson.info().id;
    write_file(scratch / (id + ".body"), made.body);
    write_file(scratch / (id + ".card"), made.card);
    for (const std::string& missing : made.missing) remark(missing);
    print_line(fmt::format("{}: {} runs, {} pictures", id, made.runs, made.pictures));
    flush_output();
  }
}

/// In a child: does the work, and ends it. Errors are said here; the code tells the parent.
[[noreturn]] void work_and_end(const SiteRequest& request, Counter& counter,
                               const fs::path& scratch) {
  ::signal(SIGINT, SIG_DFL);
  ExitCode code = ExitCode::good;
  try {
    work(request, counter, scratch);
  } catch (const Error& error) {
    remark(error.what());
    code = error.code();
  } catch (const std::exception& error) {
    remark(error.what());
    code = ExitCode::unavailable;
  }
  std::fflush(nullptr);
  ::_exit(static_cast<int>(code));
}

/// Waits for all; the first code that is not good, or what a signal says.
int wait_for(const std::vector<pid_t>& workers) {
  int worst = 0;
  for (const pid_t worker : workers) {
    int status = 0;
    while (::waitpid(worker, &status, 0) < 0 && errno == EINTR) {
      if (Interrupt::pressed()) ::kill(worker, SIGTERM);
    }
    const int code =
        WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(ExitCode::unavailable);
    if (WIFSIGNALED(status) && !Interrupt::pressed()) {
      remark(fmt::format("a worker ended by signal {}", WTERMSIG(status)));
    }
    if (worst == 0) worst = code;
  }
  return worst;
}

}  // namespace

int write_site(const SiteRequest& request) {
  const auto page_of = [&](const lab::Lesson& lesson) {
    return request.out / lesson.info().id / "index.html";
  };
  make_folder(request.out);
  require_output(request.out / "index.html", request.force);
  if (!request.single_file) {
    for (const lab::Lesson* lesson : request.lessons)
      require_output(page_of(*lesson), request.force);
  }
  const Interrupt interrupt;
  const ScratchFolder scratch;
  Counter counter;
  flush_output();
  const unsigned cores = std::max(std::thread::hardware_concurrency(), 1u);
  const std::size_t count =
      std::min<std::size_t>(std::min(cores, kMostWorkers), request.lessons.size());
  std::vector<pid_t> workers;
  for (std::size_t k = 0; k < count; ++k) {
    const pid_t worker = ::fork();
    if (worker == 0) work_and_end(request, counter, scratch.path());
    if (worker > 0) workers.push_back(worker);
  }
  if (workers.empty()) throw Error("no process can be started", ExitCode::unavailable);
  const int code = wait_for(workers);
  if (Interrupt::pressed()) throw Cancelled();
  if (code != 0) return code;
  std::vector<SiteLesson> lessons;
  for (const lab::Lesson* lesson : request.lessons) {
    const std::string& id = lesson->info().id;
    lessons.push_back({lesson->info(), read_all(scratch.path() / (id + ".body")),
                       read_all(scratch.path() / (id + ".card"))});
    if (request.single_file) continue;
    write_output(page_of(*lesson), lesson_page(lessons.back(), request.base_url), request.force);
    print_line(page_of(*lesson).string());
    lessons.back().body.clear();
  }
  const fs::path first = request.out / "index.html";
  write_output(first, course_page(lessons, request.single_file, request.base_url), request.force);
  print_line(fmt::format("\nThe course is ready: open {} in a browser.",
                         fs::absolute(first).lexically_normal().string()));
  return static_cast<int>(ExitCode::good);
}

void add_site(CLI::App& app, Invocation& invocation) {
  struct Arguments {
    std::string out, lab = "here", backend = "emulated", base_url;
    std::vector<std::string> lessons;
    bool single_file = false, force = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("site", "Write the course as pages for a browser; they need no server");
  command->add_option("--out", arguments->out, "Folder for the pages")->type_name("DIR");
  command->add_option("--lesson", arguments->lessons, "This lesson alone; may be repeated")
      ->type_name("LESSON")
      ->allow_extra_args(false);
  command
      ->add_option("--backend", arguments->backend,
                   "Where runs come from: emulated, or recorded on a GPU where they were")
      ->type_name("BACKEND");
  command->add_flag("--single-file", arguments->single_file, "Write one page with all lessons");
  command->add_option("--base-url", arguments->base_url, "Address where the pages will be")
      ->type_name("URL");
  add_force(*command, arguments->force);
  add_lab(*command, arguments->lab);
  command->callback([arguments, &invocation] {
    invocation.action = [arguments, &invocation] {
      if (arguments->out.empty()) throw Error("name the folder for the pages: --out DIR");
      if (arguments->backend != "emulated" && arguments->backend != "recorded") {
        throw Error(fmt::format("--backend cannot be '{}'; allowed: emulated, recorded",
                                arguments->backend));
      }
      SiteRequest request;
      request.out = arguments->out;
      request.lessons = parse_lessons(arguments->lessons);
      request.options.backend = arguments->backend;
      request.lab = parse_lab(arguments->lab);
      request.program = invocation.program;
      request.base_url = checked_base_url(arguments->base_url);
      request.single_file = arguments->single_file;
      request.force = arguments->force;
      return write_site(request);
    };
  });
}

}  // namespace tilestep::app
