// An edited kernel that fails or hangs on a GPU, from the lab that asks to the sentence with its line. The GPU is a
// module that only pretends to be one (failing_cuda_module.cpp), and so are nvcc and compute-sanitizer.
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "app/worker/lab_client.hpp"
#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;
using namespace std::chrono_literals;

namespace {

constexpr const char* kPath = "kernels/attention/online_softmax/one_pass.cu";
constexpr const char* kPlace = "    // 1. The maximum of all keys so far.\n";

/// A lab whose workers have that GPU.
class FakeGpu {
 public:
  explicit FakeGpu(const char* does) {
    set("TILESTEP_FAKE_GPU", does);
    set("TILESTEP_CUDA_MODULE", tilestep::tests::paths::kFailingModule);
    set("TILESTEP_CACHE", (folder() / "cache").string());
    set("TILESTEP_NVCC",
        program("nvcc",
                "case $1 in --version) echo 'release 13.0, V13.0.88'; exit;; esac\n"
                "while [ $# -gt 1 ]; do case $1 in -o) : > \"$2\";; esac; shift; done"));
    set("TILESTEP_COMPUTE_SANITIZER", "/no/such/program");
    options_.program = tilestep::tests::paths::kProgram;
    lab_ = make_process_lab(options_);
  }
  ~FakeGpu() {
    lab_.reset();
    for (const auto& [name, value] : set_) ::unsetenv(name.c_str());
  }
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;

  void set(const std::string& name, const std::string& value) {
    set_[name] = value;
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  std::string program(const std::string& name, const std::string& script) {
    const std::string file = (folder() / name).string();
    std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
    ::chmod(file.c_str(), 0700);
    return file;
  }

  /// The end of a run with `line` in the kernel, on that GPU; without, of the kernel as it is, under emulation.
  LabUpdate run(const std::string& line) {
    lab::Request request;
    request.lesson = "online-softmax";
    request.params = {{"head_dim", std::int64_t{64}}, {"tile_width", std::int64_t{4}}};
    request.backend = line.empty() ? "emulated" : "cuda";
    if (!line.empty()) request.kernel = edit_with(line);
    const Ticket ticket = lab_->submit(request);
    LabUpdate last;
    REQUIRE(eventually(
        [&] {
          while (auto update = lab_->poll()) {
            if (update->ticket != ticket) continue;
            if (std::holds_alternative<LabProgress>(update->what)) continue;
            last = std::move(*update);
            return true;
          }
          return false;
        },
        180s));
    return last;
  }
  LabFailure failure_of(const std::string& line) {
    LabUpdate last = run(line);
    REQUIRE(std::holds_alternative<LabFailure>(last.what));
    return std::get<LabFailure>(std::move(last.what));
  }
  /// Of the code that edit_with inserts.
  static int line_number() {
    const std::string text = file_text(std::string(tilestep::tests::paths::kSource) + "/" + kPath);
    const std::string before = text.substr(0, text.find(kPlace));
    return 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  }

 private:
  static lab::KernelEdit edit_with(const std::string& line) {
    std::string text = file_text(std::string(tilestep::tests::paths::kSource) + "/" + kPath);
    text.insert(text.find(kPlace), line + "\n");
    return {kPath, text};
  }
  const std::filesystem::path& folder() const { return folder_.path(); }

  TemporaryFolder folder_;
  std::map<std::string, std::string> set_;
  ProcessLabOptions options_;
  std::unique_ptr<LabClient> lab_;
};

void check_next_is_right(FakeGpu& gpu) {
  const LabUpdate next = gpu.run("");
  REQUIRE(std::holds_alternative<lab::Report>(next.what));
  CHECK(std::get<lab::Report>(next.what).ok());
}

}  // namespace

TEST_CASE("what fails on a GPU is told with the line that the emulation finds", "[gpu_line]") {
  FakeGpu gpu("fails");
  const LabFailure failure = gpu.failure_of("    if (thread == 3) weights[tile + 64] = o;");
  INFO(failure.sentence);
  const std::string line = std::to_string(FakeGpu::line_number());
  check_contains(failure.sentence,
                 "online_softmax: thread (3,0,0) of block (0,0,0) accesses dynamic shared memory");
  check_contains(failure.sentence,
                 "(line " + line +
                     " of one_pass.cu); the GPU said 'an error of the GPU', and the line was found "
                     "by running the kernel again under emulation");
  REQUIRE(!failure.diagnostics.empty());
  CHECK(failure.diagnostics.front().line == FakeGpu::line_number());
  CHECK(failure.code == ExitCode::check_failed);
  CHECK(failure.worker_died);
  check_next_is_right(gpu);
}

TEST_CASE("what never ends on a GPU is left there, and its line is found", "[gpu_line]") {
  FakeGpu gpu("hangs");
  const LabFailure failure = gpu.failure_of("    if (thread >= 32) __syncthreads();");
  INFO(failure.sentence);
  check_contains(failure.sentence,
                 "in line " + std::to_string(FakeGpu::line_number()) +
                     " of one_pass.cu; all threads of a block must reach the same one; on the GPU "
                     "it had not ended after 10 seconds, and the line was found");
  CHECK(failure.worker_died);
  check_next_is_right(gpu);
}

TEST_CASE("what fails on a GPU alone is told with the line of compute-sanitizer", "[gpu_line]") {
  FakeGpu gpu("fails");
  const LabFailure none = gpu.failure_of("    if (thread == 3) o += 0.0f;");
  CHECK(none.sentence ==
        "online_softmax: the kernel failed on the GPU: an error of the GPU; the line is not known: "
        "a run under emulation found nothing, and compute-sanitizer is not installed here");
  gpu.set("TILESTEP_COMPUTE_SANITIZER",
          gpu.program("compute-sanitizer",
                      "echo '========= Invalid __global__ read of size 4 bytes'\n"
                      "echo '=========     at online_softmax()+0x10 in one_pass.cu:105'\n"
                      "echo '=========     by thread (3,0,0) in block (0,0,0)'"));
  const LabFailure found = gpu.failure_of("    if (thread == 3) o += 0.0f;");
  check_contains(found.sentence,
                 "thread (3,0,0) of block (0,0,0): invalid __global__ read of size 4 bytes (line "
                 "105 of one_pass.cu); the GPU said 'an error of the GPU', a run under emulation "
                 "found nothing, and compute-sanitizer found the line");
  CHECK(found.worker_died);
  check_next_is_right(gpu);
}
