#pragma once

#include <memory>

#include "scenes/picture/paint.hpp"
#include "scenes/picture/svg.hpp"
#include "scenes/ui/ui.hpp"

/// Draws placed pictures on the current window's draw list.
namespace tilestep::ui {

/// The type of the current context, to the pixel that it is drawn in.
class PictureMetrics final : public picture::Metrics {
 public:
  float width(std::string_view text, picture::Face face) const override;
  float height(picture::Face face) const override;
  float px(float design) const override { return ui::px(design); }
};

/// All that is in sight of it.
void draw(const picture::Placed& placed, const picture::Emphasis& emphasis = {});

/// A placed picture and what it was made of.
struct ShownPicture {
  picture::Picture picture;
  std::vector<const picture::Mark*> marks;  ///< of `picture`
  picture::Placed placed;
};
/// Lays a picture out in the type of the current context.
std::shared_ptr<const ShownPicture> laid_out(picture::Picture picture, picture::Area area);
/// Adds its things to the map of this frame, if the map is requested; `prefix` begins the
/// names.
void map(const std::shared_ptr<const ShownPicture>& shown, const std::string& prefix = {});

/// A strip along the side of `area` where it costs less: places of equal size for as many of `count` drawings as have
/// room, and what is left of `area`.
struct Strip {
  picture::Area left;
  std::vector<picture::Area> areas;
};
Strip strip_of(const picture::Area& area, std::size_t count,
               const picture::Metrics& metrics = PictureMetrics());
/// A box of a picture as `thumbnail` draws it in `area`: its marks without words, below a line for its name.
picture::Placed small(const picture::Box& box, const picture::Picture& picture,
                      const picture::Area& area);
/// Draws it, with its name; returns whether it was pressed.
bool thumbnail(std::string_view id, std::string_view name, const picture::Placed& drawn,
               const picture::Area& area);

/// The colours of the current theme.
picture::Palette picture_palette();

}  // namespace tilestep::ui
