#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/bench_parts.hpp"
#include "app/shell/profiling.hpp"
#include "app/window/window.hpp"
#include "kernels/base/workbench/folders.hpp"

namespace tilestep::app {
namespace {

constexpr int kKernels = 25'000, kOpens = 5, kFrames = 400;

/// A trace as PyTorch's profiler writes it: per kernel an operator, a call and a flow, and a step after every hundred.
std::string trace_text() {
  constexpr const char* kEvents =
      R"js({{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": {0:.3f}, "dur": 10.2,
"args": {{"External id": {3}, "Input Dims": [[8, 4096], [4096, 4096]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}}}},
{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": {1:.3f}, "dur": 4.1,
"args": {{"External id": {3}, "cbid": 211, "correlation": {3}}}}},
{{"ph": "X", "cat": "kernel", "name": "void at::native::kernel_{4}<float, 4>(int, float*)", "pid": 0, "tid": 7,
"ts": {2:.3f}, "dur": {5:.3f}, "args": {{"External id": {3}, "device": 0, "context": 1, "stream": 7, "correlation": {3},
"registers per thread": 64, "shared memory": 0, "grid": [132, 1, 1], "block": [128, 1, 1],
"est. achieved occupancy %": 50}}}},
{{"ph": "s", "id": {3}, "pid": 1, "tid": 1, "ts": {1:.3f}, "cat": "ac2g", "name": "ac2g"}},
)js";
  constexpr const char* kStep =
      R"js({{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{}", "pid": 1, "tid": 1, "ts": {:.3f},
"dur": 1249, "args": {{}}}},
)js";
  std::string text =
      R"js({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "a GPU"}], "traceEvents": [)js";
  for (int i = 0; i < kKernels; ++i) {
    const double host = 12.5 * i;
    if (i % 100 == 0) text += fmt::format(kStep, i / 100, host);
    text += fmt::format(kEvents, host, host + 5, host + 9 + i % 7, i + 1, i % 40, 2.0 + i % 5);
  }
  return text +
         R"js({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}]})js";
}

}  // namespace

BenchPart bench_profiles() {
  const workbench::OwnFolder folder("bench_profile");
  const std::filesystem::path file = folder.path() / "trace.json";
  const std::string text = trace_text();
  workbench::write_whole(file, text);
  std::vector<double> opens;
  std::shared_ptr<const Profiled> profiled;
  for (int i = 0; i < kOpens; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    profiled = open_profile(file);
    opens.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun)
            .count());
  }
  ShellOptions options;
  options.profiled = profiled;
  FrameBench bench(options, kBenchWidth, kBenchHeight);
  BenchPart part;
  part.table = {
      "profile",
      fmt::format("A trace of {} events, {:.1f} MB", 4 * kKernels,
                  static_cast<double>(text.size()) * 1e-6),
      {"what", lab::real("median", "median", "ms", 3), lab::real("p99", "99 % below", "ms", 3)}};
  part.table.add({"open", middle(opens), lab::Cell()});
  part.json = {{"events", 4 * kKernels}, {"bytes", text.size()}, {"open_ms", middle(opens)}};
  const auto measure = [&](const char* what, Action action) {
    const FrameCosts costs = bench.measure(kFrames, action);
    part.table.add({what, costs.p50_ms, costs.p99_ms});
    part.json[what] = {{"p50_ms", costs.p50_ms}, {"p99_ms", costs.p99_ms}};
  };
  const auto lit = [&] { bench.shell().key(Key::bracket_right, false); };
  measure("frame, all of it", Action::still);
  measure("frame, the pointer on it", Action::hovering);
  for (int i = 0; i < 4; ++i) bench.shell().key(Key::period, false);
  measure("frame, a sixteenth, panning", Action::moving);
  lit();
  for (int i = 0; i < 5; ++i) lit();
  bench.shell().key(Key::home, false);
  measure("frame, all of it, a kernel lit", Action::still);
  return part;
}

}  // namespace tilestep::app
