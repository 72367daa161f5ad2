// Who uses shared memory without a barrier between is told of an edited kernel, and of a right one nothing is.

#include <algorithm>
#include <string>

#include "kernels/answer.hpp"
#include "kernels/base/lab/assets.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/workbench/own_cache.hpp"
#include "tests/part.hpp"

namespace tilestep::workbench {
namespace {

using tests::contains;

const std::string kFolder = "kernels/matmul/tiling/";

/// Runs a variant of tiling with `text` as its source `name`.
lab::Report run(const std::string& variant, const std::string& name, const std::string& text) {
  lab::NoProgress progress;
  return answer({.lesson = "tiling",
                 .params = {{"variant", variant}},
                 .backend = "emulated",
                 .kernel = lab::KernelEdit{kFolder + name, text}},
                progress);
}

/// What is said of the source without the line that has `part`.
void check_missing(const std::string& variant, const std::string& name, const std::string& part,
                   const std::string& what, const std::string& why) {
  std::string text(lab::asset(kFolder + name));
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  text.insert(at, "//");
  const lab::Report report = run(variant, name, text);
  CHECK_FALSE(report.ok());
  const auto said = std::find_if(report.checks.begin(), report.checks.end(),
                                 [](const lab::Check& each) { return each.id == "shared_memory"; });
  REQUIRE(said != report.checks.end());
  INFO(said->detail);
  CHECK(contains(said->detail, what));
  CHECK(contains(said->detail, why));
  REQUIRE_FALSE(report.kernel->diagnostics.empty());
  const int line = report.kernel->diagnostics.front().line;
  CHECK(contains(said->detail, " in line " + std::to_string(line) + ", which "));
  CHECK(line <= std::count(text.begin(), text.end(), '\n'));
}

TEST_CASE(
    "right kernels are right as edited ones: tiles, copies beside threads, fragments of warps",
    "[workbench_run]") {
  if (tests::Part("right kernels are right as edited ones", 2).skips()) return;
  const tests::KeptCache cache;
  // All are in one module. The first one's launches alone are of the edited source, and all are watched.
  const std::string name = "shared_tile.cu", text(lab::asset(kFolder + name));
  for (const std::string variant : {"naive", "shared-tile", "register-tile-1d", "register-tile-2d",
                                    "vectorized", "double-buffered", "warp-tile", "tensor-core"}) {
    INFO(variant);
    const lab::Report report = run(variant, name, text);
    CHECK(report.ok());
    CHECK(report.kernel->diagnostics.empty());
  }
}

TEST_CASE("the order in which an edited kernel reads its tiles is that of its trace",
          "[workbench_run]") {
  const tests::KeptCache cache;
  std::string text(lab::asset(kFolder + "shared_tile.cu"));
  const std::string upwards = "for (int kk = 0; kk < size.edge; ++kk)";
  text.replace(text.find(upwards), upwards.size(), "for (int kk = size.edge - 1; kk >= 0; --kk)");
  const lab::Report report = run("shared-tile", "shared_tile.cu", text);
  CHECK(report.ok());
  const nlohmann::json trace = report.trace, k_tiles = trace.at("block").at("k_tiles");
  REQUIRE(k_tiles.size() == 4);
  for (const auto& tile : k_tiles) CHECK(tile.at("along_k") == -1);
}

TEST_CASE("a barrier and a wait for copies that are missing are told with both lines",
          "[workbench_run]") {
  if (tests::Part("a barrier and a wait for copies that are missing", 2).skips()) return;
  const tests::KeptCache cache;
  check_missing("shared-tile", "shared_tile.cu", "__syncthreads();  // [step: barrier after load]",
                "which thread (", "no barrier is between the two");
  check_missing("warp-tile", "warp_tile.cu", "simt::cp_async_wait<T::kStages - 2>();",
                "still copies to by cp.async in line ", "no cp_async_wait is between the two");
}

}  // namespace
}  // namespace tilestep::workbench
