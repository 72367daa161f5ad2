// Whole runs of the lesson: each case's fault is found by an instrument from what that shows alone, fixes take away what they
// fit, and the bench times all of it.

#include "kernels/systems/triage/lesson.hpp"

#include <algorithm>
#include <map>

#include "kernels/base/lab/recording.hpp"
#include "kernels/systems/triage/bench/bench.hpp"
#include "kernels/systems/triage/run/run.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"
#include "tests/kernels/device.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::triage;
using tests::contains;

namespace {

simt::KernelEntry kTriageRuns[] = {{"triage", kernels_emulated}};

lab::Report run_triage(const lab::Settings& settings) {
  const auto device = tests::device_under_test(kTriageRuns);
  lab::NoProgress nobody;
  return lesson().run(settings, *device, nobody);
}
Trace triage_trace(const lab::Settings& settings) {
  return trace_from_json(run_triage(settings).trace);
}
/// What one instrument shows of a case.
std::vector<Row> seen(const std::string& which, const std::string& probe) {
  return triage_trace({{"case", which}, {"probes", probe}}).rows;
}
std::string case_of(Fault fault) {
  for (int i = 0; i < kCases; ++i) {
    const auto which = static_cast<Case>(i);
    if (plan_of(which, 0).has(fault)) return std::string(name_of(which));
  }
  FAIL("no case hides " << name_of(fault));
  return {};
}
std::string op_of(const Row& row) {
  return row.op < 0 ? "" : std::string(name_of(static_cast<Op>(row.op)));
}
/// The row that is first by `larger`.
template <class Larger>
Row first_by(const std::vector<Row>& rows, Larger larger) {
  REQUIRE_FALSE(rows.empty());
  return *std::max_element(rows.begin(), rows.end(),
                           [&](const Row& a, const Row& b) { return larger(a) < larger(b); });
}
const Row* row_named(const std::vector<Row>& rows, const std::string& what) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.what == what; });
  return found == rows.end() ? nullptr : &*found;
}
double count_of(const std::vector<Row>& rows, const std::string& what) {
  const Row* const row = row_named(rows, what);
  return row == nullptr ? 0 : row->count;
}

}  // namespace

TEST_CASE("Triage: sectors per request show weights that are read across", "[triage]") {
  const Row worst = first_by(seen(case_of(Fault::strided), "sectors"),
                             [](const Row& row) { return row.value / row.second; });
  CHECK(op_of(worst) == "out");
  CHECK(worst.value >= 8 * worst.second);
  for (const Row& row : seen(case_of(Fault::sync), "sectors")) CHECK(row.value <= 2 * row.second);
}

TEST_CASE("Triage: shapes show a fallback, a wide format, and a format that was expanded",
          "[triage]") {
  const std::vector<Row> odd = seen(case_of(Fault::unaligned), "shapes");
  const Row* const single = row_named(odd, "product_single");
  REQUIRE(single != nullptr);
  CHECK(op_of(*single) == "qkv");
  CHECK(single->value == 2);
  CHECK(contains(single->note, "rows 129 numbers apart"));
  for (const Row& row : odd) {
    if (row.what == "product") CHECK(row.value == 16);
  }
  const std::vector<Row> wide = seen(case_of(Fault::fp32), "shapes");
  for (const Row& row : wide) {
    if (row.what.starts_with("product") && contains(row.note, "FP32")) CHECK(op_of(row) == "qkv");
  }
  CHECK(row_named(wide, "product_floats") != nullptr);
  const std::vector<Row> expanded = seen(case_of(Fault::unfused), "kernels");
  CHECK(row_named(expanded, "dequant") != nullptr);
  CHECK(row_named(expanded, "product_bytes") == nullptr);
}

