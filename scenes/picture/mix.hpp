#pragma once

#include <cstdint>
#include <vector>

#include "scenes/picture/placed.hpp"

namespace tilestep::picture {

/// What of two placed pictures is the same thing, what comes and what goes. Made once for two neighbours
/// and good for every fraction between them, as long as both stay as they are.
class Join {
 public:
  Join(const Placed& from, const Placed& to);

 private:
  friend class Mixer;

  enum class How : std::uint8_t {
    moves,   ///< is in both
    enters,  ///< is in `to` alone
    leaves,  ///< is in `from` alone
    stays    ///< the old content of a place, while the new one flies there
  };
  /// What becomes of one primitive.
  struct Step {
    int from = -1, to = -1;
    How how = How::moves;
    int course = -1;  ///< of courses_: it flies
    int wave = -1;    ///< when; −1: all the time
    int on = -1;      ///< words: the piece they stand on, among those that come out
    bool headline = false;
    int saying = -1;  ///< words that fly: what they say until they land, among from.words
  };
  /// From where to where a thing flies, with all that it is made of.
  struct Course {
    Area begin, end;
    bool arrives = true;  ///< it is drawn at its end; else at its beginning
  };

  std::vector<Step> pieces_, strokes_, words_;
  std::vector<Course> courses_;
  int waves_ = 1;

  friend class Joiner;
};

/// `from` on its way to `to`: 0 gives the one, 1 the other, as they are. What is in both moves there, in
/// the state that it has at the end; what enters flies from the thing that its Way names, or grows or
/// fades as its Entry says; what leaves flies or fades. Texts say until the end what they said, for a
/// number in between was never recorded; the sentence above the picture says at once what happens.
Placed mix(const Placed& from, const Placed& to, const Join& join, float t);
/// The same into `out`, whose memory is used again.
void mix(const Placed& from, const Placed& to, const Join& join, float t, Placed& out);

}  // namespace tilestep::picture
