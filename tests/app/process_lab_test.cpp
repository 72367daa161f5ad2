#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "app/worker/lab_client.hpp"
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

ProcessLabOptions options_with(std::chrono::milliseconds deadline = 120s) {
  ProcessLabOptions options;
  options.program = TILESTEP_PROGRAM;
  options.deadline = deadline;
  return options;
}

/// The update that ends a request: its report or failure. Progress on the way must be of `ticket`.
std::optional<LabUpdate> final_update(LabClient& lab, Ticket ticket) {
  std::optional<LabUpdate> last;
  eventually(
      [&] {
        while (auto update = lab.poll()) {
          CHECK(update->ticket == ticket);
          if (std::holds_alternative<LabProgress>(update->what)) continue;
          last = std::move(update);
          return true;
        }
        return false;
      },
      120s);
  return last;
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
      if (line == std::string(TILESTEP_PROGRAM) + '\0' + "worker" + '\0') pid = child;
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

TEST_CASE("the newest request wins and no update of an older one is delivered", "[process-lab]") {
  const auto lab = make_process_lab(options_with());
  for (int i = 0; i < 5; ++i) {
    lab->submit(long_request());
    std::this_thread::sleep_for(20ms * i);
  }
  check_report(*lab, lab->submit(request_of()));
}

TEST_CASE("a cancelled run says nothing any more", "[process-lab]") {
  const auto lab = make_process_lab(options_with());
  lab->submit(long_request());
  CHECK(lab->busy());
  worker_pid();
  lab->cancel();
  CHECK(!lab->busy());
  std::this_thread::sleep_for(100ms);
  CHECK(!lab->poll().has_value());
  check_report(*lab, lab->submit(request_of()));
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
  const LabFailure failure = check_failure(*lab, ticket);
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
