#pragma once

#include <string>
#include <vector>

#include "scenes/shared/scene.hpp"

namespace tilestep::contract {

/// What a scene says at a cursor: each text once, in its full form, with whether it is drawn as wrong.
struct Said {
  std::string where;  ///< "headline", a box or a mark: "sums", "formula_3"; "readout l"
  std::string text;
  bool wrong = false;
};
/// Headline, boxes, marks and readouts at `cursor`.
std::vector<Said> said_at(const scenes::Scene& scene, scenes::Cursor cursor);
/// Whether anything of the picture or a readout is drawn as wrong there, also what has no words.
bool shows_wrong(const scenes::Scene& scene, scenes::Cursor cursor);

/// The formulas in a text that do not hold for the numbers that they print, as they stand there: of "a × b + c = d" and
/// "d   (a × b is c)". Each number is taken for all that are printed so; one behind "≈" may be off by 1 %. A formula
/// with a name in it, "18.06 × 0.135 + Σp·v = 17.41", says nothing that could be counted again.
std::vector<std::string> false_formulas(const std::string& text);

/// What is said of one thing in two ways at `cursor` with numbers that cannot be one, a sentence each: the same name before
/// two "=", a readout and a mark that are about the same symbol.
std::vector<std::string> two_numbers_at(const scenes::Scene& scene, scenes::Cursor cursor);

}  // namespace tilestep::contract
