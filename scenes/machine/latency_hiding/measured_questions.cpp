// The questions about the measurements of the lesson on latency hiding. A bench that lacks a table or a column gets no
// question on it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/machine/latency_hiding/scene.hpp"
#include "scenes/shared/measured.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {
namespace {

/// A kind of load, by bytes in flight: the best of the rows with the same number.
struct Point {
  double in_flight, bandwidth, latency;
};
std::vector<Point> points_of(const lab::Report& bench, std::string_view kind) {
  std::vector<Point> points;
  const lab::Table* table = bench.table("bytes_in_flight");
  for (std::size_t row = 0; table != nullptr && row < table->rows.size(); ++row) {
    const auto x = number_in(*table, row, "in_flight"), y = number_in(*table, row, "bandwidth");
    if (text_in(*table, row, "kind") != kind || !x || !y) continue;
    points.push_back({*x, *y, number_in(*table, row, "latency").value_or(0)});
  }
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return a.in_flight != b.in_flight ? a.in_flight < b.in_flight : a.bandwidth > b.bandwidth;
  });
  const auto as_much = [](const Point& a, const Point& b) { return a.in_flight == b.in_flight; };
  points.erase(std::unique(points.begin(), points.end(), as_much), points.end());
  return points;
}

const Point& nearest(const std::vector<Point>& points, double in_flight) {
  return *std::min_element(points.begin(), points.end(), [&](const Point& a, const Point& b) {
    return std::abs(std::log(a.in_flight / in_flight)) <
           std::abs(std::log(b.in_flight / in_flight));
  });
}

const std::vector<std::string>& shares() {
  static const std::vector<std::string> kShares = {"97 % or more", "75 to 97 %", "40 to 75 %",
                                                   "Less than 40 %"};
  return kShares;
}
std::size_t share_of(double fraction) {
  return fraction >= 0.97 ? 0 : fraction >= 0.75 ? 1 : fraction >= 0.4 ? 2 : 3;
}

/// A quarter of the warps, one load of four bytes or several of sixteen.
std::optional<Question> quarter_question(const lab::Report& bench, const char* rung,
                                         const char* kind, const char* loads) {
  const auto share = number_with(bench, "ladder", {{"rung", rung}}, "fraction");
  const auto rate = number_with(bench, "ladder", {{"rung", rung}}, "bandwidth");
  if (!share || !rate) return std::nullopt;
  return about_view(
      "Ladder", kind,
      ask(fmt::format("16 of 64 warps are resident: 25 % occupancy. {} What share of the device's "
                      "own copy does it reach?",
                      loads),
          shares()[share_of(*share)], shares(),
          fmt::format("it reaches {} of the copy's bandwidth ({:.0f} GB/s, {}).",
                      words::percent(*share), *rate, measured::where_measured(bench))));
}

/// Past the knee.
std::optional<Question> knee_question(const lab::Report& bench) {
  const std::vector<Point> points = points_of(bench, "16");
  const auto knee = number_with(bench, "knees", {{"kind", "16"}}, "measured_knee");
  if (!knee || *knee <= 0 || points.size() < 3 || points.front().in_flight <= 0)
    return std::nullopt;
  const Point &at = nearest(points, *knee), &twice = nearest(points, 2 * at.in_flight);
  if (&at == &twice || at.bandwidth <= 0) return std::nullopt;
  const double gain = twice.bandwidth / at.bandwidth - 1;
  const std::vector<std::string> choices = {"Less than 5 %", "5 to 20 %", "20 to 60 %",
                                            "More than 60 %"};
  const std::size_t is = gain < 0.05 ? 0 : gain < 0.2 ? 1 : gain < 0.6 ? 2 : 3;
  return about_view(
      "Bytes in flight", "past-the-knee",
      ask(fmt::format(
              "A multiprocessor has {:.3g} KiB in flight, where the curve bends. With {:.3g} "
              "KiB, how much faster is the copy?",
              at.in_flight, twice.in_flight),
          choices[is], choices,
          fmt::format("twice the bytes give {:.0f} instead of {:.0f} GB/s ({}).", twice.bandwidth,
                      at.bandwidth, measured::where_measured(bench))));
}

