// Figures that stand in texts are those of the committed recordings: a new recording fails here until
// the texts follow.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <utility>

#include "app/cli/ladder_text.hpp"
#include "kernels/systems/fusion/ledger.hpp"
#include "scenes/shared/course.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using tests::recorded_bench;

namespace {

/// A text with its lines joined.
std::string joined(const std::string& all) {
  std::string text;
  for (const char c : all) {
    const bool space = c == ' ' || c == '\n';
    if (!space || (!text.empty() && text.back() != ' ')) text += space ? ' ' : c;
  }
  return text;
}
std::string raw_text_of(const std::string& path) {
  std::ifstream file(std::string(tilestep::tests::paths::kSource) + "/" + path);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}
/// A text of the repository with its lines joined.
std::string text_of(const std::string& path) {
  return joined(raw_text_of(path));
}

/// The lesson's text says `sentence`.
void says(const std::string& lesson, const std::string& sentence) {
  CAPTURE(lesson, sentence);
  CHECK(text_of("assets/lessons/" + lesson + ".md").find(sentence) != std::string::npos);
}

/// The number in `column` of the first row that has all the `cells`.
double in(const lab::Report& bench, const char* id, const char* column,
          const std::vector<std::pair<std::string, std::string>>& cells) {
  const lab::Table& table = *bench.table(id);
  const auto place = [&](const std::string& name) {
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      if (table.columns[c].id == name) return c;
    }
    throw Error("no column " + name);
  };
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const auto fits = [&](const auto& cell) {
      return table.text(r, place(cell.first)) == cell.second;
    };
    if (std::all_of(cells.begin(), cells.end(), fits)) {
      return std::get<double>(table.rows[r][place(column)]);
    }
  }
  throw Error(fmt::format("no such row in {}", id));
}

}  // namespace

TEST_CASE("the README's ladders are the recorded ones", "[figures]") {
  std::ifstream file(std::string(tilestep::tests::paths::kSource) + "/README.md");
  const std::string readme{std::istreambuf_iterator<char>(file), {}};
  for (const char* lesson : {"online-softmax", "tiling", "moe-routing"}) {
    CAPTURE(lesson);
    const std::string ladder = app::ladder_markdown(recorded_bench(lesson));
    INFO(ladder);
    CHECK(readme.find(ladder) != std::string::npos);
  }
}

TEST_CASE("a ladder says what every rung measured", "[figures]") {
  for (const lab::Lesson* lesson : lessons()) {
    const lab::Report bench = recorded_bench(lesson->info().id);
    if (bench.table("ladder") == nullptr) continue;
    const lab::Table ladder = app::ladder_table(bench);
    CAPTURE(lesson->info().id);
    REQUIRE_FALSE(ladder.rows.empty());
    for (const auto& row : ladder.rows) {
      const auto is_number = [](const lab::Cell& cell) {
        return std::holds_alternative<double>(cell);
      };
      CHECK(std::any_of(row.begin(), row.end(), is_number));
    }
    CHECK_FALSE(tests::contains(app::ladder_markdown(bench), "_FULL"));
  }
}

TEST_CASE("the README's course is the program's", "[figures]") {
  std::ifstream file(std::string(tilestep::tests::paths::kSource) + "/README.md");
  const std::string readme{std::istreambuf_iterator<char>(file), {}};
  const std::string table = scenes::course_table().to_markdown();
  INFO(table);
  CHECK(readme.find(table) != std::string::npos);
}

