#include <algorithm>
#include <cstdio>

#include "tests/catch.hpp"
#include "tests/faults/case.hpp"
#include "tests/faults/faulty_window.hpp"
#include "tests/skip.hpp"

using namespace tilestep::tests;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

/// What is in a worker's place, once it has read a request.
struct Stub {
  const char* name;
  const char* script;
  const char* says;        ///< on screen, of the failed run
  bool has_ended = false;  ///< by itself, so that no deadline has to pass
  const char* told = "";   ///< on screen before
};
/// Of the request that the shell has read.
#define TICKET "n=${line##*ticket\\\":}; n=${n%%[!0-9]*}; "

constexpr const char* kTooLong = "took longer than 60 seconds and was ended";
constexpr const char* kNonsense = "sent a message that is not understood";
constexpr Stub kStubs[] = {
    {"ends", "exit 7", "ended with exit code 7", true},
    {"is killed", "kill -9 $$", "was ended by signal 9 (SIGKILL)", true},
    {"says half a line", "printf '{\"type\": \"prog'", "ended with exit code 0", true},
    {"says what is no JSON", "echo 'error: something'; exec sleep 100", kNonsense, true},
    {"says invalid UTF-8", "printf '\\377\\376\\033[31m\\n'; exec sleep 100", kNonsense, true},
    {"fails with escapes in its words",
     TICKET "printf '{\"type\": \"error\", \"ticket\": %s, \"code\": 3, "
            "\"message\": \"\\\\u001b[31mred\"}\\n' $n; exec sleep 0.3",
     "\\x1b[31mred", true},
    {"floods with nonsense", "exec yes nonsense", kNonsense, true},
    {"says one endless line", "exec tr '\\0' x </dev/zero", "a line is longer than", true},
    {"floods with errors about nothing",
     "exec yes '{\"type\": \"error\", \"ticket\": null, \"message\": \"x\", \"code\": 2}'",
     kTooLong},
    {"floods with progress",
     TICKET "exec yes '{\"type\": \"progress\", \"ticket\": '$n', \"fraction\": 0.5, "
            "\"note\": \"on and on\"}'",
     kTooLong, false, "on and on"},
    {"is stopped", "kill -STOP $$", kTooLong},
    {"says nothing", "exec sleep 100", kTooLong},
};

/// What is on show with each of the two settings, and how long the window was deaf where nothing was wrong.
struct Good {
  json defaults, other;
  double gap_ms = 0;
};

/// The next run, for both settings, shows what a right one does.
void check_next_runs(FaultyWindow& window, const Good& good) {
  window.mend();
  window.run_again();
  CHECK(eventually([&] { return window.on_show() == good.other; }, 40s));
  window.reset();
  CHECK(eventually([&] { return window.on_show() == good.defaults; }, 40s));
  CHECK(window->program().alive());
}

Good good_runs(FaultyWindow& window) {
  Good good;
  REQUIRE(eventually([&] { return !(good.defaults = window.on_show()).is_null(); }, 40s));
  window.forget_gap();
  window.choose_other();
  REQUIRE(eventually(
      [&] {
        good.other = window.on_show();
        return !good.other.is_null() && good.other["score_0"] != good.defaults["score_0"];
      },
      40s));
  REQUIRE(window.walks());
  good.gap_ms = window.longest_gap_ms();
  window.reset();
  REQUIRE(eventually([&] { return window.on_show() == good.defaults; }, 40s));
  return good;
}

/// The longest gap while the worker did this and the window was stepped through.
double gap_with(FaultyWindow& window, const Stub& stub) {
  window.put_in_place(stub.script);
  window.forget_gap();
  window.choose_other();
  if (!stub.has_ended) {
    CHECK(eventually(
        [&] { return window->has("progress") && window->value("progress") == stub.told; }));
    CHECK(window.walks());
    window.hurry(true);
  }
  CHECK(eventually([&] { return window->has("failure"); }, 40s));
  const std::string sentence = window->value("failure");
  INFO("on screen: " << sentence);
  CHECK(contains(sentence, stub.says));
  CHECK(sentence.size() < 600);
  CHECK(window.walks());
  const double gap_ms = window.longest_gap_ms();
  CHECK(eventually([&] { return window.worker() == 0; }));
  window.hurry(false);
  return gap_ms;
}

}  // namespace

