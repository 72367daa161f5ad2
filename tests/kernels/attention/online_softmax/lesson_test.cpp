#include "kernels/attention/online_softmax/lesson.hpp"

#include <cmath>
#include <limits>

#include "tests/traces.hpp"

using namespace tilestep;
using namespace tilestep::online_softmax;
using namespace tilestep::tests;

const Runs run(lesson(), knob_table(), trace_from_json);

TEST_CASE("the worked example gives the golden table", "[online_softmax]") {
  const lab::Report report = run();
  const lab::Table& table = table_in(report, "tiles");
  CHECK(labels_of(table) ==
        std::vector<std::string>{"tile", "tile max", "m", "rescale", "ℓ", "output"});
  CHECK(texts_of(table) ==
        std::vector<std::vector<std::string>>{{"0", "3.0", "3.0", "0.000", "1.59", "11.390"},
                                              {"1", "5.0", "5.0", "0.135", "1.32", "13.175"},
                                              {"2", "4.0", "5.0", "1.000", "1.89", "12.880"},
                                              {"3", "6.0", "6.0", "0.368", "1.72", "14.054"}});
  CHECK(report.ok());
  CHECK(report.measurement("rescales")->value == 2);
  CHECK(report.measurement("rescales")->provenance == lab::Provenance::traced);
  const nlohmann::json json = lab::to_json(report);
  CHECK(json["tables"][0]["rows"][1] == nlohmann::json({1.0, 5.0, 5.0, 0.135, 1.32, 13.175}));
}

TEST_CASE("the recorded state is the recurrence", "[online_softmax]") {
  const Trace trace = run.trace();
  REQUIRE(trace.tiles() == 4);
  for (const StepRecord& step : trace.steps) {
    CHECK(step.m == std::max(step.m_old, step.tile_max));
    CHECK(step.l == step.l_old * step.rescale + step.tile_sum);
    CHECK(step.output == step.o / step.l);
  }
  CHECK(trace.weights[1] == 1.0f);
  CHECK(trace.weights[0] == Approx(std::exp(-2.0)));
  CHECK(trace.weights[4] == Approx(std::exp(-2.5)));
}

TEST_CASE("the recorded lines are the statements of the phases", "[online_softmax]") {
  check_lines(kSourcePath, run.trace().lines,
              {"m_new = fmaxf(m, tile_max)", "expf(m - base)", "expf(row[first + j] - base)",
               "times<Format>(l, rescale), tile_sum)"});
}

TEST_CASE("skipping the rescale goes wrong where the maximum first rises", "[online_softmax]") {
  const lab::Report report = run({.skip_rescale = true});
  CHECK(report.ok());  // it is wrong in exactly the way it ought to be
  CHECK(run.read(report.trace).first_wrong_tile == 1);
  CHECK(contains(report.summary, "first goes wrong at tile 1"));
  CHECK(report.measurement("rescales")->value == 0);
  CHECK(report.measurement("rescales_skipped")->value == 2);
  REQUIRE(report.table("tiles")->columns.back().id == "exact");
  CHECK(report.table("tiles")->text(1, 6) == "13.175");
  CHECK(report.table("tiles")->text(1, 5) != "13.175");

  const lab::Report falling = run({.preset = Preset::falling, .skip_rescale = true});
  CHECK(run.read(falling.trace).first_wrong_tile == -1);
  CHECK(contains(falling.summary, "right all the same"));
}

TEST_CASE("the presets do what their names say", "[online_softmax]") {
  const int keys = GENERATE(16, 100, 500), tile_width = GENERATE(1, 4, 32);
  const auto trace_of = [&](Preset preset) {
    return run.trace({.preset = preset, .keys = keys, .tile_width = tile_width});
  };
  for (const StepRecord& step : trace_of(Preset::rising).steps) CHECK(step.m > step.m_old);
  const Trace falling = trace_of(Preset::falling);
  for (std::size_t t = 1; t < falling.steps.size(); ++t) CHECK(falling.steps[t].rescale == 1.0f);
  for (const float weight : trace_of(Preset::equal).weights) CHECK(weight == 1.0f);
  const Trace masked = trace_of(Preset::masked);
  const float minus_infinity = -std::numeric_limits<float>::infinity();
  CHECK(masked.scores.back() == minus_infinity);
  CHECK(masked.exact_max > minus_infinity);
  if (masked.tiles() >= 3) {
    CHECK(masked.steps.front().m == minus_infinity);
    CHECK(masked.steps.back().tile_max == minus_infinity);
  }
}