/// The latency under load.
std::optional<Question> loaded_question(const lab::Report& bench) {
  std::vector<Point> points = points_of(bench, "16");
  std::erase_if(points, [](const Point& each) { return each.latency <= 0; });
  if (points.size() < 2) return std::nullopt;
  const Point &few = points.front(), &many = points.back();
  return about_view(
      "Bytes in flight", "loaded-latency",
      ask_ratio(
          fmt::format(
              "From {:.3g} to {:.3g} KiB in flight on each multiprocessor: how many times as "
              "long does a load take?",
              few.in_flight, many.in_flight),
          many.latency / few.latency, {1, 1.5, 2.5, 5, 10},
          fmt::format("memory delivers no more, so loads queue ({:.0f} against {:.0f} ns, {}).",
                      many.latency, few.latency, measured::where_measured(bench))));
}

/// Which register limit is fastest: more warps and spills, or fewer and none.
std::optional<Question> spill_question(const lab::Report& bench) {
  const lab::Table* table = bench.table("registers");
  if (table == nullptr) return std::nullopt;
  std::optional<std::size_t> best, most;
  for (std::size_t row = 0; row < table->rows.size(); ++row) {
    const auto rate = number_in(*table, row, "tflops"),
               warps = number_in(*table, row, "warps_per_sm");
    if (!rate || !warps) return std::nullopt;
    if (!best || *rate > *number_in(*table, *best, "tflops")) best = row;
    if (!most || *warps > *number_in(*table, *most, "warps_per_sm")) most = row;
  }
  if (!best || table->rows.size() < 4) return std::nullopt;
  const auto name = [&](std::size_t row) {
    return text_in(*table, row, "max_registers") + " registers";
  };
  std::vector<std::string> others = {name(*most), name(0), name(table->rows.size() / 2),
                                     name(table->rows.size() - 1), name(1)};
  const auto say = [&](std::size_t row) {
    return fmt::format("{} admit {} warps and spill {} B/thread, {:.3g} TFLOP/s", name(row),
                       text_in(*table, row, "warps_per_sm"), text_in(*table, row, "local_bytes"),
                       *number_in(*table, row, "tflops"));
  };
  return about_view(
      "Registers", "spilling",
      ask("The kernel keeps 128 values per thread. Fewer registers spill some but admit more "
          "warps. Which limit is fastest?",
          name(*best), others,
          fmt::format("{}; {} ({}).", say(*best), say(*most), measured::where_measured(bench))));
}

/// Chains in one warp instead of more warps.
std::optional<Question> chains_question(const lab::Report& bench) {
  const auto rate = [&](const char* ilp) {
    return number_with(bench, "flops", {{"ilp", ilp}, {"warps_per_sm", "1"}}, "tflops");
  };
  const auto slow = rate("1"), fast = rate("8");
  if (!slow || !fast || *slow <= 0) return std::nullopt;
  return about_view(
      "FLOP/s", "chains",
      ask_ratio("1 warp per multiprocessor. With 8 independent chains per thread instead of 1, how "
                "many times the FMAs per second?",
                *fast / *slow, {1, 1.5, 2, 4, 8},
                fmt::format(
                    "one chain waits about four cycles for each result, and four or more fill them "
                    "({:.3g} against {:.3g} TFLOP/s, {}).",
                    *fast, *slow, measured::where_measured(bench))));
}

/// A branch that separates all lanes.
std::optional<Question> branch_question(const lab::Report& bench) {
  const auto slowdown = number_with(bench, "divergence", {{"ways", "32"}}, "slowdown");
  if (!slowdown) return std::nullopt;
  return about_view(
      "Branches", "branch",
      ask_ratio(
          "The lanes of a warp take 32 ways through a branch. How many times as long does the "
          "same work take?",
          *slowdown, {1, 2, 8, 16, 32},
          fmt::format("the arms run in turn ({:.3g} times, {}).", *slowdown,
                      measured::where_measured(bench))));
}

}  // namespace

std::vector<Question> LatencyHidingScene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench, {quarter_question(bench, "one-load", "quarter-one-load",
                                           "Each thread has one 4-byte load in flight."),
                          quarter_question(bench, "copy", "quarter-wide",
                                           "Each thread has several 16-byte loads in flight."),
                          knee_question(bench), loaded_question(bench), spill_question(bench),
                          chains_question(bench), branch_question(bench)});
}

}  // namespace tilestep::scenes
