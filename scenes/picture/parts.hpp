#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "scenes/picture/picture.hpp"

/// \file
/// Parts of pictures that lessons share, made of marks.
namespace tilestep::picture {

/// A train: transferred units of `bytes`, one after another on the fixed axis `x`, which ends at the most possible.
/// Its length is the cost; the filled part of a unit was wanted. It starts without rows.
Strip train(Name unit, Name x, int bytes, int most);
/// Adds a row of units below the existing ones; `used`: wanted bytes of each unit.
void add_row(Strip& train, std::string name, const std::vector<int>& used);
/// Outlines the first row of each train of an earlier picture below the same train of this one.
void add_earlier(Picture& picture, const Picture& earlier, const std::string& name);

/// A total at the end of the bar on lane `key.i` of Spans; not `free`: in the box's right margin.
Curve lane_end(Key key, Name x, Name lanes, double at, Text said, std::uint8_t tone = 0,
               Ref about = {}, bool free = true);

/// A box with a margin for an axis, its label above.
Box labelled(Key key, Box inner, Text label, const Layout& layout);
Box labelled(Key key, std::vector<Box> boxes, Text label, const Layout& layout);

/// Spans, added one by one. Without ids they are numbered.
struct SpanList {
  struct Bar {
    int lane = 0;
    double begin = 0, end = 0;
    State state = State::plain;
    std::uint8_t tone = 0;
    std::string name = {};
    int about = -1;  ///< the number of what it is about
    int id = -1;
    std::uint8_t lanes = 0, flags = kNone;  ///< `lanes`: as Spans::items.glyph
  };
  Spans spans;
  std::vector<int> about;
  Name of;

  /// `about_what`: what `Bar::about` are numbers of.
  SpanList(Name name, Name x, Name lanes, Name about_what = {});
  void add(Bar bar);
  int count() const { return spans.items.count; }
  double end() const { return count() > 0 ? spans.end.back() : 0; }  ///< of the last one
  Spans made(double now);
  Spans made() { return made(spans.now); }  ///< until the last end
};

/// Equal beats for things that begin and end at known events, but at unknown times: a beat ends where something begins
/// after something else has ended. So things share a beat if, and only if, they overlapped.
class Beats {
 public:
  /// Begin and end of each thing, as whole numbers; `end`: infinite if it has not ended. `most`: beats on the axis, if
  /// their number is not known before the first; 0: as many as there are.
  explicit Beats(const std::vector<std::pair<double, double>>& things = {}, int most = 0);
  /// The beat of an event: what begins then has begun.
  int at(double event) const { return last_start(event + 0.5); }
  /// The beats of a thing, as ends on the axis: the end of the last beat until `now`.
  std::pair<double, double> of(double begin, double end, double now) const;
  /// Those that pass while something waits, which is seen by nothing else: a wait that is over in its beat has none.
  std::pair<double, double> waits(double begin, double end, double now) const {
    return {at(begin), end <= now ? at(end) : at(now) + 1};
  }
  /// A band of them, named from 1, in which the current one is shaded.
  Axis axis(Name name, int current = -1) const;

 private:
  int last_start(double moment) const;
  int most_ = 1;
  std::vector<double> starts_;
};

}  // namespace tilestep::picture
