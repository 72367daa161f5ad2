#pragma once

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenes/picture/picture.hpp"

/// \file
/// What a lesson says to the window, and is told by it: words and numbers alone, nothing that draws.
namespace tilestep::scenes {

/// Where the user stands in a trace. `tile` counts completed coarse steps: 0 is before anything is
/// known. `phase` is a finer step inside the coarse step `tile`: 0 … phases − 1; the last phase
/// completes it. At tile 0 the phase is the last one.
struct Cursor {
  int tile = 0;
  int phase = 0;
  /// In the order of the way through the trace, where the first place is {0, 0} as well.
  friend auto operator<=>(const Cursor&, const Cursor&) = default;
};

/// The steps of a loaded trace.
struct StepAxis {
  int tiles = 0;                         ///< coarse steps: the cursor's tile goes from 0 to `tiles`
  int phases = 1;                        ///< fine steps in each coarse step
  std::string noun = "tile";             ///< what a coarse step is called: "tile", "warp", "term"
  std::vector<std::string> phase_names;  ///< `phases` of them
  /// The table whose rows are the coarse steps: those to come are hidden there. Empty: none.
  std::string table = {};
  /// The last coarse step has so many fine steps of its own, which have no names: what the steps before
  /// have shown in full goes on there for the rest of a long regular trace. 0: it is like the others.
  int folded = 0;
  /// How long the way to each phase takes, an ordinary one being 1. Empty: all alike.
  std::vector<double> lasts = {};
  /// Where one coarse step is too little to see: what several of them are together ("k-tile"), and the coarse steps
  /// that end one, in order. → and ← go from one to the next. Empty: each coarse step is one.
  std::string unit = {};
  std::vector<int> unit_ends = {};

  /// Fine steps of a coarse step.
  int phases_in(int tile) const {
    return folded > 0 && tile == tiles ? folded : std::max(phases, 1);
  }
  int last_phase(int tile) const { return phases_in(tile) - 1; }
  /// The name of the phase that the cursor is in; empty: it has none.
  std::string phase_name(Cursor cursor) const {
    const bool named = cursor.tile > 0 && phases_in(cursor.tile) == std::ssize(phase_names);
    return named ? phase_names[static_cast<std::size_t>(cursor.phase)] : std::string();
  }

  /// Every phase of every step is a place on one line, from 0, before anything, to `places()`.
  int places() const {
    return tiles <= 0 ? 0 : (tiles - 1) * std::max(phases, 1) + phases_in(tiles);
  }
  int place_of(Cursor cursor) const {
    return cursor.tile <= 0 ? 0 : (cursor.tile - 1) * std::max(phases, 1) + cursor.phase + 1;
  }
  Cursor at_place(int place) const {
    if (place <= 0) return {0, last_phase(0)};
    const int each = std::max(phases, 1), tile = std::min((place - 1) / each, tiles - 1);
    return {tile + 1, place - 1 - tile * each};
  }
  /// Where a place, also one between two, is in coarse steps, and the other way round.
  double steps_at(double place) const {
    const int whole = static_cast<int>(place);
    const int tile = whole >= places() ? tiles : at_place(whole + 1).tile;
    const int first = place_of({tile, 0}) - 1;
    return tile <= 0 ? 0 : tile - 1 + (place - first) / phases_in(tile);
  }
  double place_at(double steps) const {
    const int tile = std::min(static_cast<int>(steps) + 1, tiles);
    if (tile <= 0) return 0;
    return place_of({tile, 0}) - 1 + (steps - (tile - 1)) * phases_in(tile);
  }
};

/// Where the window is: at the cursor, and how far on the way from there to the next place. Words and
/// numbers are those of the cursor; only marks move.
struct Moment {
  Cursor cursor;
  double fraction = 0;  ///< 0 (at rest) … 1

  Moment(Cursor at = {}, double on_the_way = 0) : cursor(at), fraction(on_the_way) {}
};

/// Lines of kernel source that belong to a step.
struct SourceMark {
  std::string path;             ///< asset path: "kernels/attention/online_softmax/one_pass.cu"
  int current = 0;              ///< 1-based line of the current phase; 0: none
  std::vector<int> step_lines;  ///< the lines of all phases of this coarse step, in order
  /// What a line has just computed: "m_new = 3.0"; for lines that the cursor has reached alone.
  std::map<int, std::string> values = {};
};

/// Something that happened in the trace, at the first place where it can be seen: "m rises to 3.0", "the sum
/// freezes". Marked on the scrubber once the cursor has been there; not named before.
struct Event {
  Cursor at;
  std::string text;  ///< a few words
};

/// A question asked before the next coarse step, or before measurements are shown.
struct Question {
  std::string text;
  std::vector<std::string> choices;  ///< two to four; none: a number is set on the axis
  int answer = 0;                    ///< among the choices
  std::string because;  ///< shown after the step, one or two sentences with the numbers
  /// What is asked about: a thing of the picture, or a box, for each choice, or one for all; empty: the
  /// whole picture.
  std::vector<picture::Key> where = {};
  /// Choices that are numbers on an axis of the box `where[0]`, and which they are.
  picture::Name axis = {};
  std::vector<double> values = {};
  /// What kind of question of the lesson it is: "new-maximum". Equal for all that ask the same of other numbers.
  std::string id = {};
  /// Of a question about measurements: names of views of the Measured tab, hidden until it is answered.
  std::vector<std::string> masks = {};
  /// Of a number to be set: the true one is values[0]; a guess this near counts as right.
  double tolerance = 0;
};

/// What the user said to the question that is asked at a cursor.
struct Guess {
  Cursor asked;
  int choice = 0;    ///< −1: a number was set
  double value = 0;  ///< that number
  bool operator==(const Guess&) const = default;
};

/// A number people look at beside the picture.
struct Readout {
  std::string id, label, value, unit = {};
  lab::Provenance provenance = lab::Provenance::traced;
  std::string detail = {};
  enum Look : std::uint8_t { plain, accent, good, wrong } look = plain;
  picture::Ref about = {};  ///< the symbol or thing that it is of, which it lights up with
};

/// What is on show: where the user stands, and whom he follows (a token, a thread, an accumulator).
struct View {
  Cursor cursor;
  std::map<picture::Name, int> picks = {};
  std::optional<Guess> guess = {};

  int pick(picture::Name what, int otherwise = 0) const {
    const auto found = picks.find(what);
    return found == picks.end() ? otherwise : found->second;
  }
  bool operator==(const View&) const = default;
};

}  // namespace tilestep::scenes
