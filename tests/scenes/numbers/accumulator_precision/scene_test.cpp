#include "scenes/numbers/accumulator_precision/scene.hpp"

#include <cmath>
#include <map>
#include <set>

#include "kernels/base/numeric/small_float.hpp"
#include "kernels/numbers/accumulator_precision/bench/bench.hpp"
#include "kernels/numbers/accumulator_precision/bench/hopper.hpp"
#include "scenes/picture/placed.hpp"
#include "tests/lesson_contract/pictures.hpp"
#include "tests/scenes/marks.hpp"

using namespace tilestep;
using accumulator_precision::AccumulatorTrace, accumulator_precision::Method,
    accumulator_precision::Trace;
using picture::Picture;
using scenes::Cursor, scenes::spacing_text, scenes::words::significant;
using Shown = tests::Shown<scenes::AccumulatorPrecisionScene>;
using tests::mark_named, tests::mark_of;

namespace {

lab::Settings set_of(const char* accumulators, std::int64_t terms = 64) {
  return {{"accumulators", accumulators}, {"terms", terms}};
}

/// The cells of a row of bits, by the numbers of their bits: the bit, and whether it is lit.
std::map<int, std::pair<bool, bool>> bits_in(const picture::Picture& picture, picture::Name name) {
  std::map<int, std::pair<bool, bool>> found;
  for (const picture::Mark* mark : picture::marks_of(picture)) {
    const picture::Items* items = picture::items_of(*mark);
    if (items == nullptr || items->name != name) continue;
    for (std::size_t k = 0; k < items->ids.size(); ++k) {
      found[items->ids[k]] = {items->value[k] != 0, items->state[k] == picture::State::current};
    }
  }
  return found;
}

/// What the cells say, read as a number of the format.
double cells_value(const std::map<int, std::pair<bool, bool>>& cells, numeric::FloatSpec format) {
  REQUIRE(cells.size() == static_cast<std::size_t>(format.bits()));
  std::uint32_t bits = 0;
  for (int i = 0; i < format.bits(); ++i) bits = bits * 2 + (cells.at(i).first ? 1u : 0u);
  return numeric::decode(format, bits);
}

void check_bits(const Picture& picture, const AccumulatorTrace& a, std::size_t point,
                bool rounded) {
  const auto& step = a.steps[point];
  const auto before = bits_in(picture, "before_bit"), after = bits_in(picture, "after_bit");
  CHECK(cells_value(before, a.format) == static_cast<double>(step.before));
  CHECK(after.empty() == !rounded);
  if (!rounded) return;
  CHECK(cells_value(after, a.format) == static_cast<double>(step.after));
  bool any_changed = false;
  for (int i = 0; i < a.format.bits(); ++i) {
    const bool changed = before.at(i).first != after.at(i).first;
    CHECK(after.at(i).second == changed);
    any_changed = any_changed || changed;
  }
  CHECK(any_changed == (step.before != step.after));
}

/// The sum lands at the exact sum, and springs from there to the neighbour that the kernel recorded.
void check_line(const Picture& picture, const AccumulatorTrace& a, std::size_t point,
                bool rounded) {
  const auto& step = a.steps[point];
  const double exact = static_cast<double>(step.before) + static_cast<double>(step.added);
  const auto after = static_cast<double>(step.after);
  const auto* back = mark_of<picture::Arrow>(picture, "line_after_1");
  const auto* up = mark_of<picture::Arrow>(picture, "line_exact");
  CHECK((back != nullptr) == rounded);
  REQUIRE(up != nullptr);
  CHECK(up->to == exact);
  const std::vector<double>& neighbours = mark_named<picture::Ticks>(picture, "neighbour").at;
  const double below = neighbours[0], above = neighbours[1];
  CHECK(below < above);
  CHECK(below <= exact);
  CHECK(exact <= above);
  CHECK(mark_named<picture::Curve>(picture, "landed").x ==
        std::vector<double>{rounded ? after : exact});
  if (!rounded) return;
  CHECK(back->from == exact);
  CHECK(back->to == after);
  CHECK((back->state == picture::State::wrong) == (step.before == step.after));
  if (after > exact) CHECK(after == above);
  if (after < exact) CHECK(after == below);
}

void check_plot(const Picture& picture, const Trace& trace, std::size_t point, bool rounded) {
  const int known = static_cast<int>(point) - (rounded ? 0 : 1);
  for (const AccumulatorTrace& a : trace.accumulators) {
    const std::string method = std::to_string(static_cast<int>(a.method));
    const auto* frozen = mark_of<picture::Curve>(picture, "frozen_" + method);
    const bool seen = known >= 0 && a.frozen_at >= 0 && trace.points[known] >= a.frozen_at;
    CHECK((frozen != nullptr) == seen);
    if (seen) CHECK(frozen->x == std::vector<double>{static_cast<double>(a.frozen_at)});
    const auto& sum = mark_named<picture::Curve>(picture, "sum_" + method);
    if (known < 0) continue;
    const auto now = static_cast<double>(a.steps[known].sum);
    CHECK(sum.y.back() == now);
    CHECK(picture::plain(sum.end.full) == a.label + " " + significant(now, 6));
  }
  REQUIRE(mark_named<picture::Ticks>(picture, "fate").items.count == known + 1);
}

}  // namespace

