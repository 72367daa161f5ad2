#pragma once

#include <any>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenes/ui/focus.hpp"
#include "scenes/ui/fonts.hpp"
#include "scenes/ui/theme.hpp"
#include "scenes/ui/ui.hpp"

namespace tilestep::ui {

/// How the window looks and moves.
struct Look {
  ThemeKind theme = ThemeKind::dark;
  bool presenter = false;
  float display_scale = 1;  ///< real pixels per design pixel, from the display
  float text_scale = 1;     ///< the user's choice, 1–2
  float most_scale = 1e9f;  ///< of text and presenter mode together: what the window has room for
  bool still = false;       ///< no animation: everything is in its end state
  bool calm = false;        ///< reduced motion: nothing moves, though time passes
};

/// A text as it was drawn, for the sweep that looks for overprinting.
struct DrawnText {
  std::string text;
  ImVec2 min, max;     ///< before clipping, ImGui's pixels
  ImGuiID window = 0;  ///< texts of different windows may lie on each other: tooltips, lists
  bool seen = true;    ///< some of it is in sight
  bool cut = false;    ///< as in MapEntry
  ImU32 color = 0;
  const ImDrawList* list = nullptr;  ///< that it was drawn on …
  int drawn = 0;                     ///< … after so many indices
  ImVec2 clip_min, clip_max;
};

/// As ui::map, for a part of a window that was drawn earlier in the frame.
using AddPart = std::function<void(std::string_view id, std::string_view label,
                                   std::string_view value, ImVec2 min, ImVec2 max, ImVec2 least)>;

/// The state behind the functions of ui.hpp. One per window; owned by the shell.
class Context {
 public:
  /// Makes a context current until the end of the scope.
  class Current {
   public:
    explicit Current(Context& context);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    Context* before_;
  };
  static Context& current();

  Look& look() { return look_; }
  const Look& look() const { return look_; }
  /// Real pixels per design pixel: display, text size and presenter mode together.
  float scale() const;

  /// Builds the fonts into `atlas` if the scale changed. Returns true if the atlas changed.
  bool prepare_fonts(ImFontAtlas& atlas);
  const FontSet& fonts() const { return fonts_; }

  /// After ImGui::NewFrame: empties the map, sets ImGui's style.
  void begin_frame();
  std::vector<MapEntry>& map();
  /// Implements ui::map.
  void add_part(MapEntry part, ImVec2 min, ImVec2 max, ImVec2 least);
  /// A part whose visible area is already known.
  void add_part(MapEntry part) { map_.push_back(std::move(part)); }
  /// Adds parts of the current window when the map is requested: a window that is not tested or
  /// recorded need not name ten thousand cells in every frame.
  void map_later(std::function<void(const AddPart&)> parts);
  /// Parts that can be neither seen nor scrolled to: each is a layout error.
  std::vector<MapEntry>& lost();
  /// Keeps every text drawn from now on until the next frame begins.
  void record_texts(bool on) { records_texts_ = on; }
  bool records_texts() const { return records_texts_; }
  std::vector<DrawnText>& texts() { return texts_; }
  bool redraw_requested() const { return redraw_; }
  void request_redraw() { redraw_ = true; }
  /// Seconds since the last frame for animations; 0 when still.
  float animation_seconds() const;
  /// Few frames are drawn, since the lab needs the processor and the GPU: animations then take large
  /// steps instead of slowing down.
  void set_few_frames(bool few_frames) { few_frames_ = few_frames; }

  Focus& focus() { return focus_; }

  /// Too little height for large numbers: readouts take one line each.
  bool dense() const { return dense_; }
  void set_dense(bool dense) { dense_ = dense; }

  /// Everything is drawn with this alpha while it is below 1 (a picture that is out of date).
  float opacity() const { return opacity_; }
  void set_opacity(float opacity) { opacity_ = opacity; }

  /// State that a widget keeps between frames, by its own name.
  template <class T>
  T& kept(std::string_view name) {
    std::any& slot = kept_[std::string(name)];
    if (!slot.has_value()) slot = T{};
    return *std::any_cast<T>(&slot);
  }

 private:
  void add_later_parts();

  Look look_;
  FontSet fonts_;
  Focus focus_;
  std::vector<MapEntry> map_, lost_;
  std::vector<DrawnText> texts_;
  std::vector<std::function<void()>> later_;
  bool records_texts_ = false;
  std::map<std::string, std::any> kept_;
  float opacity_ = 1;
  bool redraw_ = false;
  bool dense_ = false;
  bool few_frames_ = false;
};

// ---- shared by the widgets of this folder -------------------------------------------------------

/// The size that ImGui's draw list wants for `font`, in real pixels.
float font_pixels(Font font);
/// Draws with an explicit colour; `position` is the top left corner.
void draw_text_in(ImVec2 position, std::string_view text, Font font, ImU32 color);
/// Diagonal lines inside a rectangle, `spacing` design pixels apart.
void hatch_in(ImVec2 min, ImVec2 max, ImU32 color, float spacing);
/// Whether all of a rectangle in the current window can be seen or scrolled to.
bool can_be_reached(ImVec2 min, ImVec2 max);
/// The name of a kept value of this widget: unique within the window.
std::string kept_name(std::string_view kind, std::string_view id);

}  // namespace tilestep::ui
