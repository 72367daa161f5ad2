#include <cmath>
#include <limits>
#include <vector>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/timing.hpp"
#include "kernels/base/numeric/random.hpp"
#include "kernels/base/simt/backends.hpp"
#include "kernels/lessons.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::lab;
using tests::error_of;

namespace {

enum class Shape { round_one, square };
constexpr auto names_of(Shape) {
  return std::to_array<std::string_view>({"round-one", "square"});
}

struct Params {
  Shape shape = Shape::square;
  int width = 1;  ///< 2 << width bytes
  double limit = 0;
  int first = 0, count = 8;
  std::int64_t seed = 1;
};

KnobTable<Params> table() {
  return KnobTable<Params>()
      .choice(&Params::shape, {"shape", "Shape", "", "Which."})
      .choice(&Params::width, {"width", "Width", "bytes", "How wide."}, {"2", "4"})
      .real(&Params::limit, {"limit", "Limit", "", "How much."}, 0.5, 4, false, "off")
      .integer(&Params::first, {"first", "First", "", "Where."}, 0, 100)
      .integer(&Params::count, {"count", "Count", "", "How many."}, 1, 100)
      .seed()
      .require([](const Params& p) {
        if (p.first < p.count) return;
        refuse_with("first", p.first, "count = " + std::to_string(p.count), "0–7", p.count - 1);
      });
}

/// Says that the caller gave up, and remembers the last thing reported.
class GivenUp final : public Progress {
 public:
  explicit GivenUp(bool cancelled) : cancelled_(cancelled) {}
  void report(double fraction, std::string_view) override { fraction_ = fraction; }
  bool cancelled() const override { return cancelled_; }
  double fraction() const { return fraction_; }

 private:
  bool cancelled_;
  double fraction_ = 0;
};

constexpr LessonName kName{"sample", "A sample", "Samples"};

Report run_sample(const Params& params, simt::Device&, Progress& progress) {
  progress.check();
  Report report;
  report.summary = "shape " + std::string(name_of(params.shape));
  return report;
}

std::unique_ptr<simt::Device> device() {
  return simt::make_emulated_device({});
}

}  // namespace

TEST_CASE("the choices of a knob are the names of its enum", "[lab]") {
  const Knobs knobs = table().knobs();
  CHECK(knobs.at("shape").choices == std::vector<std::string>{"round-one", "square"});
  CHECK(std::get<std::string>(knobs.at("shape").initial) == "square");
  CHECK(table().params({{"shape", std::string("round-one")}}).shape == Shape::round_one);
  CHECK(named<Shape>("square") == Shape::square);
  CHECK(named<Shape>("oval") == std::nullopt);
}

TEST_CASE("a knob is called by its id where it has no label", "[lab]") {
  const KnobTable<Params>::Words words("small_format", "Which.");
  CHECK(words.label == "Small format");
  CHECK(words.help == "Which.");
  CHECK(words.unit.empty());
}

TEST_CASE("a choice that is spelled as a number may come as one", "[lab]") {
  const auto width = [](const KnobValue& value) {
    return table().params({{"width", value}}).width;
  };
  CHECK(width(std::int64_t{2}) == 0);
  CHECK(width(4.0) == 1);
  CHECK(width(std::string("4")) == 1);
  CHECK(error_of([&] { width(std::int64_t{8}); }).find("one of 2, 4") != std::string::npos);
  CHECK_THROWS_AS(width(true), Error);
}

TEST_CASE("the word for 0 stands for it in every direction", "[lab]") {
  const Knobs knobs = table().knobs();
  const Knob& limit = knobs.at("limit");
  CHECK(limit.text(limit.initial) == "off");
  CHECK(limit.text(0.5) == "0.5");
  CHECK(std::get<double>(limit.parsed("off")) == 0);
  CHECK(std::get<double>(limit.checked(std::string("off"))) == 0);
  CHECK_THROWS_AS(limit.checked(std::string("on")), Error);
  CHECK(limit.allowed() == "off or 0.5–4");
}

TEST_CASE("a knob that is gone may be off, and is answered with what took its place", "[lab]") {
  const Knobs knobs =
      table().retired_knob("depth", std::int64_t{0}, "all of them are flat").knobs();
  const std::string gone = "there is no knob 'depth' any more: all of them are flat";
  CHECK(knobs.completed({{"depth", std::int64_t{0}}}) == knobs.defaults());
  CHECK(error_of([&] { knobs.completed({{"depth", std::int64_t{2}}}); }) == gone);
  Settings settings;
  CHECK(error_of([&] { knobs.set(settings, "depth=2"); }) == gone);
}

TEST_CASE("what must hold between knobs is checked with them", "[lab]") {
  CHECK(table().params({{"first", std::int64_t{7}}}).first == 7);
  CHECK(error_of([] {
          table().params({{"first", std::int64_t{8}}});
        }) == "first is 8, but with count = 8 the allowed values are 0–7");
}

