#include "scenes/picture/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "scenes/picture/parts.hpp"

namespace tilestep::picture {
namespace {

/// How many spans back `TimelineLane::at` looks for one that still lasts.
constexpr std::size_t kMostBack = 256;

}  // namespace

TimelineLane::TimelineLane(std::string name, std::vector<TimelineSpan> spans, std::uint8_t tone)
    : name_(std::move(name)), tone_(tone), spans_(std::move(spans)) {
  std::erase_if(spans_, [](const TimelineSpan& span) {
    return !std::isfinite(span.begin_us) || !std::isfinite(span.end_us) ||
           span.end_us < span.begin_us;
  });
  std::stable_sort(spans_.begin(), spans_.end(), [](const TimelineSpan& a, const TimelineSpan& b) {
    return a.begin_us < b.begin_us;
  });
  latest_.reserve(spans_.size());
  for (const TimelineSpan& span : spans_) {
    latest_.push_back(latest_.empty() ? span.end_us : std::max(latest_.back(), span.end_us));
    if (busy_.empty() || span.begin_us > busy_.back().second) {
      before_.push_back(busy_.empty() ? 0
                                      : before_.back() + busy_.back().second - busy_.back().first);
      busy_.emplace_back(span.begin_us, span.end_us);
    } else {
      busy_.back().second = std::max(busy_.back().second, span.end_us);
    }
  }
}

double TimelineLane::busy_us(double from_us, double to_us) const {
  /// Until a time, from the first span on.
  const auto until = [&](double us) {
    const auto after = std::upper_bound(
        busy_.begin(), busy_.end(), us,
        [](double time, const std::pair<double, double>& each) { return time < each.first; });
    if (after == busy_.begin()) return 0.0;
    const auto last = static_cast<std::size_t>(after - busy_.begin()) - 1;
    return before_[last] + std::min(us, busy_[last].second) - busy_[last].first;
  };
  return to_us > from_us ? std::max(until(to_us) - until(from_us), 0.0) : 0.0;
}

std::size_t TimelineLane::first_ending_after(double us) const {
  return static_cast<std::size_t>(std::upper_bound(latest_.begin(), latest_.end(), us) -
                                  latest_.begin());
}

int TimelineLane::first_from(double us) const {
  const auto found =
      std::lower_bound(spans_.begin(), spans_.end(), us,
                       [](const TimelineSpan& span, double time) { return span.begin_us < time; });
  return static_cast<int>(found - spans_.begin());
}

std::size_t TimelineLane::first_wide(std::size_t begin, std::size_t end, double right,
                                     double column) const {
  const auto wide = [&](std::size_t i) { return spans_[i].end_us - spans_[i].begin_us >= column; };
  // None that begins in a column is as wide without ending after it.
  if (begin >= end || latest_[end - 1] < right) return end;
  if (wide(end - 1) && (end < 2 || latest_[end - 2] < right)) return end - 1;
  while (begin < end && !wide(begin)) ++begin;
  return begin;
}

std::vector<TimelineRun> TimelineLane::runs(double from_us, double to_us, int columns) const {
  std::vector<TimelineRun> found;
  if (!(to_us > from_us) || columns < 1) return found;
  const double column = (to_us - from_us) / columns;
  std::size_t at = first_ending_after(from_us);
  while (at < spans_.size() && spans_[at].begin_us < to_us) {
    const TimelineSpan& span = spans_[at];
    if (span.end_us <= from_us) {
      ++at;
      continue;
    }
    if (span.end_us - span.begin_us >= column) {
      found.push_back({span.begin_us, span.end_us, 1, static_cast<int>(at)});
      ++at;
      continue;
    }
    // Its column, with all that begins and ends in it.
    const double index = std::clamp(std::floor((span.begin_us - from_us) / column), 0.0,
                                    static_cast<double>(columns - 1));
    const double left = from_us + index * column, right = left + column;
    const auto next = first_wide(
        at + 1, std::max(static_cast<std::size_t>(first_from(right)), at + 1), right, column);
    const bool alone = next == at + 1;
    const double lasted = busy_us(std::max(left, span.begin_us), right);
    found.push_back({alone ? span.begin_us : left, alone ? span.end_us : right,
                     alone ? 1 : std::min(lasted / column, 1.0),
                     alone ? static_cast<int>(at) : -1});
    at = next;
  }
  return found;
}

int TimelineLane::at(double us, double near_us) const {
  const auto after =
      std::upper_bound(spans_.begin(), spans_.end(), us,
                       [](double time, const TimelineSpan& span) { return time < span.begin_us; });
  const auto next = static_cast<std::size_t>(after - spans_.begin());
  int nearest = -1;
  double away = near_us;
  if (next < spans_.size() && spans_[next].begin_us - us <= away) {
    nearest = static_cast<int>(next);
    away = spans_[next].begin_us - us;
  }
  for (std::size_t back = 0; back < std::min(next, kMostBack); ++back) {
    const std::size_t i = next - 1 - back;
    if (spans_[i].end_us >= us) return static_cast<int>(i);
    if (us - spans_[i].end_us < away || (nearest < 0 && us - spans_[i].end_us <= away)) {
      nearest = static_cast<int>(i);
      away = us - spans_[i].end_us;
    }
    if (latest_[i] < us - near_us) break;
  }
  return nearest;
}

TimelineLane TimelineLane::only(int name) const {
  std::vector<TimelineSpan> kept;
  std::copy_if(spans_.begin(), spans_.end(), std::back_inserter(kept),
               [&](const TimelineSpan& span) { return span.name == name; });
  return {name_, std::move(kept), tone_};
}

std::pair<double, double> Timeline::range_us() const {
  double from = std::numeric_limits<double>::infinity(), to = -from;
  for (const TimelineLane& lane : lanes) {
    if (lane.spans().empty()) continue;
    from = std::min(from, lane.spans().front().begin_us);
    for (const TimelineSpan& span : lane.spans()) to = std::max(to, span.end_us);
  }
  if (!(from < to)) return from == to ? std::pair(from, from + 1) : std::pair(0.0, 1.0);
  return {from, to};
}

std::vector<Axis> timeline_axes(const Timeline& timeline, double from_us, double to_us, Name x,
                                Name lanes) {
  Axis rows{.name = lanes,
            .kind = Axis::band,
            .count = std::max(static_cast<int>(timeline.lanes.size()), 1),
            .least_slot = 14};
  for (const TimelineLane& lane : timeline.lanes) rows.names.push_back(lane.name());
  rows.names.resize(static_cast<std::size_t>(rows.count));
  return {{.name = x,
           .low = from_us,
           .high = std::max(to_us, from_us + 1e-3),
           .fixed = true,
           .title = text("µs"),
           .ticks = true},
          rows};
}

Box timeline_box(Key key, const Timeline& timeline, double from_us, double to_us, Name x,
                 Name lanes, double now_us, int columns) {
  SpanList list("bar", x, lanes);
  const double end = std::min(to_us, now_us);
  bool numbered = true;
  int several = 0, all = 0;  // after all ids come the bars of several
  for (const TimelineLane& lane : timeline.lanes) {
    for (const TimelineSpan& span : lane.spans()) {
      numbered = numbered && span.id >= 0;
      several = std::max(several, span.id + 1);
    }
    all += static_cast<int>(lane.spans().size());
  }
  several = std::max(several, all);
  int index = 0, before = 0;
  for (const TimelineLane& lane : timeline.lanes) {
    for (const TimelineRun& run : lane.runs(from_us, to_us, columns)) {
      const double begin = std::max(run.begin_us, from_us);
      if (begin >= end) continue;
      const bool one = run.span >= 0;
      const TimelineSpan span =
          one ? lane.spans()[static_cast<std::size_t>(run.span)] : TimelineSpan();
      const bool named =
          one && span.name >= 0 && span.name < static_cast<int>(timeline.names.size());
      const double until = one ? run.end_us : begin + run.share * (run.end_us - run.begin_us);
      list.add({.lane = index,
                .begin = begin,
                .end = std::min(until, end),
                .tone = span.tone != 0 ? span.tone : lane.tone(),
                .name = named ? timeline.names[static_cast<std::size_t>(span.name)] : std::string(),
                .id = !one       ? several++
                      : numbered ? span.id
                                 : before + run.span,
                .lanes = 1});
    }
    before += static_cast<int>(lane.spans().size());
    ++index;
  }
  return box(key, {list.made(end)}, {},
             {.least_height = 1.5f + 0.8f * static_cast<float>(index), .left = 5});
}

}  // namespace tilestep::picture
