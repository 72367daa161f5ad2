// The bits that one tensor-core step cuts off: the software model's last step of the first dot product on which the
// bench compared it with the hardware.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "kernels/base/numeric/small_float.hpp"
#include "kernels/numbers/accumulator_precision/bench/bench.hpp"
#include "kernels/numbers/accumulator_precision/bench/hopper.hpp"
#include "scenes/numbers/accumulator_precision/scene.hpp"
#include "scenes/picture/parts.hpp"

namespace tilestep::scenes {

using namespace picture;
using accumulator_precision::HopperModel, accumulator_precision::HopperStep,
    accumulator_precision::hopper_fp8_dot;
using words::significant;

namespace {

constexpr HopperModel kModel{};
constexpr auto kGroup = static_cast<std::size_t>(kModel.group);
constexpr std::size_t kPart = 128;    ///< products per promoted partial sum
constexpr std::size_t kProducts = 3;  ///< with a row each

/// The dot product, once over all of K and once in partial sums, and the last step of each.
struct Trial {
  std::size_t depth = 0;
  double exact = 0, straight = 0, promoted = 0;
  HopperStep last_straight, last_promoted;
};

Trial tried() {
  const accumulator_precision::BenchSizes sizes;
  Trial trial{static_cast<std::size_t>(sizes.long_depth), 0, 0, 0, {}, {}};
  std::array<std::vector<std::uint8_t>, 2> factors;
  for (std::size_t i = 0; i < 2; ++i) {
    factors[i] =
        accumulator_precision::random_e4m3(accumulator_precision::GemmData::uniform, trial.depth,
                                           accumulator_precision::kTrialSeeds[i]);
  }
  const std::span<const std::uint8_t> a = factors[0], b = factors[1];
  for (std::size_t i = 0; i < trial.depth; ++i) {
    trial.exact += numeric::decode(numeric::kE4m3, a[i]) * numeric::decode(numeric::kE4m3, b[i]);
  }
  const auto dot = [&](std::size_t from, std::size_t to) {
    return hopper_fp8_dot(a.subspan(from, to - from), b.subspan(from, to - from), kModel);
  };
  float total = 0;
  for (std::size_t from = 0; from < trial.depth; from += kPart) total += dot(from, from + kPart);
  const std::size_t last = trial.depth - kGroup;
  const auto step = [&](float start) {
    return hopper_step(a.subspan(last), b.subspan(last), kModel, start);
  };
  trial.last_straight = step(dot(0, last));
  trial.last_promoted = step(dot(trial.depth - kPart, last));
  trial.straight = static_cast<double>(trial.last_straight.after);
  trial.promoted = static_cast<double>(total);
  return trial;
}
const Trial& trial() {
  static const Trial made = tried();
  return made;
}

std::string power_of_two(int exponent) {
  return "2" + words::raised(exponent);
}

/// The power of two of the lowest set bit; large for 0.
int lowest_bit(double value) {
  if (value == 0) return 1000;
  int power = std::ilogb(value);
  while (std::ldexp(std::trunc(std::ldexp(value, -power)), power) != value) --power;
  while (std::fmod(std::ldexp(value, -power), 2) == 0) ++power;
  return power;
}

/// A number in the row, down to its last bit; bits below 2^cut are lost.
struct BitRow {
  std::string name, says;
  double value = 0;
  int cut = 0;
};

/// "1.688 → 1.5"; the number alone if no visible digit is lost, in full if nothing is.
std::string cut_to(double exact, double kept) {
  const std::string was = significant(exact, 4), is = significant(kept, 4);
  return was == is ? significant(exact, exact == kept ? 7 : 4) : was + " → " + is;
}

std::vector<BitRow> bit_rows(const HopperStep& step) {
  std::vector<BitRow> rows;
  double others = 0, exact = 0, sum = 0;
  for (std::size_t i = 0; i < step.kept.size(); ++i) {
    sum += step.kept[i];
    if (i > kProducts) {
      others += step.kept[i];
      exact += step.exact[i];
      continue;
    }
    rows.push_back({i == 0 ? "before" : fmt::format("product {}", i - 1),
                    cut_to(step.exact[i], step.kept[i]), step.exact[i], step.unit});
  }
  const std::size_t more = step.kept.size() - 1 - kProducts;
  rows.push_back({fmt::format("{} more", more), cut_to(exact, others), others, step.unit});
  const auto after = static_cast<double>(step.after);
  rows.push_back({"after", significant(after, 7), sum, std::ilogb(after) - kModel.mantissa_bits});
  return rows;
}

/// The powers of two that the rows' bits span.
struct Powers {
  int top = -1000, low = 1000;
  void add(const std::vector<BitRow>& rows) {
    for (const BitRow& row : rows) {
      if (row.value != 0) top = std::max(top, std::ilogb(row.value));
      low = std::min({low, lowest_bit(row.value), row.cut - 1});
    }
  }
};

/// The names of a step's marks.
struct Called {
  Name box, bit, power, row, says, cut;
};

/// The rows, the line left of which bits are kept, and the results.
Box step_in_bits(const HopperStep& step, const Powers& powers, const Called& called, Text label) {
  const int columns = powers.top - powers.low + 1;
  const std::vector<BitRow> rows = bit_rows(step);
  Cells cells{items(called.bit, columns * static_cast<int>(rows.size()))};
  cells.x = called.power;
  cells.y = called.row;
  cells.columns = cells.items.per_row = columns;
  Box made = box({called.box}, {}, {}, {.least_height = 5, .left = 4.2f, .right = 6});
  std::vector<Mark> ends;
  for (const BitRow& row : rows) {
    const int last = std::min(lowest_bit(row.value), row.cut);
    for (int power = powers.top; power >= powers.low; --power) {
      const bool there = row.value != 0 && power <= std::ilogb(row.value) && power >= last;
      const bool set = std::fmod(std::floor(std::ldexp(std::abs(row.value), -power)), 2) != 0;
      cells.items.names.push_back(!there ? "" : set ? "1" : "0");
      cells.items.state.each.push_back(!there            ? State::to_come
                                       : power < row.cut ? State::wasted
                                                         : State::plain);
      cells.items.glyph.each.push_back(there ? kSolid : kHollow);
    }
    ends.emplace_back(lane_end({called.says, static_cast<int>(ends.size())}, called.power,
                               called.row, columns, text(row.says), 0, {}, false));
  }
  made.marks.emplace_back(std::move(cells));
  made.marks.emplace_back(Rule{.key = {called.cut},
                               .axis = called.power,
                               .at = static_cast<double>(powers.top - step.unit + 1),
                               .state = State::done});
  made.marks.insert(made.marks.end(), ends.begin(), ends.end());
  return labelled({called.box, 0}, std::move(made), std::move(label), {});
}

/// The last step of one sum over all of K, and that of a promoted sum: the same powers of two for both.
Picture last_steps() {
  const Trial& all = trial();
  const Called straight{"step_bits", "bit_of_step", "step_power",
                        "step_row",  "step_says",   "step_cut"},
      part{"part_bits", "bit_of_part", "part_power", "part_row", "part_says", "part_cut"};
  Powers powers;
  powers.add(bit_rows(all.last_straight));
  powers.add(bit_rows(all.last_promoted));
  std::vector<Axis> axes;
  const auto shown = [&](const HopperStep& step, const Called& called, const char* what,
                         std::size_t length) {
    Axis across{.name = called.power, .kind = Axis::band, .ticks = true};
    for (int p = powers.top; p >= powers.low; --p) across.names.push_back(power_of_two(p));
    Axis down{.name = called.row, .kind = Axis::band};
    for (const BitRow& row : bit_rows(step)) down.names.push_back(row.name);
    for (Axis* axis : {&across, &down}) {
      axis->count = static_cast<int>(axis->names.size());
      axes.push_back(std::move(*axis));
    }
    return step_in_bits(step, powers, called,
                        text(fmt::format("{}, step {} of {}: cut below {}", what, length / kGroup,
                                         length / kGroup, power_of_two(step.unit)),
                             what));
  };
  std::vector<Box> boxes = {shown(all.last_straight, straight, "one sum over all of K", all.depth),
                            shown(all.last_promoted, part, "promoted every 128", kPart)};
  return {text("The last 32 products, and the bits cut off"), std::move(axes),
          column({"last_steps"}, std::move(boxes), {.flow = Layout::either, .even = true})};
}

}  // namespace

measured::View AccumulatorPrecisionScene::alignment_view() const {
  using namespace measured;
  const auto comes_to = [] {
    const Trial& all = trial();
    const auto off = [&](double sum) { return words::percent(std::abs(sum / all.exact - 1)); };
    return fmt::format(
        "All {} products: {} exactly; {} in one sum, off by {}; {} promoted, off by {}.", all.depth,
        significant(all.exact, 7), significant(all.straight, 7), off(all.straight),
        significant(all.promoted, 7), off(all.promoted));
  };
  const auto agrees = [comes_to, lesson = std::string(lesson())](const lab::Report& run) {
    const lab::Report* bench = bench_of(run, lesson, "hopper_model");
    const auto* share =
        bench == nullptr ? nullptr : bench->measurement("model_bit_equal", "uniform");
    if (share == nullptr) return comes_to();
    const accumulator_precision::GemmShape trial = accumulator_precision::BenchSizes().trial;
    return fmt::format("{} {} matched the model in {} of {} dot products; this is the first.",
                       comes_to(), bench->device.name, words::percent(share->value / 100),
                       trial.m * trial.n);
  };
  return {.name = "Bits",
          .how = "a step of the software model: all aligned to the largest exponent; hatched: cut",
          .plots = {Pictured{.id = "bits_of_step",
                             .least_height = 190,
                             .picture = [](const lab::Table&) { return last_steps(); }}},
          .needs = "scaling",
          .missing = "Run the lesson again.",
          .computed = true,
          .footnote = {"bits_agree", agrees}};
}

}  // namespace tilestep::scenes