TEST_CASE("the text on coalescing quotes what was recorded", "[figures]") {
  const lab::Report& bench = recorded_bench("coalescing");
  const auto stride = [&](const char* column, const char* at) {
    return in(bench, "bandwidth_by_stride", column, {{"stride", at}});
  };
  const auto element = [&](const char* bytes) {
    return in(bench, "bandwidth_by_element", "bandwidth", {{"element_bytes", bytes}});
  };
  says("memory/coalescing",
       fmt::format(
           "Loads reach {:.0f} GB/s at stride 2, where {:.0f} GB/s are expected. At stride 8 they "
           "reach {:.0f} GB/s ({:.0f} GB/s expected) and stores {:.0f} GB/s ({:.0f} GB/s "
           "expected).",
           stride("load", "2"), stride("expected", "2"), stride("load", "8"),
           stride("expected", "8"), stride("store", "8"), stride("expected_store", "8")));
  says("memory/coalescing",
       fmt::format("{:.0f} GB/s at a stride of 16, and only {:.0f} GB/s at 64.",
                   stride("load", "16"), stride("load", "64")));
  const auto pattern = [&](const char* name, const char* bytes) {
    return in(bench, "bandwidth_by_pattern", "bandwidth",
              {{"pattern", name}, {"element_bytes", bytes}, {"access", "load"}});
  };
  const auto launch = [&](const char* at, const char* bytes, const char* how) {
    return in(bench, "bandwidth_by_launch", "bandwidth",
              {{"stride", at}, {"element_bytes", bytes}, {"access", "load"}, {"launch", how}});
  };
  says("memory/coalescing",
       fmt::format("the first delivers {:.0f} GB/s of useful bytes and the second {:.0f} GB/s",
                   launch("2", "16", "1 load a thread"), launch("1", "4", "1 load a thread")));
  says("memory/coalescing", fmt::format("with four independent loads per thread it is {:.0f} GB/s.",
                                        launch("1", "4", "4 loads a thread")));
  says("memory/coalescing", fmt::format("one load per thread reaches {:.0f} GB/s.",
                                        launch("1", "4", "1 load, resident blocks")));
  says(
      "memory/coalescing",
      fmt::format(
          "no better than the largest here ({:.0f} GB/s on an H200, {:.0f} GB/s at a stride of 64)",
          pattern("permuted", "4"), stride("load", "64")));
  CHECK(pattern("permuted", "4") <= stride("load", "64"));
  const auto rung = [&](const char* ladder, const char* name) {
    return in(bench, ladder, "bandwidth", {{"rung", name}});
  };
  says("memory/coalescing",
       fmt::format("First to last is a factor of {:.0f}, of which sectors explain 8",
                   std::floor(rung("copy_ladder", "device") / rung("copy_ladder", "strided"))));
  says("memory/coalescing",
       fmt::format("the hardware counted {:.1f} conflicts per request",
                   in(bench, "transpose_ladder", "conflicts", {{"rung", "shared-tile"}})));
  says("memory/coalescing",
       fmt::format(
           "puts neighbouring lanes 128 bytes apart: {:.0f} GB/s on an H200. Thread i copies "
           "float i: {:.0f} GB/s. 16 bytes per load: {:.0f} GB/s, beside {:.0f} GB/s",
           rung("copy_ladder", "strided"), rung("copy_ladder", "coalesced"),
           rung("copy_ladder", "vectorized"), rung("copy_ladder", "device")));
  says("memory/coalescing", fmt::format("writing down columns: {:.0f} GB/s. Transposing",
                                        rung("transpose_ladder", "naive")));
  says("memory/coalescing",
       fmt::format("all hit the same bank: {:.0f} GB/s.", rung("transpose_ladder", "shared-tile")));
  says("memory/coalescing", fmt::format("the column by one bank: {:.0f} GB/s.",
                                        rung("transpose_ladder", "shared-tile-padded")));
  says("memory/coalescing",
       fmt::format(
           "reach {:.0f}, {:.0f}, {:.0f}, {:.0f} and {:.0f} GB/s with 1, 2, 4, 8 and 16 bytes",
           element("1"), element("2"), element("4"), element("8"), element("16")));
}

