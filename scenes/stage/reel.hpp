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

/// What a picture shows, with the boxes that these things need; the others stand aside.
struct Shot {
  enum Of : std::uint8_t {
    all,   ///< everything
    step,  ///< what the step is about, and `names`
    named  ///< `names`
  } of = all;
  std::vector<std::string> names = {};
  bool operator==(const Shot&) const = default;
};

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
  /// Hides the boxes beside what a shot shows.
  void shoot(const Shot& shot);
  /// Its picture laid out in another area.
  picture::Placed placed(const View& view, const picture::Area& area);
  picture::Extent extent() const { return scene_->extent(); }

  /// A box that stands aside, drawn small.
  struct Aside {
    picture::Key key;
    std::string name;
    picture::Area area;
    picture::Placed drawn;
  };
  /// Whether the shot is about something, so that boxes may stand aside.
  bool chooses(const View& view);
  /// The boxes that stand aside at rest, in the strip of `area`.
  const std::vector<Aside>& aside(const View& view, const picture::Area& area);

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
    std::vector<Aside> aside;                    ///< first without areas
    std::optional<picture::Area> aside_in = {};  ///< where they have theirs
  };
  /// The boxes aside of some names, for all pictures of the same boxes: so steps of one kind look alike.
  struct Cast {
    std::vector<std::string> names;
    std::vector<picture::Key> boxes, off;
  };

  /// A picture that is not laid out yet.
  struct Half {
    View view;
    std::shared_ptr<ui::ShownPicture> made;
  };
  std::shared_ptr<ui::ShownPicture> built(const View& view) const;
  const std::vector<picture::Key>& cast(const picture::Picture& picture);
  Still& kept(const View& view);
  void forget();

  std::unique_ptr<Scene> scene_;
  std::optional<picture::Extent> extent_;
  Shot shot_;
  std::vector<Cast> casts_;                       ///< in `area_`
  std::optional<std::pair<View, bool>> chooses_;  ///< of the last view
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
