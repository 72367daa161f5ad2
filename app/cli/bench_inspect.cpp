#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/bench_parts.hpp"
#include "app/worker/sandbox.hpp"
#include "kernels/base/workbench/folders.hpp"
#include "kernels/base/workbench/program.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;

constexpr int kSaves = 5, kKernels = 12;
constexpr std::chrono::seconds kLimit{60};

/// A program of about 200 lines: small launches of `kKernels` kernels. Another number makes another text.
std::string program_text(int number) {
  std::string text = fmt::format("// {}\n#include <cstdio>\n#include <cuda_runtime.h>\n\n", number);
  for (int i = 0; i < kKernels; ++i) {
    text += fmt::format(
        "__global__ void step_{0}(const float* in, float* out, int n) {{\n  __shared__ float "
        "tile[256];\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  tile[threadIdx.x] = i < n "
        "? "
        "in[i] : 0.0f;\n  __syncthreads();\n  float sum = 0.0f;\n  for (int k = 0; k < 8; ++k)\n   "
        " "
        "sum += tile[(threadIdx.x + {0} * k) % 256];\n  if (i < n)\n    out[i] = sum;\n}}\n\n",
        i + 1);
  }
  text +=
      "int main() {\n  const int n = 4096;\n  float *a, *b;\n  cudaMalloc(&a, n * "
      "sizeof(float));\n  "
      "cudaMalloc(&b, n * sizeof(float));\n  cudaMemset(a, 0, n * sizeof(float));\n";
  for (int i = 0; i < kKernels; ++i) {
    text += fmt::format("  step_{0}<<<n / 256, 256>>>({1}, {2}, n);\n", i + 1,
                        i % 2 == 0 ? "a" : "b", i % 2 == 0 ? "b" : "a");
  }
  return text + "  cudaDeviceSynchronize();\n  cudaFree(a);\n  cudaFree(b);\n}\n";
}

/// One launch that makes a million accesses and more: a block's thread makes 65.
constexpr const char* kAccesses =
    "__global__ void sum(const float* in, float* out, int n) {\n  int i = blockIdx.x * blockDim.x "
    "+ "
    "threadIdx.x;\n  float sum = 0;\n  for (int k = 0; k < 64; ++k) sum += in[(i + k * 64) % n];\n "
    " "
    "out[i] = sum;\n}\nint main() {\n  const int n = 65536;\n  float *a, *b;\n  cudaMalloc(&a, n * "
    "4);\n  cudaMalloc(&b, n * 4);\n  cudaMemset(a, 0, n * 4);\n  sum<<<n / 256, 256>>>(a, b, "
    "n);\n  "
    "cudaFree(a);\n  cudaFree(b);\n}\n";
constexpr double kCountedAccesses = 65536.0 * 65;

double seconds_of(const std::vector<std::string>& words) {
  const auto begun = std::chrono::steady_clock::now();
  const workbench::Ran ran = workbench::run_program(words, kLimit);
  if (ran.status != 0)
    throw Error(
        fmt::format("{} ended with status {}: {}", words[0], ran.status, ran.output.substr(0, 400)),
        ExitCode::check_failed);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace

BenchPart bench_inspections(const std::string& program) {
  const workbench::OwnFolder folder("bench_inspect");
  const fs::path file = folder.path() / "program.cu", plain = folder.path() / "plain.cpp";
  std::vector<std::string> command = {program, "inspect", file.string(), "--json"};
  if (!sandbox_status().available) command.emplace_back("--trust");
  std::vector<double> fresh, again, compiled, traced;
  const std::string text = program_text(0);
  for (int i = 0; i < kSaves; ++i) {
    // A text that no run before has compiled, in this process or another.
    const auto number = std::chrono::steady_clock::now().time_since_epoch().count() % 1'000'000'007;
    workbench::write_whole(file, program_text(static_cast<int>(number)));
    fresh.push_back(seconds_of(command));
    again.push_back(seconds_of(command));
    workbench::write_whole(plain, "#include <cstdio>\n#include <vector>\nint main() {}\n");
    compiled.push_back(seconds_of({"c++", "-std=c++20", "-O0", "-c", "-o",
                                   (folder.path() / "plain.o").string(), plain.string()}));
    workbench::write_whole(file, kAccesses);
    std::vector<std::string> words = command;
    words.insert(words.end(), {"--orders", "0"});
    if (i == 0) seconds_of(words);  // compiles it
    traced.push_back(seconds_of(words));
  }
  const auto lines = std::count(text.begin(), text.end(), '\n');
  const double peer = middle(compiled), million = kCountedAccesses * 1e-6 / middle(traced);
  BenchPart part;
  part.table = {"inspect",
                "tilestep inspect",
                {"what", lab::real("seconds", "time", "s", 2),
                 lab::real("ratio", "of c++ with two headers", "", 2)}};
  part.table.add(
      {fmt::format("{} lines, saved to findings", lines), middle(fresh), middle(fresh) / peer});
  part.table.add({"the same, compiled before", middle(again), middle(again) / peer});
  part.table.add({fmt::format("{:.1f} million accesses", kCountedAccesses * 1e-6), middle(traced),
                  middle(traced) / peer});
  part.table.add({"c++ -O0 of <cstdio> and <vector>", peer, 1.0});
  part.json = {{"lines", lines},
               {"fresh_s", middle(fresh)},
               {"again_s", middle(again)},
               {"compiler_s", peer},
               {"million_accesses_s", million}};
  return part;
}

}  // namespace tilestep::app
