// Mains for files without one, and what a GPU's tools print.
#include "kernels/base/inspect/call.hpp"

#include "kernels/base/inspect/fidelity.hpp"
#include "kernels/base/inspect/on_gpu.hpp"
#include "kernels/base/inspect/resources.hpp"
#include "kernels/base/workbench/cuda_words.hpp"
#include "tests/catch.hpp"

namespace tilestep::inspect {
namespace {

using tests::contains;

TEST_CASE("inspect: a call becomes a main that allocates, launches and prints", "[workbench]") {
  const std::string text =
      main_of_call(" scale<float, 4>(in[float:64x1024], out[half:1024], inout[int:5], N, 2.5f) ",
                   {"64,2", "8,4", "1024"});
  CHECK(contains(
      text, "scale<float, 4><<<dim3(64,2), dim3(8,4), 1024>>>(in_1, out_1, inout_1, N, 2.5f);"));
  CHECK(contains(text, "std::vector<float> in_1_host(65536);"));
  CHECK(contains(text, "std::vector<__half> out_1_host(1024);"));
  CHECK_FALSE(contains(text, "in_1_sum"));
  CHECK_FALSE(contains(text, "for (auto& x : out_1_host)"));
  CHECK(contains(text, "inout_1_sum"));
  CHECK(contains(text, "for (auto& x : inout_1_host)"));
}

TEST_CASE("inspect: a call that is none says how it is written", "[workbench]") {
  const auto refused = [](const char* call, const CallShape& shape = {}) {
    return tests::error_of([&] { main_of_call(call, shape); });
  };
  for (const char* call :
       {"", "k", "(1)", "k(1", "k(in[float])", "k(on[float:4])", "k(in[float:])", "k(in[float:0])",
        "k(in[float:4xx4])", "k(in[float:99999999999])", "k(\"text\")", "k(a; b)", "k(,)"}) {
    INFO(call);
    CHECK(contains(refused(call), "NAME(ARGUMENT, …)"));
  }
  CHECK(contains(refused("k(in[real:4])"), "allowed: float, double, half"));
  CHECK(contains(refused("k()", {"a", "1", "0"}), "--grid cannot be 'a'"));
  CHECK(contains(refused("k()", {"1", "1,2,3,4", "0"}), "--block cannot be '1,2,3,4'"));
  CHECK(contains(refused("k()", {"1", "1", "-1"}), "--shared cannot be '-1'"));
}

constexpr const char* kSolve =
    "// void solve(int)\nextern \"C\" void solve(const float* __restrict__ A, float *B, int M, "
    "int N, float s) {\n}\n";

TEST_CASE("inspect: a judge's form is called with numbers and sizes", "[workbench]") {
  const std::string text =
      main_of_solve(kSolve, R"({"M": 4, "N": 8, "s": 0.5, "A": "M * N", "B": 12})");
  CHECK(contains(text, "solve(A, B, M, N, s);"));
  CHECK(contains(text, "const int M = 4;"));
  CHECK(contains(text, "const float s = 0.5;"));
  CHECK(contains(text, "std::vector<float> A_host(M * N);"));
  CHECK(contains(text, "std::vector<float> B_host(12);"));
  CHECK(contains(text, "B_sum"));
  CHECK_FALSE(contains(text, "A_sum"));
  CHECK(contains(main_of_solve("void solve(float* x, int n)\n{}", R"({"n": 3})"), "x_host(n);"));
}

TEST_CASE("inspect: what --args lacks is named", "[workbench]") {
  const auto refused = [](const char* json, const char* source = kSolve) {
    return tests::error_of([&] { main_of_solve(source, json); });
  };
  CHECK(contains(refused("[1]"), "no JSON object"));
  CHECK(contains(refused("{"), "no JSON object"));
  CHECK(contains(refused("{}"), "has no number 'M'"));
  CHECK(contains(refused(R"({"M": 1, "N": 2, "s": 1})"), "how many elements A has"));
  CHECK(contains(refused(R"({"M": 1, "N": 2, "s": 1, "A": "M;", "B": 1})"), "'A' is no number"));
  CHECK(contains(refused(R"({"M": 1, "N": 2, "s": 1, "A": -1, "B": 1})"), "'A' is no number"));
  CHECK(contains(refused(R"({"M": 1, "N": 2, "s": 1, "A": 1, "B": 1, "K": 1})"), "'K'"));
  CHECK(contains(refused("{}", "int main() {}"), "this one has none"));
}

TEST_CASE("inspect: a launch that is timed stands between two calls", "[workbench]") {
  const auto timed = [](const char* text) {
    return workbench::for_emulation(text, workbench::Written::timed);
  };
  CHECK(timed("k<<<1, 2>>>(a);") ==
        "(::simt_timed::begin(0), k<<<1, 2>>>(a), ::simt_timed::end());");
  CHECK(timed("if (x) n::k<T, 2><<<dim3(1, 2), f(3, 4), 0, s[1]>>>(a, g(b));\n") ==
        "if (x) (::simt_timed::begin(s[1]), n::k<T, 2><<<dim3(1, 2), f(3, 4), 0, s[1]>>>(a, g(b)), "
        "::simt_timed::end());\n");
  const char* plain = "#include <mma.h>\nextern __shared__ int x[]; // k<<<1, 2>>>(a)\n";
  CHECK(timed(plain) == plain);
}

TEST_CASE("inspect: texts agree but for small differences of their numbers", "[workbench]") {
  CHECK(agree("a 1.0000 b", "a 1.0001 b", 1e-3));
  CHECK(agree("sum 1e6", "sum 1000200", 1e-3));
  CHECK(agree("-0.00001", "0.00001", 1e-3));
  CHECK_FALSE(agree("1.00", "1.01", 1e-3));
  CHECK_FALSE(agree("nan", "1", 1e-3));
  CHECK_FALSE(agree("a", "a b", 1e-3));
  CHECK_FALSE(agree("x 1", "y 1", 1e-3));
  CHECK(agree("", "", 1e-3));
}

TEST_CASE("inspect: a profiler's table is read by launch and metric", "[workbench]") {
  const auto all = read_counted(
      "==PROF== Connected\n\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric "
      "Value\"\n\"0\",\"add(int, int)\",\"time\",\"us\",\"2.5\"\n\"0\",\"add(int, "
      "int)\",\"bytes\",\"Kbyte\",\"1,024\"\n\"1\",\"b\",\"n\",\"\",\"3,000\"\nshort\n");
  REQUIRE(all.size() == 2);
  CHECK(all[0].at("time") == 2500);
  CHECK(all[0].at("bytes") == 1024e3);
  CHECK(all[1].at("n") == 3000);
  CHECK(read_counted("").empty());
}

TEST_CASE("inspect: GPUs are found by their names", "[workbench]") {
  CHECK(gpu_named("a100").compute_capability == 80);
  CHECK(contains(tests::error_of([] { gpu_named("b200"); }), "allowed: h100, h200"));
  CHECK(gpu_of_device("NVIDIA H200")->id == "h200");
  CHECK(gpu_of_device("NVIDIA H100 80GB HBM3")->id == "h100");
  CHECK(gpu_of_device("NVIDIA GeForce RTX 4090")->id == "rtx4090");
  CHECK(gpu_of_device("NVIDIA L40S") == nullptr);
  CHECK(gpu_of_device("NVIDIA B200") == nullptr);
}

TEST_CASE("inspect: words that run otherwise on a GPU are named, comments and near ones are not",
          "[workbench]") {
  CHECK(
      differences_in("int main() { // expf(x), clock64()\n  exploit(x); const char* s = \"sin\"; }")
          .empty());
  const auto all = differences_in("x = __expf(y) + clock64();\ncudaStreamCreateWithFlags(&s, 0);");
  REQUIRE(all.size() == 3);
  CHECK(contains(all[0], "Fast math"));
  CHECK(contains(all[1], "Clocks"));
  CHECK(contains(all[2], "Streams"));
  CHECK(differences_in("asm(\"mov.u32 %0, %clock;\" : \"=r\"(x));").size() == 1);
}

}  // namespace
}  // namespace tilestep::inspect
