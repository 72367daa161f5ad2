// Any CUDA file: programs of our own in tests/inspect, half of them with a beginner's mistake, and what is said of them.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "app/shell/inspection.hpp"
#include "app/worker/sandbox.hpp"
#include "kernels/base/workbench/exercise.hpp"
#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/workbench/own_cache.hpp"
#include "tests/part.hpp"
#include "tests/paths.hpp"
#include "tests/skip.hpp"

namespace tilestep {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using tests::check_contains;
using tests::Outcome;
using tests::run_tilestep;
using tests::TemporaryFolder;
using Words = std::vector<std::string>;

std::vector<fs::path> programs(const char* folder) {
  std::vector<fs::path> all;
  for (const auto& entry :
       fs::directory_iterator(fs::path(tests::paths::kSource) / "tests/inspect" / folder)) {
    if (entry.path().extension() == ".cu") all.push_back(entry.path());
  }
  std::sort(all.begin(), all.end());
  REQUIRE(all.size() >= 30);
  return all;
}

Outcome inspected(const fs::path& file, const Words& more = {}) {
  Words words = {"inspect", file.string(), "--trust", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  // What nvcc says of registers is tested by itself: it takes longer than all the rest.
  return run_tilestep(words, "", {{"TILESTEP_NVCC", "/no/such/nvcc"}});
}

/// Of a program whose text is given.
Outcome inspected_text(const TemporaryFolder& folder, const std::string& text,
                       const Words& more = {}) {
  const fs::path file = folder.path() / "program.cu";
  std::ofstream(file) << text;
  return inspected(file, more);
}

json rows_of(const json& report, const std::string& table) {
  for (const json& each : report.at("tables")) {
    if (each.at("id") == table) return each.at("rows");
  }
  return json::array();
}

/// Mistakes as "kind line other".
struct Mistake {
  std::string kind;
  int line = 0, other = 0;
  std::string text;
};
std::vector<Mistake> mistakes_of(const json& report) {
  std::vector<Mistake> all;
  for (const json& row : rows_of(report, "findings")) {
    if (row.at(1) != "yes") continue;
    const auto number = [&](std::size_t i) {
      return row.at(i).is_number() ? row.at(i).get<int>() : 0;
    };
    all.push_back({row.at(0), number(2), number(3), row.at(5)});
  }
  return all;
}

std::string printed(const json& report) {
  return report.at("trace").at("printed");
}

/// What the plain C++ version of a program prints.
std::string printed_plainly(const fs::path& source) {
  const TemporaryFolder folder;
  const std::string program = (folder.path() / "plain").string();
  tests::Child compiler({"c++", "-std=c++17", source.string(), "-o", program});
  REQUIRE(compiler.finish(std::chrono::seconds(60)) == 0);
  tests::Child run({program});
  REQUIRE(run.finish(std::chrono::seconds(20)) == 0);
  return run.out();
}

TEST_CASE(
    "inspect: what is right prints what plain C++ prints, in any order of its threads, and has no "
    "mistake",
    "[inspect_right]") {
  const tests::KeptCache cache;
  tests::Part part("inspect right", 4);
  for (const fs::path& file : programs("right")) {
    if (part.skips()) continue;
    INFO(file.stem().string());
    const Outcome outcome = inspected(file, {"--orders", "20"});
    INFO(outcome.err << outcome.out.substr(0, 2000));
    REQUIRE(outcome.code == 0);
    CHECK(printed(outcome.json()) == printed_plainly(fs::path(file).replace_extension(".cpp")));
    CHECK(mistakes_of(outcome.json()).empty());
  }
}

TEST_CASE("inspect: each mistake is named, with its line, and nothing else is", "[inspect_wrong]") {
  const tests::KeptCache cache;
  tests::Part part("inspect wrong", 4);
  for (const fs::path& file : programs("wrong")) {
    if (part.skips()) continue;
    INFO(file.stem().string());
    std::string kind;
    std::set<int> lines;
    std::ifstream source(file);
    int number = 0;
    for (std::string line; std::getline(source, line);) {
      ++number;
      constexpr std::string_view kExpect = "// expect: ";
      const std::size_t at = line.find(kExpect);
      if (at == line.npos) continue;
      kind = line.substr(at + kExpect.size());
      lines.insert(number);
    }
    REQUIRE(!lines.empty());
    const Outcome outcome = inspected(file);
    INFO(outcome.err << outcome.out.substr(0, 2000));
    CHECK(outcome.code == 1);
    const std::vector<Mistake> mistakes = mistakes_of(outcome.json());
    REQUIRE(!mistakes.empty());
    bool at_line = false;
    for (const Mistake& each : mistakes) {
      CHECK(each.kind == kind);
      CHECK(!each.text.empty());
      at_line = at_line || lines.count(each.line) > 0 || lines.count(each.other) > 0;
    }
    CHECK(at_line);
  }
}

// ---- numbers -------------------------------------------------------------------------------------

/// Kernels on plain pointers that read as the lesson's patterns do.
constexpr const char* kPatterns = R"(
#include <cstdio>
#include <cuda_fp16.h>
#define KERNEL(name, index) \
  __global__ void name(const float* in, float* out) { const int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = in[index]; }
KERNEL(sequential, i)
KERNEL(strided, i * 8)
KERNEL(offset, i + 1)
KERNEL(reversed, 1023 - i)
KERNEL(broadcast, i / 32)
KERNEL(aos, i * 4 + 1)
KERNEL(soa, 1024 + i)
__global__ void halves(const __half* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __half2float(in[i]);
}
struct Pair {
  float x, y, z;
};
__device__ Pair operator+(Pair a, Pair b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
__global__ void by_value(const Pair* in, Pair* out) {
  const int i = threadIdx.x;
  out[i] = in[i] + in[i + 32];
}
__global__ void column(float* out) {
  __shared__ float plain[32][32], padded[32][33];
  const int x = threadIdx.x, y = threadIdx.y;
  plain[y][x] = x;
  padded[y][x] = y;
  __syncthreads();
  out[y * 32 + x] = plain[x][y]
    + padded[x][y];
}
int main() {
  float *in, *out;
  cudaMalloc(&in, 8192 * sizeof(float));
  cudaMalloc(&out, 1024 * sizeof(float));
  cudaMemset(in, 0, 8192 * sizeof(float));
#define RUN(name) name<<<4, 256>>>(in, out)
  RUN(sequential); RUN(strided); RUN(offset); RUN(reversed); RUN(broadcast); RUN(aos); RUN(soa);
  halves<<<4, 256>>>((const __half*)in, out);
  by_value<<<1, 32>>>((const Pair*)in, (Pair*)out);
  column<<<1, dim3(32, 32)>>>(out);
  cudaFree(in);
  cudaFree(out);
}
)";

/// Sectors of a request on average, by the lesson's own trace.
double sectors_in_lesson(const Words& settings) {
  Words words = {"run", "coalescing", "--backend", "emulated", "--json"};
  for (const std::string& each : settings) {
    words.emplace_back("--set");
    words.push_back(each);
  }
  double sum = 0;
  int count = 0;
  for (const json& row : rows_of(run_tilestep(words).json(), "requests")) {
    if (row.at(2) != "pattern") continue;
    sum += row.at(5).get<double>();
    ++count;
  }
  REQUIRE(count > 0);
  return sum / count;
}

TEST_CASE(
    "inspect: sectors are those of the lesson on coalescing, bank ways those of its transposes",
    "[inspect_wrong]") {
  const tests::KeptCache cache;
  const TemporaryFolder folder;
  const Outcome outcome = inspected_text(folder, kPatterns, {"--orders", "0"});
  INFO(outcome.err << outcome.out.substr(0, 3000));
  REQUIRE(outcome.code == 0);
  std::map<std::string, double> sectors;
  std::vector<double> turns;
  const json rows = rows_of(outcome.json(), "accesses");
  for (const json& row : rows) {
    if (row.at(3) == "global" && row.at(4) == "load") sectors[row.at(1)] = row.at(8);
    if (row.at(3) == "shared" && row.at(4) == "load") turns.push_back(row.at(8));
  }
  for (const auto& [kernel, settings] :
       std::map<std::string, Words>{{"sequential", {"pattern=sequential"}},
                                    {"strided", {"pattern=strided", "stride=8"}},
                                    {"offset", {"pattern=offset", "offset=1"}},
                                    {"reversed", {"pattern=reversed"}},
                                    {"broadcast", {"pattern=broadcast"}},
                                    {"aos", {"pattern=aos", "fields=4"}},
                                    {"soa", {"pattern=soa", "fields=4"}}}) {
    INFO(kernel);
    CHECK(sectors.at(kernel) == sectors_in_lesson(settings));
  }
  CHECK(sectors.at("halves") == 2);  // of an argument by value
  CHECK(sectors.at("by_value") == 12);
  CHECK(std::any_of(rows.begin(), rows.end(), [](const json& row) {
    return row.at(1) == "by_value" && row.at(4) == "store" && row.at(8) == 12;
  }));
  CHECK(turns == std::vector<double>{32, 1});
}

/// Steps of the Collatz sequences of 1 to n, one per thread, with the loop's branch and the one in its body.
constexpr const char* kCollatz = R"(
#include <cstdio>
__global__ void collatz(int* steps, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x = i + 1;
  int count = 0;
  while (x != 1) {
    if (x % 2 == 0) {
      x /= 2;
    } else {
      x = 3 * x + 1;
    }
    ++count;
  }
  steps[i] = count;
}
__global__ void polynomial(const float* in, float* out, double* sums) {
  int i = threadIdx.x;
  float x = in[i];
  for (int k = 0; k < 3; ++k) x = x * x + 0.5f;
  out[i] = x / 3.0f;
  if (i < 8) sums[i] = x * 2.0 - 1.0;
}
int main() {
  int* steps;
  float *in, *out;
  double* sums;
  cudaMalloc(&steps, 200 * sizeof(int));
  cudaMalloc(&in, 64 * sizeof(float));
  cudaMalloc(&out, 64 * sizeof(float));
  cudaMalloc(&sums, 8 * sizeof(double));
  cudaMemset(in, 0, 64 * sizeof(float));
  collatz<<<2, 128>>>(steps, 200);
  polynomial<<<1, 64>>>(in, out, sums);
  cudaFree(steps), cudaFree(in), cudaFree(out), cudaFree(sums);
}
)";

struct Divergence {
  double warps = 0, split = 0,
         lanes = 0;  ///< lanes that took the first way, of those executions where one did
  double first = 0;
};

TEST_CASE("inspect: warps diverge as lanes in lockstep do", "[inspect_wrong]") {
  const tests::KeptCache cache;
  const TemporaryFolder folder;
  const Outcome outcome = inspected_text(folder, kCollatz, {"--orders", "0"});
  INFO(outcome.err << outcome.out.substr(0, 3000));
  REQUIRE(outcome.code == 0);
  Divergence loop, even;
  for (int warp = 0; warp < 7; ++warp) {
    std::vector<unsigned> x;
    for (int lane = 0; lane < 32 && 32 * warp + lane < 200; ++lane)
      x.push_back(static_cast<unsigned>(32 * warp + lane + 1));
    while (!x.empty()) {
      const auto stays = static_cast<std::size_t>(
          std::count_if(x.begin(), x.end(), [](unsigned of) { return of != 1; }));
      ++loop.warps;
      loop.split += stays > 0 && stays < x.size();
      std::erase(x, 1u);
      if (x.empty()) break;
      const auto halves = static_cast<std::size_t>(
          std::count_if(x.begin(), x.end(), [](unsigned of) { return of % 2 == 0; }));
      ++even.warps;
      even.split += halves > 0 && halves < x.size();
      even.first += halves > 0;
      even.lanes += static_cast<double>(halves);
      for (unsigned& of : x) of = of % 2 == 0 ? of / 2 : 3 * of + 1;
    }
  }
  std::map<int, std::pair<double, double>> branches;
  for (const json& row : rows_of(outcome.json(), "branches"))
    branches[row.at(2).get<int>()] = {row.at(3), row.at(4)};
  CHECK(branches.at(8) == std::pair(loop.warps, loop.split));
  CHECK(branches.at(9) == std::pair(even.warps, even.split));
  const json findings = rows_of(outcome.json(), "findings");
  const std::string lanes = fmt::format("line 10 runs with {:.3g} of 32", even.lanes / even.first);
  CHECK(std::any_of(findings.begin(), findings.end(), [&](const json& row) {
    return row.at(0) == "divergence" && row.at(1) == "no" && row.at(2) == 9 &&
           row.at(5).get<std::string>().find(lanes) != std::string::npos;
  }));
  // Operations: two in each of three turns and a division; in double precision two for each of eight threads.
  const json launch = rows_of(outcome.json(), "launches").at(1);
  CHECK(launch.at(12) == 64 * 7);
  CHECK(launch.at(13) == 8 * 2);
  CHECK(launch.at(11) == 64 * 4 + 64 * 4 + 8 * 8);
}

TEST_CASE("inspect: occupancy, roofline, and what was never said of registers", "[inspect_wrong]") {
  const tests::KeptCache cache;
  const TemporaryFolder folder;
  const Outcome outcome = inspected_text(folder, kCollatz, {"--orders", "0", "--gpu", "t4"});
  const json occupancy = rows_of(outcome.json(), "occupancy").at(0);
  CHECK(occupancy.at(2) == 100);
  CHECK(occupancy.at(4) == 8);       // of 128 threads, where a multiprocessor has 1024
  CHECK(occupancy.at(7).is_null());  // there is no nvcc in this test
  const json roofline = rows_of(outcome.json(), "roofline").at(1);
  CHECK(roofline.at(3) == "memory");
  CHECK(roofline.at(4).get<double>() == 0.806);
  CHECK(inspected_text(folder, kCollatz, {"--gpu", "gt200"}).code == 2);
}

TEST_CASE("inspect: a lonely kernel and a judge's solve are called by the command line",
          "[inspect_wrong]") {
  const tests::KeptCache cache;
  const TemporaryFolder folder;
  constexpr const char* kLonely =
      "template <class T>\n__global__ void scale(const T* x, T* y, int n) {\n  int i = blockIdx.x "
      "* blockDim.x + threadIdx.x;\n  if (i <= n) y[i] = 2 * x[i];\n}\n";
  const Outcome called =
      inspected_text(folder, kLonely,
                     {"--call", "scale<float>(in[float:10x10], out[float:100], 100)", "--grid", "2",
                      "--block", "64"});
  INFO(called.err << called.out.substr(0, 2000));
  CHECK(called.code == 1);
  REQUIRE(!mistakes_of(called.json()).empty());
  CHECK(mistakes_of(called.json())[0].kind == "bounds");
  CHECK(mistakes_of(called.json())[0].line == 4);
  check_contains(called.json().at("trace").at("main").get<std::string>(), "scale<float><<<");
  const std::string solve = std::string(kLonely) +
                            "extern \"C\" void solve(const float* x, float* y, int n) {\n  "
                            "scale<<<1, 64>>>(x, y, n - 1);\n}\n";
  const Outcome solved = inspected_text(folder, solve, {"--args", "{\"n\": 50}"});
  INFO(solved.err << solved.out.substr(0, 2000));
  CHECK(solved.code == 0);
  check_contains(printed(solved.json()), "y: sum ");
  const Outcome both =
      inspected_text(folder, solve, {"--args", "{\"n\": 50}", "--call", "scale()"});
  CHECK(both.code == 2);
  CHECK(run_tilestep({"inspect", (folder.path() / "program.cu").string(), "--backend", "cuda"})
            .code == 2);  // not without --trust
  CHECK(inspected_text(folder, solve, {"--backend", "rocm"}).code == 2);
}

TEST_CASE("inspect: patterns without a formula move the lesson's sectors too", "[inspect_wrong]") {
  const tests::KeptCache cache;
  const TemporaryFolder folder;
  const std::pair<const char*, Words> patterns[] = {
      {"permuted_warp", {"pattern=permuted-warp"}},
      {"permuted", {"pattern=permuted"}},
      {"matrix_row", {"pattern=matrix-row"}},
      {"matrix_column", {"pattern=matrix-column"}},
      {"custom", {"pattern=custom", "lanes=0:40,5:80,31:200"}}};
  std::string text, launches;
  std::map<std::string, double> wanted;
  for (const auto& [name, settings] : patterns) {
    Words words = {"run", "coalescing", "--backend", "emulated", "--json"};
    for (const std::string& each : settings) words.insert(words.end(), {"--set", each});
    std::string order;
    double sectors = 0;
    int threads = 0, requests = 0;
    const json trace = run_tilestep(words).json().at("trace");
    for (const json& request : trace.at("requests")) {
      if (request.at("kind") != "load" || request.at("site") != "pattern") continue;
      for (const json& byte : request.at("bytes")) {
        order += fmt::format("{},", byte.get<int>() / 4);
        ++threads;
      }
      ++requests;
    }
    REQUIRE(threads == 32 * requests);
    sectors = sectors_in_lesson(settings);
    wanted[name] = sectors;
    text += fmt::format(
        "const int order_{0}[] = {{{1}}};\n__global__ void {0}(const int* order, const float* in, "
        "float* out) {{\n  const int i = blockIdx.x * blockDim.x + threadIdx.x, at = order[i];\n  "
        "out[i] = in[at];\n}}\n",
        name, order);
    launches += fmt::format(
        "  cudaMalloc(&order, sizeof order_{0});\n  cudaMemcpy(order, order_{0}, sizeof order_{0}, "
        "cudaMemcpyHostToDevice);\n  {0}<<<{1}, 32>>>(order, in, out);\n  cudaFree(order);\n",
        name, requests);
  }
  const Outcome outcome = inspected_text(
      folder,
      text +
          "int main() {\n  float *in, *out;\n  int* order;\n  cudaMalloc(&in, 1 << 20);\n  "
          "cudaMalloc(&out, 1 << 20);\n  cudaMemset(in, 0, 1 << 20);\n" +
          launches + "  cudaFree(in);\n  cudaFree(out);\n}\n",
      {"--orders", "0"});
  INFO(outcome.err << outcome.out.substr(0, 3000));
  REQUIRE(outcome.code == 0);
  std::map<std::string, std::vector<double>> found;
  for (const json& row : rows_of(outcome.json(), "accesses")) {
    if (row.at(4) == "load") found[row.at(1)].push_back(row.at(8));
  }
  for (const auto& [name, sectors] : wanted) {
    INFO(name);
    REQUIRE(found.at(name).size() == 2);
    CHECK(found.at(name)[0] == 4);  // of the order
    CHECK(std::abs(found.at(name)[1] - sectors) < 0.01);
  }
}

// ---- what else a program may be ------------------------------------------------------------------

TEST_CASE("inspect: what cannot be inspected gets a sentence", "[inspect_wrong]") {
  const tests::KeptCache cache;
  const TemporaryFolder folder;
  CHECK(run_tilestep({"inspect"}).code == 2);
  CHECK(inspected(folder.path() / "none.cu").code == 3);
  CHECK(inspected(folder.path()).code != 0);
  const Outcome wrong = inspected_text(folder, "int main() {\n  return nothing;\n}\n");
  CHECK(wrong.code == 1);
  check_contains(wrong.err, "line 2");
  check_contains(wrong.err, "nothing");
  const Outcome texture = inspected_text(
      folder,
      "int main() {}\n__global__ void k(cudaTextureObject_t t) { tex2D<float>(t, 0, 0); }\n");
  CHECK(texture.code == 1);
  check_contains(texture.err, "textures and surfaces are not emulated");
  for (const auto& [text, says] : std::map<std::string, std::string>{
           {"#include <cufft.h>\n", "CUDA's libraries are not emulated"},
           {"#include <curand.h>\n", "in a kernel with curand_kernel.h"},
           {"#include <cublas_v2.h>\nvoid f(cublasHandle_t h) { cublasGemmEx(h); }\n",
            "use cublasSgemm"},
           {"__global__ void k() { asm volatile(\"griddepcontrol.wait;\"); }\n",
            "the instruction griddepcontrol.wait is not emulated"}}) {
    const Outcome refused = inspected_text(folder, text + "int main() {}\n");
    CHECK(refused.code == 1);
    check_contains(refused.err, says);
  }
  const Outcome recursion = inspected_text(
      folder,
      "__device__ int f(int n) { return n < 2 ? 1 : n * f(n - 1); }\n__global__ void k(int* x) { "
      "*x = f(5); }\nint main() {\n  int *x, h;\n  cudaMalloc(&x, 4);\n  k<<<1, 1>>>(x);\n  "
      "cudaMemcpy(&h, x, 4, cudaMemcpyDeviceToHost);\n  cudaFree(x);\n  return h - 120;\n}\n");
  CHECK(recursion.code == 0);
  const Outcome none = inspected_text(folder, "__global__ void k() {}\n");
  CHECK(none.code == 1);
  check_contains(none.out, "has no main");
  const Outcome status = inspected_text(folder,
                                        "#include <cstdlib>\nint main(int n, char** words) { "
                                        "exit(n == 3 && words[2][0] == 'b' ? 0 : 4); }\n",
                                        {"--", "a", "b"});
  CHECK(status.code == 0);
}

TEST_CASE("inspect: a program that never ends, or ends badly, is told with what it did before",
          "[inspect_wrong]") {
  const tests::KeptCache cache;
  const TemporaryFolder folder;
  const auto mistakes = [&](const std::string& text) {
    const Outcome outcome = inspected_text(folder, text, {"--seconds", "1"});
    INFO(outcome.err << outcome.out.substr(0, 1000));
    REQUIRE(outcome.code == 1);
    return mistakes_of(outcome.json());
  };
  const auto one = [&](const std::string& text, const std::string& says) {
    const std::vector<Mistake> all = mistakes(text);
    REQUIRE(all.size() == 1);
    CHECK(all[0].kind == "crash");
    check_contains(all[0].text, says);
  };
  one("int main() { volatile int on = 1; while (on) {} }", "still runs");
  one("__global__ void k() { volatile int on = 1; while (on) {} }\nint main() { k<<<1, 1>>>(); }",
      "still runs");
  one("int main() { int* volatile p = nullptr; return *p; }", "null or wild pointer");
  one("#include <cstdlib>\nint main() { abort(); }", "abort");
  one("#include <stdexcept>\nint main() { throw std::runtime_error(\"so\"); }", "so");
}

TEST_CASE("inspect: what a library is given is checked as copies are", "[inspect_wrong]") {
  const tests::KeptCache cache;
  const TemporaryFolder folder;
  const auto one = [&](const std::string& call, const std::string& kind, const std::string& says) {
    const Outcome outcome = inspected_text(
        folder,
        "#include <cublas_v2.h>\nint main() {\n  cublasHandle_t handle;\n  cublasCreate(&handle);\n"
        "  float *d_x, *d_y, h[16] = {}, two = 2;\n  cudaMalloc(&d_x, 64);\n  cudaMalloc(&d_y, "
        "64);\n"
        "  cudaMemset(d_x, 0, 64);\n" +
            call +
            "\n  cudaFree(d_x);\n  cudaFree(d_y);\n  cublasDestroy(handle);\n  return h[0];\n}\n");
    INFO(call << outcome.err << outcome.out.substr(0, 1000));
    CHECK(outcome.code == 1);
    const std::vector<Mistake> all = mistakes_of(outcome.json());
    REQUIRE(all.size() == 1);
    CHECK(all[0].kind == kind);
    CHECK(all[0].line == 9);
    check_contains(all[0].text, says);
  };
  one("cublasSscal(handle, 16, &two, h, 1);", "host_pointer",
      "cublasSscal is given memory of the host as x");
  one("cublasSscal(handle, 17, &two, d_x, 1);", "bounds",
      "cublasSscal uses 68 bytes from d_x[0] on as x, but d_x has 64 bytes from there");
  one("cublasSaxpy(handle, 4, &two, d_x, 1, d_y, 4);", "uninitialized",
      "cublasSaxpy reads d_y[0] as y, and nothing has written it");
  one("cublasSdot(handle, 16, d_x, 1, d_x, 1, d_y);", "device_pointer", "the host writes d_y[0]");
  one("cublasSgemv(handle, CUBLAS_OP_N, 4, 4, &two, d_x, 3, d_x, 1, &two, d_x, 1);", "launch",
      "a leading dimension of 3");
}

TEST_CASE("inspect: results that depend on the order of threads are told", "[inspect_wrong]") {
  const tests::KeptCache cache;
  const TemporaryFolder folder;
  // Each block takes the next place: no race, and another order all the same.
  const Outcome outcome = inspected_text(folder, R"(
#include <cstdio>
__global__ void k(int* next, int* out) { out[atomicAdd(next, 1)] = threadIdx.x; }
int main() {
  int *next, *out, got[64];
  cudaMalloc(&next, 4);
  cudaMalloc(&out, 256);
  cudaMemset(next, 0, 4);
  k<<<1, 64>>>(next, out);
  cudaMemcpy(got, out, 256, cudaMemcpyDeviceToHost);
  printf("%d\n", got[0]);
  cudaFree(next);
  cudaFree(out);
}
)");
  INFO(outcome.err << outcome.out.substr(0, 1000));
  CHECK(outcome.code == 1);
  const std::vector<Mistake> all = mistakes_of(outcome.json());
  REQUIRE(all.size() == 1);
  CHECK(all[0].kind == "order");
}

TEST_CASE("inspect: what prints something else each time is not taken for the order of threads",
          "[inspect_wrong]") {
  const tests::KeptCache cache;
  const TemporaryFolder folder;
  const Outcome outcome = inspected_text(
      folder,
      "#include <cstdio>\n#include <unistd.h>\nint main() {\n  printf(\"%d\\n\", getpid());\n}\n");
  INFO(outcome.err << outcome.out.substr(0, 1000));
  CHECK(outcome.code == 0);
  CHECK(mistakes_of(outcome.json()).empty());
  check_contains(outcome.out, "its orders are not compared");
}

TEST_CASE("inspect: the window runs a file again when it is saved, and says what is wrong with it",
          "[inspect_wrong]") {
  if (!app::sandbox_status().available) return tests::skip(app::sandbox_status().reason);
  const tests::KeptCache cache;
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "program.cu";
  const auto write = [&](const std::string& text) {
    const bool there = fs::exists(file);
    const auto before = there ? fs::last_write_time(file) : fs::file_time_type();
    std::ofstream(file) << text;
    if (there)
      fs::last_write_time(file, before + std::chrono::seconds(2));  // whatever the clock's steps
  };
  const std::string good =
      "__global__ void k(int* x) { x[threadIdx.x] = 1; }\nint main() {\n  int* x;\n  "
      "cudaMalloc(&x, 128);\n  k<<<1, 32>>>(x);\n  cudaFree(x);\n}\n";
  write(good);
  app::Inspection inspection(tests::paths::kProgram);
  double now_s = 0;
  const auto until = [&](const std::function<bool()>& there) {
    return tests::eventually([&] { return inspection.update(now_s += 1), there(); },
                             std::chrono::seconds(60));
  };
  inspection.open(file);
  REQUIRE(until([&] { return inspection.report() != nullptr; }));
  CHECK(inspection.report()->ok());
  REQUIRE(inspection.requests().size() == 1);
  CHECK(inspection.line() == 1);
  write("int main() {\n  return nothing;\n}\n");
  REQUIRE(until([&] { return !inspection.failure().empty(); }));
  check_contains(inspection.failure(), "line 2");
  CHECK(inspection.report() == nullptr);
  write(good + "\n");
  REQUIRE(until([&] { return inspection.report() != nullptr; }));
  CHECK(inspection.failure().empty());
}

TEST_CASE("inspect: the window judges a program of First steps each time it is saved",
          "[inspect_wrong]") {
  if (!app::sandbox_status().available) return tests::skip(app::sandbox_status().reason);
  const tests::KeptCache cache;
  const TemporaryFolder folder;
  const lab::Exercise& exercise = lab::exercise("first-steps/1-scale-a-vector");
  const fs::path file = folder.path() / "mine.cu";
  std::ofstream(file) << lab::starter(exercise);
  app::Inspection inspection(tests::paths::kProgram);
  double now_s = 0;
  const auto judged = [&] {
    return tests::eventually([&] {
      inspection.update(now_s += 1);
      return !inspection.running() && inspection.verdict() != nullptr;
    });
  };
  inspection.open(file);
  CHECK(inspection.exercise() == exercise.id());
  REQUIRE(judged());
  CHECK_FALSE(inspection.verdict()->ok);
  check_contains(inspection.verdict()->sentence, "d_");
  CHECK_FALSE(inspection.verdict()->hint.empty());
  std::string text = lab::starter(exercise);
  text.replace(text.find(exercise.hole), exercise.hole.size(), exercise.solution);
  std::ofstream(file) << text;
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(2));
  REQUIRE(tests::eventually([&] {
    inspection.update(now_s += 1);
    return !inspection.running() && inspection.verdict() != nullptr && inspection.verdict()->ok;
  }));
}

