#pragma once

#include <imgui.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenes/picture/mix.hpp"
#include "scenes/scene.hpp"
#include "scenes/ui/picture_view.hpp"

namespace tilestep::scenes {

/// Where between the phases of a trace the picture is: a whole number at rest. A step on or back goes
/// through the phases between; a longer jump cuts.
class Player {
 public:
  void cut(int goal);
  /// A step has `phases`.
  void aim(int goal, int phases);
  /// Where no time passes (0), it is at its goal.
  void advance(float seconds);
  bool rests() const { return position_ == goal_; }
  double position() const { return position_; }

 private:
  double position_ = 0, goal_ = 0, speed_ = 0;  ///< phases, phases a second
};

/// A scene whose picture is data: pure functions of the report and the view. Layout, motion, lighting,
/// tooltips, clicks and the map follow from it.
class PictureScene : public Scene {
 public:
  /// What is known before the first step: domains and counts, rounded.
  virtual picture::Extent extent() const { return {}; }
  /// What is on show. Shows only what is known at the view's cursor.
  virtual picture::Picture picture(const picture::Extent& extent, const View& view) const = 0;
  /// A sentence about a thing of the picture, shown while it is pointed at; empty: none.
  virtual std::string explain(const View& /*view*/, const picture::Key& /*key*/) const {
    return {};
  }
  virtual std::vector<Readout> readouts(const View& view) const = 0;
  /// The knobs that change where an item with Act::set is dropped on another thing (clicked: on itself).
  virtual std::optional<lab::Settings> dropped(const View&, const picture::Key& /*item*/,
                                               const picture::Key& /*onto*/) const {
    return std::nullopt;
  }
  /// What a row under Data is about: the number in its first column, and the step that it is.
  virtual std::vector<picture::Subject> subjects_of_row(std::string_view table_id, int row) const;

  View view(Cursor cursor) const { return {cursor, picks_}; }
  void pick(picture::Name what, int index) { picks_[what] = index; }

  void draw_picture(Cursor cursor) final;
  std::string svg(Cursor cursor) final;
  void draw_readouts(Cursor cursor) final;
  void hover_row(std::string_view table_id, int row) final;
  int lit_row(std::string_view table_id) const final;
  std::optional<lab::Settings> take_request() final;
  std::optional<Cursor> take_step() final;

 protected:
  void renewed() final;

 private:
  using Shown = std::shared_ptr<const ui::ShownPicture>;
  struct Still {
    View view;
    Shown shown;
  };

  int place_of(Cursor cursor) const;
  Cursor cursor_at(int place) const;
  Shown still(const View& view);
  void use_room(picture::Area area);
  void draw_moving(const View& view);
  void draw_resting(const Shown& shown, const View& view);
  void follow_pointer(const ui::ShownPicture& shown, const View& view);
  void act(const ui::ShownPicture& shown, const View& view, const picture::Identity& of);

  std::map<picture::Name, int> picks_;
  std::optional<picture::Extent> extent_;
  bool cut_ = true;
  Player player_;
  picture::Area area_;
  float scale_ = 0;
  std::vector<Still> stills_;  ///< the last few, the newest at the end
  Shown from_, to_;            ///< that `join_` is of
  std::optional<picture::Join> join_;
  picture::Placed mixed_;
  std::optional<picture::Identity> pointed_at_, dragged_;
  std::vector<picture::Subject> pointed_subjects_, row_subjects_;
  std::optional<lab::Settings> request_;
  std::optional<Cursor> step_;
};

}  // namespace tilestep::scenes
