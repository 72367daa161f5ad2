#pragma once

#include <string>
#include <vector>

#include "scenes/picture/look.hpp"
#include "scenes/picture/placed.hpp"

/// \file
/// A shot: the part of a picture that is shown while something in it is the subject.
namespace tilestep::picture {

/// The box with this key, in `box` or itself; nullptr: none.
const Box* box_of(const Box& box, const Key& key);
/// All boxes of a picture, the outer ones first.
std::vector<Key> boxes_of(const Picture& picture);

/// Whether nothing is drawn in it yet.
bool is_bare(const Box& box);

/// A letter beside a strip: the strip's name, which stays with the strip.
bool is_name(const Box& box);

/// Boxes to hide while the things named `subject` ("m", "stage_2") are the subject: the outermost ones that contain
/// none of them and share no band with a box that does. Some are shown again until half of `area` is filled; boxes on
/// the bands are hidden too if the subject has no room. Nothing is hidden in a picture of three boxes whose largest
/// thing is the first of `subject`, or if the picture has none of `subject`. `exactly`: however full, which hangs on
/// the picture's boxes alone and so is the same however one came to the step.
std::vector<const Box*> beside(const Picture& picture, const std::vector<std::string>& subject,
                               const Area& area, const Metrics& metrics, bool exactly = false);

/// The least share of the picture's area that the shown boxes fill together.
inline constexpr float kFilled = 0.5f;
/// The share of the picture that its boxes fill: boxes on axes count whole, others only by their contents.
float filled_by(const Picture& picture, const Placed& placed);

/// Lays out all but the boxes `off`; the others get their room.
Placed place(const Picture& picture, Area area, const Metrics& metrics,
             const std::vector<Key>& off);

/// The area of the marks in a box and in its boxes; the box's own area if there are none.
Area content_of(const Key& box, const Picture& picture, const Placed& placed);

/// The things of a placed picture that names ("m", "stage_2") light, and what they are about; of boxes their areas,
/// with the labels at their upper edges.
struct Lit {
  std::vector<Key> keys;
  std::vector<Subject> subjects;
  std::vector<Area> boxes;
};
Lit lit_by(const std::vector<std::string>& names, const Picture& picture,
           const std::vector<const Mark*>& marks, const Placed& placed);

}  // namespace tilestep::picture
