// What a picture says of a kernel that a user edited is true of that kernel: its words and marks come from the trace and
// from the reference, not from what the lesson's own kernel would have done.

#include <memory>

#include "kernels/answer.hpp"
#include "kernels/base/lab/assets.hpp"
#include "kernels/catalog.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/workbench/own_cache.hpp"
#include "tests/lesson_contract/said.hpp"
#include "tests/part.hpp"
#include "tests/reports.hpp"

using namespace tilestep;

namespace {

/// A line of arithmetic in a lesson's default kernel, and what somebody makes of it.
struct Edit {
  std::string_view lesson, path, from, to;
  bool drawn = true;  ///< the reference contradicts a result that the picture has
};
constexpr Edit kEdits[] = {
    {"coalescing", "memory/coalescing/access.cu", "out[i] = in[i * s.stride];",
     "out[i] = in[i + s.stride];"},
    {"latency-hiding", "machine/latency_hiding/copy.cu",
     "held[k] = __ldcg(&from[first + k * apart]);", "held[k] = __ldcg(&from[first + k + apart]);",
     false},
    {"tiling", "matmul/tiling/shared_tile.cu", "sum += a_tile[kk * size.pitch + y] * b_tile",
     "sum += a_tile[kk * size.pitch + y] + b_tile"},
    {"tiling", "matmul/tiling/shared_tile.cu", "sum += a_tile[kk * size.pitch + y] * b_tile",
     "sum = a_tile[kk * size.pitch + y] * b_tile"},
    {"hopper-gemm", "matmul/hopper_gemm/specialized.cu", "stages, stage, rows, k == 0);",
     "stages, stage, rows, true);", false},
    {"accumulator-precision", "numbers/accumulator_precision/sums.cu",
     "s = adder.plus(s, t, i, 0);", "s = adder.plus(s, t + t, i, 0);"},
    {"accumulator-precision", "numbers/accumulator_precision/sums.cu",
     "s = adder.plus(s, t, i, 0);", "s = adder.plus(s, t * s, i, 0);"},
    {"online-softmax", "attention/online_softmax/one_pass.cu",
     "shape.skip_rescale ? 1.0f : expf(m - base);", "1.0f;"},
    {"online-softmax", "attention/online_softmax/one_pass.cu", "fmaxf(m, tile_max);", "tile_max;",
     false},
    {"online-softmax", "attention/online_softmax/one_pass.cu", "expf(row[first + j] - base);",
     "expf(row[first + j] - base) * 0.5f;", false},
    {"online-softmax", "attention/online_softmax/one_pass.cu",
     "plus<Format>(times<Format>(l, rescale), tile_sum);", "plus<Format>(l, tile_sum);"},
    {"flash-attention", "attention/flash_attention/flash_2.cu",
     "online_softmax(s, o, stats, set, tiles, tape, here);",
     "online_softmax(s, o, stats, Setting{set.rule, set.heads, set.kv_heads, set.mod, set.scale, "
     "set.to_natural * kLn2}, tiles, tape, here);"},
    {"flash-attention", "attention/flash_attention/flash_2.cu", "tile = next;",
     "tile = next; stats.l[0][0] = stats.l[0][1] = 0;"},
    {"decode", "attention/kv_cache/paged/paged.cu", "factor[half] = step.rescale;",
     "factor[half] = 1.0f;"},
    {"decode", "attention/kv_cache/paged/paged.cu", "fmaf(stats.l[half], factor[half], tile_sum);",
     "stats.l[half] + tile_sum;"},
    {"moe-routing", "experts/moe_routing/routing.cu", "sum += gate[assignment] * y",
     "sum += gate[assignment] + y", false},
    {"moe-routing", "experts/moe_routing/routing.cu", "chosen.probability[assignment] / of_chosen;",
     "chosen.probability[assignment];"},
};

lab::Report run(const Edit& edit) {
  const std::string path = "kernels/" + std::string(edit.path);
  std::string text(lab::asset(path));
  const std::size_t at = text.find(edit.from);
  REQUIRE(at != text.npos);
  text.replace(at, edit.from.size(), edit.to);
  return answer({.lesson = std::string(edit.lesson),
                 .params = {},
                 .backend = "emulated",
                 .kernel = lab::KernelEdit{path, std::move(text)}},
                tests::unwatched);
}

/// All formulas on screen that do not hold, over every place of the scene, once each.
std::vector<std::string> false_on_screen(const scenes::Scene& scene) {
  std::vector<std::string> all;
  const scenes::StepAxis axis = scene.steps();
  for (int place = 0; place <= axis.places(); ++place) {
    for (const contract::Said& said : contract::said_at(scene, axis.at_place(place))) {
      for (const std::string& formula : contract::false_formulas(said.text)) {
        all.push_back(said.where + ": " + formula);
      }
    }
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::unique_ptr<scenes::Scene> scene_with(const lab::Report& report) {
  for (std::unique_ptr<scenes::Scene>& scene : scenes::make_scenes()) {
    if (scene->lesson() != report.lesson) continue;
    scene->load(report);
    return std::move(scene);
  }
  throw Error("no scene for " + report.lesson);
}

TEST_CASE("formulas are counted again", "[edited_words]") {
  using contract::false_formulas;
  using Texts = std::vector<std::string>;
  for (const char* good :
       {"ℓ = 1.59 × 0.135 + 1.11 = 1.32", "rescale = exp(−∞ − 3.0) = 0.000",
        "m = max(−∞, 1.00) = 1.00", "= 1.011₂ × 2⁵ = 44   the term is lost",
        "rescale = 1.000 ≠ exp(3.0 − 5.0)", "ℓ = 256 + 1 ≈ 256.00", "O = 18.06 × 0.135 + Σp·v = 99",
        "E1: slot 8 + 3 = 11", "B = 2·64·16/8 = 256", "t = 3.3+7.2+0.2 = 10.7 ms",
        "O = 18.06×0.135 + 14.97 = 17.41", "need = 900 ns · 4.0 GB/s = 3.5 KiB",
        "|1 − 0.998000026| / |0.998000026| = 0.2 %", "0 + (−0.52)·0.95 + … = 7"}) {
    CAPTURE(good);
    CHECK(false_formulas(good) == Texts());
  }
  for (const char* bad :
       {"ℓ = 1.59 × 1.000 + 1.11 = 1.32", "rescale = exp(3.0 − 5.0) = 1.000",
        "m = max(3.0, 5.0) = 3.0", "= 1.011₂ × 2⁵ = 45", "ℓ = 256 + 1 ≈ 250.00",
        "rescale = 0.135 ≠ exp(3.0 − 5.0)", "E1: slot 8 + 3 = 12", "t = 3.3+7.2+0.2 = 11.7 ms",
        "O = 18.06×0.135 − 14.97 = 17.41", "need = 900 ns · 4.0 GB/s = 4.5 KiB",
        "|1 − 0.998000026| / |0.998000026| = 0.3 %", "x = 2·(3 + 4) = 13", "−2 / 4 = 0.50"}) {
    CAPTURE(bad);
    CHECK(false_formulas(bad).size() == 1);
  }
}

TEST_CASE(
    "of an edited kernel no formula is false, and what the reference contradicts is drawn as wrong",
    "[edited_words]") {
  const tests::KeptCache cache;
  tests::Part part("edits of arithmetic", 5);
  for (const Edit& edit : kEdits) {
    if (part.skips()) continue;
    INFO(edit.lesson << ": " << edit.from << " became " << edit.to);
    const std::unique_ptr<scenes::Scene> own = scene_with(tests::report_of(edit.lesson)),
                                         edited = scene_with(run(edit));
    CHECK(false_on_screen(*own) == std::vector<std::string>());
    CHECK(false_on_screen(*edited) == std::vector<std::string>());
    // The numbers of the lesson's kernel are right; the other's are not.
    const scenes::StepAxis axis = edited->steps();
    CHECK_FALSE(edited->report()->ok());
    const scenes::Cursor end = axis.at_place(axis.places());
    bool drawn = contract::shows_wrong(*edited, end);
    for (int step = 1; step < axis.tiles && axis.tiles <= 8; ++step) {
      drawn = drawn || contract::shows_wrong(*edited, axis.at_place(axis.place_of({step, 0})));
    }
    CHECK(drawn == edit.drawn);
    const auto beside = scenes::readouts_of(*edited, {end});
    CHECK(beside.back().look == scenes::Readout::wrong);
    CHECK(beside.back().id.starts_with("check_"));
  }
}

TEST_CASE("a kernel with one comment more is as right as the lesson's", "[edited_words]") {
  const tests::KeptCache cache;
  tests::Part part("edits that change nothing", 7);
  for (const lab::Lesson* lesson : lessons()) {
    if (part.skips()) continue;
    const std::string& id = lesson->info().id;
    const std::unique_ptr<scenes::Scene> scene = scene_with(tests::report_of(id));
    const scenes::StepAxis axis = scene->steps();
    for (const int place : {1, axis.places()}) {
      const std::string path = scene->source({axis.at_place(place)}).path;
      INFO(id << ": " << path);
      const lab::Report report =
          answer({.lesson = id,
                  .params = {},
                  .backend = "emulated",
                  .kernel = lab::KernelEdit{path, std::string(lab::asset(path)) + "// the same\n"}},
                 tests::unwatched);
      CHECK(tests::failed_checks(report) == "");
    }
  }
}

TEST_CASE("one thing has one number on screen", "[edited_words]") {
  for (const lab::Lesson* lesson : lessons()) {
    std::vector<lab::Settings> cases = {{}};
    for (const lab::Telling& telling : lesson->telling()) cases.push_back(telling.settings);
    for (const lab::Settings& settings : cases) {
      INFO(lesson->info().id << " " << lab::to_json(settings).dump());
      const std::unique_ptr<scenes::Scene> scene =
          scene_with(tests::report_of(lesson->info().id, settings));
      const scenes::StepAxis axis = scene->steps();
      // The first places and the last of a long way.
      constexpr int kEnough = 60;
      for (int place = 0; place <= axis.places(); ++place) {
        if (place > kEnough && place < axis.places() - kEnough) continue;
        const scenes::Cursor cursor = axis.at_place(place);
        CAPTURE(cursor.tile, cursor.phase);
        CHECK(contract::two_numbers_at(*scene, cursor) == std::vector<std::string>());
      }
    }
  }
}

// ---- what an edited kernel does not record ---------------------------------------------------------

/// The kernels that lessons show by default.
constexpr std::pair<std::string_view, std::string_view> kDefaults[] = {
    {"latency-hiding", "machine/latency_hiding/copy.cu"},
    {"tiling", "matmul/tiling/shared_tile.cu"},
    {"hopper-gemm", "matmul/hopper_gemm/specialized.cu"},
    {"accumulator-precision", "numbers/accumulator_precision/sums.cu"},
    {"online-softmax", "attention/online_softmax/one_pass.cu"},
    {"flash-attention", "attention/flash_attention/flash_2.cu"},
    {"decode", "attention/kv_cache/paged/paged.cu"},
    {"moe-routing", "experts/moe_routing/routing.cu"}};

/// How a statement begins that does nothing but record.
constexpr std::string_view kRecords[] = {
    "tape.note(",   "note_sum(",  "probe.used(",  "probe.start(", "probe.finish(",
    "loads(tape, ", "note_item(", "note_output<", "note_step(",   "note_outputs(",
    "end_visit(",   "clock(tape", "clock<"};

/// A statement of a source: its text from `at`, up to and with its semicolon.
struct Statement {
  std::size_t at, length;
};
std::vector<Statement> recording_statements(std::string_view text) {
  std::vector<Statement> all;
  for (const std::string_view begins : kRecords) {
    for (std::size_t at = text.find(begins); at != text.npos; at = text.find(begins, at + 1)) {
      const std::size_t line = text.rfind('\n', at) + 1;
      const std::string_view before = text.substr(line, at - line);
      const bool whole = before.find_first_not_of(' ') == before.npos || before.ends_with(") ");
      if (whole) all.push_back({at, text.find(");", at) + 2 - at});
    }
  }
  return all;
}

TEST_CASE("a recording line that was taken out ends in a sentence or a failed check",
          "[edited_record]") {
  const tests::KeptCache cache;
  tests::Part part("recording lines", 14);
  for (const auto& [lesson, file] : kDefaults) {
    const std::string path = "kernels/" + std::string(file);
    const std::string_view source = lab::asset(path);
    const std::vector<Statement> statements = recording_statements(source);
    INFO(lesson);
    CHECK_FALSE((statements.empty() && lesson != "moe-routing"));
    for (const Statement& one : statements) {
      if (part.skips()) continue;
      std::string text(source);
      text.replace(one.at, one.length, ";");
      INFO(source.substr(one.at, one.length));
      std::string said;
      try {
        const lab::Report report = answer({.lesson = std::string(lesson),
                                           .params = {},
                                           .backend = "emulated",
                                           .kernel = lab::KernelEdit{path, std::move(text)}},
                                          tests::unwatched);
        // A line of a kernel that the defaults do not run is not missed.
        if (report.trace == tests::report_of(lesson).trace) continue;
        said = tests::failed_checks(report);
      } catch (const Error& error) {
        said = error.what();
      }
      CAPTURE(said);
      CHECK_FALSE(said.empty());
    }
  }
}

}  // namespace