TEST_CASE("a window draws on whatever its worker does, says what it did, and its next run is right",
          "[fault_window]") {
  if (!can_inject()) return;
  const auto display = make_display();
  if (!display) return;
  FaultyWindow window(*display);
  const Good good = good_runs(window);
  const int descriptors = window.descriptors();
  // 100 ms, or three times what this machine takes for a frame of the same window without a fault.
  const double most_ms = std::max(100.0, 3 * good.gap_ms);
  std::printf("without a fault: %.0f ms\n", good.gap_ms);
  for (const Stub& stub : kStubs) {
    INFO("a worker that " << stub.name);
    double gap_ms = 0;
    for (int tries = 0; tries < 3; ++tries) {  // others may have had the processors
      gap_ms = gap_with(window, stub);
      check_next_runs(window, good);
      if (gap_ms <= most_ms) break;
    }
    std::printf("a worker that %s: %.0f ms\n", stub.name, gap_ms);
    CHECK(gap_ms <= most_ms);
  }
  CHECK(window.descriptors() <= descriptors);
  std::printf("%zu faults\n", std::size(kStubs));
}

TEST_CASE("a window whose worker cannot be started says so, and starts one when it can",
          "[fault_window]") {
  if (!can_inject()) return;
  const auto display = make_display();
  if (!display) return;
  FaultyWindow window(*display);
  const Good good = good_runs(window);
  const int descriptors = window.descriptors();
  const std::pair<const char*, const char*> faults[] = {
      {"spawn", "cannot be started: Resource temporarily unavailable"},
      {"exec", "cannot be started: No such file or directory"},
      {"pipe", "cannot be given a pipe: Too many open files"},
      {"pipe_2", "cannot be given a pipe: Too many open files"}};
  for (const auto& [what, says] : faults) {
    INFO(what << " fails");
    window.cannot_start(what);
    window.choose_other();
    CHECK(eventually([&] { return window->has("failure"); }, 40s));
    INFO("on screen: " << window->value("failure"));
    CHECK(window->value("failure").starts_with("The worker process '"));
    CHECK(contains(window->value("failure"), says));
    CHECK(contains(window->value("failure"), "The next run tries again."));
    CHECK(window.worker() == 0);
    CHECK(window.descriptors() == descriptors - 2);  // the pipes of the worker that was there
    CHECK(window.walks());
    check_next_runs(window, good);
    CHECK(window.descriptors() == descriptors);
  }
  // It cannot even be said before there is some again.
  INFO("no memory is left");
  window.cannot_start("memory");
  window.choose_other();
  CHECK(window.walks());
  window.mend();
  CHECK(eventually([&] { return window->has("failure"); }, 40s));
  CHECK(contains(window->value("failure"), "There is not enough memory to ask the worker"));
  check_next_runs(window, good);
  std::printf("%zu faults\n", std::size(faults) + 1);
}

TEST_CASE("a window that gets no way to a worker at all closes with one sentence",
          "[fault_window]") {
  if (!can_inject()) return;
  const auto display = make_display();
  if (!display) return;
  std::vector<Fault> faults;
  const auto add = [&](const char* rules, const char* says) {
    Fault fault{std::string("open: ") + rules, {"open", "online-softmax"}, rules};
    fault.environment = {{"DISPLAY", display->name()}, {"LIBGL_ALWAYS_SOFTWARE", "1"}};
    fault.says = {says};
    fault.again = false;  // it would stay open: the next one is a window
    faults.push_back(fault);
  };
  add("eventfd,1,24,in:open", "the worker's event cannot be made: Too many open files");
  // The first is that which waits for the end of the program: without it signals end it as ever.
  add("thread,2,11,in:open", "no thread that talks to the worker can be started: Resource");
  check_faults(faults);
  FaultyWindow window(*display);
  CHECK(window.walks());
}