TEST_CASE("a lesson made of parts completes its report", "[lab]") {
  const LessonOf<Params> lesson(kName, "Short.", table(), run_sample);
  CHECK(lesson.info().title == "A sample");
  CHECK(lesson.info().takeaway == "Short.");
  CHECK(lesson.knobs().all().size() == 6);
  const auto cpu = device();
  GivenUp progress(false);
  const Report report = lesson.run({{"shape", std::string("round-one")}}, *cpu, progress);
  CHECK(report.lesson == "sample");
  CHECK(report.summary == "shape round-one");
  CHECK(report.device.name == cpu->info().name);
  CHECK(std::get<std::string>(report.params.at("shape")) == "round-one");
  CHECK(std::get<std::int64_t>(report.params.at("seed")) == 1);
  CHECK(progress.fraction() == 1);

  GivenUp given_up(true);
  CHECK_THROWS_AS(lesson.run({}, *cpu, given_up), Cancelled);
  CHECK(error_of([&] {
          lesson.run({{"first", std::int64_t{9}}}, *cpu, progress);
        }).find("first is 9") != std::string::npos);
  CHECK(error_of([&] { lesson.bench(*cpu, progress); }).find("nothing to time") !=
        std::string::npos);
}

TEST_CASE("a bench is refused where nothing can be timed", "[lab]") {
  const LessonOf<Params> lesson(kName, "Short.", table(), run_sample,
                                [](simt::Device&, Progress&) { return Report{}; });
  NoProgress progress;
  const auto cpu = device();
  CHECK(error_of([&] { lesson.bench(*cpu, progress); }).find("sample can only be timed on a GPU") !=
        std::string::npos);
}

TEST_CASE("lessons are named after their line in lessons.def", "[lab]") {
  CHECK(online_softmax::kLessonId == "online-softmax");
  CHECK(online_softmax::kLesson.title == "Online softmax");
  CHECK(online_softmax::kLesson.chapter == "Attention");
}

TEST_CASE("a cell is made of any number, text or name", "[lab]") {
  Table rows{"t", "T", {{"a", "a", "", 0}, {"b", "b", "", -1}, {"c", "c", "", -1}}, {}};
  rows.add({std::size_t{3}, "text", Shape::round_one});
  rows.add({1.6f, std::string("x"), std::optional<int>{}});
  CHECK(rows.text(0, 0) == "3");
  CHECK(rows.text(0, 2) == "round-one");
  CHECK(rows.text(1, 0) == "2");
  CHECK(rows.text(1, 2).empty());
  const Table readouts = readout_table({traced("sum", "", 1.25, "B", "how")}, 1);
  CHECK(readouts.to_csv() == "quantity,value,unit,source,how\nsum,1.2,B,traced,how\n");
}

TEST_CASE("checks say by how much something is wrong", "[lab]") {
  CHECK(none_wrong("a", 0, "d").ok);
  CHECK_FALSE(none_wrong("a", 2, "d").ok);
  CHECK(none_wrong("a", 2, "d").max_error == 2);
  CHECK(equal("a", 3, 3, "d").ok);
  CHECK(equal("a", 3, 5, "d").max_error == 2);
  CHECK(within("a", 0.5, 0.5, "d").ok);
  CHECK_FALSE(within("a", std::nan(""), 0.5, "d").ok);
  CHECK(differing(std::vector{1, 2, 3}, std::vector{1, 5, 3}) == 1);
  CHECK(differing(std::vector{1, 2, 3}, std::vector{1}) == 3);
  CHECK(same_bits(1.5f, 1.5f));
  CHECK_FALSE(same_bits(0.0f, -0.0f));
  CHECK(same_number(0.0f, -0.0f));
  CHECK(same_number(std::nanf("1"), std::nanf("2")));
  CHECK_FALSE(same_number(1.5f, std::nanf("")));
}

TEST_CASE("random data is the same on every machine", "[lab]") {
  CHECK(numeric::mixed(0) == 0xE220A8397B1DCDAFu);  // SplitMix64's first number for seed 0
  std::mt19937 generator = generator_of(1);
  CHECK(uniform(generator) == ((1791095845u >> 8) + 0.5) * 0x1p-24);  // mt19937's first for seed 1
  generator = generator_of(1);
  const std::vector<float> floats = uniform_floats(generator, 1000);
  generator = generator_of(1);
  const std::vector<std::uint16_t> bits = uniform_bf16(generator, 1000);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    REQUIRE(std::abs(floats[i]) < 1);
    REQUIRE(numeric::Bf16::value(bits[i]) == numeric::Bf16::round(floats[i]));
  }
  const std::vector<unsigned char> bytes = random_bytes(12, 1);
  const std::vector<unsigned char> fewer = random_bytes(5, 1);
  CHECK(std::equal(fewer.begin(), fewer.end(), bytes.begin()));
  CHECK(bytes != random_bytes(12, 2));
}