TEST_CASE("the text on tiling quotes what was recorded", "[figures]") {
  const lab::Report& bench = recorded_bench("tiling");
  const auto rate = [&](const char* rung) {
    return in(bench, "ladder_measured", "tflops", {{"rung", rung}, {"size", "8192"}});
  };
  const auto counted = [&](const char* column, const char* rung) {
    return in(bench, "counters", column, {{"rung", rung}}) * 1e-3;
  };
  const auto shared = [&](const char* column) {
    return in(bench, "shared_ceiling", column, {{"rung", "shared-tile"}});
  };
  says(
      "matmul/tiling",
      fmt::format("it is {:.2f} times as fast: {:.2f} against {:.2f} TFLOP/s at 8192³",
                  rate("shared-tile") / rate("coalesced"), rate("shared-tile"), rate("coalesced")));
  says("matmul/tiling",
       fmt::format("counted {:.1f} billion of them at 4096³ before and {:.1f} billion after",
                   counted("data_wavefronts", "coalesced"),
                   counted("data_wavefronts", "shared-tile")));
  says("matmul/tiling", fmt::format("{:.1f} billion of them for shared memory",
                                    counted("shared_wavefronts", "shared-tile")));
  says("matmul/tiling",
       fmt::format(
           "would reach {:.1f} TFLOP/s there; it reaches {:.1f} TFLOP/s on the H200, or {:.0f} %",
           shared("ceiling"), shared("tflops"), 100 * shared("share")));
  says("matmul/tiling",
       fmt::format(
           "With *Bytes as counted*, at 4096³, `naive` has {:.0f} FLOP per byte",
           in(bench, "roofline", "flop_per_byte", {{"label", "naive 4096³, counted bytes"}})));
  says("matmul/tiling",
       fmt::format("`naive` at 8192³ has {:.0f} FLOP per byte of its matrices",
                   in(bench, "roofline", "flop_per_byte", {{"label", "naive 8192³"}})));
  says("matmul/tiling",
       fmt::format("doubled, from {:.1f} to {:.1f} GB", counted("dram_bytes", "coalesced"),
                   counted("dram_bytes", "shared-tile")));
  says("matmul/tiling",
       fmt::format(
           "they reach {:.2f} and {:.2f} TFLOP/s at 8192³, `warp-tile` {:.2f} TFLOP/s beside "
           "{:.2f} TFLOP/s of cuBLAS, and `tensor-core` {:.0f} TFLOP/s",
           rate("register-tile-1d"), rate("register-tile-2d"), rate("warp-tile"),
           rate("cuBLAS 13.1.0 FP32"), rate("tensor-core")));
}

TEST_CASE("the text on online softmax quotes what was recorded", "[figures]") {
  const lab::Report& bench = recorded_bench("online-softmax");
  const auto uncached = [&](const char* column, const char* rung) {
    return in(bench, "ladder_uncached", column, {{"rung", rung}});
  };
  const auto of_copy = [&](const char* rung) {
    return in(bench, "ladder_measured", "fraction", {{"rung", rung}, {"columns", "8192"}});
  };
  says("attention/online-softmax",
       fmt::format("three reads fall to {:.3f} of one read, and two to {:.3f}",
                   uncached("of_one_read", "three-pass"),
                   uncached("of_one_read", "online-two-pass")));
  says("attention/online-softmax", fmt::format("one read itself reaches {:.2f} of it",
                                               uncached("fraction", "online-one-read")));
  says("attention/online-softmax", fmt::format("Not half, but {:.2f} and {:.2f} of the copy",
                                               of_copy("three-pass"), of_copy("online-two-pass")));
  says("attention/online-softmax",
       fmt::format("three passes fall to {:.2f}",
                   in(bench, "ladder_blocks", "fraction",
                      {{"rung", "three-pass"}, {"columns", "8192"}, {"threads", "256"}})));
}

TEST_CASE("the text on accumulators quotes what was recorded", "[figures]") {
  const lab::Report& bench = recorded_bench("accumulator-precision");
  const auto of = [&](const char* id, const char* variant) {
    return bench.measurement(id, variant)->value;
  };
  says("numbers/accumulator-precision",
       fmt::format("At K = 4096 an H200 then runs at {:.0f} TFLOP/s instead of {:.0f} TFLOP/s, a "
                   "fifth less, and "
                   "the error of uniform positive data falls from {:.1f} % to {:.3f} %",
                   of("gemm_rate", "wgmma-fp8-promoted"), of("gemm_rate", "wgmma-fp8"),
                   of("gemm_error", "wgmma-fp8"), of("gemm_error", "wgmma-fp8-promoted")));
  CHECK(of("gemm_rate", "wgmma-fp8-promoted") / of("gemm_rate", "wgmma-fp8") ==
        Approx(0.8).margin(0.02));
  says("numbers/accumulator-precision",
       fmt::format("more than twice as fast as `mma-bf16`, at {:.0f} TFLOP/s",
                   of("gemm_rate", "mma-bf16")));
  const double fp8 = of("gemm_rate", "wgmma-fp8"), bf16 = of("gemm_rate", "mma-bf16");
  CHECK(fp8 > 2 * bf16);
  const double by_wgmma = in(recorded_bench("hopper-gemm"), "ladder_measured", "tflops",
                             {{"rung", "persistent"}, {"size", "4096³"}});
  CHECK(by_wgmma - bf16 > 0.5 * (fp8 - bf16));  // most of the way
  const auto error = [&](const char* data, const char* variant) {
    return in(bench, "tensor_core_error", variant, {{"data", data}, {"k", "4096"}});
  };
  says("numbers/accumulator-precision",
       fmt::format("the FP8 path is off by {:.1f} %, an FP16 accumulator by {:.2f} %",
                   error("uniform", "wgmma-fp8"), error("uniform", "mma-fp16-acc16")));
  says("numbers/accumulator-precision",
       fmt::format("the FP8 path is off by {:.2f} %, and the FP16 accumulator by {:.2f} %",
                   error("normal", "wgmma-fp8"), error("normal", "mma-fp16-acc16")));
}

