#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenes/picture/placed.hpp"
#include "scenes/picture/role.hpp"

/// \file
/// Shared by the renderers of placed pictures: the colour of a primitive, the thing under a point, the
/// lit things, and the names of everything on screen.
namespace tilestep::picture {

/// A colour and its opacity.
struct Coat {
  Role role = Role::raised;
  float alpha = 1;
};
/// The colour of a tone, 1–11; higher tones wrap around.
Role tone_role(std::uint8_t tone);
Coat coat_of(const Piece& piece);
Coat coat_of(const Stroke& stroke);
/// Ink::on_piece has no role of its own.
Role role_of(const Words& words);
/// Drawn as diagonal lines: anything wasted, whatever its kind.
bool is_hatched(const Piece& piece);
/// Pieces that are wrong, wasted, to come or predicted have their state's colour, whatever their value.
bool shows_heat(const Piece& piece);
/// It has a tone or a heat; if current, it is then framed in the accent colour.
bool has_own_colour(const Piece& piece);
/// Words on it have its colour as their background, not the panel's.
bool stands_for_ground(const Piece& piece);

/// The topmost primitive at a point that belongs to an item, otherwise to a mark; nullptr: none.
const Identity* hit(const Placed& placed, Point at, float near);

/// The Place of a thing at a point: its box's, except for things that are only an outline there.
Place place_of(const Placed& placed, const std::vector<const Mark*>& marks, const Identity& of,
               Point at);

/// The symbol in a text at a point; nullptr: none.
const Words* symbol_at(const Placed& placed, Point at);

/// A subject that something is about: a symbol, a lane, a row of a table.
struct Subject {
  std::string kind;
  int index = -1;
  bool operator==(const Subject&) const = default;
};
Subject subject_of(const Ref& about);
std::vector<Subject> subjects_of(const std::vector<const Mark*>& marks, const Identity& of);

/// The effect of pressing it.
Act act_of(const std::vector<const Mark*>& marks, const Identity& of);

/// Decides what lights up: things about one of the subjects, and the things of `keys` themselves.
class Lighting {
 public:
  Lighting(const std::vector<const Mark*>& marks, const std::vector<Subject>& subjects,
           std::vector<Key> keys = {});
  bool any() const { return any_; }
  bool lights(const Identity& of) const;
  /// Whether the words are a symbol that is one of the subjects.
  bool lights(const Words& words) const;

 private:
  struct Rule {
    const Column<int>* column;  ///< nullptr: all of the mark
    int first, end;             ///< of the mark's items
    int index;
  };
  std::vector<std::vector<Rule>> rules_;  ///< of each mark
  std::vector<Key> keys_;
  bool any_ = false;
  std::vector<Subject> subjects_;
};

/// A named thing of a picture, for the map of the screen.
struct Part {
  std::string id, label, value;
  Area area;
  Point least = {};
};
/// Items, marks, texts and boxes; each name once.
std::vector<Part> parts_of(const Placed& placed, const std::vector<const Mark*>& marks);
/// "score_5" as "score 5".
std::string in_words(const Key& key);
/// "to come"; nothing for plain.
std::string_view word_for(State state);

}  // namespace tilestep::picture
