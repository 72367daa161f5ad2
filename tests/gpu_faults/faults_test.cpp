// What becomes of a run on a GPU whose kernel goes wrong, of its worker, and of the next run.
#include <signal.h>
#include <unistd.h>

#include "app/worker/lab_client.hpp"
#include "kernels/base/simt/backends.hpp"
#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/skip.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;
using namespace std::chrono_literals;

namespace {

class Asked {
 public:
  Asked() {
    ProcessLabOptions options;
    options.program = tilestep::tests::paths::kProgram;
    options.run_deadline = 20s;
    lab_ = make_process_lab(options);
  }

  Ticket submit(const std::string& kind) {
    lab::Request request;
    request.lesson = "fault";
    request.params = {{"kind", kind}};
    request.backend = "cuda";
    return lab_->submit(request);
  }
  /// Until it has ended; `under_way` is called once, when the kernel is about to be launched.
  LabUpdate end_of(
      Ticket ticket, const std::function<void()>& under_way = [] {}) {
    LabUpdate last;
    bool told = false;
    const auto start = std::chrono::steady_clock::now();
    REQUIRE(eventually(
        [&] {
          while (auto update = lab_->poll()) {
            if (update->ticket != ticket) continue;
            const auto* progress = std::get_if<LabProgress>(&update->what);
            if (progress == nullptr) {
              last = std::move(*update);
              return true;
            }
            if (progress->note == "misbehaving" && !std::exchange(told, true)) under_way();
          }
          return false;
        },
        60s));
    took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return last;
  }
  LabFailure failure_of(const std::string& kind) {
    const LabUpdate last = end_of(submit(kind));
    REQUIRE(std::holds_alternative<LabFailure>(last.what));
    const LabFailure& failure = std::get<LabFailure>(last.what);
    WARN(kind << " after " << took_s << " s, exit code " << static_cast<int>(failure.code) << ": "
              << failure.sentence << " " << failure.next);
    return failure;
  }
  void next_is_right() {
    const LabUpdate last = end_of(submit("none"));
    if (const auto* failure = std::get_if<LabFailure>(&last.what)) FAIL(failure->sentence);
    CHECK(std::get<lab::Report>(last.what).ok());
    WARN("the next run is right, after " << took_s << " s");
  }
  void cancel(Ticket ticket) { lab_->cancel(ticket); }

  double took_s = 0;

 private:
  std::unique_ptr<LabClient> lab_;
};

bool has_gpu() {
  const simt::CudaStatus status = simt::cuda_status();
  if (!status.available) skip("no GPU: " + status.reason);
  return status.available;
}

}  // namespace

TEST_CASE("after an error that CUDA does not recover from the worker is replaced", "[gpu_faults]") {
  if (!has_gpu()) return;
  Asked lab;
  lab.next_is_right();
  for (const char* kind : {"illegal-address", "device-assert"}) {
    const LabFailure failure = lab.failure_of(kind);
    CHECK(failure.worker_died);
    CHECK(failure.code == ExitCode::check_failed);
    check_contains(failure.sentence, "misbehave: the kernel failed on the GPU");
    check_contains(failure.next, "next run starts another");
    lab.next_is_right();
  }
  CHECK(children_of(::getpid()).size() == 1);
}

TEST_CASE("what does not fit the GPU is said, and the worker goes on", "[gpu_faults]") {
  if (!has_gpu()) return;
  Asked lab;
  lab.next_is_right();
  const auto worker = children_of(::getpid());
  const LabFailure failure = lab.failure_of("out-of-memory");
  CHECK(!failure.worker_died);
  CHECK(failure.code == ExitCode::unavailable);
  check_contains(failure.sentence, "the GPU has no room for 1125899906842624 more bytes");
  lab.next_is_right();
  CHECK(children_of(::getpid()) == worker);
}

TEST_CASE("an endless kernel is ended by its deadline, and at once by a cancel", "[gpu_faults]") {
  if (!has_gpu()) return;
  Asked lab;
  const LabFailure failure = lab.failure_of("endless");
  check_contains(failure.sentence, "took longer than 20 seconds and was ended");
  lab.next_is_right();
  const Ticket ticket = lab.submit("endless");
  const LabUpdate last = lab.end_of(ticket, [&] { lab.cancel(ticket); });
  CHECK(std::get<LabGivenUp>(last.what) == LabGivenUp::cancelled);
  lab.next_is_right();
}

TEST_CASE("a worker killed during a launch is named and replaced", "[gpu_faults]") {
  if (!has_gpu()) return;
  Asked lab;
  const LabUpdate last = lab.end_of(lab.submit("endless"), [] {
    for (const pid_t worker : children_of(::getpid())) ::kill(worker, SIGKILL);
  });
  const LabFailure& failure = std::get<LabFailure>(last.what);
  WARN("killed: " << failure.sentence << " " << failure.next);
  check_contains(failure.sentence, "was ended by signal 9 (SIGKILL) while it ran fault");
  lab.next_is_right();
  CHECK(children_of(::getpid()).size() == 1);
}