TEST_CASE("the text on decoding quotes what was recorded", "[figures]") {
  const lab::Report& bench = recorded_bench("decode");
  const auto batch = [&](const char* rung, const char* size) {
    return in(bench, "batches", "bandwidth", {{"rung", rung}, {"batch", size}});
  };
  says("attention/decode",
       fmt::format("one request's cache is read at {:.0f} GB/s in equal pieces and at {:.0f} GB/s "
                   "by a block per K/V head",
                   batch("equal pieces", "1"), batch("a block each", "1")));
  CHECK(batch("equal pieces", "16") == Approx(batch("a block each", "16")).epsilon(0.02));
  says("attention/decode", fmt::format("even slower, {:.0f} GB/s against {:.0f} GB/s",
                                       batch("equal pieces", "64"), batch("a block each", "64")));
  const auto format = [&](const char* column, const char* type) {
    return in(bench, "formats", column, {{"kv_dtype", type}, {"page_size", "16"}});
  };
  says("attention/decode",
       fmt::format("a step {:.2f} times as fast in FP8, {:.2f} times in INT8 and {:.2f} times in "
                   "INT4",
                   format("speedup", "fp8"), format("speedup", "int8"), format("speedup", "int4")));
  says(
      "attention/decode",
      fmt::format("at {:.0f} GB/s as BF16, at {:.0f} GB/s as FP8 and at {:.0f} GB/s as INT4. Issue "
                  "slots in use rise from {:.0f} % to {:.0f} % and {:.0f} %",
                  format("bandwidth", "bf16"), format("bandwidth", "fp8"),
                  format("bandwidth", "int4"), format("issue_slots", "bf16"),
                  format("issue_slots", "fp8"), format("issue_slots", "int4")));
  says("attention/decode", fmt::format("reaches {:.0f} TFLOP/s on an H200 (*MLA*",
                                       in(bench, "latent", "tflops",
                                          {{"rung", "a cluster each"}, {"page_size", "64"}})));
}

TEST_CASE("the text on a paged cache quotes what was recorded", "[figures]") {
  const auto with_pages = [&](const char* size) {
    return in(recorded_bench("paged-kv"), "page_sizes", "bandwidth", {{"page_size", size}});
  };
  says("attention/paged-kv",
       fmt::format("at {:.0f} GB/s with pages of one token, and at {:.0f} GB/s with pages of 16",
                   with_pages("1"), with_pages("16")));
}

TEST_CASE("the text on positions quotes what was recorded", "[figures]") {
  const lab::Report& bench = recorded_bench("positions");
  const auto prefill = [&](const char* column) {
    return in(bench, "fusion", column, {{"tokens", "8192"}});
  };
  says("attention/positions",
       fmt::format("8192 tokens of 48 heads take {:.2f} µs in four launches and {:.2f} µs in one: "
                   "{:.2f} times as fast, at {:.0f} % of the rate of a copy",
                   prefill("apart"), prefill("together"), prefill("times"),
                   100 * prefill("fraction")));
  const auto each = [&](const char* rung, const char* way) {
    return in(bench, "launches", "each", {{"rung", rung}, {"way", way}});
  };
  const char* const alone = "one by one";
  const char* const graph = "in a graph";
  says("attention/positions",
       fmt::format("four kernels take {:.2f} µs on an H200, and one takes {:.2f} µs: hardly more "
                   "than an empty kernel, with {:.2f} µs",
                   each("apart", alone), each("together", alone), each("empty", alone)));
  CHECK(each("together", alone) / each("empty", alone) < 1.15);
  says("attention/positions",
       fmt::format("they take {:.2f} µs, {:.2f} µs and {:.2f} µs:", each("apart", graph),
                   each("together", graph), each("empty", graph)));
}