TEST_CASE("Triage: gaps show launches one by one, waits, and graphs made anew", "[triage]") {
  const std::vector<Row> sound = seen(case_of(Fault::strided), "gaps"),
                         apart = seen(case_of(Fault::apart), "gaps"),
                         waits = seen(case_of(Fault::sync), "gaps"),
                         anew = seen(case_of(Fault::anew), "gaps");
  CHECK(count_of(sound, "replay") == 1);
  CHECK(count_of(sound, "launch") == 0);
  CHECK(count_of(sound, "instantiate") == 0);
  CHECK(count_of(apart, "launch") > 2 * count_of(sound, "kernels"));
  CHECK(count_of(apart, "synchronize") == 1);  // for the tokens
  CHECK(count_of(waits, "synchronize") == 5);  // and two per layer
  CHECK(count_of(anew, "instantiate") == 1);
  CHECK(count_of(anew, "replay") == 1);
  // The kernels of which there are too many are those of the norm and the residual.
  const Row most =
      first_by(seen(case_of(Fault::apart), "kernels"), [](const Row& row) { return row.count; });
  CHECK(op_of(most) == "norm");
}

TEST_CASE("Triage: the queue shows padding, and an expert that has all rows", "[triage]") {
  const Row* padded = nullptr;
  const std::vector<Row> queue = seen(case_of(Fault::padding), "queue");
  padded = row_named(queue, "step 1");
  REQUIRE(padded != nullptr);
  CHECK(padded->count == 8);
  CHECK(padded->second == 4);
  const std::vector<Row> busy = seen(case_of(Fault::straggler), "queue");
  CHECK(count_of(busy, "step 1") == 4);
  CHECK(count_of(busy, "expert 1") == 4);
  CHECK(count_of(seen(case_of(Fault::strided), "queue"), "expert 1") == 1);
}

TEST_CASE("Triage: counters show one block where several fit, the roofline bytes read twice",
          "[triage]") {
  const auto attend = [](const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      if (op_of(row) == "attend") return row;
    }
    FAIL("no attention");
    return Row{};
  };
  const Row full = attend(seen(case_of(Fault::occupancy), "counters"));
  CHECK(full.count == 1);
  CHECK(full.second < 10);
  CHECK(attend(seen(case_of(Fault::strided), "counters")).count > 1);
  const Row once = attend(seen(case_of(Fault::strided), "roofline")),
            twice = attend(seen(case_of(Fault::twice), "roofline"));
  CHECK(twice.count > 1.7 * once.count);
  CHECK(twice.value < 0.6 * once.value);
}

TEST_CASE("Triage: a kernel of every fourth step is seen at that step alone", "[triage]") {
  const std::string which = case_of(Fault::rare);
  CHECK(row_named(seen(which, "kernels"), "move") == nullptr);
  CHECK(row_named(seen(which, "kernels:3"), "move") == nullptr);
  CHECK(row_named(seen(which, "kernels:4"), "move") != nullptr);
  CHECK(row_named(seen(case_of(Fault::strided), "kernels:4"), "move") == nullptr);
}

TEST_CASE("Triage: a fix takes away its own fault and nothing else", "[triage]") {
  for (const Fault fault : all_of<Fault>()) {
    const Plan plan = Plan{}.with(fault);
    for (int i = 0; i < kFixes; ++i) {
      const auto fix = static_cast<Fix>(i);
      const Plan after = fixed(plan, fix);
      CHECK(after.faults.none() == (fix == fix_of(fault)));
      CHECK(after.quick_norm == (fix == Fix::faster_norm));
    }
    CHECK(label_of(plan) == case_of(fault));
  }
  // The kernels of the faulty operator are the same after a fix that does not fit.
  const auto device = tests::device_under_test(kTriageRuns);
  const Shape shape;
  Arrays arrays(*device, shape, make_numbers(shape, 1, 100003));
  const Plan strided = Plan{}.with(Fault::strided);
  const auto out_of = [&](const Plan& plan) {
    for (const KernelReading& kernel :
         counted(Program(arrays, plan), kUsualStep, std::size_t{1} << 17).kernels) {
      if (kernel.op == Op::out) return std::tuple(kernel.kernel, kernel.bytes, kernel.sectors);
    }
    return std::tuple(std::string(), 0.0, 0.0);
  };
  CHECK(out_of(fixed(strided, Fix::faster_norm)) == out_of(strided));
  CHECK(out_of(fixed(strided, Fix::use_bf16)) == out_of(strided));
  CHECK(out_of(fixed(strided, Fix::transpose_weights)) != out_of(strided));
}

