#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenes/picture/placed.hpp"
#include "scenes/picture/role.hpp"

/// \file
/// What the renderers of placed pictures share: which colour a primitive has, what lies under a point, what
/// is lit, and the names of all that is there.
namespace tilestep::picture {

/// A colour and how much of it there is.
struct Coat {
  Role role = Role::raised;
  float alpha = 1;
};
/// The colour of a tone, 1–11; those beyond begin anew.
Role tone_role(std::uint8_t tone);
Coat coat_of(const Piece& piece);
Coat coat_of(const Stroke& stroke);
/// Ink::on_piece has none of its own.
Role role_of(const Words& words);
/// Drawn as diagonal lines: what is wasted, whatever its kind.
bool is_hatched(const Piece& piece);
/// The colour of what is wrong, wasted, to come or predicted is its state's, whatever its value.
bool shows_heat(const Piece& piece);
/// A tone or a heat: what is current then has a frame in the accent.
bool has_own_colour(const Piece& piece);
/// Words on it stand on its colour, not on the panel's.
bool stands_for_ground(const Piece& piece);

/// The topmost primitive at a point that is of an item, or else of a mark; nullptr: none.
const Identity* hit(const Placed& placed, Point at, float near);

/// Where a thing at a point lies: where its box says, but for what is only an outline there.
Place place_of(const Placed& placed, const std::vector<const Mark*>& marks, const Identity& of,
               Point at);

/// The symbol in a text at a point; nullptr: none.
const Words* symbol_at(const Placed& placed, Point at);

/// What something is about: a symbol, a lane, a row of a table.
struct Subject {
  std::string kind;
  int index = -1;
  bool operator==(const Subject&) const = default;
};
Subject subject_of(const Ref& about);
std::vector<Subject> subjects_of(const std::vector<const Mark*>& marks, const Identity& of);

/// What a press on it does.
Act act_of(const std::vector<const Mark*>& marks, const Identity& of);

/// Says what lights up: what is about one of the subjects, and the things of `keys` themselves.
class Lighting {
 public:
  Lighting(const std::vector<const Mark*>& marks, const std::vector<Subject>& subjects,
           std::vector<Key> keys = {});
  bool any() const { return any_; }
  bool lights(const Identity& of) const;
  /// A symbol that is one of the subjects.
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

/// A thing of a picture by its name, for the map of what is on screen.
struct Part {
  std::string id, label, value;
  Area area;
  Point least = {};
};
/// Items, marks, texts and boxes; each name once.
std::vector<Part> parts_of(const Placed& placed, const std::vector<const Mark*>& marks);
/// "score_5" as "score 5".
std::string in_words(const Key& key);
/// "to come"; nothing for what is plain.
std::string_view word_for(State state);

}  // namespace tilestep::picture
