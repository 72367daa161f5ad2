#pragma once

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

}  // namespace tilestep::picture
