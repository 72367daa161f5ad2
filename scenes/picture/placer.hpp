#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenes/picture/key_index.hpp"
#include "scenes/picture/placed.hpp"

/// Shared by the files that lay out a picture.
namespace tilestep::picture {

/// An axis on screen, in one direction.
struct Span {
  const Axis* axis = nullptr;
  bool upright = false;      ///< along y: a band runs down, numbers run up
  float from = 0, to = 1;    ///< real pixels, from < to
  int first = 0, count = 0;  ///< the items of a band that are in sight
  float slot = 1, gap = 0;   ///< of a band: an item's room, and the gap between groups

  bool band() const { return axis->kind == Axis::band; }
  bool shows(int item) const { return item >= first && item < first + count; }
  /// The near edge of an item's slot; for the first item out of sight, the end of the last visible one.
  float begin(int item) const;
  float middle(int item) const { return begin(item) + slot / 2; }
  /// The position of a value; on a band, 2.5 is the middle of item 2. Always within the span.
  float at(double value) const;
};

/// Height of the strip that shows a whole band when the boxes show only a window; design pixels.
inline constexpr float kOverview = 14;

/// Numbers along an axis with their labels, at most `most`.
std::vector<std::pair<double, std::string>> ticks_of(const Axis& axis, int most);

/// The ink for words about something in this state.
inline Ink ink_of(State state, Ink otherwise = Ink::muted) {
  switch (state) {
    case State::current:
      return Ink::accent;
    case State::wrong:
      return Ink::wrong;
    case State::to_come:
      return Ink::faint;
    case State::done:
      return Ink::muted;
    default:
      return otherwise;
  }
}

/// Lays out one picture. `place` makes one, runs it once and takes the result.
class Placer {
 public:
  Placer(const Picture& picture, Area area, const Metrics& metrics, const std::vector<Key>& off);
  Placed run();

 private:
  /// A box and its layout so far.
  struct Node {
    const Box* box = nullptr;
    std::vector<Node> inner;
    bool folded = false;
    float top = 0, bottom = 0, head = 0;  ///< room for the label, the axes' words, the bars' values
    Point least;
    Area area;    ///< all of it
    Area inside;  ///< without margins, label and the axes' words: where the marks are
    int first_mark = 0;
  };

  // place.cpp: boxes and axes.
  Node tree(const Box& box);
  bool set_aside(Node& node) const;
  void find_lowest(const Node& node);
  void measure(Node& node) const;
  bool fits(const Node& root) const;
  bool side_by_side(const Box& box) const {
    return box.flow == Box::row || (box.flow == Box::either && turned_) ||
           (box.flow == Box::wished && (granted_ || (box.wish > 0 && low_))) ||
           (box.flow == Box::tall && !tall_);
  }
  static Node* last_of_rank(Node& node, int rank);
  static int highest_rank(const Node& node);
  void fold(Node& root);
  void lay(Node& node, Area area);
  void lay_along(Node& node);
  std::vector<float> lengths_of(const Node& node, float length) const;
  void make_spans();
  void offer(const Node& node, Name axis, bool upright);
  void scale_cells();
  void cut_to_bands(Span& span, const Axis& axis) const;
  Span span(Name axis, bool upright) const;
  bool uses(const Mark& mark, Name axis, bool upright) const;
  void collect(const Node& node);
  void emit(const Node& node);
  void put_marks(const Node& node, bool holders);
  void emit_axes(const Node& node);
  void emit_groups(const Node& node, const Span& span, bool lowest);
  void emit_ticks(const Node& node, const Span& span, bool lowest);
  void emit_overview(const Node& node, const Span& span);
  void emit_names(const Span& span, Area room);
  void emit_labels(const Node& node);
  float label_top(const Node& node) const;
  void emit_place(const Node& node);
  void name_place(const Node& node);
  void headline();

  // place_text.cpp: words.
  float width(std::string_view text, Face face) const { return metrics_.width(text, face); }
  float width(const std::vector<Run>& runs, Face face) const;
  float height(Face face) const { return metrics_.height(face); }
  float px(float design) const { return metrics_.px(design); }
  /// The longest form that fits; a group shares one form.
  const std::vector<Run>& form(const Text& text, float room, Face face);
  /// One line; returns its width.
  float say(const std::vector<Run>& runs, Point at, Face face, Ink ink, Identity of);
  float say(std::string text, Point at, Face face, Ink ink, Identity of);
  void put_words(std::string text, float length, Point at, Face face, Ink ink, Identity of);
  void name_words(const Run& run);
  void say_right(const std::vector<Run>& runs, Point at, Face face, Ink ink, Identity of);
  void say_centered(std::string text, Point middle, Face face, Ink ink, Identity of);
  /// In the middle of the last piece.
  void say_on(std::string text, Identity of, Face face = Face::mono_note, Ink ink = Ink::on_piece);
  /// As much of a text as fits, with an ellipsis, if it has no shorter form.
  std::string cut(const std::string& text, float room, Face face) const;
  void drop_patches();
  /// Words in lines of at most `room`; empty if they need more than `most` lines.
  std::vector<std::string> wrapped(const std::string& text, float room, Face face, int most) const;