TEST_CASE("the outlier overflows softmax without the maximum", "[online_softmax]") {
  const lab::Report report = run({.preset = Preset::outlier, .keys = GENERATE(1, 16, 1000)});
  CHECK(report.ok());
  const lab::Table& naive = table_in(report, "naive");
  CHECK(naive.text(0, 2) == "inf");
  CHECK(naive.text(0, 3) == "inf");
  CHECK(naive.text(0, 4) == "nan");
  CHECK(naive.text(1, 4) == naive.text(2, 4));
}

TEST_CASE("with everything masked there is a zero and no NaN", "[online_softmax]") {
  const lab::Report report =
      run({.preset = Preset::all_masked,
           .accumulator = GENERATE(Accumulator::fp32, Accumulator::fp16, Accumulator::bf16),
           .skip_rescale = GENERATE(false, true)});
  CHECK(report.ok());
  CHECK(report.measurement("output")->value == 0);
  CHECK(report.measurement("final_l")->value == 0);
  CHECK(!contains(lab::to_json(report).dump(), "\"nan\""));
}

TEST_CASE("narrow accumulators stop growing where the format ends", "[online_softmax]") {
  const lab::Report report = run(
      {.preset = Preset::equal, .keys = 1000, .tile_width = 1, .accumulator = Accumulator::bf16});
  CHECK(report.ok());
  CHECK(report.measurement("final_l")->value == 256);
}

TEST_CASE("data depends on seed and query only where it should", "[online_softmax]") {
  Params params{.keys = 40, .head_dim = 2};
  const Inputs example = make_inputs(params, unwatched);
  CHECK(example.scores[0] == 1);
  CHECK(example.scores[16] == 1);  // the example repeats
  CHECK(example.scores[40] == 3);  // query 1 starts one key later
  CHECK(example.values[1] == 11);  // component 1 is component 0 plus 1
  params.preset = Preset::random;
  const Inputs first = make_inputs(params, unwatched);
  CHECK(first.scores == make_inputs(params, unwatched).scores);
  params.seed = 2;
  CHECK(first.scores != make_inputs(params, unwatched).scores);
}

TEST_CASE("long rows run under emulation", "[online_softmax]") {
  const int keys = kFewShapes ? 2048 : 65536;
  const lab::Report report =
      run({.preset = Preset::random, .keys = keys, .tile_width = 1, .queries = 1});
  CHECK(report.ok());
  CHECK(report.table("tiles")->rows.size() == static_cast<std::size_t>(keys));
}

TEST_CASE("scores of one's own", "[online_softmax]") {
  // Repeated when there are more keys, shifted for each query, checked against the reference.
  const lab::Report report = run({.preset = Preset::custom,
                                  .keys = 7,
                                  .tile_width = 2,
                                  .queries = 3,
                                  .query = 1,
                                  .scores = "1,-2.5,-inf"});
  CHECK(tests::failed_checks(report).empty());
  const Trace trace = trace_from_json(report.trace);
  const float masked = -std::numeric_limits<float>::infinity();
  CHECK(trace.scores == std::vector<float>{-2.5f, masked, 1, -2.5f, masked, 1, -2.5f});
  // Without any they are the worked example's.
  const lab::Report none = run({.preset = Preset::custom});
  CHECK((none.trace == run({.preset = Preset::worked_example}).trace));
}

TEST_CASE("what is no list of scores is refused", "[online_softmax]") {
  for (const char* good : {"", "1", "1,2.5,-3", "-inf", "200,-200", "1,-inf"}) {
    CAPTURE(good);
    CHECK(is_list_of_scores(good));
  }
  std::string many = "1";
  for (int i = 0; i < kMostScores; ++i) many += ",1";
  for (const std::string bad : {"x", "1,", ",1", "1;2", "201", "nan", "inf", "1 2", many.c_str()}) {
    CAPTURE(bad);
    CHECK_FALSE(is_list_of_scores(bad));
  }
  CHECK(is_list_of_scores(scores_text({1.0f, -0.04f, -std::numeric_limits<float>::infinity()})));
  CHECK(scores_text({1.0f, 2.46f, -0.04f}) == "1,2.5,0");
}
