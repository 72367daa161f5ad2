// A kernel written in plain CUDA is compiled and run as an edited source, and does what it does on a GPU.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <variant>

#include "kernels/answer.hpp"
#include "kernels/base/lab/assets.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/workbench/own_cache.hpp"

namespace tilestep::workbench {
namespace {

using tests::contains, tests::kOnePass, tests::run_one_pass;

void replace(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
}

int line_of(const std::string& text, const std::string& part) {
  return 1 + static_cast<int>(std::count(
                 text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find(part)), '\n'));
}

/// What no header of ours is included for, and what CUDA's headers are.
constexpr const char* kWords = R"cuda(
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <device_launch_parameters.h>
#include <math_constants.h>

extern __shared__ __align__(1024) unsigned char whole_block[];
__constant__ float factors[2] = {2.0f, 3.0f};
static __constant__ int unset[4];
__device__ __managed__ int counter = 5;
struct __align__(8) Both { float a, b; };
namespace cg = cooperative_groups;

template <class T>
__device__ __noinline__ T first_of() {
  extern __shared__ T all[];
  return all[0];
}
#define AS_FLOAT4(p) (reinterpret_cast<const float4*>(p)[0])

__device__ void show_words(simt::Global<const float> row, const float* __restrict__ same_row) {
#if __CUDA_ARCH__ >= 800
  simt::watch("arch", 1);
#else
  asm("a GPU's only");
#endif
  simt::watch("constant", factors[1] + unset[2] + counter);
  simt::watch("align", alignof(Both) + reinterpret_cast<unsigned long long>(&whole_block[0]) % 1024);
  const half2 h = __hmul2(__floats2half2_rn(1.5f, 2.0f), __float2half2_rn(2.0f));
  simt::watch("half2", __low2float(h) + __half2float(h.y));
  simt::watch("bf16", __bfloat162float(__float2bfloat16(1.00390625f)));
  simt::watch("pi", CUDART_PI_F);
  simt::watch("limits", (FLT_MAX == CUDART_MAX_NORMAL_F) + (INT_MAX == 0x7FFFFFFF) + (DBL_MAX > 1e308) + isinf(INFINITY));
  simt::watch("row", AS_FLOAT4(same_row).y - ((const float4*)row)[0].y + (same_row - &row[0]) + (row == nullptr));
  simt::watch("rounded", __fadd_ru(1.0f, 1e-9f) - __fadd_rz(1.0f, 1e-9f));
  simt::watch("multiply", (__fmul_rd(0.1f, 0.1f) < __fmul_ru(0.1f, 0.1f)) + (__fmaf_ru(16777216, 1, 1e-9f) - 16777216));
  simt::watch("clock", clock() > 0);
  assert(factors[0] == 2);
  if (counter == 0) printf("no counter\n");
}
)cuda";

TEST_CASE("plain CUDA is a kernel like any other", "[workbench_run]") {
  const tests::KeptCache cache;
  std::string text(lab::asset(kOnePass));
  const std::string words(kWords), includes = words.substr(0, words.find("extern"));
  replace(text, "#include <cstddef>", "#include <cstddef>" + includes);
  replace(text, "constexpr int kMaxWarps = 32;",
          "constexpr int kMaxWarps = 32;" + words.substr(includes.size()));
  replace(text,
          "simt::Global<const float> values,\n                               simt::Global<float> "
          "output,",
          "const float* __restrict__ values, float* output,");
  replace(text,
          "const auto weights = "
          "simt::dynamic_shared<float>(static_cast<std::size_t>(shape.tile_width));",
          "extern __shared__ float weights[];\n"
          "  const bool shows = first_query + blockIdx.x == 0 && threadIdx.x == 0;\n"
          "  if (shows) show_words(scores, scores);");
  replace(text, "    m = m_new;", R"cuda(    const auto block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
    const float least = cg::reduce(warp, warp.thread_rank() + 1.0f, cg::less<float>());
    if (shows && tile == 0) {
      simt::watch("group", least);
      simt::watch("shared", first_of<float>() - weights[0] + (reinterpret_cast<float*>(whole_block) == weights));
    }
    block.sync();
    m = m_new;)cuda");

  lab::NoProgress progress;
  const lab::Report built_in =
      answer({.lesson = "online-softmax", .params = {}, .backend = "emulated"}, progress);
  const lab::Report report = run_one_pass(text);
  CHECK(report.ok());
  CHECK(report.trace == built_in.trace);
  for (const lab::Diagnostic& each : report.kernel->diagnostics)
    FAIL_CHECK(each.line << ": " << each.text);
  const lab::Table* watched = report.table("watched");
  REQUIRE(watched != nullptr);
  const std::map<std::string, double> expected = {
      {"arch", 1},     {"constant", 8}, {"align", 8},
      {"half2", 7},    {"bf16", 1},     {"pi", static_cast<double>(3.14159274f)},
      {"limits", 4},   {"row", 0},      {"rounded", 0x1p-23},
      {"multiply", 3}, {"clock", 1},    {"group", 1},
      {"shared", 1}};
  std::set<std::string> seen;
  for (std::size_t i = 0; i < watched->rows.size(); ++i) {
    const std::string name = watched->text(i, 0);
    CAPTURE(name);
    seen.insert(name);
    REQUIRE(expected.count(name) == 1);
    CHECK(std::get<double>(watched->rows[i][5]) == expected.at(name));
  }
  CHECK(seen.size() == expected.size());
}

TEST_CASE("a word that is not emulated is told in its line, and only where it is compiled",
          "[workbench_run]") {
  const tests::KeptCache cache;
  std::string text(lab::asset(kOnePass));
  replace(text, "    m = m_new;",
          "#if defined(__CUDACC__)\n    asm(\"bar.sync 0;\");\n#endif\n    m = __shfl(m_new, 0);");
  const std::string said = tests::error_of([&] { run_one_pass(text); });
  CHECK(contains(said, "one_pass.cu does not compile: line " +
                           std::to_string(line_of(text, "__shfl(m_new")) +
                           ": __shfl: it has no mask"));
  CHECK_FALSE(contains(said, "PTX"));

  text = lab::asset(kOnePass);
  replace(text, "#include <cstddef>", "#include <cooperative_groups.h>\n#include <cstddef>");
  replace(text, "    m = m_new;", "    cooperative_groups::this_grid().sync();\n    m = m_new;");
  const std::string barrier = tests::error_of([&] { run_one_pass(text); });
  CHECK(contains(barrier, "line " + std::to_string(line_of(text, "this_grid().sync"))));
  CHECK(contains(barrier, "the grid's barrier needs a cooperative launch"));
}

TEST_CASE("a trap ends the kernel with its line", "[workbench_run]") {
  const tests::KeptCache cache;
  std::string text(lab::asset(kOnePass));
  replace(text, "    m = m_new;", "    if (threadIdx.x == 3) __trap();\n    m = m_new;");
  try {
    run_one_pass(text);
    FAIL_CHECK("it ran");
  } catch (const Error& error) {
    CHECK(contains(error.what(), "thread (3,0,0)"));
    CHECK(contains(error.what(), "calls __trap()"));
    REQUIRE_FALSE(lab::diagnostics_of(error).empty());
    CHECK(lab::diagnostics_of(error).front().line == line_of(text, "__trap()"));
  }
}

}  // namespace
}  // namespace tilestep::workbench
