#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/edit.hpp"
#include "scenes/ui/syntax.hpp"
#include "scenes/ui/text_buffer.hpp"
#include "scenes/ui/ui.hpp"

namespace tilestep::ui {

/// The meaning of a key to an editor, independent of the keyboard layout.
enum class EditorKey {
  left,
  right,
  up,
  down,
  home,
  end,
  page_up,
  page_down,
  erase_back,
  erase_on,
  enter,
  tab,
  escape,
  select_all,
  copy,
  cut,
  paste,
  undo,
  redo,
  find,
  comment,
};
struct EditorPress {
  EditorKey key;
  bool shift = false;
  bool by_words = false;  ///< with Ctrl: by words, or to the ends of the text
};

/// Annotations of an editor's text. Lines are numbered from 1, in the current text.
struct EditorLook {
  std::string_view label = "Editor";  ///< in the map
  int current = 0;                    ///< the line that the step is at, with the accent; 0: none
  std::vector<int> step_lines = {};   ///< marked quietly
  std::map<int, std::string> values = {};  ///< at line ends: the values they computed
  std::vector<int> lit = {};  ///< lines whose instruction is pointed at in a listing beside it
  std::vector<lab::Diagnostic> diagnostics = {};  ///< those without a line are not shown here
};

/// A text field for source code: line numbers, CUDA's colours, selection by keys and mouse, a find bar, and compiler
/// messages at their lines. Keys arrive in order, as they are pressed, through `type` and `press`;
/// it draws nothing on its own while idle. In the map: `editor` (value "typing" while it has the keys),
/// `editor_line_N`, `editor_caret` ("line:column"), `find_text`, `find_next`, `find_previous`, `find_close`,
/// `diagnostic_N`.
class CodeEditor {
 public:
  CodeEditor() = default;
  explicit CodeEditor(std::string_view text) : buffer_(text) {}

  const TextBuffer& buffer() const { return buffer_; }
  const std::string& text() const { return buffer_.text(); }
  /// Another text, as one edit that can be undone.
  void replace(std::string_view text);
  /// Typed characters and keys are its own.
  bool has_keys() const { return has_keys_; }
  void take_keys();
  void leave();
  void open_find();
  /// The cursor goes to the start of a line, from 1, which is brought into sight.
  void go_to_line(int line);

  /// The line, from 1, that the pointer was on when it was drawn last; 0: none.
  int hovered_line() const { return hovered_line_; }

  /// A typed character.
  void type(char32_t character);
  /// A key, while it has the keys. Esc closes the find bar, or leaves the editor. Copies to and pastes from ImGui's clipboard.
  void press(const EditorPress& press);

  /// Fills the current window's content region, less `below` real pixels.
  void draw(std::string_view id, const EditorLook& look, float below = 0);

 private:
  struct View;

  void press_in_text(const EditorPress& press);
  void press_in_find(const EditorPress& press);
  void find(bool on, bool here = false);
  void close_find();
  void refresh();
  float draw_find_bar(float width);
  void draw_find_field(ImVec2 min, ImVec2 max);
  void draw_text(const EditorLook& look);
  void follow_mouse(const View& view);
  void follow_caret(const View& view);

  TextBuffer buffer_;
  bool has_keys_ = false;
  bool reveals_ = false;  ///< the next frame brings the caret into sight
  bool centres_ = false;  ///< … to a third of the view
  bool drags_ = false;    ///< the mouse selects
  int hovered_line_ = 0;
  int page_ = 10;           ///< lines in sight
  std::uint64_t seen_ = 0;  ///< the revision that what follows is of
  std::vector<SyntaxLine> tint_;
  int columns_ = 0;  ///< of the longest line
  bool finds_ = false;
  bool find_has_keys_ = false;
  TextBuffer query_;
  std::vector<std::size_t> matches_;
  std::string matched_;  ///< what `matches_` are of
};

}  // namespace tilestep::ui