TEST_CASE("the text on launches quotes what was recorded", "[figures]") {
  const lab::Report& bench = recorded_bench("launches");
  const auto cost = [&](const char* what) { return in(bench, "costs", "time", {{"what", what}}); };
  says("systems/launches", "follow each other more than eight times as fast in a graph");
  CHECK(static_cast<int>(cost("one by one") / cost("in a graph")) == 8);
  const auto step = [&](const char* rung, const char* column) {
    return in(bench, "decode", column, {{"rung", rung}, {"batch", "1"}});
  };
  says("systems/launches", fmt::format("takes {:.0f} µs kernel by kernel, and {:.0f} µs as a graph",
                                       step("eager", "each"), step("graph", "each")));
  says("systems/launches",
       fmt::format(
           "the step takes {:.0f} µs, and reads its weights at {:.0f} % of the rate of a copy",
           step("persistent", "each"), 100 * step("persistent", "fraction")));
  const auto rows = [&](const char* m) { return in(bench, "staircase", "time", {{"m", m}}); };
  says("systems/launches", fmt::format("takes {:.0f} µs for 1024 rows and {:.0f} µs for 1025",
                                       rows("1024"), rows("1025")));
  CHECK(bench.measurement("staircase_near", "")->value >= 0.9);
}

TEST_CASE("the texts on attention that leaves out or sums up quote what was recorded",
          "[figures]") {
  const lab::Report& linear = recorded_bench("linear-attention");
  const auto ms = [&](const char* rung, const char* length, const char* column = "time") {
    return in(linear, "timed_lengths", column, {{"rung", rung}, {"length", length}});
  };
  says(
      "attention/linear-attention",
      fmt::format("take {:.3f} ms for 16,384 tokens with a gate, by chunks of 128: {:.2f} times as "
                  "fast as FlashAttention-3, which takes {:.3f} ms",
                  ms("chunked, gate", "16384"), ms("chunked, gate", "16384", "times"),
                  ms("flash-3", "16384")));
  says("attention/linear-attention",
       fmt::format("both take the same time, {:.3f} and {:.3f} ms", ms("chunked, gate", "4096"),
                   ms("flash-3", "4096")));
  CHECK(ms("chunked, gate", "4096") == Approx(ms("flash-3", "4096")).epsilon(0.05));
  CHECK(ms("chunked, gate", "2048", "times") < 1);
  const lab::Report& sparse = recorded_bench("sparse-attention");
  const auto times = [&](const char* rung) {
    return in(sparse, "lists", "times", {{"rung", rung}});
  };
  says("attention/sparse-attention",
       fmt::format("is {:.0f} times as fast as a causal mask", times("window 4096")));
  says(
      "attention/sparse-attention",
      fmt::format("a twentieth of the blocks is {:.0f} times as fast", times("5 % of the blocks")));
  says("attention/sparse-attention",
       fmt::format(
           "to choose 2048 of 65,536 takes {:.0f} % longer",
           in(sparse, "index", "more", {{"context", "65536"}, {"rung", "scores and top-k"}})));
}

TEST_CASE("the text on many GPUs quotes what was recorded", "[figures]") {
  const lab::Report& bench = recorded_bench("parallelism");
  const auto of = [&](const char* rung, const char* bytes, const char* column = "time") {
    return in(bench, "all_reduce", column, {{"rung", rung}, {"bytes", bytes}});
  };
  says("systems/parallelism",
       fmt::format(
           "16 KB take {:.2f} µs all at once, {:.2f} µs through a tree and {:.2f} µs round a "
           "ring",
           of("one-shot", "16384"), of("tree", "16384"), of("ring", "16384")));
  says("systems/parallelism",
       fmt::format("{:.1f} GB/s of bus bandwidth at 256 MB", of("ring", "268435456", "bandwidth")));
  says("systems/parallelism",
       fmt::format("takes {:.2f} µs for 16 KB and reaches {:.1f} GB/s", of("NCCL", "16384"),
                   of("NCCL", "268435456", "bandwidth")));
  const lab::Table& planned = *bench.table("planned");
  for (std::size_t row = 0; row < planned.rows.size(); ++row)
    CHECK(std::abs(tests::number_in(planned, row, "ratio") - 1) < 0.07);
  says("systems/parallelism", "as long as planned, but for a few per cent");
}

