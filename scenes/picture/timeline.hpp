#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scenes/picture/picture.hpp"

/// \file
/// A timeline: what threads of the host and streams of a device did, as lanes over one clock. A lane of a hundred
/// thousand spans costs what its pixels cost, since spans too narrow to be seen are counted together.
///
///     Timeline timeline;
///     timeline.lanes.push_back({"stream 7", {{.begin_us = 3, .end_us = 9, .name = 0}}});
///     timeline.names = {"gemm"};
///     picture.root = timeline_box({"lanes"}, timeline, 0, 20, "us", "lane");
///
/// `scenes/ui/timeline.hpp` draws one in a window, with zoom and pan.
namespace tilestep::picture {

/// A kernel, a copy or a call, in microseconds of the timeline's clock.
struct TimelineSpan {
  double begin_us = 0, end_us = 0;
  int name = -1;          ///< its place in Timeline::names: spans of one name light up together
  int id = -1;            ///< the caller's own number
  std::uint8_t tone = 0;  ///< 0: that of its lane
  bool operator==(const TimelineSpan&) const = default;
};

/// A stretch of a lane as it is drawn: one span, or a column of several that are narrower than it.
struct TimelineRun {
  double begin_us = 0, end_us = 0;
  double share = 1;  ///< of the stretch in which the lane was busy
  int span = -1;     ///< its place in TimelineLane::spans; −1: several
};

/// A lane, sorted by time. Spans may overlap: what is busy is counted once.
class TimelineLane {
 public:
  TimelineLane() = default;
  /// Spans that are not finite, or end before they begin, are left out.
  TimelineLane(std::string name, std::vector<TimelineSpan> spans, std::uint8_t tone = 0);

  const std::string& name() const { return name_; }
  std::uint8_t tone() const { return tone_; }
  const std::vector<TimelineSpan>& spans() const { return spans_; }
  /// Microseconds between the two in which at least one span lasted.
  double busy_us(double from_us, double to_us) const;
  /// What is to be drawn of a window in so many columns: spans at least a column wide, and columns in which narrower
  /// ones lasted. In O(columns · log(spans)), for any number of spans.
  std::vector<TimelineRun> runs(double from_us, double to_us, int columns) const;
  /// The span that lasts at a time, the latest to begin; within `near_us` of it, where there is none. −1: none.
  int at(double us, double near_us = 0) const;
  /// The first span that begins at or after a time; the number of spans, if none does.
  int first_from(double us) const;
  /// The spans of one name alone.
  TimelineLane only(int name) const;

 private:
  std::size_t first_ending_after(double us) const;
  /// The first of these spans, which begin in a column that ends at `right`, that is as wide as it.
  std::size_t first_wide(std::size_t begin, std::size_t end, double right, double column) const;

  std::string name_;
  std::uint8_t tone_ = 0;
  std::vector<TimelineSpan> spans_;
  std::vector<double> latest_;  ///< for each span, the latest end of it and those before
  /// Stretches without a pause, and how long those before each one lasted together.
  std::vector<std::pair<double, double>> busy_;
  std::vector<double> before_;
};

struct Timeline {
  std::vector<TimelineLane> lanes;
  std::vector<std::string> names;  ///< of kernels, copies and calls

  /// From the first begin to the last end; {0, 1} without spans.
  std::pair<double, double> range_us() const;
};

/// The axes of a box of `timeline_box`: microseconds, and a band of the lanes by their names.
std::vector<Axis> timeline_axes(const Timeline& timeline, double from_us, double to_us, Name x,
                                Name lanes);
/// Lanes as a picture's box: a bar `bar_i` per span, where `i` is its id if all spans have one, and else its place among
/// all spans, lane after lane. Spans narrower than 1/`columns` of the window are one bar, as long as they lasted
/// together. Bars end at `now_us`.
Box timeline_box(Key key, const Timeline& timeline, double from_us, double to_us, Name x,
                 Name lanes, double now_us, int columns = 240);

}  // namespace tilestep::picture
