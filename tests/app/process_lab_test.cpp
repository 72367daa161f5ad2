#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "app/worker/lab_client.hpp"
#include "app/worker/protocol.hpp"
#include "kernels/base/simt/sanitizers.hpp"
#include "kernels/base/workbench/guarded.hpp"
#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;
using namespace std::chrono_literals;

namespace {

lab::Request request_of(lab::Settings settings = {}) {
  lab::Request request;
  request.lesson = "online-softmax";
  request.params = std::move(settings);
  request.backend = "emulated";
  return request;
}

lab::Request long_request() {
  return request_of({{"preset", std::string("random")},
                     {"keys", std::int64_t{65536}},
                     {"tile_width", std::int64_t{1024}},
                     {"head_dim", std::int64_t{128}}});
}

/// A bench that needs no GPU, and with the fault `slow-bench` two seconds.
lab::Request bench_request() {
  lab::Request request = request_of();
  request.action = lab::Request::Action::bench;
  request.backend = "recorded";
  return request;
}

constexpr const char* kEditedPath = "kernels/attention/online_softmax/one_pass.cu";

/// With the lesson's kernel as it is, but for `line` in it.
lab::Request edited_request(const std::string& line = {}) {
  lab::Request request = request_of();
  std::string text = file_text(std::string(TILESTEP_SOURCE_DIR "/") + kEditedPath);
  const std::string where = "    // 1. The maximum of all keys so far.\n";
  text.insert(text.find(where), line + "\n");
  request.kernel = lab::KernelEdit{kEditedPath, text};
  return request;
}

ProcessLabOptions options_with(std::chrono::milliseconds run_deadline = 120s) {
  ProcessLabOptions options;
  options.program = TILESTEP_PROGRAM;
  options.run_deadline = run_deadline;
  return options;
}

bool is_final(const LabUpdate& update) {
  return !std::holds_alternative<LabProgress>(update.what);
}

bool was_given_up(const LabUpdate& update, LabGivenUp how) {
  const auto* given_up = std::get_if<LabGivenUp>(&update.what);
  return given_up != nullptr && *given_up == how;
}

/// The update that ends a request: its report or failure. Until then others may only be told that
/// they were replaced.
std::optional<LabUpdate> final_update(LabClient& lab, Ticket ticket) {
  std::optional<LabUpdate> last;
  eventually(
      [&] {
        while (auto update = lab.poll()) {
          if (update->ticket != ticket) {
            CHECK(was_given_up(*update, LabGivenUp::replaced));
            continue;
          }
          if (!is_final(*update)) continue;
          last = std::move(update);
          return true;
        }
        return false;
      },
      120s);
  return last;
}

/// The final updates, in the order in which they come, until there are `count`.
std::vector<LabUpdate> final_updates(LabClient& lab, std::size_t count) {
  std::vector<LabUpdate> finals;
  REQUIRE(eventually(
      [&] {
        while (auto update = lab.poll()) {
          if (is_final(*update)) finals.push_back(std::move(*update));
        }
        return finals.size() >= count;
      },
      120s));
  return finals;
}

void check_report(LabClient& lab, Ticket ticket) {
  const auto update = final_update(lab, ticket);
  REQUIRE(update.has_value());
  if (const auto* failure = std::get_if<LabFailure>(&update->what)) FAIL(failure->sentence);
  CHECK(std::get<lab::Report>(update->what).lesson == "online-softmax");
  CHECK(!lab.busy());
}

LabFailure check_failure(LabClient& lab, Ticket ticket) {
  const auto update = final_update(lab, ticket);
  REQUIRE(update.has_value());
  REQUIRE(std::holds_alternative<LabFailure>(update->what));
  CHECK(!lab.busy());
  return std::get<LabFailure>(update->what);
}

/// Makes workers that are started during its life crash or hang at their first run.
class Fault {
 public:
  explicit Fault(const char* kind) { ::setenv("TILESTEP_WORKER_FAULT", kind, 1); }
  ~Fault() { ::unsetenv("TILESTEP_WORKER_FAULT"); }
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;
};

/// Waits until the worker has taken up the run: it says so before it hangs.
void wait_for_start(LabClient& lab) {
  REQUIRE(eventually([&] {
    const auto update = lab.poll();
    return update && std::holds_alternative<LabProgress>(update->what);
  }));
}

/// The worker, once it has replaced its own image (before that the environment may not change).
pid_t worker_pid() {
  pid_t pid = 0;
  const bool found = eventually([&] {
    for (const pid_t child : children_of(::getpid())) {
      const std::string line = file_text("/proc/" + std::to_string(child) + "/cmdline");
      if (line == std::string("tilestep") + '\0' + "worker" + '\0') pid = child;
    }
    return pid != 0;
  });
  REQUIRE(found);
  return pid;
}

}  // namespace

