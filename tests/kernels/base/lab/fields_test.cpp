#include "kernels/base/lab/fields.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/lab/recording.hpp"
#include "tests/catch.hpp"
#include "tests/lesson_contract/damage.hpp"

using namespace tilestep;
using Json = nlohmann::json;
using tests::error_of;

namespace {

enum class Mood { calm, wild };
constexpr auto names_of(Mood) {
  return std::to_array<std::string_view>({"calm", "wild"});
}

struct Item {
  int weight = 0;
  float size = 0;
  bool operator==(const Item&) const = default;
};

struct Part {
  std::vector<int> places;
  std::uint32_t bits = 0;
  bool operator==(const Part&) const = default;
};

struct Sample {
  int count = 0;
  std::size_t bytes = 0;
  Mood mood = Mood::calm;
  bool loud = false;
  std::string note;
  std::optional<double> spread;
  double exact = 0;
  std::array<int, 2> lines{};
  std::vector<float> values;
  std::vector<Item> items;
  std::vector<Part> parts;
  Item inner;
  double low = 0, high = 0;
  bool operator==(const Sample&) const = default;
};

lab::Fields<Item> item_fields() {
  return lab::Fields<Item>().whole("weight", &Item::weight, -1, 31).real("size", &Item::size);
}

lab::Fields<Part> part_fields(const Sample& sample) {
  return lab::Fields<Part>()
      .wholes("places", &Part::places, sample.count, 0, sample.count - 1)
      .whole("bits", &Part::bits);
}

const lab::Fields<Sample>& fields() {
  static const auto kFields =
      lab::Fields<Sample>()
          .whole("count", &Sample::count, 1, 32)
          .whole("bytes", &Sample::bytes, 0)
          .name("mood", &Sample::mood)
          .flag("loud", &Sample::loud)
          .text("note", &Sample::note)
          .null_for("")
          .real("spread", &Sample::spread)
          .optional()
          .real("exact", &Sample::exact)
          .constant("source", "sample.cu")
          .wholes("lines", &Sample::lines, 2, 0, 999)
          .reals("values", &Sample::values, &Sample::count)
          .columns("items", &Sample::items, item_fields(), &Sample::count)
          .list("parts", &Sample::parts, part_fields)
          .inlined(&Sample::inner, item_fields())
          .group("range",
                 lab::Fields<Sample>().real("low", &Sample::low).real("high", &Sample::high))
          .check([](const Sample& s) { return s.low > s.high ? "'low' is above 'high'" : ""; });
  return kFields;
}

Sample sample() {
  Sample s;
  s.count = 3;
  s.bytes = 5'000'000'000;
  s.mood = Mood::wild;
  s.exact = -std::numeric_limits<double>::infinity();
  s.lines = {7, 8};
  s.values = {0.1F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::max()};
  s.items = {{-1, 0.5F}, {0, -0.0F}, {31, 1e-45F}};
  s.parts = {{{0, 1, 2}, 0xFFFFFFFFU}, {{2, 2, 2}, 0}};
  s.inner = {4, 2};
  s.high = 1;
  return s;
}

Sample read(const Json& from) {
  return fields().from_json(from, "sample");
}

/// The sentence with which a sample is refused in which `pointer` is `value`.
std::string refusal(const char* pointer, const Json& value) {
  Json changed = fields().to_json(sample());
  changed[Json::json_pointer(pointer)] = value;
  return error_of([&] { read(changed); });
}

}  // namespace

TEST_CASE("fields travel both ways", "[lab]") {
  const Json written = fields().to_json(sample());
  CHECK(read(Json::parse(written.dump())) == sample());
  CHECK(written["mood"] == "wild");
  CHECK(written["note"].is_null());
  CHECK(written["spread"].is_null());
  CHECK(written["exact"] == "-inf");
  CHECK(written["source"] == "sample.cu");
  CHECK(written["values"] == Json({0.1, "inf", 3.4028235e38}));
  CHECK(written["items"]["weight"] == Json({-1, 0, 31}));
  CHECK(written["parts"][1]["places"] == Json({2, 2, 2}));
  CHECK(written["weight"] == 4);
  CHECK(written["range"] == Json({{"low", 0.0}, {"high", 1.0}}));
}

