#pragma once

#include <imgui.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

struct ImGuiWindow;

namespace tilestep::ui {

/// The meaning of a key to the control with the focus.
enum class FocusKey { press, left, right, up, down, home, end, escape };

/// The keys a control handles besides those that press it; all others stay the window's.
enum class Takes {
  press,
  across,  ///< ← and →: a slider, one of several choices side by side
  down,    ///< ↑ and ↓: a list, what scrolls
};

/// Key input to a control since the last frame.
struct Focused {
  bool shown = false;  ///< it has the focus, and the ring
  bool pressed = false, closed = false;
  int across = 0, down = 0;  ///< to the right and down, in presses; −n: the other way
};

/// The keyboard's focus: which control has it, by its id, so that it survives redraws and reordering.
/// Controls take part by being drawn, in drawing order. The ring is shown while the keyboard is in use,
/// and disappears on a mouse press. Each layer over the window (the palette, a list of keys) has its own
/// focus; only the controls of the topmost layer take part.
class Focus {
 public:
  // ---- for controls, as they are drawn -------------------------------------------------------------

  /// Takes part in the walk, at a rectangle of the current window.
  Focused control(std::string_view id, ImVec2 min, ImVec2 max, Takes takes = Takes::press);
  /// The ring is on this control of the current window.
  bool is_on(std::string_view id);
  /// The focus goes to another control of the same window, as one arrow key moves along a row.
  void give(std::string_view id);
  /// As `control`, for a list that is open: until the next frame all keys are its own.
  Focused list();
  /// The keyboard is in use: by keys that do not come here.
  void show() { held().shown = true; }
  /// Draws the ring round a choice of an open list, if the keyboard is in use.
  void ring(std::string_view id, ImVec2 min, ImVec2 max);
  /// Keeps the last item's tooltip, to show beside it if it has the ring.
  void tip(std::string_view sentence);

  // ---- for the window ------------------------------------------------------------------------------

  /// After ImGui::NewFrame; `layer` is the topmost one that is open, empty: none lies over the window.
  void begin_frame(std::string layer);
  /// Everything drawn from here on belongs to this layer.
  void draws(std::string_view layer) { drawing_ = layer; }
  /// Draws the ring. A control that was not drawn has lost the focus; the next Tab goes on from there.
  void end_frame();
  /// Tab (+1) and Shift+Tab (−1), round and round.
  void move(int by);
  /// Sends a key to the control with the ring. False: none has it, or it does not use the key.
  bool key(FocusKey key);
  /// A list is open.
  bool holds() const { return holds_; }
  /// A control has the ring.
  bool shown() const;

 private:
  struct Stop {
    ImGuiID id;
    Takes takes;
  };
  /// Where the ring is to be drawn.
  struct Place {
    std::string id;
    ImVec2 min, max, clip_min, clip_max;
    ImGuiWindow* window = nullptr;
  };

  /// The control with the focus of a layer; `shown`: the keyboard is in use there.
  struct Held {
    ImGuiID id = 0;
    bool shown = false;
  };

  int index_of(ImGuiID id) const;
  bool takes(FocusKey key) const;
  void scroll_to(ImGuiWindow* window, ImVec2 min, ImVec2 max);
  void set_place(std::string_view id, ImVec2 min, ImVec2 max);
  void draw_tip() const;
  Held& held() { return held_[layer_]; }

  std::vector<Stop> order_, drawn_;  ///< of the frame before, and of this one
  std::map<std::string, Held> held_;
  std::string layer_, drawing_;
  Focused said_;  ///< waits for the control
  Place place_;   ///< of this frame
  std::string tip_;
  int lost_at_ = -1;    ///< position in the order of a control that vanished; −1: none
  int scrolls_ = 0;     ///< frames in which the control may still be scrolled into sight
  bool found_ = false;  ///< drawn in this frame
  bool holds_ = false, listed_ = false;  ///< a list is open; and was drawn in this frame
  bool ends_typing_ = false;
};

/// Makes the current child window a stop that ↑ and ↓ scroll, where there is something to scroll.
void scroll_stop(std::string_view id);

}  // namespace tilestep::ui