TEST_CASE("a process lab answers, again and again, from one worker", "[process-lab]") {
  std::atomic<int> wakes = 0;
  ProcessLabOptions options = options_with();
  options.wake = [&wakes] { ++wakes; };
  const auto lab = make_process_lab(options);
  CHECK(!lab->busy());
  CHECK(!lab->poll().has_value());
  check_report(*lab, lab->submit(request_of()));
  const pid_t first = worker_pid();
  check_report(*lab, lab->submit(request_of({{"preset", std::string("rising")}})));
  CHECK(worker_pid() == first);
  CHECK(wakes >= 2);
}

TEST_CASE("a lab in this process answers inside submit", "[process-lab]") {
  const auto lab = make_inline_lab();
  check_report(*lab, lab->submit(request_of()));
  const LabFailure failure =
      check_failure(*lab, lab->submit(request_of({{"tile_width", std::int64_t{0}}})));
  CHECK(failure.code == ExitCode::bad_input);
  check_contains(failure.sentence, "1–1024");
}

TEST_CASE("a bad request fails with the lesson's own sentence", "[process-lab]") {
  const auto lab = make_process_lab(options_with());
  const LabFailure failure =
      check_failure(*lab, lab->submit(request_of({{"tile_width", std::int64_t{0}}})));
  CHECK(failure.code == ExitCode::bad_input);
  CHECK(!failure.worker_died);
  check_contains(failure.sentence, "1–1024");
  check_report(*lab, lab->submit(request_of()));
}

TEST_CASE("a refused run says with which knobs it works", "[process-lab]") {
  const auto request = request_of({{"head_dim", std::int64_t{4}}, {"component", std::int64_t{7}}});
  const auto labs = {make_inline_lab, +[] { return make_process_lab(options_with()); }};
  for (const auto make : labs) {
    const auto lab = make();
    const LabFailure failure = check_failure(*lab, lab->submit(request));
    REQUIRE(failure.fix);
    CHECK(failure.fix->label == "Set component to 0");
    CHECK(failure.fix->settings == lab::Settings{{"component", std::int64_t{0}}});
    auto fixed = request;
    for (const auto& [id, value] : failure.fix->settings) fixed.params[id] = value;
    check_report(*lab, lab->submit(fixed));
    // An error that no knob mends offers none.
    auto unknown = request;
    unknown.lesson = "no-such-lesson";
    CHECK(!check_failure(*lab, lab->submit(unknown)).fix);
  }
}

TEST_CASE("the newest run wins, and the older ones are told so, once", "[process-lab]") {
  const auto lab = make_process_lab(options_with());
  for (int i = 0; i < 5; ++i) {
    lab->submit(long_request());
    std::this_thread::sleep_for(20ms * i);
  }
  const Ticket newest = lab->submit(request_of());
  const auto finals = final_updates(*lab, 6);
  REQUIRE(finals.size() == 6);
  for (Ticket ticket = 1; ticket < newest; ++ticket) {
    CHECK(finals[ticket - 1].ticket == ticket);
    CHECK(was_given_up(finals[ticket - 1], LabGivenUp::replaced));
  }
  CHECK(finals[5].ticket == newest);
  CHECK(std::holds_alternative<lab::Report>(finals[5].what));
  CHECK(!lab->busy());
}

