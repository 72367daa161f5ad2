#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/app/child.hpp"
#include "tests/paths.hpp"

/// tilestep in a real window under Xvfb, with real keys and a real pointer.
namespace tilestep::tests {

/// In small letters.
std::string lower(std::string text);

/// An X server of this test's own, on a display number that is free.
class Display {
 public:
  explicit Display(const std::string& screen = "1600x1000x24");
  /// Empty if the server did not start.
  const std::string& name() const { return name_; }
  /// What xdotool answers to these words.
  std::string tool(std::vector<std::string> words) const;

 private:
  Child server_;
  std::string name_;
};

/// Says why and answers nothing, where a window cannot be tested.
std::unique_ptr<Display> make_display(const std::string& screen = "1600x1000x24");

/// A place in a window, in its pixels.
struct Spot {
  double x = 0, y = 0;
};

/// tilestep in a real window, with the map of what is on screen.
class Window {
 public:
  /// Arguments that do not begin with `open` are of the opening lesson, without questions. `home` keeps what
  /// the window keeps; empty: a folder of its own.
  Window(const Display& display, const std::vector<std::string>& arguments,
         const std::string& program = tilestep::tests::paths::kProgram,
         const std::filesystem::path& home = {});

  Child& program() { return *program_; }
  /// What is on screen, until the next call. A test that waits asks far more often than a frame is drawn.
  const nlohmann::json& map() const;
  /// Whether the window has drawn what was sent last.
  bool answered(const nlohmann::json& map) const;
  int step() const;
  /// The part whose label or id holds `words`, in any case.
  std::optional<nlohmann::json> part(const std::string& words) const;
  /// The part of exactly this id.
  std::optional<nlohmann::json> at(const std::string& id) const;
  /// It, once the whole of it is in sight in a window that has answered the last key or pointer, and stays as it is
  /// for some frames or no frame is due: lists that open and panels that scroll take some. Nothing if that does
  /// not come to be.
  std::optional<nlohmann::json> steady(const std::string& id) const;
  bool has(const std::string& id) const { return at(id).has_value(); }
  /// Of the part of this id; empty if there is none.
  std::string label(const std::string& id) const;
  std::string value(const std::string& id) const;
  bool is_selected(const std::string& id) const { return value(id) == "selected"; }
  bool says(const std::string& words) const;

  void focus();
  void press(const std::string& key);
  void type(const std::string& text);
  /// A key in a field: Dear ImGui 1.86 does not see one that goes down and up between two frames.
  void hold(const std::string& key);
  void let_go(const std::string& key);
  void click(const nlohmann::json& part);
  /// The same, of the part of this id once it is steady. False: it is not there.
  bool click_on(const std::string& id);
  void point_at(Spot spot);
  /// The left button goes down there, and stays down until `let_go`.
  void take_hold(Spot spot);
  void let_go();
  /// The wheel there, so many notches down, or up if it is negative.
  void scroll(Spot spot, int notches);

 private:
  std::vector<std::string> move_to(Spot spot) const;
  void input(const std::vector<std::string>& words);
  const Display& display_;
  TemporaryFolder folder_;
  std::filesystem::path map_file_;
  mutable std::string text_;    ///< of the map file when it was read last
  mutable nlohmann::json map_;  ///< of that text
  std::unique_ptr<Child> program_;
  std::string id_;
  int frame_ = 0;  ///< the last one before the last input
  std::chrono::steady_clock::time_point sent_;
};

/// Hardly anything of the part is cut off.
bool is_whole(const nlohmann::json& part);
/// Of a part, in shares of its width and height.
Spot inside(const nlohmann::json& part, double across = 0.5, double down = 0.5);

}  // namespace tilestep::tests
