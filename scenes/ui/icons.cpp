#include <algorithm>
#include <cmath>

#include "scenes/ui/context.hpp"

// Icons are drawn, not taken from a font, so that they look the same at every size and everywhere.
namespace tilestep::ui {
namespace {

/// Draws in a square that goes from −1 to 1.
class Pen {
 public:
  Pen(ImVec2 center, float size, ImU32 color)
      : center_(center), unit_(size / 2), color_(color), thickness_(std::max(size * 0.1f, 1.2f)) {}

  void line(float x0, float y0, float x1, float y1) const {
    list_.AddLine(at(x0, y0), at(x1, y1), color_, thickness_);
  }
  void bar(float x0, float y0, float x1, float y1) const {
    list_.AddRectFilled(at(x0, y0), at(x1, y1), color_, unit_ * 0.08f);
  }
  void box(float x0, float y0, float x1, float y1) const {
    list_.AddRect(at(x0, y0), at(x1, y1), color_, unit_ * 0.2f, 0, thickness_);
  }
  void triangle(float x0, float x1, float half) const {
    list_.AddTriangleFilled(at(x0, -half), at(x0, half), at(x1, 0), color_);
  }
  void triangle_left(float x0, float x1, float half) const {
    list_.AddTriangleFilled(at(x0, half), at(x0, -half), at(x1, 0), color_);
  }
  void disc(float x, float y, float radius) const {
    list_.AddCircleFilled(at(x, y), unit_ * radius, color_);
  }
  void ring(float x, float y, float radius) const {
    list_.AddCircle(at(x, y), unit_ * radius, color_, 0, thickness_);
  }
  void arc(float x, float y, float radius, float from, float to) const {
    list_.PathArcTo(at(x, y), unit_ * radius, from, to, 24);
    list_.PathStroke(color_, 0, thickness_);
  }
  void head(ImVec2 tip, ImVec2 left, ImVec2 right) const {
    list_.AddTriangleFilled(at(tip.x, tip.y), at(left.x, left.y), at(right.x, right.y), color_);
  }
  ImVec2 at(float x, float y) const { return {center_.x + x * unit_, center_.y + y * unit_}; }

