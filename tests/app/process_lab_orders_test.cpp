// What is asked of a lab, one thing after another: what waits, what gives way, what replaces what.
#include <atomic>
#include <thread>

#include "tests/app/process_lab_rig.hpp"
#include "tests/app/text_checks.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;

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
  CHECK_FALSE(lab->poll());  // once
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
  const auto request = request_of({{"queries", std::int64_t{4}}, {"query", std::int64_t{7}}});
  const auto labs = {make_inline_lab, +[] { return make_process_lab(options_with()); }};
  for (const auto make : labs) {
    const auto lab = make();
    const LabFailure failure = check_failure(*lab, lab->submit(request));
    REQUIRE(failure.fix);
    CHECK(failure.fix->label == "Set query to 0");
    CHECK(failure.fix->settings == lab::Settings{{"query", std::int64_t{0}}});
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