TEST_CASE("not a number travels, as float and as double", "[lab]") {
  Sample s = sample();
  s.exact = std::nan("");
  s.values[0] = std::nanf("");
  const Json written = fields().to_json(s);
  CHECK(written["exact"] == "nan");
  const Sample back = read(written);
  CHECK(std::isnan(back.exact));
  CHECK(std::isnan(back.values[0]));
}

TEST_CASE("a float is written short, or as the double that it equals", "[lab]") {
  const Item item{1, 0.1F};
  CHECK(item_fields().to_json(item)["size"].dump() == "0.1");
  const auto all = lab::Fields<Item>(lab::Digits::all).real("size", &Item::size);
  CHECK(all.to_json(item)["size"].dump() == "0.10000000149011612");
  CHECK(all.from_json({{"size", 0.1}}, "item").size == 0.1F);
}

TEST_CASE("what does not fit is refused with its place and what is allowed", "[lab]") {
  CHECK(refusal("/count", 33) == "sample: 'count' is 33; allowed: 1–32 (a whole number)");
  CHECK(refusal("/count", 2.5) == "sample: 'count' is 2.5; allowed: 1–32 (a whole number)");
  CHECK(refusal("/count", "3") == "sample: 'count' is \"3\"; allowed: 1–32 (a whole number)");
  CHECK(refusal("/parts/1/places/2", 3) ==
        "sample: 'parts[1].places[2]' is 3; allowed: 0–2 (a whole number)");
  CHECK(refusal("/items/weight/0", -2) ==
        "sample: 'items.weight[0]' is -2; allowed: -1 to 31 (a whole number)");
  CHECK(refusal("/bytes", -1) == "sample: 'bytes' is -1; allowed: a whole number, 0 or more");
  CHECK(refusal("/bytes", 18446744073709551615u) ==
        "sample: 'bytes' is 18446744073709551615; allowed: a whole number, 0 or more");
  CHECK(refusal("/parts/0/bits", 4294967296) ==
        "sample: 'parts[0].bits' is 4294967296; allowed: 0–4294967295 (a whole number)");
  CHECK(refusal("/values/0", 1e300) ==
        "sample: 'values[0]' is 1e+300; allowed: what fits a float (up to ±3.4e38), \"inf\", "
        "\"-inf\" or \"nan\"");
  CHECK(refusal("/exact", "big") ==
        "sample: 'exact' is \"big\"; allowed: a number, \"inf\", \"-inf\" or \"nan\"");
  CHECK(refusal("/mood", "odd") == "sample: 'mood' is \"odd\"; allowed: calm, wild");
  CHECK(refusal("/loud", 1) == "sample: 'loud' is 1; allowed: true or false");
  CHECK(refusal("/note", Json::array({1})) == "sample: 'note' is an array of 1; allowed: a text");
  CHECK(refusal("/values", Json::array({1})) == "sample: 'values' must have 3 entries, but has 1");
  CHECK(refusal("/lines", Json::array({1, 2, 3})) ==
        "sample: 'lines' must have 2 entries, but has 3");
  CHECK(refusal("/items/size", 0) == "sample: 'items.size' is 0; allowed: an array");
  CHECK(refusal("/range", "x") == "sample: 'range' is \"x\"; allowed: a JSON object");
  CHECK(refusal("", 3) == "sample: the document is 3; allowed: a JSON object");
  CHECK(refusal("/range/low", 2) == "sample: 'low' is above 'high'");
  Json less = fields().to_json(sample());
  less["parts"][0].erase("bits");
  CHECK(error_of([&] { read(less); }) == "sample: member 'parts[0].bits' is missing");
}

TEST_CASE("whole numbers may be spelled with a point", "[lab]") {
  Json spelled = fields().to_json(sample());
  spelled["bytes"] = 4.0;
  CHECK(read(spelled).bytes == 4);
  spelled["bytes"] = 1e18;  // more than a double counts exactly
  CHECK_THROWS_AS(read(spelled), Error);
}

TEST_CASE("optional members keep their defaults", "[lab]") {
  Json less = fields().to_json(sample());
  less.erase("note");
  less.erase("spread");
  CHECK(read(less) == sample());
  less["spread"] = 0.25;
  CHECK(read(less).spread == 0.25);
}

