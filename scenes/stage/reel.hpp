#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenes/picture/mix.hpp"
#include "scenes/picture/shot.hpp"
#include "scenes/shared/scene.hpp"
#include "scenes/ui/picture_view.hpp"

namespace tilestep::scenes {

/// The pictures of one run: each is made once, and kept while one steps round it.
class Reel {
 public:
  using Shown = std::shared_ptr<const ui::ShownPicture>;

  explicit Reel(std::unique_ptr<Scene> scene) : scene_(std::move(scene)) {}
  Scene& scene() const { return *scene_; }

  /// A new report: nothing of before is shown any more.
  void renew();
  /// Where pictures are laid out, and with which run they share their domains; nullptr: none.
  void use(picture::Area area, float scale, const Reel* other);
  /// Outlines the trains of another picture below its own, called `name`; null: none.
  void show_earlier(std::shared_ptr<const picture::Picture> earlier, std::string name);
  const picture::Area& area() const { return area_; }
  /// Leaves out the boxes that stand aside for these things. Returns whether that is another shot.
  bool shoot(const std::vector<std::string>& subject);
  /// Of what is left out in `area`: its key and what it is called.
  const std::vector<std::pair<picture::Key, std::string>>& aside(const View& view,
                                                                 const picture::Area& area);
  picture::Placed placed(const picture::Picture& picture, const picture::Area& area) const {
    return picture::place(picture, area, ui::PictureMetrics(), off_);
  }
  picture::Extent extent() const { return scene_->extent(); }

  /// Its picture at rest.
  Shown still(const View& view);
  /// Makes a part of the picture of the next place, so that the frame that sets out for it has less to do.
  void prepare(const View& view);
  /// What is drawn on the way from the view's place to the next one; good until the next call.
  const picture::Placed& moving(const View& view, double fraction);

 private:
  struct Still {
    View view;
    Shown shown;
  };

  /// A picture that is not laid out yet.
  struct Half {
    View view;
    std::shared_ptr<ui::ShownPicture> made;
  };
  std::shared_ptr<ui::ShownPicture> built(const View& view) const;

  std::unique_ptr<Scene> scene_;
  std::optional<picture::Extent> extent_;
  std::vector<std::string> subject_;
  std::optional<picture::Area> cast_in_;  ///< what stands aside is known, of this room
  std::vector<std::pair<picture::Key, std::string>> aside_;
  std::vector<picture::Key> off_;  ///< of `aside_`
  std::shared_ptr<const picture::Picture> earlier_;
  std::string earlier_name_;
  bool shares_ = false;
  picture::Area area_;
  float scale_ = 0;
  std::vector<Still> stills_;  ///< the last few, the newest at the end
  std::optional<Half> half_;   ///< of the one that is prepared
  Shown from_, to_;            ///< that `join_` is of
  std::optional<picture::Join> join_;
  picture::Placed mixed_;
};

}  // namespace tilestep::scenes
