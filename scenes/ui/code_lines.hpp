#pragma once

#include <imgui_internal.h>

#include <map>
#include <string>
#include <vector>

#include "scenes/ui/code_editor.hpp"

/// How the lines of an editor are drawn.
namespace tilestep::ui {

/// Sizes of an editor's text in real pixels.
struct CodeGrid {
  explicit CodeGrid(int lines);
  float height;     ///< of a line
  float advance;    ///< of a character
  float sign;       ///< the middle of a diagnostic's sign, from the left
  float number;     ///< the right end of a line's number
  float step;       ///< the middle of a step's disc
  float text_left;  ///< where the text begins
};

/// The diagnostics of a text by their lines, from 0; of a line the worst first.
class CodeMarks {
 public:
  explicit CodeMarks(const std::vector<lab::Diagnostic>& all);
  /// nullptr: no diagnostic.
  const std::vector<const lab::Diagnostic*>* of(int line) const;

 private:
  std::map<int, std::vector<const lab::Diagnostic*>> by_line_;
};

class CodeLines {
 public:
  CodeLines(const TextBuffer& buffer, const std::vector<SyntaxLine>& tint, const EditorLook& look,
            const CodeMarks& marks, const CodeGrid& grid)
      : buffer_(buffer), tint_(tint), look_(look), marks_(marks), grid_(grid) {}

  /// The background of line `line`, from 0: current, wrong, selected. `at`: its upper left corner.
  void draw_ground(int line, ImVec2 at, const ImRect& seen, bool has_keys) const;
  /// A search match, as far as it is in this line.
  void draw_match(int line, ImVec2 at, std::size_t offset, std::size_t size) const;
  /// Number, text and diagnostics. Returns their total width.
  float draw(int line, ImVec2 at, const ImRect& seen) const;
  /// All diagnostics of a line, at the pointer.
  void draw_tip(int line, ImVec2 origin) const;

 private:
  float x_of(int column) const {
    return grid_.text_left + grid_.advance * static_cast<float>(column);
  }
  /// Where bytes `from` to `to` of the text are in this line, in pixels from its left; nothing: they are not.
  std::optional<std::pair<float, float>> range(int line, std::size_t from, std::size_t to) const;
  void draw_number(int line, ImVec2 at) const;
  void draw_step(int line, ImVec2 center) const;
  void draw_code(int line, ImVec2 at) const;
  void draw_place(int line, ImVec2 at, const lab::Diagnostic& what) const;
  float draw_message(int line, ImVec2 at, float left, const ImRect& seen) const;
  float draw_value(int line, ImVec2 at, float left) const;

  const TextBuffer& buffer_;
  const std::vector<SyntaxLine>& tint_;
  const EditorLook& look_;
  const CodeMarks& marks_;
  const CodeGrid& grid_;
};

/// A small numbered disc at a line of the step that is shown.
void draw_step_disc(int number, bool now, ImVec2 center);
/// The colour of a kind of words.
Role role_of(Syntax kind);
/// The colour of a compiler message.
Role role_of(lab::Severity severity);
/// Its sign: a cross, a triangle, a ring.
void draw_sign(lab::Severity severity, ImVec2 center, float radius);
/// "Error: …", with the severity in words.
std::string to_sentence(const lab::Diagnostic& what);

}  // namespace tilestep::ui
