#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/window/window.hpp"
#include "scenes/shared/scene.hpp"

namespace tilestep::app {

/// A shot of a scene: what is in the picture at every place of the run, and how large it is.
struct Shot {
  std::vector<std::string> subject;  ///< as in a guided stop; empty: the whole picture
  scenes::Cursor cast_at;            ///< where the boxes beside the subject are chosen
  picture::Point size;               ///< design pixels
  bool told = true;                  ///< with what a pointer on each thing is told
};

/// The names of things, "cells_0", by number: books of a lesson share them.
class ThingNames {
 public:
  int of(const std::string& name);
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::map<std::string, int> numbers_;
  std::vector<std::string> all_;
};

/// The pictures of a run as data for a page, place by place, with the words beside them:
///
///     {"size": [660, 410], "texts": ["", "4.0", …],
///      "colours": [["#151a21", "#ffffff"], …],          dark, light
///      "shapes": [[kind, name, colour, alpha, title, …], …],
///      "frames": [[first, count, first, count, …], …],   ranges of shapes, in drawing order
///      "places": [0, 1, …], "at": [0, 1, …],             places that are in it, ascending, and their frames
///      "words": [{"headline", "readouts", "source"}, …]} of each place
///
/// A shape that does not change from place to place stands once, and its numbers are what they have more than those of
/// the shape of its kind before, since cells of a grid differ by the same from each other. Kinds, with lengths in tenths of a design pixel:
/// 0 fill x y w h corner; 1 outline x y w h corner thickness dashed; 2 hatch x y w h; 3 dot x y radius; 4 polygon
/// x y …; 5 line thickness kind x y …; 6 text x y width face text. A title is what a pointer on the thing is told.
class FlipBook {
 public:
  /// Chooses what is in the picture. All but the shot must outlive it. Throws what the scene throws, here and below.
  FlipBook(const SvgPress& press, const scenes::Scene& scene, ThingNames& names, const Shot& shot);
  ~FlipBook();
  FlipBook(const FlipBook&) = delete;
  FlipBook& operator=(const FlipBook&) = delete;

  /// The boxes that are not in it: shots of one run with the same ones are the same.
  const std::vector<picture::Key>& aside() const;
  /// Lays out and paints the picture of a place, unless it is there, and keeps the words beside it.
  void add(int place);
  /// The same with these things lit, and without words.
  int add_lit(int place, const std::vector<std::string>& keys);
  nlohmann::json data() const;

 private:
  struct Pages;
  std::unique_ptr<Pages> pages_;
};

}  // namespace tilestep::app