TEST_CASE("the accumulator picture equals the trace at every step and phase",
          "[accumulator_precision_scene]") {
  Shown shown;
  for (const char* set :
       {"basic", "fp8-e5m2", "fp16", "bf16", "tf32", "fp32", "promoted", "kahan"}) {
    for (const char* rounding : {"nearest", "truncate", "stochastic"}) {
      if (set != std::string("basic") && rounding != std::string("nearest")) continue;
      lab::Settings settings = set_of(set, 40);
      settings["rounding"] = std::string(rounding);
      shown.run(settings);
      const Trace& trace = shown.trace();
      const AccumulatorTrace& a = trace.accumulators[0];
      REQUIRE(shown->steps().tiles == 40);
      REQUIRE(shown->steps().noun == "term");
      for (int tile = 1; tile <= 40; ++tile) {
        for (const int phase : {0, 1}) {
          CAPTURE(set, rounding, tile, phase);
          const auto point = static_cast<std::size_t>(tile - 1);
          const scenes::View view{{tile, phase}};
          const auto picture = shown->picture(shown->extent(), view);
          CHECK(picture::plain(picture.headline.full) ==
                shown->followed(view).sentence(shown->moment(view.cursor)));
          CHECK(shown->table_row("terms", {{tile, phase}}) == tile - 1);
          check_bits(picture, a, point, phase == 1);
          check_line(picture, a, point, phase == 1);
          check_plot(picture, trace, point, phase == 1);
        }
      }
      const auto parts = shown.picture({0, 1}, tests::kPictureSizes[2]);
      CHECK(parts.count("before_bit_0") == 1);
      CHECK(parts.count("after_bit_0") == 0);
      CHECK(parts.count("frozen_note") == 0);
    }
  }
}

TEST_CASE("pairwise shows the blocks that wait", "[accumulator_precision_scene]") {
  Shown shown(set_of("pairwise", 45));
  for (const int tile : {1, 2, 31, 32, 45}) {
    const auto picture = shown->picture(shown->extent(), {{tile, 1}});
    int total = 0;
    for (const picture::Mark* mark : picture::marks_of(picture)) {
      const picture::Items* items = picture::items_of(*mark);
      if (items == nullptr || items->name != picture::Name("block")) continue;
      for (const std::string& size : items->names) total += std::stoi(size);
    }
    CHECK(total == tile);
    CHECK(mark_of<picture::Curve>(picture, "landed") == nullptr);
  }
}