 private:
  ImDrawList& list_ = *ImGui::GetWindowDrawList();
  ImVec2 center_;
  float unit_;
  ImU32 color_;
  float thickness_;
};

void draw_sun(const Pen& pen) {
  pen.disc(0, 0, 0.42f);
  for (int ray = 0; ray < 8; ++ray) {
    const float angle = static_cast<float>(ray) * 0.7853982f;
    const float x = std::cos(angle), y = std::sin(angle);
    pen.line(x * 0.65f, y * 0.65f, x * 0.95f, y * 0.95f);
  }
}

void draw_moon(const Pen& pen, ImVec2 center, float size, ImU32 color) {
  // A crescent: an outer arc and an inner one back.
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.PathArcTo(center, size * 0.42f, 0.35f, 5.1f, 32);
  list.PathArcTo(pen.at(0.42f, -0.32f), size * 0.33f, 4.25f, 1.2f, 24);
  list.PathStroke(color, ImDrawFlags_Closed, std::max(size * 0.1f, 1.2f));
}

void draw_reset(const Pen& pen) {
  pen.arc(0, 0.05f, 0.7f, -0.9f, 4.0f);
  pen.head({-0.85f, -0.85f}, {-0.15f, -0.6f}, {-0.75f, -0.1f});
}

void draw_transport(Icon icon, const Pen& pen) {
  switch (icon) {
    case Icon::first:
      pen.bar(-0.85f, -0.7f, -0.6f, 0.7f);
      pen.triangle_left(0.75f, -0.5f, 0.75f);
      break;
    case Icon::back:
      pen.triangle_left(0.5f, -0.75f, 0.8f);
      break;
    case Icon::play:
      pen.triangle(-0.5f, 0.85f, 0.85f);
      break;
    case Icon::pause:
      pen.bar(-0.6f, -0.75f, -0.15f, 0.75f);
      pen.bar(0.15f, -0.75f, 0.6f, 0.75f);
      break;
    case Icon::forward:
      pen.triangle(-0.5f, 0.75f, 0.8f);
      break;
    case Icon::last:
      pen.bar(0.6f, -0.7f, 0.85f, 0.7f);
      pen.triangle(-0.75f, 0.5f, 0.75f);
      break;
    default:
      break;
  }
}

}  // namespace

void draw_icon(Icon icon, ImVec2 center, float size, ImU32 color) {
  const Pen pen(center, size, color);
  switch (icon) {
    case Icon::line:  // one line of text after another, and an arrow to the next
      pen.line(-0.9f, -0.65f, 0.9f, -0.65f);
      pen.line(-0.9f, 0.0f, 0.1f, 0.0f);
      pen.line(-0.9f, 0.65f, 0.1f, 0.65f);
      pen.head({0.65f, 0.85f}, {0.3f, 0.25f}, {1.0f, 0.25f});
      pen.line(0.65f, -0.3f, 0.65f, 0.4f);
      break;
    case Icon::reset:
      draw_reset(pen);
      break;
    case Icon::sun:
      draw_sun(pen);
      break;
    case Icon::moon:
      draw_moon(pen, center, size, color);
      break;
    case Icon::screen:
      pen.box(-0.95f, -0.75f, 0.95f, 0.4f);
      pen.line(0, 0.4f, 0, 0.8f);
      pen.line(-0.5f, 0.85f, 0.5f, 0.85f);
      break;
    case Icon::compare:
      pen.box(-0.9f, -0.7f, -0.15f, 0.7f);
      pen.box(0.15f, -0.7f, 0.9f, 0.7f);
      break;
    case Icon::help:
      pen.arc(0, -0.35f, 0.45f, 3.3f, 7.3f);
      pen.line(0.18f, 0.0f, 0, 0.3f);
      pen.disc(0, 0.75f, 0.15f);
      break;
    case Icon::copy:
      pen.box(-0.3f, -0.35f, 0.85f, 0.9f);
      pen.line(-0.8f, 0.4f, -0.8f, -0.85f);
      pen.line(-0.8f, -0.85f, 0.4f, -0.85f);
      break;
    case Icon::check:
      pen.line(-0.8f, 0.1f, -0.2f, 0.65f);
      pen.line(-0.2f, 0.65f, 0.85f, -0.65f);
      break;
    case Icon::cross:
      pen.line(-0.65f, -0.65f, 0.65f, 0.65f);
      pen.line(-0.65f, 0.65f, 0.65f, -0.65f);
      break;
    case Icon::book:
      pen.line(0, -0.5f, 0, 0.8f);
      pen.line(0, -0.5f, -0.9f, -0.75f);
      pen.line(0, -0.5f, 0.9f, -0.75f);
      pen.line(-0.9f, -0.75f, -0.9f, 0.55f);
      pen.line(0.9f, -0.75f, 0.9f, 0.55f);
      pen.line(-0.9f, 0.55f, 0, 0.8f);
      pen.line(0.9f, 0.55f, 0, 0.8f);
      break;
    case Icon::search:
      pen.ring(-0.2f, -0.2f, 0.55f);
      pen.line(0.2f, 0.2f, 0.8f, 0.8f);
      break;
    case Icon::event:
      pen.triangle(-0.85f, 0.15f, 0.7f);
      pen.head({0.85f, 0}, {0.5f, -0.4f}, {0.5f, 0.4f});
      pen.disc(0.5f, 0, 0.25f);
      break;
    case Icon::chip:
      pen.line(-0.5f, -0.5f, 0.5f, -0.5f);
      pen.line(0.5f, -0.5f, 0.5f, 0.5f);
      pen.line(0.5f, 0.5f, -0.5f, 0.5f);
      pen.line(-0.5f, 0.5f, -0.5f, -0.5f);
      for (const float at : {-0.25f, 0.25f}) {
        pen.line(at, -0.5f, at, -0.85f);
        pen.line(at, 0.5f, at, 0.85f);
        pen.line(-0.5f, at, -0.85f, at);
        pen.line(0.5f, at, 0.85f, at);
      }
      break;
    case Icon::none:
      break;
    default:
      draw_transport(icon, pen);
      break;
  }
}

}  // namespace tilestep::ui
