// Timelines: what is drawn of any number of spans, against counting them one by one.
#include "scenes/picture/timeline.hpp"

#include <cmath>
#include <limits>

#include "tests/catch.hpp"

using namespace tilestep;
using picture::TimelineLane;
using picture::TimelineRun;
using picture::TimelineSpan;

namespace {

std::vector<TimelineSpan> random_spans(unsigned seed, int count, bool overlap) {
  std::uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  const auto next = [&](int below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state >> 33) % static_cast<std::uint64_t>(below));
  };
  std::vector<TimelineSpan> spans;
  double at = 0;
  for (int i = 0; i < count; ++i) {
    const double begin = overlap ? next(1000) : at + next(4), last = next(8) == 0 ? 40 : next(3);
    spans.push_back({begin, begin + last, next(5), i});
    at = begin + last;
  }
  return spans;
}

/// Microseconds in which one of the spans lasts, by halves of a microsecond.
double busy_by_halves(const std::vector<TimelineSpan>& spans, double from, double to) {
  double sum = 0;
  for (double at = from; at < to; at += 0.5) {
    for (const TimelineSpan& span : spans) {
      if (span.begin_us <= at && span.end_us >= at + 0.5) {
        sum += 0.5;
        break;
      }
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("a lane is busy as long as its spans last, each moment once", "[picture]") {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    const auto spans = random_spans(seed, 80, seed % 2 == 0);
    const TimelineLane lane("stream", spans);
    for (const auto& [from, to] : {std::pair(0.0, 2000.0), std::pair(13.5, 77.0),
                                   std::pair(100.0, 100.5), std::pair(-5.0, 3.0)}) {
      CHECK(lane.busy_us(from, to) == busy_by_halves(spans, from, to));
    }
    CHECK(lane.busy_us(9, 9) == 0);
    CHECK(lane.busy_us(9, 3) == 0);
  }
}

TEST_CASE("a lane's runs show every wide span, and count narrow ones by column", "[picture]") {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    const auto spans = random_spans(seed, 300, seed % 2 == 0);
    const TimelineLane lane("stream", spans);
    for (const int columns : {1, 7, 50, 4000}) {
      INFO(seed << " " << columns);
      const double from = 20, to = 500, column = (to - from) / columns;
      const auto runs = lane.runs(from, to, columns);
      CHECK(runs.size() <= 2 * static_cast<std::size_t>(columns) + spans.size() * (seed % 2 == 0));
      std::size_t wide = 0;
      for (const TimelineSpan& span : lane.spans()) {
        if (span.end_us > from && span.begin_us < to && span.end_us - span.begin_us >= column)
          ++wide;
      }
      std::size_t found = 0;
      for (const TimelineRun& run : runs) {
        CHECK(run.share >= 0);
        CHECK(run.share <= 1);
        CHECK(run.end_us > from);
        CHECK(run.begin_us < to);
        found += run.end_us - run.begin_us >= column && run.span >= 0;
      }
      CHECK(found == wide);
      if (seed % 2 == 0) continue;
      // Where no two overlap, the runs last as long as the spans.
      double lasted = 0;
      for (const TimelineRun& run : runs) {
        if (run.begin_us >= from && run.end_us <= to)
          lasted += run.share * (run.end_us - run.begin_us);
        else
          lasted += lane.busy_us(std::max(run.begin_us, from), std::min(run.end_us, to));
      }
      CHECK(std::abs(lasted - lane.busy_us(from, to)) <= 2 * column + 1e-9);
    }
  }
}

TEST_CASE("a timeline finds the span at a time, and leaves out what is no span", "[picture]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const TimelineLane lane("host", {{10, 20, 0, 7},
                                   {nan, 3, 0, 1},
                                   {5, 4, 0, 2},
                                   {0, 1, 1, 3},
                                   {12, 13, 1, 4},
                                   {1, std::numeric_limits<double>::infinity(), 0, 5}});
  REQUIRE(lane.spans().size() == 3);
  CHECK(lane.spans()[1].id == 7);
  CHECK(lane.at(0.5) == 0);
  CHECK(lane.at(5) == -1);
  CHECK(lane.at(5, 4) == 0);
  CHECK(lane.at(9, 4) == 1);
  CHECK(lane.at(12.5) == 2);
  CHECK(lane.at(15) == 1);
  CHECK(lane.first_from(10) == 1);
  CHECK(lane.only(1).spans().size() == 2);
  CHECK(picture::Timeline().range_us() == std::pair(0.0, 1.0));
}

TEST_CASE("a timeline is a picture's box, with a bar for each span that can be seen", "[picture]") {
  picture::Timeline timeline{{TimelineLane("host", {{0, 4, 0}, {5, 9, 1}}),
                              TimelineLane("stream 7", random_spans(3, 400, false), 3)},
                             {"launch", "gemm"}};
  picture::Picture made;
  made.axes = picture::timeline_axes(timeline, 0, 800, "us", "lane");
  made.root = picture::timeline_box({"lanes"}, timeline, 0, 800, "us", "lane", 600);
  CHECK(picture::problems(made).empty());
  const auto& spans = std::get<picture::Spans>(made.root.marks.at(0));
  CHECK(spans.items.count > 50);
  for (const double end : spans.end) CHECK(end <= 600);
}