TEST_CASE("inspect: a stranger's program reaches nothing outside of its sandbox",
          "[inspect_wrong]") {
  if (!app::sandbox_status().available) return tests::skip(app::sandbox_status().reason);
  const tests::KeptCache cache;
  const TemporaryFolder folder;
  const fs::path target = folder.path() / "written";
  const fs::path secret = folder.path() / "secret";
  std::ofstream(secret) << "private";
  const fs::path file = folder.path() / "program.cu";
  std::ofstream(file) << fmt::format(R"(
#include <cstdio>
#include <cstdlib>
#include <sys/socket.h>
#include <unistd.h>
int main() {{
  printf("write %d\n", fopen("{}", "w") != nullptr);
  printf("read %d\n", fopen("{}", "r") != nullptr);
  printf("environment %d\n", getenv("TILESTEP_SECRET") != nullptr);
  printf("socket %d\n", socket(AF_INET, SOCK_STREAM, 0) >= 0);
  if (fork() == 0) for (;;) sleep(1);
}}
)",
                                     target.string(), secret.string());
  const Outcome outcome = run_tilestep({"inspect", file.string(), "--json", "--orders", "0"}, "",
                                       {{"TILESTEP_SECRET", "1"}});
  INFO(outcome.err << outcome.out.substr(0, 1000));
  CHECK(printed(outcome.json()) == "write 0\nread 0\nenvironment 0\nsocket 0\n");
  CHECK(!fs::exists(target));
}