TEST_CASE("a cancelled run says so, and nothing after that", "[process-lab]") {
  const auto lab = make_process_lab(options_with());
  const Ticket ticket = lab->submit(long_request());
  CHECK(lab->busy());
  worker_pid();
  lab->cancel(ticket);
  CHECK(!lab->busy());
  const auto last = final_update(*lab, ticket);
  REQUIRE(last.has_value());
  CHECK(was_given_up(*last, LabGivenUp::cancelled));
  lab->cancel(ticket);
  std::this_thread::sleep_for(100ms);
  CHECK(!lab->poll().has_value());
  check_report(*lab, lab->submit(request_of()));
}

// ---- runs and benches ---------------------------------------------------------------------------

TEST_CASE("a run leaves a bench alone and waits for it", "[process-lab]") {
  const Fault slow("slow-bench");
  const auto lab = make_process_lab(options_with());
  const Ticket bench = lab->submit(bench_request());
  wait_for_start(*lab);
  const Ticket old_run = lab->submit(long_request());
  const Ticket run = lab->submit(request_of());
  std::optional<LabProgress> waits;
  REQUIRE(eventually([&] {
    while (const auto update = lab->poll()) {
      if (update->ticket == bench) CHECK(!is_final(*update));
      if (update->ticket != run) continue;
      waits = std::get<LabProgress>(update->what);
      return true;
    }
    return false;
  }));
  CHECK(waits->waiting);
  CHECK(waits->note == "waits for the measurement of online-softmax to end");
  const auto finals = final_updates(*lab, 2);
  CHECK(finals[0].ticket == bench);
  CHECK(std::holds_alternative<lab::Report>(finals[0].what));
  CHECK(finals[1].ticket == run);
  CHECK(std::holds_alternative<lab::Report>(finals[1].what));
  CHECK(old_run < run);
  CHECK(!lab->busy());
}

TEST_CASE("a bench waits for a run, lets another run pass, and then comes", "[process-lab]") {
  const auto lab = make_process_lab(options_with());
  const Ticket first = lab->submit(long_request());
  wait_for_start(*lab);
  const Ticket bench = lab->submit(bench_request());
  const Ticket second = lab->submit(request_of());
  const auto finals = final_updates(*lab, 3);
  REQUIRE(finals.size() == 3);
  CHECK(finals[0].ticket == first);
  CHECK(was_given_up(finals[0], LabGivenUp::replaced));
  CHECK(finals[1].ticket == second);
  CHECK(std::holds_alternative<lab::Report>(finals[1].what));
  CHECK(finals[2].ticket == bench);
  CHECK(std::holds_alternative<lab::Report>(finals[2].what));
}

TEST_CASE("a new bench replaces an old one; a cancel lets the run behind it go", "[process-lab]") {
  const Fault slow("slow-bench");
  const auto lab = make_process_lab(options_with());
  const Ticket old_bench = lab->submit(bench_request());
  wait_for_start(*lab);
  const Ticket run = lab->submit(request_of());
  const Ticket bench = lab->submit(bench_request());
  auto finals = final_updates(*lab, 2);
  CHECK(finals[0].ticket == old_bench);
  CHECK(was_given_up(finals[0], LabGivenUp::replaced));
  CHECK(finals[1].ticket == run);
  const Ticket late_run = lab->submit(request_of());
  lab->cancel(bench);
  finals = final_updates(*lab, 2);
  CHECK(finals[0].ticket == bench);
  CHECK(was_given_up(finals[0], LabGivenUp::cancelled));
  CHECK(finals[1].ticket == late_run);
  CHECK(std::holds_alternative<lab::Report>(finals[1].what));
}

