// Figures that stand in texts are those of the committed recordings: a new recording fails here until
// the texts follow.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "app/cli/ladder_text.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using tests::recorded_bench;

namespace {

/// A text of the repository with its lines joined.
std::string text_of(const std::string& path) {
  std::ifstream file(std::string(TILESTEP_SOURCE_DIR) + "/" + path);
  REQUIRE(file);
  std::string text, all{std::istreambuf_iterator<char>(file), {}};
  for (const char c : all) {
    const bool space = c == ' ' || c == '\n';
    if (!space || (!text.empty() && text.back() != ' ')) text += space ? ' ' : c;
  }
  return text;
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
  std::ifstream file(TILESTEP_SOURCE_DIR "/README.md");
  const std::string readme{std::istreambuf_iterator<char>(file), {}};
  for (const char* lesson : {"online-softmax", "tiling", "moe-routing"}) {
    CAPTURE(lesson);
    CHECK(readme.find(app::ladder_markdown(recorded_bench(lesson))) != std::string::npos);
  }
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
           "stores reach {:.0f} GB/s there, where the prediction is {:.0f}, and loads {:.0f}.",
           stride("store", "8"), stride("expected_store", "8"), stride("load", "8")));
  says("memory/coalescing",
       fmt::format("{:.0f} GB/s at stride 8, {:.0f} at 16, {:.0f} at 64.", stride("load", "8"),
                   stride("load", "16"), stride("load", "64")));
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
  says("matmul/tiling",
       fmt::format("would reach {:.1f} TFLOP/s there; it reaches {:.1f}, or {:.0f} %",
                   shared("ceiling"), shared("tflops"), 100 * shared("share")));
  says("matmul/tiling",
       fmt::format("doubled, from {:.1f} to {:.1f} GB", counted("dram_bytes", "coalesced"),
                   counted("dram_bytes", "shared-tile")));
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
       fmt::format(
           "three reads reach {:.3f} and two {:.3f} of one read, which itself reaches {:.2f} "
           "of the copy",
           uncached("of_one_read", "three-pass"), uncached("of_one_read", "online-two-pass"),
           uncached("fraction", "online-one-read")));
  says(
      "attention/online-softmax",
      fmt::format("Rows of 8192 columns do better: {:.2f} and {:.2f} of the copy, with 512 threads",
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
       fmt::format(
           "promotion costs {:.0f} % of the rate at K = 4096, and takes the error of uniform "
           "positive data from {:.1f} % to {:.3f} %",
           100 * (1 - of("gemm_rate", "wgmma-fp8-promoted") / of("gemm_rate", "wgmma-fp8")),
           of("gemm_error", "wgmma-fp8"), of("gemm_error", "wgmma-fp8-promoted")));
}
