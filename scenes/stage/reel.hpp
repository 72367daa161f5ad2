#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "scenes/picture/mix.hpp"
#include "scenes/scene.hpp"
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