TEST_CASE("a bench has a deadline of its own", "[process-lab]") {
  const Fault slow("slow-bench");
  ProcessLabOptions options = options_with(1s);
  {
    const auto lab = make_process_lab(options);
    check_report(*lab, lab->submit(bench_request()));  // twice as long as a run may take
  }
  options.bench_deadline = 500ms;
  const auto lab = make_process_lab(options);
  const LabFailure failure = check_failure(*lab, lab->submit(bench_request()));
  check_contains(failure.sentence, "The measurement took longer than 0.5 seconds and was ended");
  CHECK(!failure.worker_died);
}

// ---- what goes wrong ----------------------------------------------------------------------------

TEST_CASE("a worker that lost its device ends and is replaced, for what waits too",
          "[process-lab]") {
  const auto lab = make_process_lab(options_with());
  Ticket run = 0, bench = 0;
  pid_t lost = 0;
  {
    const Fault fault("lost");
    run = lab->submit(request_of());
    lost = worker_pid();
    bench = lab->submit(bench_request());
  }
  const auto finals = final_updates(*lab, 2);
  CHECK(finals[0].ticket == run);
  REQUIRE(std::holds_alternative<LabFailure>(finals[0].what));
  const LabFailure failure = std::get<LabFailure>(finals[0].what);
  CHECK(failure.worker_died);
  CHECK(failure.code == ExitCode::check_failed);
  CHECK(failure.sentence == "some_kernel: the kernel failed on the GPU");
  CHECK(finals[1].ticket == bench);
  CHECK(std::holds_alternative<lab::Report>(finals[1].what));
  CHECK(::kill(lost, 0) != 0);
  CHECK(worker_pid() != lost);
}

TEST_CASE("a worker whose run was meant to cost it its device answers, ends and is replaced",
          "[process-lab]") {
  const auto lab = make_process_lab(options_with());
  Ticket run = 0, next = 0;
  pid_t lost = 0;
  {
    const Fault fault("lost-after");
    run = lab->submit(request_of());
    lost = worker_pid();
    next = lab->submit(bench_request());
  }
  const auto finals = final_updates(*lab, 2);
  CHECK(finals[0].ticket == run);
  CHECK(std::holds_alternative<lab::Report>(finals[0].what));
  CHECK(finals[1].ticket == next);
  CHECK(std::holds_alternative<lab::Report>(finals[1].what));
  CHECK(::kill(lost, 0) != 0);
  CHECK(worker_pid() != lost);
}

TEST_CASE("a worker that talks nonsense is ended, one that talks without end is stopped",
          "[process-lab]") {
  const TemporaryFolder folder;
  ProcessLabOptions options = options_with(1s);
  options.program = (folder.path() / "worker").string();
  const auto answer_of = [&](const std::string& script) {
    std::ofstream(options.program) << "#!/bin/sh\nread request\n" << script << "\n";
    std::filesystem::permissions(options.program, std::filesystem::perms::owner_all);
    const auto lab = make_process_lab(options);
    const LabFailure failure = check_failure(*lab, lab->submit(request_of()));
    CHECK(eventually([] { return children_of(::getpid()).empty(); }));
    return failure;
  };
  const std::string error = R"({"ticket": 1, "type": "error", "message": "no", "code": )";
  const std::pair<std::string, const char*> lines[] = {
      {"{broken", "it is not JSON"},
      {"[]", "allowed: a JSON object"},
      {"42", "allowed: a JSON object"},
      {"{}", "'ticket' is missing"},
      {R"({"ticket": "1"})", "'ticket' is \"1\""},
      {R"({"ticket": 1})", "'type' is missing"},
      {R"({"ticket": 1, "type": 3})", "'type' is 3"},
      {R"({"ticket": 1, "type": "dance"})",
       "'type' is \"dance\"; allowed: progress, report, assembly, error"},
      {R"({"ticket": 1, "type": "progress", "fraction": "half", "note": ""})", "'fraction'"},
      {R"({"ticket": 1, "type": "report", "report": {"lesson": 1}})", "'lesson' is 1"},
      {R"({"ticket": 1, "type": "error", "message": null, "code": 2})", "'message' is null"},
      {R"({"ticket": 1, "type": "error", "message": "no"})", "'code' is missing"},
      {error + R"("2"})", "'code' is \"2\"; allowed: 1–3"},
      {error + "1.5}", "'code' is 1.5; allowed: 1–3"},
      {error + "1e300}", "'code' is 1e+300; allowed: 1–3"},
      {error + "99}", "'code' is 99; allowed: 1–3"},
      {error + R"(2, "worker_ends": 1})", "'worker_ends' is 1"},
      {error + R"(2, "fix": {"label": "a"}})", "'fix.settings' is missing"},
      {error + R"(2, "fix": {"settings": {}}})", "'fix.label' is missing"}};
  for (const auto& [line, what] : lines) {
    INFO(line);
    // `exec`, so that no sleep outlives the worker and keeps the test's outputs open.
    const LabFailure failure = answer_of("echo '" + line + "'; exec sleep 60");
    CHECK(failure.worker_died);
    check_contains(failure.sentence, "The worker sent a message that is not understood");
    check_contains(failure.sentence, what);
  }
  options.longest_message = 100'000;
  const LabFailure endless = answer_of("while :; do printf 'no end %0100d' 0; done");
  CHECK(endless.worker_died);
  check_contains(endless.sentence, "a line is longer than 100000 bytes");
  const LabFailure half = answer_of("printf '{\"ticket\": 1, \"type\"'");
  CHECK(half.worker_died);
  check_contains(half.sentence, "ended with exit code 0 while it ran online-softmax");
  const LabFailure flood = answer_of(
      R"(while :; do echo '{"ticket": 1, "type": "progress", "fraction": 0.1, "note": ""}'; done)");
  check_contains(flood.sentence, "took longer than 1 seconds");
}

