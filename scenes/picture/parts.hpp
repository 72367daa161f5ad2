#pragma once

#include "scenes/picture/picture.hpp"

/// \file
/// Parts of pictures that lessons share, made of marks.
namespace tilestep::picture {

/// A train: units of `bytes` that move, one after the other on the fixed axis `x`, which ends at the most there
/// can be. How long it is is the cost; what is filled of a unit was wanted. Without a row yet.
Strip train(Name unit, Name x, int bytes, int most);
/// A row of units below those that are there; `used`: bytes of each that are wanted.
void add_row(Strip& train, std::string name, const std::vector<int>& used);
/// The first row of each train of an earlier picture, outlined below the same train of this one.
void add_earlier(Picture& picture, const Picture& earlier, const std::string& name);

/// What the bar on lane `key.i` of Spans comes to, at its end; not `free`: in the box's right margin.
Curve lane_end(Key key, Name x, Name lanes, double at, Text said, std::uint8_t tone = 0,
               Ref about = {}, bool free = true);

}  // namespace tilestep::picture