TEST_CASE(
    "a member that says nothing may be left out, and documents without it come back as they are",
    "[lab]") {
  const auto with_later = lab::Fields<Item>()
                              .real("size", &Item::size)
                              .whole("weight", &Item::weight, 0, 9)
                              .left_out_for(0);
  const Json early = {{"size", 0.5}};
  const Item item = with_later.from_json(early, "item");
  CHECK(item.weight == 0);
  CHECK((with_later.to_json(item) == early));
  const Json late = {{"size", 0.5}, {"weight", 7}};
  CHECK((with_later.to_json(with_later.from_json(late, "item")) == late));
  CHECK(tests::contains(error_of([&] {
                          with_later.from_json({{"size", 0.5}, {"weight", 10}}, "item");
                        }),
                        "weight"));
}

TEST_CASE("no damage to fields goes unnoticed", "[lab]") {
  const auto found = tests::damage(fields().to_json(sample()), [](const Json& damaged) {
    return fields().to_json(read(damaged));
  });
  CHECK(found.complaints == std::vector<std::string>());
  CHECK(found.tried > 300);
  CHECK(found.refused > 250);
}

TEST_CASE("the walk through damages sees a reader that wraps, makes up or throws", "[lab]") {
  const Json good = {{"count", 3}, {"note", "x"}};
  const auto complaints = [&](const auto& again) {
    return tests::damage(good, again).complaints.size();
  };
  const auto checked = [](const Json& from, auto&& count) -> Json {
    const lab::Place place(from, "good");
    return {{"count", count(place)}, {"note", place.at("note").text()}};
  };
  CHECK(complaints([&](const Json& from) {
          return checked(from,
                         [](const auto& place) { return place.at("count").template whole<>(); });
        }) == 0);
  CHECK(complaints([&](const Json& from) {
          return checked(from, [](const auto& place) {
            return static_cast<int>(place.at("count").template whole<std::int64_t>());
          });
        }) > 0);
  CHECK(complaints([&](const Json& from) {
          return checked(from, [](const auto& place) { return place.json().value("count", 4.0); });
        }) > 0);
  CHECK(complaints([&](const Json& from) {
          return checked(from, [](const auto& place) { return place.json().at("count"); });
        }) > 0);
}

TEST_CASE("reports and requests refuse what would wrap", "[lab]") {
  Json request = {{"lesson", "x"}, {"params", {{"seed", 18446744073709551615u}}}};
  CHECK(error_of([&] { lab::request_from_json(request); }) ==
        "request: 'params.seed' is 18446744073709551615; allowed: a whole number of at most 63 "
        "bits");
  REQUIRE_FALSE(lab::recordings().empty());
  Json report = lab::to_json(lab::recordings().front()->run);
  const auto refused = [&](const char* pointer, const Json& value) {
    Json changed = report;
    changed.at(Json::json_pointer(pointer)) = value;
    return error_of([&] { lab::report_from_json(changed); });
  };
  CHECK(refused("/measurements/0/samples", 2.5).find("'measurements[0].samples' is 2.5") !=
        std::string::npos);
  CHECK(refused("/measurements/0/value", "much").find("'measurements[0].value'") !=
        std::string::npos);
  CHECK(refused("/device/memory_bytes", -1).find("'device.memory_bytes' is -1") !=
        std::string::npos);
  CHECK(refused("/device/multiprocessors", 4294967296).find("'device.multiprocessors'") !=
        std::string::npos);
}

TEST_CASE("no damage to a report or request goes unnoticed", "[lab]") {
  lab::Report report;
  report.lesson = "sample";
  report.params = {{"count", std::int64_t{4}}, {"loud", true}, {"name", std::string("x")}};
  report.device.backend = "emulated";
  report.tables.push_back({"rows", "Rows", {{"a", "a", "GB/s", -1}}, {{{2.5}}, {{}}}});
  lab::Measurement m;
  m.p10 = 1;
  report.measurements.push_back(m);
  report.checks.push_back({"output", true, 1e-7, 1e-6, "n·u"});
  const auto found = tests::damage(
      to_json(report), [](const Json& from) { return to_json(lab::report_from_json(from)); });
  CHECK(found.complaints == std::vector<std::string>());
  CHECK(found.refused > 100);
  const auto asked =
      tests::damage(to_json(lab::Request{"x", report.params, lab::Request::Action::bench, "cuda"}),
                    [](const Json& from) { return to_json(lab::request_from_json(from)); });
  CHECK(asked.complaints == std::vector<std::string>());
}

