#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/worker/lab_client.hpp"
#include "tests/app/child.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

/// What the tests of a process lab ask of it, and how they wait for its answers.
namespace tilestep::tests {

using namespace std::chrono_literals;
using namespace app;

inline lab::Request request_of(lab::Settings settings = {}) {
  lab::Request request;
  request.lesson = "online-softmax";
  request.params = std::move(settings);
  request.backend = "emulated";
  return request;
}

inline lab::Request long_request() {
  return request_of({{"preset", std::string("random")},
                     {"keys", std::int64_t{65536}},
                     {"tile_width", std::int64_t{1024}},
                     {"head_dim", std::int64_t{128}}});
}

/// A bench that needs no GPU, and with the fault `slow-bench` two seconds.
inline lab::Request bench_request() {
  lab::Request request = request_of();
  request.action = lab::Request::Action::bench;
  request.backend = "recorded";
  return request;
}

inline constexpr const char* kEditedPath = "kernels/attention/online_softmax/one_pass.cu";

/// With the lesson's kernel as it is, but for `line` in it.
inline lab::Request edited_request(const std::string& line = {}) {
  lab::Request request = request_of();
  std::string text = file_text(std::string(tilestep::tests::paths::kSource) + "/" + kEditedPath);
  const std::string where = "    // 1. The maximum of all keys so far.\n";
  text.insert(text.find(where), line + "\n");
  request.kernel = lab::KernelEdit{kEditedPath, text};
  return request;
}

inline ProcessLabOptions options_with(std::chrono::milliseconds run_deadline = 120s) {
  ProcessLabOptions options;
  options.program = tilestep::tests::paths::kProgram;
  options.run_deadline = run_deadline;
  return options;
}

inline bool is_final(const LabUpdate& update) {
  return !std::holds_alternative<LabProgress>(update.what);
}

inline bool was_given_up(const LabUpdate& update, LabGivenUp how) {
  const auto* given_up = std::get_if<LabGivenUp>(&update.what);
  return given_up != nullptr && *given_up == how;
}

/// The update that ends a request: its report or failure. Until then others may only be told that
/// they were replaced.
inline std::optional<LabUpdate> final_update(LabClient& lab, Ticket ticket) {
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
inline std::vector<LabUpdate> final_updates(LabClient& lab, std::size_t count) {
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

inline lab::Report check_report(LabClient& lab, Ticket ticket) {
  const auto update = final_update(lab, ticket);
  REQUIRE(update.has_value());
  if (const auto* failure = std::get_if<LabFailure>(&update->what)) FAIL(failure->sentence);
  CHECK(std::get<lab::Report>(update->what).lesson == "online-softmax");
  CHECK(!lab.busy());
  return std::get<lab::Report>(update->what);
}

inline LabFailure check_failure(LabClient& lab, Ticket ticket) {
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
inline void wait_for_start(LabClient& lab) {
  REQUIRE(eventually([&] {
    const auto update = lab.poll();
    return update && std::holds_alternative<LabProgress>(update->what);
  }));
}

/// The worker, once it has replaced its own image (before that the environment may not change).
inline pid_t worker_pid() {
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

}  // namespace tilestep::tests
