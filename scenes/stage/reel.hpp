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

/// The pictures of one run: each is made once, and kept while the user steps around it.
class Reel {
 public:
  using Shown = std::shared_ptr<const ui::ShownPicture>;

  explicit Reel(std::unique_ptr<Scene> scene) : scene_(std::move(scene)) {}
  Scene& scene() const { return *scene_; }

  /// Loads a new report: nothing of the old one is shown any more.
  void renew();
  /// The area to lay out pictures in, and the run to share domains with; nullptr: none.
  void use(picture::Area area, float scale, const Reel* other);
  /// Outlines the trains of another picture below its own, called `name`; null: none.
  void show_earlier(std::shared_ptr<const picture::Picture> earlier, std::string name);
  const picture::Area& area() const { return area_; }
  /// Hides the boxes beside these things. Returns whether that is another shot.
  bool shoot(const std::vector<std::string>& subject);
  /// The boxes hidden in `area`: key and name of each.
  const std::vector<std::pair<picture::Key, std::string>>& aside(const View& view,
                                                                 const picture::Area& area);
  picture::Placed placed(const picture::Picture& picture, const picture::Area& area) const {
    return picture::place(picture, area, ui::PictureMetrics(), off_);
  }
  picture::Extent extent() const { return scene_->extent(); }

  /// Its picture at rest.
  Shown still(const View& view);
  /// Prepares part of the next place's picture, so that the first frame of the move has less to do.
  void prepare(const View& view);
  /// The picture on the way from the view's place to the next one; valid until the next call.
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
  std::optional<picture::Area> cast_in_;  ///< the area for which the hidden boxes are known
  std::vector<std::pair<picture::Key, std::string>> aside_;
  std::vector<picture::Key> off_;  ///< of `aside_`
  std::shared_ptr<const picture::Picture> earlier_;
  std::string earlier_name_;
  bool shares_ = false;
  picture::Area area_;
  float scale_ = 0;
  std::vector<Still> stills_;  ///< the last few, the newest at the end
  std::optional<Half> half_;   ///< the one being prepared
  Shown from_, to_;            ///< the pictures that `join_` joins
  std::optional<picture::Join> join_;
  picture::Placed mixed_;
};

}  // namespace tilestep::scenes