  // place_marks.cpp: what stands in a box.
  Identity id(const Items& items, int item, int part = 0) const;
  Identity id(const Key& key, int part = 0) const {
    return {key, static_cast<std::uint8_t>(part), mark_, -1};
  }
  /// A piece with the look of its item. Valid until the next piece.
  Piece& put_item(const Items& items, int item, Area area, Piece::Kind kind = Piece::fill,
                  int part = 0);
  void put_stroke(Stroke stroke) { out_.strokes.push_back(std::move(stroke)); }
  void flights(const Items& items);
  struct Grid;
  Grid grid_of(const Cells& cells) const;
  void put(const Cells& cells);
  void put_folded(const Cells& cells, const Grid& grid);
  bool words_fit(const Items& items, Point cell) const;
  std::set<int> some_names(const Items& items, const Grid& grid) const;
  void put(const Chips& chips);
  struct Shelves;
  Shelves shelves_of(const Strip& strip) const;
  void put(const Strip& strip);
  void put_stretch(const Strip& strip, int item, Area area);
  void put(const Bars& bars);
  float thick(float slot) const;  ///< of a bar with much room
  void put_bar(const Bars& bars, const Span& band, const Span& length, int item);
  std::optional<float> curve_over(const Bars& bars, int item) const;
  void put_bar_value(const Bars& bars, int item, Area bar, float slot, int digits);
  int bar_digits(const Bars& bars, const Span& band, const Span& length) const;
  struct Piles;  // place_piles.cpp
  Piles piles_of(const Stacks& stacks) const;
  void put(const Stacks& stacks);
  void put_pile(const Stacks& stacks, const Piles& piles, int pile, int held);
  void put_held(const Stacks& stacks, const Piles& piles, int pile, int held);
  void put_bars(const Stacks& stacks, const Piles& piles, int pile);
  void put_limit(const Stacks& stacks, const Piles& piles);
  void put(const Spans& spans);
  void name_lanes(const Span& lanes);
  void put(const Ring& ring);
  void put(const Curve& curve);
  void put_ends();
  void put(const Ticks& ticks);
  void put(const Rule& rule);
  void put(const Arrow& arrow);
  void put(const Wall& wall);
  void put(const Links& links);
  void put(const Frame& frame);
  void put(const Note& note);
  void put(const Lines& lines);
  void put_sentences(const Lines& lines);
  void put_formulas(const Lines& lines);
  void put_said(const Items& items, int item, std::string words, const Area& area);
  void put(const Ledger& ledger);
  void put_label(const Text& label, float room, const Key& of, Ink ink,
                 const std::function<Point(float width)>& place);
  /// The position of a thing, for anchors to it: the first one it was given.
  void stands(const Key& key, const Area& area) { places_.emplace_back(key, area); }
  bool find(const Key& key, Area& area);
  float gap_in(const Box& box) const { return box.close ? px(2) : gap_; }
  float crowd(const Area& area, const Key& of, float most) const;
  Point beside(const Area& of, float length, const Key& key) const;
  int run_over(Point from, Point to, const Key& of) const;

  const Picture& picture_;
  const Area area_;
  const Metrics& metrics_;
  const std::vector<Key>& off_;
  Placed out_;
  bool dense_ = false;    ///< little room: smaller type
  bool wishes_ = false;   ///< boxes' wishes count as needs
  bool granted_ = false;  ///< wishes are met side by side
  bool low_ = true;       ///< wishes are not met in stacks
  bool turned_ = false;   ///< little height: boxes that may be side by side are
  bool tall_ = true;      ///< there is room for tall boxes
  float em_ = 1, gap_ = 1;
  std::map<Name, const Axis*> axes_;
  std::map<std::pair<Name, bool>, const Box*> lowest_;  ///< the box that labels an axis
  std::map<std::pair<Name, bool>, Span> spans_;         ///< by axis and whether upright
  std::map<Name, Point> cell_;                          ///< size of cells by their scale
  std::map<Name, int> rung_;                            ///< of texts of a group
  std::map<Key, Area> groups_;                          ///< of bands, over all their boxes
  std::vector<std::pair<Key, Area>> places_;
  std::optional<KeyIndex> index_;  ///< of the first `indexed_` of `places_`
  std::size_t indexed_ = 0;
  std::vector<const Node*> shown_;
  int next_mark_ = 0;

  /// A curve's label at its end.
  struct End {
    const Curve* curve;
    int mark;
    Point tip;
    const std::vector<Run>* words = nullptr;
    float left = 0, top = 0;
  };
  std::vector<End> ends_;  ///< of the box whose marks are put

  const Node* here_ = nullptr;  ///< whose marks are put
  int mark_ = -1;
};

}  // namespace tilestep::picture