namespace {

struct Way {
  std::vector<int> seen;    ///< an entry a step
  std::vector<Item> items;  ///< likewise, its size from the second phase on
  int total = 0;
  bool lost = false;
};

lab::Fields<Way> way_fields() {
  const auto at_end = [](const Way& way) -> lab::When {
    return {static_cast<int>(way.seen.size()), 1};
  };
  return lab::Fields<Way>()
      .wholes("seen", &Way::seen, lab::kAnyCount, 0, 100)
      .known_each(lab::kOneAStep)
      .columns(
          "items", &Way::items,
          lab::Fields<Item>().whole("weight", &Item::weight).real("size", &Item::size).from({0, 1}),
          lab::kAnyCount)
      .known_each(lab::kOneAStep)
      .whole("total", &Way::total)
      .known(at_end)
      .flag("lost", &Way::lost)
      .known(at_end, [](const Way&, const lab::Change&) { return true; });
}

}  // namespace

TEST_CASE("another future leaves what is known, and changes the rest within its kind", "[lab]") {
  Way way;
  for (int i = 0; i < 20; ++i) {
    way.seen.push_back(i);
    way.items.push_back({i, static_cast<float>(i)});
  }
  way.total = 7;
  const Json was = way_fields().to_json(way);
  for (const lab::When now :
       {lab::When{0, 1}, lab::When{8, 0}, lab::When{8, 1}, lab::When{20, 1}}) {
    std::mt19937 random(3);
    Json other = was;
    way_fields().change(&way, other, {now, random});
    CAPTURE(now.step, now.phase, other.dump());
    const auto known = [&](const Json& list, int phase) {
      std::size_t same = 0;
      while (same < list.size() && list[same] == static_cast<int>(same)) ++same;
      const int steps = now.phase >= phase ? now.step : now.step - 1;
      CHECK(same >= static_cast<std::size_t>(std::max(steps, 0)));
      CHECK((same == list.size()) == (steps == 20));
      Json sorted = list;
      std::sort(sorted.begin(), sorted.end());
      CHECK((sorted == was["seen"]));
    };
    known(other["seen"], 0);
    known(other["items"]["weight"], 0);
    known(other["items"]["size"], 1);
    const bool over = now.step == 20;
    CHECK((other["total"] == 7) == over);
    CHECK(other["lost"] == !over);
    CHECK_NOTHROW(way_fields().from_json(other, "way"));
  }
}

TEST_CASE("columns of any length have one length", "[lab]") {
  struct Items {
    std::vector<Item> items;
  };
  const auto fields =
      lab::Fields<Items>().columns("items", &Items::items, item_fields(), lab::kAnyCount);
  const Json two = {{"items", {{"weight", {1, 2}}, {"size", {0.5, 1.5}}}}};
  CHECK(fields.from_json(two, "items").items == std::vector<Item>{{1, 0.5F}, {2, 1.5F}});
  for (const char* column : {"weight", "size"}) {
    Json uneven = two;
    uneven["items"][column].push_back(3);
    CHECK(tests::contains(error_of([&] { fields.from_json(uneven, "items"); }), "size"));
  }
}

TEST_CASE("documents from before a column was there come back as they are", "[lab]") {
  struct Items {
    std::vector<Item> items;
  };
  const auto fields = lab::Fields<Items>().columns(
      "items", &Items::items,
      lab::Fields<Item>().whole("weight", &Item::weight).real("size", &Item::size).left_out_for(0),
      lab::kAnyCount);
  const Json before = {{"items", {{"weight", {1, 2}}}}};
  const Items read = fields.from_json(before, "items");
  CHECK(read.items == std::vector<Item>{{1, 0}, {2, 0}});
  CHECK(fields.to_json(read) == before);
  const Items mixed{{{1, 0.5F}, {2, 0}}};
  const Json written = fields.to_json(mixed);
  CHECK(written["items"]["size"] == Json({0.5, nullptr}));
  CHECK(fields.from_json(written, "items").items == mixed.items);
  CHECK_THROWS_AS(fields.from_json({{"items", {{"size", {0.5}}}}}, "items"), Error);
}