TEST_CASE("what a worker says is short, printable and UTF-8 in every update", "[process-lab]") {
  const TemporaryFolder folder;
  ProcessLabOptions options = options_with();
  options.program = (folder.path() / "worker").string();
  const std::string ugly = R"(\u001b[31mred\n\u202e)", wide = std::string(50'000, 'x');
  const auto message = [](const std::string& members) {
    return R"({"ticket": 1, )" + members + "}";
  };
  const std::string lines[] = {
      "\xff\xfe", message(R"("type": "\xff")"), message(R"("type": ")" + ugly + wide + "\""),
      message(R"("type": "progress", "fraction": 0.5, "note": ")" + ugly + wide + "\"") + "\nend",
      message(R"("type": "error", "code": 2, "message": "it is ')" + ugly + wide +
              R"('", "fix": {"label": ")" + ugly + wide + R"(", "settings": {}})")};
  for (const std::string& line : lines) {
    INFO(line.substr(0, 200));
    std::ofstream(folder.path() / "line") << line << "\n";
    std::ofstream(options.program)
        << "#!/bin/sh\nread request\ncat '" << folder.path().string() << "/line'\nexec sleep 60\n";
    std::filesystem::permissions(options.program, std::filesystem::perms::owner_all);
    const auto lab = make_process_lab(options);
    const Ticket ticket = lab->submit(request_of());
    std::vector<std::string> texts;
    REQUIRE(eventually([&] {
      while (auto update = lab->poll()) {
        REQUIRE(update->ticket == ticket);
        if (const auto* progress = std::get_if<LabProgress>(&update->what)) {
          texts.push_back(progress->note);
          continue;
        }
        const auto& failure = std::get<LabFailure>(update->what);
        texts.push_back(failure.sentence);
        if (failure.fix) texts.push_back(failure.fix->label);
        return true;
      }
      return false;
    }));
    for (const std::string& text : texts) check_printable(text, 400);
  }
}

TEST_CASE("a worker that crashes fails its run, and the next one gets another", "[process-lab]") {
  const auto lab = make_process_lab(options_with());
  {
    const Fault fault("crash");
    const LabFailure failure = check_failure(*lab, lab->submit(request_of()));
    CHECK(failure.worker_died);
    check_contains(failure.sentence, "SIGABRT");
    check_contains(failure.sentence, "online-softmax");
  }
  check_report(*lab, lab->submit(request_of()));
}