TEST_CASE("what is lost, and for good, is said in numbers", "[accumulator_precision_scene]") {
  Shown shown;
  const auto says = [&](Cursor cursor, const char* words) {
    const std::string sentence = shown->followed({cursor}).sentence(shown->moment(cursor));
    INFO(sentence);
    return tests::contains(sentence, words);
  };
  CHECK(says({0, 1}, "64 terms wait, 63.89 in all"));
  CHECK(says({17, 1}, "drops t[16]: 18.95 falls back to 18, where numbers are 2 apart"));
  CHECK(says({34, 0}, "33.15 lies between 32 and 36"));
  CHECK(says({34, 1}, "is frozen and drops t[33]"));
  CHECK(says({64, 1}, "FP8 holds 32; the exact sum is 63.8865: off by 49.9 %"));
  const scenes::View view{{40, 1}};
  CHECK(tests::contains(shown->explain(view, {"sum", 0}), "a term below 2 is lost"));
  CHECK(tests::contains(shown->explain(view, {"rug"}), " lost"));
  CHECK(shown.picture({40, 1}).count("frozen_note") == 1);
}

TEST_CASE("chips choose the accumulator that is followed", "[accumulator_precision_scene]") {
  Shown shown;
  const Cursor now{40, 1};
  const auto followed = [&] { return shown->followed(shown.player().view(now)).a.method; };
  CHECK(followed() == Method::fp8_e4m3);
  shown.click("chip_5", now);
  CHECK(followed() == Method::fp32);
  CHECK(shown->table_row("accumulators", shown.player().view(now)) == 2);
  CHECK(shown->source(shown.player().view(now)).current > 0);
  CHECK(shown->source({{0, 1}}).current == 0);
  // What is followed stays so from run to run while it is there.
  shown.click("chip_2", now);
  CHECK(followed() == Method::fp16);
  shown.load(set_of("all"));
  CHECK(followed() == Method::fp16);
  shown.load(set_of("kahan"));
  CHECK(followed() == Method::kahan);
}

TEST_CASE("events of the sums", "[accumulator_precision_scene]") {
  Shown shown(set_of("basic"));
  std::vector<std::string> said;
  for (const auto& each : shown->events()) said.push_back(each.text);
  CHECK(said == std::vector<std::string>{"FP8 loses its first term", "FP8 freezes at 32"});
  const int frozen_at = shown.trace().accumulators[0].frozen_at;
  CHECK((shown->events()[1].at == scenes::Cursor{frozen_at + 1, 1}));
}

TEST_CASE("the accumulator questions are answered by the trace", "[accumulator_precision_scene]") {
  std::set<int> places;
  for (const char* set : {"fp8-e4m3", "fp8-e5m2", "fp16", "bf16", "fp32", "promoted", "kahan"}) {
    for (const char* rounding : {"nearest", "truncate"}) {
      lab::Settings settings = set_of(set, 100);
      settings["rounding"] = std::string(rounding);
      Shown shown(settings);
      const Trace& trace = shown.trace();
      const AccumulatorTrace& a = trace.accumulators.front();
      int asked = 0;
      for (int tile = 0; tile < 100; ++tile) {
        CHECK_FALSE(shown->question({{tile, 0}}));
        const auto question = shown->question({{tile, 1}});
        if (!question) continue;
        ++asked;
        CAPTURE(set, rounding, tile, question->text);
        places.insert(question->answer);
        const std::string right = question->choices.at(question->answer);
        const auto& step = a.steps[tile];
        const int digits = a.format.mantissa_bits <= 3 ? 4 : a.format.mantissa_bits <= 10 ? 6 : 9;
        if (question->text.find("What will it hold") != std::string::npos) {
          CHECK(right == significant(static_cast<double>(step.after), digits));
        } else if (question->text.find("Where is the border") != std::string::npos) {
          CHECK(tile == a.frozen_at);
          // What is lost from here on is smaller, and was rounded away.
          const double spacing = std::ldexp(1.0, std::ilogb(a.final_sum) - a.format.mantissa_bits);
          const double least = rounding == std::string("nearest") ? spacing / 2 : spacing;
          CHECK(right == spacing_text(least));
          CHECK(static_cast<double>(trace.term[tile]) <= least);
        } else {
          const double sum = static_cast<double>(step.before) + static_cast<double>(step.added);
          CHECK(right == spacing_text(std::ldexp(1.0, std::ilogb(sum) - a.format.mantissa_bits)));
        }
      }
      CHECK(asked >= 2);
      CHECK(asked <= 12);
      CHECK_FALSE(shown->question({{100, 1}}));
    }
  }
  CHECK(places.size() >= 3);
}

