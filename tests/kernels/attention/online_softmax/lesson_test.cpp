#include <cmath>
#include <cstring>

#include "kernels/base/lab/assets.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/attention/online_softmax/support.hpp"

using namespace tilestep;
using namespace tilestep::online_softmax;
using tilestep::tests::error_of;
using tilestep::tests::run_softmax;
using tilestep::tests::softmax_device;

namespace {

std::vector<std::vector<std::string>> texts(const lab::Table& table) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    rows.emplace_back();
    for (std::size_t c = 0; c < table.columns.size(); ++c) rows.back().push_back(table.text(r, c));
  }
  return rows;
}

std::string source_line(int number) {
  const std::string_view source = lab::asset(kSourcePath);
  std::size_t begin = 0;
  for (int line = 1; line < number; ++line) begin = source.find('\n', begin) + 1;
  return std::string(source.substr(begin, source.find('\n', begin) - begin));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the worked example gives the golden table", "[online_softmax]") {
  const auto device = softmax_device();
  const lab::Report report = run_softmax(*device, {});
  const lab::Table* table = report.table("tiles");
  REQUIRE(table != nullptr);
  std::vector<std::string> labels;
  for (const lab::Column& column : table->columns) labels.push_back(column.label);
  CHECK(labels == std::vector<std::string>{"tile", "tile max", "m", "rescale", "l", "output"});
  CHECK(texts(*table) ==
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
  const auto device = softmax_device();
  const Trace trace = trace_from_json(run_softmax(*device, {}).trace);
  REQUIRE(trace.tiles() == 4);
  for (const TraceStep& step : trace.steps) {
    CHECK(step.m == std::max(step.m_old, step.tile_max));
    CHECK(step.l == step.l_old * step.rescale + step.tile_sum);
    CHECK(step.output == step.o / step.l);
  }
  CHECK(trace.weights[1] == 1.0f);
  CHECK(trace.weights[0] == Approx(std::exp(-2.0)));
  CHECK(trace.weights[4] == Approx(std::exp(-2.5)));
}

TEST_CASE("the recorded lines are the statements of the phases", "[online_softmax]") {
  const auto device = softmax_device();
  const Trace trace = trace_from_json(run_softmax(*device, {}).trace);
  CHECK(contains(source_line(trace.lines[0]), "m_new = fmaxf(m, tile_max)"));
  CHECK(contains(source_line(trace.lines[1]), "expf(m - base)"));
  CHECK(contains(source_line(trace.lines[2]), "expf(row[first + j] - base)"));
  CHECK(contains(source_line(trace.lines[3]), "times<Format>(l, rescale), tile_sum)"));
  // A recording may number another build's source.
  nlohmann::json json = to_json(trace);
  CHECK(json["lines"] == trace.lines);
  json["lines"] = {1, 2, 3, 4};
  CHECK(trace_from_json(json).lines == trace.lines);
}

TEST_CASE("the trace survives JSON", "[online_softmax]") {
  const auto device = softmax_device();
  Params params;
  params.preset = GENERATE(Preset::random, Preset::masked, Preset::all_masked, Preset::outlier);
  params.keys = 77;
  params.tile_width = 5;
  params.head_dim = 3;
  params.component = 2;
  params.skip_rescale = true;
  const lab::Report report = run_softmax(*device, params);
  const Trace trace = trace_from_json(report.trace);
  CHECK(trace.scores.size() == 77);
  CHECK(trace.component == 2);
  CHECK(trace_from_json(nlohmann::json::parse(to_json(trace).dump())) == trace);
  const lab::Report again = lab::report_from_json(nlohmann::json::parse(to_json(report).dump()));
  CHECK(trace_from_json(again.trace) == trace);
  for (std::size_t t = 1; t < trace.steps.size(); ++t) {
    CHECK(trace.steps[t].m_old == trace.steps[t - 1].m);
  }
}

TEST_CASE("a damaged trace is refused in words", "[online_softmax]") {
  const auto device = softmax_device();
  const nlohmann::json good = run_softmax(*device, {}).trace;
  const auto sentence = [&](const auto& damage) {
    nlohmann::json bad = good;
    damage(bad);
    return error_of([&] { trace_from_json(bad); });
  };
  CHECK(contains(sentence([](auto& j) { j.erase("scores"); }), "'scores'"));
  CHECK(contains(sentence([](auto& j) { j["steps"]["l"].erase(0); }), "'steps.l' must have 4"));
  CHECK(contains(sentence([](auto& j) { j["keys"] = 0; }), "'keys' is 0"));
  CHECK(contains(sentence([](auto& j) { j["weights"][3] = true; }),
                 "'weights[3]' is true; allowed: a number"));
  CHECK(contains(sentence([](auto& j) { j["lines"] = "x"; }), "'lines'"));
  CHECK(contains(sentence([](auto& j) { j = 3; }), "object"));
}

TEST_CASE("skipping the rescale goes wrong where the maximum first rises", "[online_softmax]") {
  const auto device = softmax_device();
  Params params;
  params.skip_rescale = true;
  const lab::Report report = run_softmax(*device, params);
  CHECK(report.ok());  // it is wrong in exactly the way it ought to be
  CHECK(trace_from_json(report.trace).first_wrong_tile == 1);
  CHECK(contains(report.summary, "first goes wrong at tile 1"));
  REQUIRE(report.table("tiles")->columns.back().id == "exact");
  CHECK(report.table("tiles")->text(1, 6) == "13.175");
  CHECK(report.table("tiles")->text(1, 5) != "13.175");

  params.preset = Preset::falling;
  const lab::Report falling = run_softmax(*device, params);
  CHECK(trace_from_json(falling.trace).first_wrong_tile == -1);
  CHECK(contains(falling.summary, "right all the same"));
}

TEST_CASE("the presets do what their names say", "[online_softmax]") {
  const auto device = softmax_device();
  Params params;
  params.keys = GENERATE(16, 100, 500);
  params.tile_width = GENERATE(1, 4, 32);
  const auto trace_of = [&](Preset preset) {
    params.preset = preset;
    return trace_from_json(run_softmax(*device, params).trace);
  };
  for (const TraceStep& step : trace_of(Preset::rising).steps) CHECK(step.m > step.m_old);
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
  const auto device = softmax_device();
  Params params;
  params.preset = Preset::outlier;
  params.keys = GENERATE(1, 16, 1000);
  const lab::Report report = run_softmax(*device, params);
  CHECK(report.ok());
  const lab::Table* naive = report.table("naive");
  REQUIRE(naive != nullptr);
  CHECK(naive->text(0, 2) == "inf");
  CHECK(naive->text(0, 3) == "inf");
  CHECK(naive->text(0, 4) == "nan");
  CHECK(naive->text(1, 4) == naive->text(2, 4));
}

TEST_CASE("with everything masked there is a zero and no NaN", "[online_softmax]") {
  const auto device = softmax_device();
  Params params;
  params.preset = Preset::all_masked;
  params.accumulator = GENERATE(Accumulator::fp32, Accumulator::fp16, Accumulator::bf16);
  params.skip_rescale = GENERATE(false, true);
  const lab::Report report = run_softmax(*device, params);
  CHECK(report.ok());
  CHECK(report.measurement("output")->value == 0);
  CHECK(report.measurement("final_l")->value == 0);
  CHECK(!contains(lab::to_json(report).dump(), "\"nan\""));
}

TEST_CASE("narrow accumulators stop growing where the format ends", "[online_softmax]") {
  const auto device = softmax_device();
  Params params;
  params.preset = Preset::equal;
  params.keys = 1000;
  params.tile_width = 1;
  params.accumulator = Accumulator::bf16;
  const lab::Report report = run_softmax(*device, params);
  CHECK(report.ok());
  CHECK(report.measurement("final_l")->value == 256);
}

TEST_CASE("knobs refuse what is not allowed and say what is", "[online_softmax]") {
  const auto sentence = [](const char* id, lab::KnobValue value) {
    return error_of([&] { params_from({{id, value}}); });
  };
  CHECK(contains(sentence("tile_width", std::int64_t{0}), "1–1024"));
  CHECK(contains(sentence("keys", std::int64_t{65537}), "1–65536"));
  CHECK(contains(sentence("head_dim", std::int64_t{129}), "1–128"));
  CHECK(contains(sentence("preset", std::string("nothing")), "all-masked"));
  CHECK(contains(sentence("component", std::int64_t{1}), "0–0"));
  CHECK(contains(sentence("query", std::int64_t{8}), "0–7"));
  CHECK(contains(sentence("seed", std::int64_t{-1}), "seed"));
  std::vector<std::string> ids;
  for (const lab::Knob& knob : lesson().knobs()) ids.push_back(knob.id);
  CHECK(ids == std::vector<std::string>{"preset", "keys", "tile_width", "head_dim", "accumulator",
                                        "seed", "skip_rescale", "component", "queries", "query"});
  CHECK(knob_table().params(knob_table().settings(Params{})).keys == 16);
}

TEST_CASE("data depends on seed, query and component only where it should", "[online_softmax]") {
  lab::NoProgress progress;
  Params params;
  params.keys = 40;
  params.head_dim = 2;
  const Inputs example = make_inputs(params, progress);
  CHECK(example.scores[0] == 1);
  CHECK(example.scores[16] == 1);  // the example repeats
  CHECK(example.scores[40] == 3);  // query 1 starts one key later
  CHECK(example.values[1] == 11);  // component 1 is component 0 plus 1
  params.preset = Preset::random;
  const Inputs first = make_inputs(params, progress);
  CHECK(first.scores == make_inputs(params, progress).scores);
  params.seed = 2;
  CHECK(first.scores != make_inputs(params, progress).scores);
}

TEST_CASE("a cancelled run ends", "[online_softmax]") {
  class Cancelling final : public lab::Progress {
   public:
    void report(double, std::string_view) override {}
    bool cancelled() const override { return true; }
  };
  const auto device = softmax_device();
  Cancelling progress;
  CHECK_THROWS_AS(lesson().run({}, *device, progress), Cancelled);
}

TEST_CASE("the bench says that it needs a GPU", "[online_softmax]") {
  const auto device = softmax_device();
  lab::NoProgress progress;
  CHECK(contains(error_of([&] { lesson().bench(*device, progress); }), "GPU"));
}

TEST_CASE("long rows run under emulation", "[online_softmax]") {
  const auto device = softmax_device();
  Params params;
  params.preset = Preset::random;
  params.keys = tests::kFewShapes ? 2048 : 65536;
  params.tile_width = 1;
  params.queries = 1;
  const lab::Report report = run_softmax(*device, params);
  CHECK(report.ok());
  CHECK(report.table("tiles")->rows.size() == static_cast<std::size_t>(params.keys));
}
