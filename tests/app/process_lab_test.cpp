// What goes wrong with a worker, and what is said of it.
#include <signal.h>

#include <fstream>

#include "app/worker/protocol.hpp"
#include "kernels/base/simt/sanitizers.hpp"
#include "kernels/base/workbench/guarded.hpp"
#include "tests/app/process_lab_rig.hpp"
#include "tests/app/text_checks.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;

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

TEST_CASE("a worker answers for what it was asked, or is not believed", "[process-lab]") {
  const TemporaryFolder folder;
  ProcessLabOptions options = options_with();
  options.program = (folder.path() / "worker").string();
  options.whole_deadline = 1s;
  std::string script;
  const auto failure_of = [&](const lab::Request& request) {
    std::ofstream(options.program) << "#!/bin/sh\nread request\n" << script << "\n";
    std::filesystem::permissions(options.program, std::filesystem::perms::owner_all);
    const auto lab = make_process_lab(options);
    return check_failure(*lab, lab->submit(request)).sentence;
  };
  lab::Report report;
  report.lesson = "online-softmax";
  const auto refusal = [&](const lab::Request& request) {
    const nlohmann::json line = {
        {"ticket", 1}, {"type", "report"}, {"report", lab::to_json(report)}};
    std::ofstream(folder.path() / "line") << line << "\n";
    script = "cat '" + (folder.path() / "line").string() + "'; exec sleep 60";
    return failure_of(request);
  };
  check_contains(refusal(edited_request()), "its report is of a kernel it was not given");
  report.kernel = lab::EditedKernel{kEditedPath, "0123456789abcdef", "g++", 1, false, {}};
  check_contains(refusal(edited_request()), "its report is of a kernel it was not given");
  check_contains(refusal(request_of()), "its report is of a kernel it was not given");
  report.kernel.reset();
  check_contains(refusal(request_of({{"tile_width", std::int64_t{2}}})), "has other settings");
  report.lesson = "coalescing";
  check_contains(refusal(request_of()), "its report is of the lesson 'coalescing'");
  // One that says without end that it compiles has its time all the same.
  script =
      R"(while :; do echo '{"ticket": 1, "type": "progress", "fraction": 0, "note": "compiling your kernel"}'; done)";
  check_contains(failure_of(edited_request()), "was ended");
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
                 "while it ran online-softmax with an edited kernel, which may have written to");
}

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