TEST_CASE("inspect: a hostile program ends, says something, and harms nothing outside",
          "[inspect_wrong]") {
  if (!app::sandbox_status().available) return tests::skip(app::sandbox_status().reason);
  const tests::KeptCache cache;
  const TemporaryFolder folder;
  constexpr const char* kHead =
      "#include <fcntl.h>\n#include <signal.h>\n#include <sys/mman.h>\n#include <sys/resource.h>\n"
      "#include <sys/shm.h>\n#include <sys/stat.h>\n#include <sys/statvfs.h>\n#include <unistd.h>\n"
      "#include <cstdio>\n#include <cstdlib>\n__global__ void k(int* x) { x[threadIdx.x] = 1; }\n";
  constexpr const char* kTail =
      "  int* x;\n  cudaMalloc(&x, 128);\n  k<<<1, 32>>>(x);\n  cudaFree(x);\n}\n";
  struct Hostile {
    const char* name;
    int code;  ///< of the command; 0: the program does no harm, and is right
    std::string text;
  };
  const Hostile all[] = {
      {"ends", 1, "  ::_exit(0);\n"},
      {"talks", 1,
       "  for (int fd = 1; fd < 9; ++fd) { if (::write(fd, \"{}\\n[]\\n\", 6) < 0) {} }\n"},
      {"removes", 0, "  if (std::system(\"rm -rf /tmp/* /tmp/.[a-z]*\")) {}\n"},
      {"closes", 1, "  for (int fd = 0; fd < 64; ++fd) ::close(fd);\n"},
      {"kills", 0, "  ::kill(-1, SIGKILL);\n"},
      {"fills", 0,
       "  std::FILE* file = std::fopen(\"/tmp/all\", \"w\");\n  static char zeros[1 << 20];\n  "
       "while (file != nullptr && std::fwrite(zeros, sizeof zeros, 1, file) == 1) {}\n"},
      {"stays", 0, "  if (::fork() == 0) { ::setsid(); for (;;) ::sleep(1); }\n"},
      {"forks", 1,  // no thread is left for its own kernel

       "  for (int i = 0; i < 200; ++i) if (::fork() == 0) { ::sleep(60); ::_exit(0); }\n"},
      {"eats", 1,
       "  for (;;) { char* more = (char*)std::malloc(64 << 20); if (!more) ::_exit(5); for (int i "
       "= 0; "
       "i < 64 << 20; i += 4096) more[i] = 1; }\n"},
      // Each ends the program with a number of its own where it succeeds.
      {"climbs", 0, R"(
  if (::open("/proc/sys/kernel/core_pattern", O_WRONLY) >= 0) ::_exit(51);
  if (::open("/proc/sysrq-trigger", O_WRONLY) >= 0) ::_exit(52);
  if (::getuid() == 0 || ::geteuid() == 0) ::_exit(53);
  if (::open("/etc/written", O_CREAT | O_WRONLY, 0600) >= 0) ::_exit(54);
  if (::shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600) >= 0) ::_exit(55);
  if (::memfd_create("more", 0) >= 0) ::_exit(56);
  rlimit is{};
  ::getrlimit(RLIMIT_NPROC, &is);
  if (is.rlim_cur > 16 + 8 * static_cast<rlim_t>(::sysconf(_SC_NPROCESSORS_ONLN))) ::_exit(62);
  struct statvfs room{};
  if (::statvfs("/tmp", &room) != 0 || room.f_blocks * room.f_frsize > 512u << 20) ::_exit(63);
)"}};
  tests::Part part("hostile programs", 3);
  for (const Hostile& each : all) {
    if (part.skips()) continue;
    INFO(each.name);
    const fs::path file = folder.path() / (std::string(each.name) + ".cu");
    std::ofstream(file) << kHead << "int main() {\n" << each.text << kTail;
    const Outcome outcome = run_tilestep({"inspect", file.string(), "--text", "--orders", "0"}, "",
                                         {{"TILESTEP_NVCC", "/no/such/nvcc"}});
    INFO(outcome.out.substr(0, 1500) << outcome.err);
    CHECK(outcome.code == each.code);
    CHECK_FALSE((outcome.out + outcome.err).empty());
    CHECK(tests::Child({"pgrep", "-f", file.stem().string() + "[.]cu"})
              .finish(std::chrono::seconds(10)) == 1);
    for (const auto& entry : fs::directory_iterator(folder.path()))
      CHECK(entry.path().extension() == ".cu");
  }
}

}  // namespace
}  // namespace tilestep
