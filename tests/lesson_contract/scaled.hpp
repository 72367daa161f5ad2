#pragma once

#include <string_view>
#include <utility>

#include "scenes/ui/picture_view.hpp"

namespace tilestep::contract {

/// The stage beside the text at 1440x900, above it in presenter mode at 1280x720, at 1024x640, and at 150 %.
inline const std::pair<picture::Area, float> kStages[] = {{{0, 0, 766, 560}, 1.0f},
                                                          {{0, 0, 1150, 330}, 1.0f},
                                                          {{0, 0, 560, 400}, 1.0f},
                                                          {{0, 0, 766, 420}, 1.5f}};

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
