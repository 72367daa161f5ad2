#pragma once

#include <cstdint>
#include <vector>

#include "scenes/picture/placed.hpp"

namespace tilestep::picture {

/// Matches two placed pictures: which things are in both, which enter and which leave. Made once per pair
/// of neighbours and valid for every fraction between them, as long as neither changes.
class Join {
 public:
  Join(const Placed& from, const Placed& to);

 private:
  friend class Mixer;

  enum class How : std::uint8_t {
    moves,   ///< in both
    enters,  ///< only in `to`
    leaves,  ///< only in `from`
    stays    ///< the old content of a place, while the new one flies there
  };
  /// The fate of one primitive.
  struct Step {
    int from = -1, to = -1;
    How how = How::moves;
    int course = -1;  ///< of courses_: it flies
    int wave = -1;    ///< when; −1: all the time
    int on = -1;      ///< words: the piece they stand on, among those that come out
    bool headline = false;
    int saying = -1;  ///< words that fly: what they say until they land, among from.words
  };
  /// The start and end of a thing's flight, with all its primitives.
  struct Course {
    Area begin, end;
    bool arrives = true;  ///< it is drawn in its final form; otherwise in its initial one
  };

  std::vector<Step> pieces_, strokes_, words_;
  std::vector<Course> courses_;
  int waves_ = 1;

  friend class Joiner;
};

/// The picture between `from` (t = 0) and `to` (t = 1). Things in both move, already in their final
/// state; entering things fly from the thing that their Way names, or grow or fade as their Entry says;
/// leaving things fly or fade. Texts keep their old content until the end, since values in between were
/// never recorded; the headline changes immediately.
Placed mix(const Placed& from, const Placed& to, const Join& join, float t);
/// The same into `out`, reusing its memory.
void mix(const Placed& from, const Placed& to, const Join& join, float t, Placed& out);

}  // namespace tilestep::picture