TEST_CASE("the text on experts quotes what was recorded", "[figures]") {
  const lab::Report& bench = recorded_bench("moe-routing");
  const auto rate = [&](const char* scheme, const char* routing, const char* experts) {
    return in(bench, "moe_rate", "tflops",
              {{"scheme", scheme}, {"routing", routing}, {"experts", experts}});
  };
  const auto skewed = [&](const char* scheme) {
    return in(bench, "moe_rate", "tflops",
              {{"scheme", scheme}, {"routing", "skewed"}, {"skew", "1.0"}, {"experts", "8"}});
  };
  const auto pipe = [&](const char* scheme) {
    return in(bench, "moe_counters", "tensor_pipe", {{"scheme", scheme}, {"routing", "skewed 1"}});
  };
  says("experts/moe-routing",
       fmt::format("the counter says {:.1f} % for *padded-to-capacity* and {:.1f} % for *packed*. "
                   "Useful work: {:.1f} TFLOP/s in the first case, {:.1f} TFLOP/s in the second",
                   pipe("padded-to-capacity"), pipe("packed"), skewed("padded-to-capacity"),
                   skewed("packed")));
  const auto slots = [&](const char* scheme) {
    return in(bench, "moe_rate", "slots",
              {{"scheme", scheme}, {"routing", "skewed"}, {"skew", "1.0"}, {"experts", "8"}});
  };
  says("experts/moe-routing",
       fmt::format("runs {:.0f} slots where *packed* runs {:.0f}, nearly three times",
                   slots("padded-to-capacity"), slots("packed")));
  CHECK(slots("padded-to-capacity") / slots("packed") == Approx(3).epsilon(0.05));
  CHECK(skewed("packed") / skewed("padded-to-capacity") < 2.5);
  const lab::Report& gemm = recorded_bench("hopper-gemm");
  const auto clock = [&](const char* data) {
    return in(gemm, "data", "clock_mhz", {{"data", data}});
  };
  says("experts/moe-routing",
       fmt::format("measured {:.0f} MHz on zeros, {:.0f} MHz on random numbers", clock("zeros"),
                   clock("random")));
  const auto on = [&](const char* data) { return in(gemm, "data", "tflops", {{"data", data}}); };
  says("matmul/hopper-gemm",
       fmt::format(
           "on zeros an H200 runs `persistent` at {:.0f} MHz and {:.0f} TFLOP/s, on random numbers "
           "at {:.0f} MHz and {:.0f}",
           clock("zeros"), on("zeros"), clock("random"), on("random")));
  says("experts/moe-routing",
       fmt::format("With *padded-to-capacity* it is: {:.1f} TFLOP/s on an H200",
                   rate("padded-to-capacity", "one-hot", "64")));
  says("experts/moe-routing",
       fmt::format("One-hot routing reaches {:.1f} TFLOP/s there, balanced {:.1f} TFLOP/s",
                   rate("packed", "one-hot", "64"), rate("packed", "balanced", "64")));
}