TEST_CASE("Triage: a diagnosis is worth its parts, once a fix is applied", "[triage]") {
  const std::string which = case_of(Fault::unfused);
  const lab::Settings right = {{"case", which},
                               {"probes", std::string("kernels,shapes")},
                               {"bottleneck", std::string("memory")},
                               {"operator", std::string("head")},
                               {"cause", std::string("unfused-dequant")},
                               {"fix", std::string("fuse-the-dequant")}};
  const Verdict good = triage_trace(right).verdict;
  CHECK(good.applied);
  CHECK(good.right_bottleneck);
  CHECK(good.right_operator);
  CHECK(good.right_cause);
  CHECK(good.fixed == 1);
  CHECK(good.points >= 90);
  lab::Settings wrong = right;
  wrong["fix"] = std::string("use-bf16");
  wrong["operator"] = std::string("qkv");
  const Verdict bad = triage_trace(wrong).verdict;
  CHECK(bad.fixed == 0);
  CHECK_FALSE(bad.right_operator);
  CHECK(bad.points == 35);
  lab::Settings open = right;
  open["fix"] = std::string("none");
  CHECK(triage_trace(open).verdict == Verdict{});  // nothing is given away before
}

TEST_CASE("Triage: neither settings nor a run's JSON say what a mixed case hides", "[triage]") {
  for (const std::int64_t seed : {1, 2, 3, 4, 5}) {
    const lab::Report report = run_triage({{"case", std::string("mixed")},
                                           {"seed", seed},
                                           {"probes", std::string("queue")},
                                           {"layers", std::int64_t{1}}});
    const std::string json = lab::to_json(report).dump();
    const Plan plan = plan_of(Case::mixed, seed);
    CHECK(plan.faults.count() == 2);
    for (const Fault fault : all_of<Fault>()) CHECK_FALSE(contains(json, name_of(fault)));
  }
  std::map<std::string, int> drawn;
  for (int seed = 0; seed < 600; ++seed) ++drawn[key_of(plan_of(Case::mixed, seed))];
  CHECK(drawn.size() == mixtures().size());
}

TEST_CASE("Triage: both fixes of a mixed case leave the sound program", "[triage]") {
  for (std::int64_t seed = 0; seed < 8; ++seed) {
    Params params;
    params.which = Case::mixed;
    params.seed = seed;
    std::vector<Fix> fixes;
    for (const Fault fault : all_of<Fault>()) {
      if (plan_of(Case::mixed, seed).has(fault)) fixes.push_back(fix_of(fault));
    }
    REQUIRE(fixes.size() == 2);
    params.fix = fixes[0];
    CHECK(fixed_plan(params).faults.count() == 1);
    params.second = fixes[1];
    CHECK(fixed_plan(params) == Plan{});
    CHECK_FALSE(label_of(plan_of(Case::mixed, seed)).empty());
  }
}

TEST_CASE("Triage: probes are read as they are written, and others are refused", "[triage]") {
  for (const char* text : {"", "timeline", "queue,kernels:4", "gaps:1,gaps,gaps:3"}) {
    const auto probes = probes_of(text);
    REQUIRE(probes.has_value());
    CHECK(text_of(*probes) == text);
  }
  CHECK(text_of(*probes_of("queue:2")) == "queue");
  for (const char* text : {"time", "timeline,", ",queue", "queue:5", "queue:0",
                           "queue:", "queue:11", "queue,queue", "queue,queue:2", "queue queue",
                           "gaps:1,gaps:2,gaps:3,gaps:4,queue:1,queue:2,queue:3,queue:4,shapes"}) {
    INFO(text);
    CHECK_FALSE(probes_of(text).has_value());
  }
  CHECK_THROWS_WITH(run_triage({{"probes", std::string("nvprof")}}),
                    Catch::Contains("timeline, kernels, shapes"));
}

