#pragma once

#include <string_view>
#include <utility>

#include "scenes/ui/picture_view.hpp"

namespace tilestep::contract {

/// The stage beside the text at 1440x900, over a stop's sentence in presenter mode at 1280x720 (whose type is half as
/// large again), beside the text at 1024x640, and at 150 %.
inline const std::pair<picture::Area, float> kStages[] = {{{0, 0, 766, 560}, 1.0f},
                                                          {{0, 0, 1220, 396}, 1.5f},
                                                          {{0, 0, 523, 372}, 1.0f},
                                                          {{0, 0, 725, 498}, 1.5f}};
/// And at 1024x640 above the tabs, while one steps.
inline constexpr picture::Area kLowestStage = {0, 0, 648, 272};

/// The window's type at a text size.
class Scaled final : public picture::Metrics {
 public:
  explicit Scaled(float scale) : scale_(scale) {}
  float width(std::string_view text, picture::Face face) const override {
    return scale_ * metrics_.width(text, face);
  }
  float height(picture::Face face) const override { return scale_ * metrics_.height(face); }
  float px(float design) const override { return scale_ * metrics_.px(design); }

 private:
  ui::PictureMetrics metrics_;
  float scale_;
};

}  // namespace tilestep::contract