TEST_CASE("the text on fusion quotes what was recorded", "[figures]") {
  const lab::Report& bench = recorded_bench("fusion");
  const auto of = [&](const char* fusion, const char* rows, const char* column) {
    return in(bench, "fusions", column, {{"fusion", fusion}, {"rows", rows}});
  };
  const char* const chain = "residual + RMSNorm + quantize";
  says("systems/fusion", fmt::format("8192 rows of 4096 numbers take {:.2f} µs in three launches "
                                     "and {:.2f} µs in one: {:.2f} times as "
                                     "fast, where bytes promise 13 / 7 = {:.2f}. Norm and "
                                     "quantization alone are {:.2f} times as fast",
                                     of(chain, "8192", "apart"), of(chain, "8192", "together"),
                                     of(chain, "8192", "times"), of(chain, "8192", "byte_ratio"),
                                     of("RMSNorm + quantize", "8192", "times")));
  says("systems/fusion",
       fmt::format(
           "three launches take {:.2f} µs on an H200, in a CUDA graph, and one takes {:.2f} µs.",
           of(chain, "16", "apart"), of(chain, "16", "together")));
  says("systems/fusion", fmt::format("a launch alone, which takes {:.2f} µs",
                                     in(bench, "launches", "each", {{"rung", "in a graph"}})));
  const auto held = [&](const char* values, const char* column) {
    return in(bench, "held", column, {{"values", values}});
  };
  says("systems/fusion",
       fmt::format("With 512, {:.0f} bytes of each thread", held("512", "local")));
  says("systems/fusion", fmt::format("{:.0f} GB/s are left of {:.0f}", held("512", "bandwidth"),
                                     held("32", "bandwidth")));
  const auto norm = [&](const char* width) {
    return in(bench, "widths", "fraction", {{"rung", "RMSNorm"}, {"width", width}});
  };
  says("systems/fusion",
       fmt::format(
           "rows of 16384 numbers at {:.0f} % of a copy's rate, and rows of 262144 at {:.0f} %",
           100 * norm("16384"), 100 * norm("262144")));
}

TEST_CASE("the text on epilogues and sampling quotes what was recorded", "[figures]") {
  const lab::Report& bench = recorded_bench("fusion");
  const auto of = [&](const char* epilogue, const char* batch, const char* column) {
    return in(bench, "epilogue_savings", column, {{"epilogue", epilogue}, {"batch", batch}});
  };
  says("systems/fusion",
       fmt::format("{:.0f} MB less at batch 4096. Yet one launch is only {:.2f} times as fast as "
                   "two, since the tensor cores take {:.0f} µs for the product alone. At batch 16 "
                   "it is {:.2f} times",
                   of("SwiGLU", "4096", "intermediate"), of("SwiGLU", "4096", "times"),
                   of("SwiGLU", "4096", "plain"), of("SwiGLU", "16", "times")));
  for (const auto& [epilogue, layer] :
       {std::pair{"bias", "14336 × 4096"}, std::pair{"SwiGLU", "28672 × 4096"}}) {
    says("systems/fusion",
         fmt::format("{:.2f} µs to {:.2f} µs, batch 4096, W {}", of(epilogue, "4096", "apart"),
                     of(epilogue, "4096", "together"), layer));
  }
  const auto packed = [&](const char* column) {
    return in(bench, "packing", column, {{"batch", "16"}});
  };
  says("systems/fusion", fmt::format("{:.2f} µs to {:.2f} µs, batch 16, W 6144 × 4096",
                                     packed("apart"), packed("together")));
  const auto sampled = [&](const char* rule, const char* column) {
    return in(bench, "sampling", column,
              {{"rule", rule}, {"format", "bf16"}, {"rows", "512"}, {"vocabulary", "151936"}});
  };
  const char* const rule = "top-k 50, top-p 0.9";
  says("systems/fusion", fmt::format("top-p 0.9 in {:.0f} µs, at {:.0f} % of the rate of a read",
                                     1e3 * sampled(rule, "time"), 100 * sampled(rule, "fraction")));
  says("systems/fusion",
       fmt::format("that flat, it takes {:.0f} µs", 1e3 * sampled("top-p 0.9", "time")));
  says("systems/fusion",
       fmt::format("{:.0f} µs, 512 rows of 151936; apart, by simpler kernels, {:.0f} µs",
                   1e3 * sampled(rule, "time"), sampled(rule, "apart")));
}

