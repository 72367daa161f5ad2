// Plain CUDA in three lessons' kernels: what uses memory rightly passes without a word, what does not is named with its
// line, though the results are right.

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/answer.hpp"
#include "kernels/base/lab/assets.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/workbench/own_cache.hpp"
#include "tests/part.hpp"

namespace tilestep::workbench {
namespace {

/// A kernel that takes further lines before `line`, and before it begins the declarations of `outside`.
struct Place {
  std::string_view lesson, source, kernel, line;
  std::string_view variant;  ///< empty: the lesson has none
  std::string_view thread;   ///< its number in the block, in the kernel's words
};

const Place kPlaces[] = {
    {"tiling", "kernels/matmul/tiling/shared_tile.cu",
     "/// Number of the launch's first block in C",
     "  // threadIdx.x runs down the rows: this is what makes it slow.", "naive",
     "(threadIdx.y * blockDim.x + threadIdx.x)"},
    {"online-softmax", "kernels/attention/online_softmax/one_pass.cu",
     "// ---- the lesson's kernel", "  // Separate slots: a fast warp writes its sum", "",
     "threadIdx.x"},
    {"coalescing", "kernels/memory/coalescing/access.cu",
     "template <class Which, class In, class Out>\n__global__ void gather",
     "  const Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;", "",
     "threadIdx.x"},
};

/// Lines of a kernel; T stands for the thread's number. `/*!*/` is in the line that is to be named.
struct Edit {
  std::string_view name, outside, lines;
  std::string_view check = {}, says = {};  ///< empty: nothing is wrong
};

const Edit kRight[] = {
    {"a tile with a barrier", "",
     "__shared__ float tile[1024]; tile[T] = 1.0f; __syncthreads(); keep += tile[T ^ 1];"
     " __syncthreads();"},
    {"a padded tile of two dimensions, read across", "",
     "__shared__ float turned[16][17]; turned[T % 16][T / 16 % 16] = 1.0f; __syncthreads();"
     " if (T < 16) keep += turned[T][0]; __syncthreads();"},
    {"lanes that meet at __syncwarp", "",
     "__shared__ int lanes[1024]; lanes[T] = 1; __syncwarp(); keep += lanes[T ^ 1];"},
    {"a sum by halves", "",
     "__shared__ float sums[1024]; sums[T] = 1.0f; __syncthreads();"
     " for (unsigned half = 16; half > 0; half /= 2) {"
     " if (T < half) sums[T] += sums[T + half]; __syncthreads(); } keep += sums[0]; "
     "__syncthreads();"},
    {"two buffers with one barrier a step", "",
     "__shared__ float two[2][1024]; for (int s = 0; s < 3; ++s) { two[s % 2][T] = 1.0f;"
     " __syncthreads(); keep += two[s % 2][T ^ 1]; } __syncthreads();"},
    {"floats written as vectors", "",
     "alignas(16) __shared__ float wide[4096]; reinterpret_cast<float4*>(wide)[T] ="
     " make_float4(1, 1, 1, 1); __syncthreads(); keep += wide[T]; __syncthreads();"},
    {"structures", "struct PairOfThem { float a; int b; };",
     "__shared__ PairOfThem pairs[1024]; pairs[T] = {1.0f, 2}; __syncthreads();"
     " const PairOfThem other = pairs[T ^ 1]; keep += other.a + other.b; __syncthreads();"},
    {"a histogram by atomics", "",
     "__shared__ int bins[8]; if (T < 8) bins[T] = 0; __syncthreads(); atomicAdd(&bins[T % 8], 1);"
     " __syncthreads(); keep += bins[0]; __syncthreads();"},
    {"bytes side by side", "",
     "__shared__ unsigned char flags[1024]; flags[T] = 1; __syncthreads(); keep += flags[T ^ 1];"
     " __syncthreads();"},
    {"one thread writes for all", "",
     "__shared__ float first; if (T == 0) first = 1.0f; __syncthreads(); keep += first;"
     " __syncthreads();"},
    {"memset and memcpy", "",
     "__shared__ int raw[32]; if (T == 0) { int mine[32]; memset(mine, 0, sizeof mine);"
     " memcpy(raw, mine, sizeof raw); } __syncthreads(); keep += raw[T % 32]; __syncthreads();"},
    {"an array of its own", "",
     "float part[4] = {}; for (int s = 0; s < 4; ++s) part[s] += 1.0f; keep += part[T % 4];"},
    {"a matrix of its own", "",
     "float own[2][3]; for (auto& row : own) for (float& each : row) each = 1.0f; keep += "
     "own[1][2];"},
    {"a pointer to a shared row",
     "__device__ float sum_of(const float* row, int n) {"
     " float sum = 0; for (int i = 0; i < n; ++i) sum += row[i]; return sum; }",
     "__shared__ float rows[4][8]; if (T < 32) rows[T / 8][T % 8] = 1.0f; __syncthreads();"
     " keep += sum_of(rows[T % 4], 8); __syncthreads();"},
    {"the last block sums up", "__device__ unsigned arrived; __device__ float parts[1 << 16];",
     "if (T == 0) { const unsigned b = blockIdx.y * gridDim.x + blockIdx.x; parts[b] = 1.0f;"
     " __threadfence(); if (atomicAdd(&arrived, 1u) == gridDim.x * gridDim.y - 1) {"
     " for (unsigned p = 0; p < gridDim.x * gridDim.y; ++p) keep += parts[p]; arrived = 0; } }"},
    {"a counter of all blocks", "__device__ unsigned counted;", "atomicAdd(&counted, 1u);"},
    {"a largest by compare and swap", "__device__ unsigned most;",
     "unsigned old = atomicCAS(&most, 0u, T); while (old < T) { const unsigned seen ="
     " atomicCAS(&most, old, T); if (seen == old) break; old = seen; }"},
    {"a place of its own in global memory", "__device__ float places[1 << 22];",
     "const unsigned own_place = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x * blockDim.y + "
     "T;"
     " if (own_place < 1 << 22) { places[own_place] = 1.0f; keep += places[own_place]; }"},
    {"two threads of a block by global memory and a barrier", "__device__ float passed[1 << 22];",
     "const unsigned there = (blockIdx.y * gridDim.x + blockIdx.x) * 1024; if (there + 1024 <= 1 "
     "<< 22) {"
     " passed[there + T] = 1.0f; __syncthreads(); keep += passed[there + (T ^ 1)]; }"},
    {"a vote", "", "keep += __syncthreads_count(T % 2 == 0);"},
};

const Edit kWrong[] = {
    {"a tile without a barrier", "",
     "__shared__ float tile[1024]; tile[T] = 1.0f;\n keep += tile[T ^ 1]; /*!*/", "shared_memory",
     "no barrier is between the two"},
    {"a row too few", "",
     "__shared__ float rows[4][8]; rows[3][7] = 0; __syncthreads();\n"
     " keep += T == 0 ? rows[T + 4][0] : 0; /*!*/",
     "array_bounds", "takes index 4 of a float[4][8]"},
    {"a value that nobody wrote", "",
     "__shared__ float late[64]; if (T < 32) late[T] = 1.0f; __syncthreads();\n"
     " keep += late[T == 0 ? 40 : 0]; /*!*/",
     "shared_memory", "which no thread of the block has written"},
    {"an array of its own, one too far", "",
     "float part[4] = {}; for (int s = 0; s <= 4; ++s)\n keep += part[s]; /*!*/", "array_bounds",
     "takes index 4 of a float[4]"},
    {"two blocks write one element", "__device__ float one;", "if (T == 0)\n one = 1.0f; /*!*/",
     "global_memory", "nothing orders the two blocks"},
    {"a block reads what another writes", "__device__ float cells[1 << 16];",
     "const unsigned b = blockIdx.y * gridDim.x + blockIdx.x; if (T == 0) { cells[b] = 1.0f;\n"
     " keep += cells[b ^ 1]; /*!*/ }",
     "global_memory", "of cells in line"},
    {"the last block, without a fence",
     "__device__ unsigned arrived; __device__ float parts[1 << 16];",
     "if (T == 0) { const unsigned b = blockIdx.y * gridDim.x + blockIdx.x; parts[b] = 1.0f;"
     " if (atomicAdd(&arrived, 1u) == gridDim.x * gridDim.y - 1) {"
     " for (unsigned p = 0; p < gridDim.x * gridDim.y; ++p)\n keep += parts[p]; /*!*/ arrived = 0; "
     "} }",
     "global_memory", "nothing orders the two blocks"},
    {"two threads of a block by global memory", "__device__ float passed[1 << 22];",
     "const unsigned there = (blockIdx.y * gridDim.x + blockIdx.x) * 1024; if (there + 1024 <= 1 "
     "<< 22) {"
     " passed[there + T] = 1.0f;\n keep += passed[there + (T ^ 1)]; /*!*/ }",
     "global_memory", "no barrier is between the two"},
    {"a histogram that was not cleared", "",
     "__shared__ int bins[8];\n atomicAdd(&bins[T % 8], 1); /*!*/", "shared_memory",
     "which no thread of the block has written"},
    {"a volatile sum without __syncwarp", "",
     "__shared__ volatile float sums[1024]; sums[T] = 1.0f; __syncthreads(); if (T < 16)\n"
     " sums[T] = sums[T] + sums[T + 16]; if (T < 8) sums[T] = sums[T] + sums[T + 8]; /*!*/",
     "shared_memory", "no barrier is between the two"},
};

std::string with_thread(std::string_view lines, std::string_view thread) {
  std::string text;
  const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool alone = lines[i] == 'T' && (i == 0 || !word(lines[i - 1])) &&
                       (i + 1 == lines.size() || !word(lines[i + 1]));
    if (alone) {
      text += thread;
    } else {
      text += lines[i];
    }
  }
  return text;
}

std::string edited(const Place& place, const std::vector<Edit>& edits) {
  std::string outside, inside = "  { float keep = 0;\n";
  for (const Edit& edit : edits) {
    outside += std::string(edit.outside) + "\n";
    inside += "  { " + with_thread(edit.lines, place.thread) + " }\n";
  }
  inside += "  if (keep == -12345.0f) return; }\n";
  std::string text(lab::asset(place.source));
  const std::size_t line = text.find(place.line);
  REQUIRE(line != std::string::npos);
  text.insert(line, inside);
  const std::size_t kernel = text.find(place.kernel);
  REQUIRE(kernel < line);
  return text.insert(kernel, outside);
}

lab::Report run(const Place& place, const std::string& text) {
  lab::NoProgress progress;
  lab::Request request{.lesson = std::string(place.lesson), .params = {}, .backend = "emulated"};
  if (!place.variant.empty()) request.params["variant"] = std::string(place.variant);
  request.kernel = lab::KernelEdit{std::string(place.source), text};
  return answer(request, progress);
}

TEST_CASE("plain CUDA that is right passes without a word", "[workbench_run]") {
  const tests::KeptCache cache;
  tests::Part part("plain CUDA that is right", std::size(kPlaces));
  for (const Place& place : kPlaces) {
    if (part.skips()) continue;
    INFO(place.lesson);
    const lab::Report report = run(place, edited(place, {std::begin(kRight), std::end(kRight)}));
    for (const lab::Check& check : report.checks) {
      INFO(check.id << ": " << check.detail);
      CHECK(check.ok);
    }
    for (const lab::Diagnostic& each : report.kernel->diagnostics) {
      INFO(each.line << ": " << each.text);
      CHECK(each.severity != lab::Severity::error);
    }
  }
}

TEST_CASE("tables of the program that a kernel reads are no overrun of an array",
          "[workbench_run]") {
  const tests::KeptCache cache;
  const std::string path = "kernels/attention/flash_attention/quantized/quantized.cu";
  lab::NoProgress progress;
  const lab::Report report =
      answer({.lesson = "flash-attention",
              .params = {{"dtype", std::string("fp8")},
                         {"head_dim", std::string("64")},
                         {"seq", std::int64_t{75}}},
              .backend = "emulated",
              .kernel = lab::KernelEdit{path, std::string(lab::asset(path))}},
             progress);
  for (const lab::Check& check : report.checks) {
    INFO(check.id << ": " << check.detail);
    CHECK(check.ok);
  }
}

TEST_CASE("plain CUDA that uses memory wrongly is named with its line, right results or not",
          "[workbench_run]") {
  const tests::KeptCache cache;
  tests::Part part("plain CUDA that is wrong", 10);
  for (const Place& place : kPlaces) {
    for (const Edit& edit : kWrong) {
      if (part.skips()) continue;
      INFO(place.lesson << ": " << edit.name);
      const std::string text = edited(place, {edit});
      const auto line =
          1 + std::count(text.begin(),
                         text.begin() + static_cast<std::ptrdiff_t>(text.find("/*!*/")), '\n');
      const lab::Report report = run(place, text);
      const auto said = std::find_if(report.checks.begin(), report.checks.end(),
                                     [&](const lab::Check& each) { return each.id == edit.check; });
      REQUIRE(said != report.checks.end());
      INFO(said->detail);
      CHECK_FALSE(said->ok);
      CHECK(said->detail.find(edit.says) != std::string::npos);
      CHECK(said->detail.find("in line " + std::to_string(line)) != std::string::npos);
      CHECK(std::any_of(report.kernel->diagnostics.begin(), report.kernel->diagnostics.end(),
                        [&](const lab::Diagnostic& each) { return each.text == said->detail; }));
    }
  }
}

}  // namespace
}  // namespace tilestep::workbench