TEST_CASE("sums that are hard to draw", "[accumulator_precision_scene]") {
  std::vector<lab::Settings> cases = {set_of("all", 1), set_of("all", 4096)};
  // With all accumulators, among them those that the choice concerns.
  for (const lab::Knob& knob : lesson("accumulator-precision").knobs()) {
    for (const std::string& choice : knob.choices) {
      if (knob.id == "accumulators") continue;
      cases.push_back(set_of("all", 300));
      cases.back()[knob.id] = choice;
    }
  }
  contract::check_pictures(lesson("accumulator-precision"), cases);
}

TEST_CASE("the measured views of the accumulator lesson show the recording",
          "[accumulator_precision_scene]") {
  Shown shown;
  for (const ImVec2 size : tests::kSweptSizes) {
    const auto show = [&](const std::string& button) { return shown.measured(button, size); };
    show("measured_view_0");
    CHECK(show("measured_data_1").at("gemm_error").value == "5 curves");
    auto parts = show("measured_view_1");
    CHECK(parts.count("price") == 1);
    CHECK(parts.count("gemm_rate_0") == 1);
    parts = show("measured_view_2");
    CHECK(parts.at("rate_by_data_1").label == "wgmma-fp8-promoted");
    // What lies below the window's edge is not on screen.
    if (size.y > 300) {
      const std::string on_uniform = show("rate_data_0").at("error_by_data_0").value;
      CHECK(show("rate_data_1").at("error_by_data_0").value != on_uniform);
    }
    parts = show("measured_view_4");
    CHECK(parts.count("model_agrees") == 1);
    // Scales need no GPU.
    parts = shown.measured("measured_view_5", size, shown.report());
    CHECK(parts.at("scaling_error_2").label == "per-block 1x128, 128x128");
    if (size.y > 300) CHECK(tests::contains(parts.at("scaling_why").label, "DeepGEMM"));
  }
}

TEST_CASE("the bits of a tensor core's step are those of the model",
          "[accumulator_precision_scene]") {
  using namespace accumulator_precision;
  const auto a = random_e4m3(GemmData::uniform, 4096, kTrialSeeds[0]),
             b = random_e4m3(GemmData::uniform, 4096, kTrialSeeds[1]);
  const auto dot = [&](std::size_t from, std::size_t to) {
    return hopper_fp8_dot({a.data() + from, to - from}, {b.data() + from, to - from});
  };
  Shown shown;
  const auto pictures = tests::pictures_in(*shown, "Bits");
  REQUIRE(pictures.size() == 1);
  const picture::Picture& drawn = pictures[0];
  for (const bool part : {false, true}) {
    const HopperStep step =
        hopper_step({a.data() + 4064, 32}, {b.data() + 4064, 32}, {}, dot(part ? 3968 : 0, 4064));
    const picture::Items cells = tests::items_named(drawn, part ? "bit_of_part" : "bit_of_step");
    const std::vector<std::string>& powers = drawn.axes[0].names;
    REQUIRE(std::ssize(powers) == cells.per_row);
    REQUIRE(cells.count == 6 * cells.per_row);
    const auto column =
        std::find(powers.begin(), powers.end(), "2" + scenes::words::raised(step.unit));
    REQUIRE(column != powers.end());
    // Left of the line what is kept, with what is right of it the exact number.
    for (int row = 0; row < 6; ++row) {
      double kept = 0, all = 0;
      for (int c = 0; c < cells.per_row; ++c) {
        const auto at = static_cast<std::size_t>(row * cells.per_row + c);
        if (cells.names[at] != "1") continue;
        const int power = step.unit + static_cast<int>(column - powers.begin()) - c;
        all += std::ldexp(1, power);
        if (cells.state[at] == picture::State::plain) kept += std::ldexp(1, power);
      }
      CAPTURE(part, row);
      if (row < 4) CHECK(all == step.exact[row]);
      if (row < 4) CHECK(kept == step.kept[row]);
      if (row == 5) CHECK(kept == static_cast<double>(step.after));
    }
    const auto& line = tests::mark_named<picture::Rule>(drawn, part ? "part_cut" : "step_cut");
    CHECK(line.at == static_cast<double>(column - powers.begin()) + 1);
  }
}