TEST_CASE("the table of fusions quotes what was recorded, here and elsewhere", "[figures]") {
  const auto time = [](const char* column) {
    return in(recorded_bench("fusion"), "fusions", column,
              {{"fusion", "residual + RMSNorm"}, {"rows", "8192"}});
  };
  says("systems/fusion",
       fmt::format("{:.2f} µs to {:.2f} µs, 8192 rows of 4096", time("apart"), time("together")));
  const auto heads = [](const char* column) {
    return in(recorded_bench("positions"), "fusion", column, {{"tokens", "8192"}});
  };
  says("systems/fusion", fmt::format("{:.2f} µs to {:.2f} µs, 8192 tokens of 48 heads of 128",
                                     heads("apart"), heads("together")));
  const auto product = [](const char* how) {
    return in(recorded_bench("low-bit"), "unfused", "time",
              {{"layer", "14336 × 4096"}, {"batch", "1"}, {"format", how}});
  };
  says("systems/fusion", fmt::format("{:.4f} ms to {:.4f} ms, one row of X, W 14336 × 4096 in INT4",
                                     product("INT4, by memory"), product("INT4, fused")));
}

TEST_CASE("the code in the text on fusion is the script's", "[figures]") {
  const std::string script = text_of("assets/peers/fusion.py");
  const std::string text = raw_text_of("assets/lessons/systems/fusion.md"), fence = "```\n";
  int blocks = 0;
  for (std::size_t at = text.find(fence); at != std::string::npos; ++blocks) {
    const std::size_t first = at + fence.size(), end = text.find(fence, first);
    REQUIRE(end != std::string::npos);
    const std::string code = joined(text.substr(first, end - first));
    CAPTURE(code);
    CHECK(script.find(code) != std::string::npos);
    at = text.find(fence, end + fence.size());
  }
  CHECK(blocks == 2);
}

TEST_CASE("the ledger of fusion predicts with what was recorded", "[figures]") {
  const lab::Report& bench = recorded_bench("fusion");
  const lab::Measurement* copy = bench.measurement("copy_bandwidth", "the device's own copy");
  REQUIRE(copy != nullptr);
  CHECK(fusion::kBytesPerMicrosecond == Approx(copy->value * 1e3).epsilon(0.03));
  // What one launch less saves a single row, whose bytes are nothing.
  double saved = 0;
  int launches = 0;
  for (const auto& [name, fewer] : {std::pair{"residual + RMSNorm", 1},
                                    {"RMSNorm + quantize", 1},
                                    {"residual + RMSNorm + quantize", 2},
                                    {"SwiGLU + quantize", 1}}) {
    saved += in(bench, "fusions", "saving", {{"fusion", name}, {"rows", "1"}});
    launches += fewer;
  }
  // Runs are recorded with this number, so it can only be as good as the recording before.
  CHECK(fusion::kMicrosecondsPerLaunch == Approx(saved / launches).epsilon(0.1));
}

TEST_CASE("the text on triage quotes what was recorded", "[figures]") {
  const lab::Report& bench = recorded_bench("triage");
  const auto loop = [&](const char* which, const char* column) {
    return in(bench, "loop", column, {{"case", which}});
  };
  const auto attend = [&](const char* which) {
    return in(bench, "kernels", "us", {{"case", which}, {"op", "attend"}});
  };
  const auto quotes = [](const std::string& sentence) { says("systems/triage", sentence); };
  quotes(fmt::format("{:.1f} % of the kernels' time on an H200",
                     in(bench, "kernels", "share", {{"case", "case-1"}, {"op", "norm"}})));
  quotes(fmt::format("the step takes {:.0f} µs with it, and {:.0f} without",
                     in(bench, "cases", "step", {{"case", "case-1"}, {"fix", "faster-norm"}}),
                     loop("case-1", "mean")));
  quotes(fmt::format("a step takes {:.0f} µs instead of {:.0f}", loop("sound", "mean"),
                     loop("case-1", "mean")));
  quotes(fmt::format("attention takes {:.0f} µs in a step instead of {:.0f}", attend("case-12"),
                     attend("sound")));
  quotes(fmt::format("{:.0f} µs in a step on an H200 instead of {:.0f}", attend("case-6"),
                     attend("sound")));
  quotes(
      fmt::format("the kernels take {:.0f} µs of a step either way, and the gaps between them "
                  "{:.0f} µs instead of {:.0f}",
                  loop("case-7", "busy"), loop("case-7", "idle"), loop("sound", "idle")));
  CHECK(std::abs(loop("sound", "busy") / loop("case-7", "busy") - 1) < 0.005);
  quotes(fmt::format("the usual one takes {:.0f} µs, the fourth {:.0f}", loop("case-5", "usual"),
                     loop("case-5", "fourth")));
}