TEST_CASE("a worker killed in the middle of a run is named and replaced", "[process-lab]") {
  const auto lab = make_process_lab(options_with());
  Ticket ticket = 0;
  pid_t killed = 0;
  {
    const Fault fault("hang");
    ticket = lab->submit(request_of());
    killed = worker_pid();
    wait_for_start(*lab);
  }
  ::kill(killed, SIGKILL);
  const LabFailure failure = check_failure(*lab, ticket);
  CHECK(failure.worker_died);
  check_contains(failure.sentence, "SIGKILL");
  check_report(*lab, lab->submit(request_of()));
  CHECK(worker_pid() != killed);
}

TEST_CASE("an idle worker that is killed is noticed and replaced", "[process-lab]") {
  const auto lab = make_process_lab(options_with());
  const Ticket ticket = lab->submit(request_of());
  check_report(*lab, ticket);
  ::kill(worker_pid(), SIGKILL);
  const LabFailure failure = check_failure(*lab, 0);
  CHECK(failure.worker_died);
  check_report(*lab, lab->submit(request_of()));
}

TEST_CASE("a deadline ends a run that hangs and names the seconds", "[process-lab]") {
  const auto lab = make_process_lab(options_with(1500ms));
  {
    const Fault fault("hang");
    const LabFailure failure = check_failure(*lab, lab->submit(request_of()));
    CHECK(!failure.worker_died);
    check_contains(failure.sentence, "1.5 seconds");
  }
}

TEST_CASE("an edited kernel that hangs where nothing sees it has a deadline of its own",
          "[process-lab]") {
  ProcessLabOptions options = options_with();
  options.edited_deadline = 500ms;
  const auto lab = make_process_lab(std::move(options));
  const Fault fault("hang");
  const LabFailure failure = check_failure(*lab, lab->submit(edited_request()));
  CHECK(!failure.worker_died);
  CHECK(failure.sentence ==
        "The run took longer than 0.5 seconds and was ended; an endless loop of the edited kernel "
        "is the likely reason.");
}

namespace {

/// A program in a worker's place that tells these notes, each `pause` after the one before, and then fails.
class TellingWorker {
 public:
  TellingWorker(const std::vector<std::string_view>& notes, const char* pause)
      : program((folder_.path() / "worker").string()) {
    std::ofstream script(program);
    script << "#!/bin/sh\nread request\n";
    const auto say = [&](const protocol::Message& message) {
      script << "echo '" << protocol::line_of(message) << "'\n";
    };
    for (const std::string_view note : notes) {
      say(protocol::Progressed{1, {0, std::string(note), false}});
      script << "sleep " << pause << "\n";
    }
    say(protocol::Failed{1, {"gather: in line 7", ExitCode::check_failed, true}});
    script.close();
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }

 private:
  TemporaryFolder folder_;

 public:
  const std::string program;
};

}  // namespace

TEST_CASE("each way to find the line of what failed on a GPU has a deadline of its own",
          "[process-lab]") {
  const TellingWorker worker({workbench::kRunning, workbench::kEmulating, workbench::kSanitizing},
                             "0.9");
  ProcessLabOptions options = options_with();
  options.program = worker.program;
  options.edited_deadline = 1600ms;
  options.sanitizer_deadline = 1600ms;
  const auto lab = make_process_lab(options);
  const LabFailure failure = check_failure(*lab, lab->submit(edited_request()));
  CHECK(failure.sentence == "gather: in line 7");  // after 2.7 seconds
  CHECK(failure.worker_died);
  for (const std::string_view last : {workbench::kEmulating, workbench::kSanitizing}) {
    const TellingWorker hangs({workbench::kRunning, last}, "2");
    options.program = hangs.program;
    options.edited_deadline = last == workbench::kEmulating ? 1000ms : 2500ms;
    options.sanitizer_deadline = 1000ms;
    const auto other = make_process_lab(options);
    check_contains(check_failure(*other, other->submit(edited_request())).sentence,
                   "The run took longer than 1 seconds and was ended");
  }
}