TEST_CASE("Triage: a timeline in a recording's cell comes back", "[triage]") {
  Timeline made;
  made.spans = {
      {true, "replay", -1, 0, 5}, {false, "embed", 0, 6, 8}, {false, "qkv 1", 2, 10, 14.5}};
  find_gaps(made);
  CHECK(made.idle_us == 2);
  CHECK(made.before_longest == "qkv 1");
  Timeline read;
  add_spans(read, spans_text(made, true), true);
  add_spans(read, spans_text(made, false), false);
  REQUIRE(read.spans.size() == made.spans.size());
  for (std::size_t i = 0; i < read.spans.size(); ++i) {
    CHECK(read.spans[i].what == made.spans[i].what);
    CHECK(read.spans[i].op == made.spans[i].op);
    CHECK(read.spans[i].begin == made.spans[i].begin);
    CHECK(read.spans[i].end == made.spans[i].end);
  }
  Timeline damaged;
  for (const char* text : {"", ";", "|", "a|b|c", "a|99|5|1", "a|1|x|y;;b"})
    add_spans(damaged, text, true);
  for (const Span& span : damaged.spans) CHECK(span.end >= span.begin);
}

TEST_CASE("Triage: the bench compares and times all that it has", "[triage]") {
  tests::TimedEmulation device(kTriageRuns);
  const auto cases = static_cast<std::size_t>(BenchSizes::tiny().cases);
  const lab::Report report = bench_report(device, tests::unwatched, BenchSizes::tiny());
  tests::check_holds(report);
  CHECK(tests::table_in(report, "cases").rows.size() == (cases + 1) * kFixes);
  CHECK(tests::table_in(report, "loop").rows.size() == 1 + cases + 1);
  CHECK(tests::table_in(report, "spans").rows.size() == 2 + cases + 1);  // the rare step twice
  CHECK(tests::number_in(tests::table_in(report, "cases"), 0, "step") == Approx(250));
  CHECK_FALSE(tests::table_in(report, "counters").rows.empty());
  BenchSizes quick = BenchSizes::tiny();
  quick.quick = true;
  quick.cases = 1;
  quick.mixtures = 0;
  tests::check_quick(bench_report(device, tests::unwatched, quick), {"counters"});
}

TEST_CASE("Triage: recorded fixes give the gain that a case claims, and others do not",
          "[triage]") {
  const lab::Recording* const recording = lab::recording(kLessonId);
  if (recording == nullptr) {
    SUCCEED("no GPU has recorded this lesson yet");
    return;
  }
  const lab::Table& cases = tests::table_in(recording->bench, "cases");
  for (std::size_t row = 0; row < cases.rows.size(); ++row) {
    const std::string label = cases.text(row, 0), fix = cases.text(row, 1);
    if (label.starts_with("mix")) continue;
    INFO(label << ", " << fix);
    const double gain = tests::number_in(cases, row, "gain"),
                 claimed = tests::number_in(cases, row, "claimed");
    CHECK(claimed >= 1.05);
    const auto which = static_cast<Case>(std::stoi(label.substr(5)) - 1);
    bool fits = false;
    for (const Fault fault : all_of<Fault>()) {
      fits = fits || (plan_of(which, 0).has(fault) && name_of(fix_of(fault)) == fix);
    }
    if (fits) {
      CHECK(std::abs(gain / claimed - 1) <= 0.1);
    } else {
      CHECK(gain <= 1.1);
    }
  }
}
