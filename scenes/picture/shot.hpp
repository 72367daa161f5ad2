#pragma once

#include <string>
#include <vector>

#include "scenes/picture/placed.hpp"

/// \file
/// A shot: the part of a picture that is on show while something in it is the subject.
namespace tilestep::picture {

/// A letter beside a strip: the strip's name, which stays with it.
bool is_name(const Box& box);

/// Boxes that stand aside while the things named `subject` ("m", "stage_2") are the subject: the outermost ones that hold
/// none of them and share no band with a box that does. Some come back until half of `area` is filled, those on the bands
/// go where the subject has no room. Nothing stands aside in a picture of three boxes in which the first of `subject` is
/// the largest thing, or if none of `subject` is in it.
std::vector<const Box*> beside(const Picture& picture, const std::vector<std::string>& subject,
                               const Area& area, const Metrics& metrics);

/// Of the picture's area: what the boxes on show take together at least.
inline constexpr float kFilled = 0.5f;
/// The share of the picture that its boxes take: those on axes their room, others what is in them.
float filled_by(const Picture& picture, const Placed& placed);

/// Lays out all but the boxes `off`, whose room the others have.
Placed place(const Picture& picture, Area area, const Metrics& metrics,
             const std::vector<Key>& off);

/// The room that the marks of a box and of those in it take; the box' own room if it has none.
Area content_of(const Key& box, const Picture& picture, const Placed& placed);

}  // namespace tilestep::picture
