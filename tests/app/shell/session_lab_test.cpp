// The shell's logic with the real lab: requests go to a worker process.
#include <cstdlib>

#include "app/shell/session.hpp"
#include "kernels/catalog.hpp"
#include "tests/app/child.hpp"
#include "tests/app/shell/fake_scene.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;
using namespace std::chrono_literals;

namespace {

std::unique_ptr<LabClient> real_lab() {
  ProcessLabOptions options;
  options.program = tilestep::tests::paths::kProgram;
  options.run_deadline = 120s;
  return make_process_lab(options);
}

std::vector<LessonState> all_lessons() {
  std::vector<LessonState> all;
  for (const lab::Lesson* lesson : lessons()) {
    LessonState state;
    state.info = lesson->info();
    state.knobs = lesson->knobs();
    state.player = std::make_unique<scenes::ScenePlayer>(std::make_unique<FakeScene>());
    all.push_back(std::move(state));
  }
  return all;
}

std::size_t index_of(const Session& session, std::string_view id) {
  std::size_t index = 0;
  while (const_cast<Session&>(session).lessons().at(index).info.id != id) ++index;
  return index;
}

/// Lets the session take in what comes until `what` is true.
template <class What>
void wait_until(Session& session, What&& what) {
  REQUIRE(eventually(
      [&] {
        session.update(0);
        return what();
      },
      120s));
}

/// Makes a bench of workers that are started during its life take two seconds longer.
class SlowBench {
 public:
  SlowBench() { ::setenv("TILESTEP_WORKER_FAULT", "slow-bench", 1); }
  ~SlowBench() { ::unsetenv("TILESTEP_WORKER_FAULT"); }
  SlowBench(const SlowBench&) = delete;
  SlowBench& operator=(const SlowBench&) = delete;
};

}  // namespace

TEST_CASE("the report of every lesson has the settings that were asked for", "[ui_session]") {
  const auto lab = real_lab();
  Session session(*lab, all_lessons(), offer_of("emulated"));
  for (std::size_t i = 0; i < session.lessons().size(); ++i) {
    INFO(session.lessons()[i].info.id);
    session.choose(i);
    CHECK(session.lesson().outdated());
    wait_until(session, [&] { return session.lesson().report.has_value(); });
    CHECK_FALSE(session.lesson().outdated());
  }
}

TEST_CASE("a real run left for another lesson comes when the user is back", "[ui_session]") {
  const auto lab = real_lab();
  Session session(*lab, all_lessons(), offer_of("emulated"));
  const std::size_t softmax = index_of(session, "online-softmax");
  session.choose(softmax);
  wait_until(session, [&] { return session.lesson().report.has_value(); });
  session.set_knob("preset", std::string("random"), 0);
  session.set_knob("keys", std::int64_t{65536}, 0);
  session.set_rest_s(0);
  session.run_again(0);
  wait_until(session,
             [&] { return session.lesson().run && session.lesson().progress.fraction > 0; });
  session.choose(softmax == 0 ? 1 : 0);
  wait_until(session, [&] { return session.lesson().report.has_value(); });
  CHECK(session.lessons()[softmax].stale());
  session.choose(softmax);
  CHECK(session.lesson().run.has_value());
  session.set_knob("keys", std::int64_t{64}, 0);
  wait_until(session, [&] { return !session.lesson().outdated(); });
  CHECK(std::get<std::int64_t>(session.lesson().report->params.at("keys")) == 64);
}

TEST_CASE("a knob moved during a real bench waits for it, and both answers come", "[ui_session]") {
  const SlowBench slow;
  const auto lab = real_lab();
  Session session(*lab, all_lessons(), offer_of("recorded"));
  session.set_rest_s(0);
  session.choose(index_of(session, "online-softmax"));
  wait_until(session, [&] { return session.lesson().report.has_value(); });
  session.start_bench();
  wait_until(session, [&] { return session.lesson().bench_progress.fraction > 0; });
  session.run_again(0);
  wait_until(session, [&] { return session.lesson().progress.waiting; });
  CHECK(session.working());
  CHECK(session.benched() == &session.lesson());
  wait_until(session, [&] { return session.lesson().bench.has_value(); });
  wait_until(session, [&] { return !session.lesson().outdated(); });
  CHECK_FALSE(session.lesson().failure);
  CHECK_FALSE(session.lesson().bench_failure);
  CHECK_FALSE(session.working());
}

TEST_CASE("a real bench is replaced by another lesson's, and stopped, and says so",
          "[ui_session]") {
  const SlowBench slow;
  const auto lab = real_lab();
  Session session(*lab, all_lessons(), offer_of("recorded"));
  session.choose(0);
  session.start_bench();
  session.choose(1);
  session.start_bench();
  wait_until(session, [&] { return session.lesson().bench_progress.fraction > 0; });
  CHECK_FALSE(session.lessons()[0].bench_run);
  CHECK(session.lessons()[0].bench_given_up == LabGivenUp::replaced);
  session.stop_bench();
  wait_until(session, [&] { return !session.lesson().bench_run; });
  CHECK(session.lesson().bench_given_up == LabGivenUp::cancelled);
  wait_until(session, [&] { return !session.lesson().outdated(); });
}
