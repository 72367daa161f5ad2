#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "scenes/picture/mix.hpp"
#include "scenes/scene.hpp"
#include "scenes/ui/picture_view.hpp"

namespace tilestep::scenes {

/// Where between the phases of a trace a picture is: a whole number at rest. A step on or back goes
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

/// The pictures of one run: each is made once, and kept while one steps round it.
class Reel {
 public:
  using Shown = std::shared_ptr<const ui::ShownPicture>;

  explicit Reel(std::unique_ptr<Scene> scene) : scene_(std::move(scene)) {}
  Scene& scene() const { return *scene_; }

  /// A new report: nothing of before is shown any more, and the next picture does not move there.
  void renew();
  /// Where pictures are laid out, and with which run they share their domains; nullptr: none.
  void use(picture::Area area, float scale, const Reel* other);
  const picture::Area& area() const { return area_; }
  picture::Extent extent() const { return scene_->extent(); }

  /// Its picture at rest.
  Shown still(const View& view);
  /// Lets time pass on the way to `cursor`; true once it is there.
  bool go_on(Cursor cursor, float seconds);
  /// What is drawn on the way; good until the next call.
  const picture::Placed& moving(const View& view);

  int place_of(Cursor cursor) const;
  Cursor cursor_at(int place) const;

 private:
  struct Still {
    View view;
    Shown shown;
  };

  std::unique_ptr<Scene> scene_;
  std::optional<picture::Extent> extent_;
  bool cut_ = true, shares_ = false;
  Player player_;
  picture::Area area_;
  float scale_ = 0;
  std::vector<Still> stills_;  ///< the last few, the newest at the end
  Shown from_, to_;            ///< that `join_` is of
  std::optional<picture::Join> join_;
  picture::Placed mixed_;
};

}  // namespace tilestep::scenes