TEST_CASE("a run whose line is looked for can be cancelled", "[process-lab]") {
  const TellingWorker worker({workbench::kRunning, workbench::kSanitizing}, "30");
  ProcessLabOptions options = options_with();
  options.program = worker.program;
  const auto lab = make_process_lab(options);
  const Ticket ticket = lab->submit(edited_request());
  wait_for_start(*lab);
  lab->cancel(ticket);
  const auto last = final_update(*lab, ticket);
  REQUIRE(last.has_value());
  CHECK(was_given_up(*last, LabGivenUp::cancelled));
}

TEST_CASE("a worker that ends with an edited kernel is no riddle", "[process-lab]") {
  const auto lab = make_process_lab(options_with());
  const Fault fault("crash");
  check_contains(check_failure(*lab, lab->submit(edited_request())).sentence,
                 "while it ran online-softmax with an edited kernel, which has perhaps written to");
}

// The sanitizers keep such signals to themselves.
#if defined(TILESTEP_WHOLE_PROGRAM) && !defined(TILESTEP_ASAN) && !defined(TILESTEP_TSAN)
TEST_CASE("a wild pointer of an edited kernel ends the worker with its line", "[process-lab]") {
  const TemporaryFolder cache;
  ::setenv("TILESTEP_CACHE", cache.path().c_str(), 1);
  const auto lab = make_process_lab(options_with());
  const lab::Request wild = edited_request("    *reinterpret_cast<int*>(0x123456789000) = 1;");
  const LabFailure failure = check_failure(*lab, lab->submit(wild));
  CHECK(failure.worker_died);
  check_contains(failure.sentence,
                 "writes address 0x123456789000, where there is no memory (line ");
  CHECK(failure.next == "The worker has ended; the next run starts another.");
  REQUIRE(failure.diagnostics.size() == 1);
  CHECK(failure.diagnostics.front().line > 100);
  check_report(*lab, lab->submit(edited_request()));
  ::unsetenv("TILESTEP_CACHE");
}
#endif

TEST_CASE("a run that hangs and heeds no cancel gives way to the next", "[process-lab]") {
  const auto lab = make_process_lab(options_with());
  pid_t hung = 0;
  {
    const Fault fault("hang");
    lab->submit(request_of());
    hung = worker_pid();
    wait_for_start(*lab);
  }
  check_report(*lab, lab->submit(request_of()));
  CHECK(worker_pid() != hung);
}

TEST_CASE("a lab ends at once, leaving no process, also during a run that hangs", "[process-lab]") {
  const auto before = children_of(::getpid()).size();
  auto lab = make_process_lab(options_with());
  {
    const Fault fault("hang");
    lab->submit(request_of());
    wait_for_start(*lab);
  }
  const auto start = std::chrono::steady_clock::now();
  lab.reset();
  CHECK(std::chrono::steady_clock::now() - start < 3s);
  CHECK(children_of(::getpid()).size() == before);
}

TEST_CASE("a program that is not there fails with its name", "[process-lab]") {
  ProcessLabOptions options = options_with();
  options.program = "/no/such/tilestep";
  const auto lab = make_process_lab(options);
  const LabFailure failure = check_failure(*lab, lab->submit(request_of()));
  CHECK(failure.code == ExitCode::unavailable);
  check_contains(failure.sentence, "/no/such/tilestep");
}

TEST_CASE("whoever waits behind a run without a worker hears of it, too", "[process-lab]") {
  ProcessLabOptions options = options_with();
  options.program = "/no/such/tilestep";
  const auto lab = make_process_lab(options);
  for (int round = 0; round < 50; ++round) {  // until both wait at once
    lab->submit(request_of());
    lab->submit(bench_request());
    for (const LabUpdate& each : final_updates(*lab, 2)) {
      CHECK(std::holds_alternative<LabFailure>(each.what));
    }
    CHECK(!lab->busy());
  }
}
