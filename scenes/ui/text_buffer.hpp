#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilestep::ui {

/// Where something stands in a text, both from 0; columns are characters, not bytes.
struct TextSpot {
  int line = 0, column = 0;
  bool operator==(const TextSpot&) const = default;
};

enum class TextMove {
  left,
  right,
  up,
  down,
  word_left,
  word_right,
  line_start,  ///< where the line's text begins; from there its first column
  line_end,
  text_start,
  text_end,
};

/// A text being edited: cursor, selection, undo. It is always UTF-8 with "\n" line ends and without tabs: other
/// input is converted. Offsets are bytes, at the start of a character.
class TextBuffer {
 public:
  TextBuffer() : TextBuffer(std::string_view()) {}
  explicit TextBuffer(std::string_view text);

  const std::string& text() const { return text_; }
  /// Changes with every change of the text: undo and redo increase it too.
  std::uint64_t revision() const { return revision_; }
  /// At least 1: behind a last "\n" there is an empty one.
  int lines() const { return static_cast<int>(starts_.size()); }
  /// Without its "\n"; `line` from 0.
  std::string_view line(int line) const;

  std::size_t cursor() const { return cursor_; }
  TextSpot spot() const { return spot_of(cursor_); }
  TextSpot spot_of(std::size_t offset) const;
  /// The nearest valid offset.
  std::size_t offset_of(TextSpot spot) const;
  bool has_selection() const { return cursor_ != anchor_; }
  /// From and to; the same where nothing is selected.
  std::pair<std::size_t, std::size_t> selection() const;
  std::string_view selected() const;

  // ---- moving ----
  /// `select`: what lies between stays or becomes selected. `count` times.
  void move(TextMove move, bool select, int count = 1);
  void go_to(std::size_t offset, bool select);
  void select(std::size_t from, std::size_t to);
  void select_all() { select(0, text_.size()); }
  void select_word(std::size_t offset);
  void select_line(int line);

  // ---- editing; each can be undone ----
  /// A typed character. Runs of them are undone word by word; "}" at the start of a line goes out two columns.
  void type(char32_t character);
  /// In place of the selection, as a paste does.
  void insert(std::string_view text);
  /// A line end, and the indent of the line; two columns more behind a "{".
  void new_line();
  /// The selection, or else the character or word before the cursor.
  void erase_back(bool word = false);
  void erase_on(bool word = false);
  /// Two columns: at the cursor up to the next even column, or before each selected line.
  void indent();
  void unindent();
  /// "// " before each selected line, or away from it where all have it.
  void toggle_comment();
  /// The text that is cut; the whole line if nothing is selected.
  std::string cut();
  /// The same, and it stays.
  std::string copy() const;
  /// Another text in place of this one, as one edit; the cursor stays in its line.
  void replace_all(std::string_view text);
  /// False: there is nothing to undo.
  bool undo();
  bool redo();

  // ---- finding ----
  /// Where `words` stand, in order; capitals count where `words` has some.
  std::vector<std::size_t> matches(std::string_view words) const;
  /// Selects the next place behind the selection or the one before it, round the ends. `here`: the selection itself may be
  /// it. False: there is none.
  bool find(std::string_view words, bool on, bool here = false);

 private:
  enum class Kind { other, typed, erased_back, erased_on };
  struct Edit {
    std::size_t at = 0;
    std::string removed, inserted;
  };
  /// The change that one undo reverts.
  struct Step {
    std::vector<Edit> edits;
    std::size_t cursor_before = 0, anchor_before = 0, cursor_after = 0, anchor_after = 0;
    Kind kind = Kind::other;
  };

  void apply(Step& step, std::size_t at, std::size_t removed, std::string_view inserted);
  void put(const Edit& edit, bool back);
  Step begin(Kind kind = Kind::other) const;
  void end(Step step, std::size_t cursor, std::size_t anchor);
  void end(Step step, std::size_t cursor) { end(std::move(step), cursor, cursor); }
  bool joins(const Step& step) const;
  void changed();
  std::size_t before(std::size_t offset) const;
  std::size_t behind(std::size_t offset) const;
  std::size_t word_before(std::size_t offset) const;
  std::size_t word_behind(std::size_t offset) const;
  std::size_t moved(TextMove move);
  std::size_t start_of(int line) const { return starts_[static_cast<std::size_t>(line)]; }
  std::size_t end_of(int line) const;
  int line_of(std::size_t offset) const;
  std::size_t text_start_of(int line) const;
  /// First and last line that the selection touches.
  std::pair<int, int> selected_lines() const;
  template <class Change>
  void change_lines(const Change& change);
  void erase(std::size_t from, std::size_t to, Kind kind);

  std::string text_;
  std::vector<std::size_t> starts_;  ///< of lines
  std::size_t cursor_ = 0, anchor_ = 0;
  std::optional<int> column_;  ///< that up and down keep
  std::uint64_t revision_ = 1;
  std::vector<Step> done_, undone_;
  bool joining_ = false;  ///< the next edit may join the last step
};

/// `text` as a buffer has it: UTF-8 alone ("\uFFFD" for what is none), "\n" at line ends, two spaces for a tab, no other
/// control characters.
std::string clean_text(std::string_view text);

/// Maps the lines of a text to their lines in an edited version.
class LineMap {
 public:
  LineMap(std::string_view before, std::string_view after);
  /// Where line `line` (from 1) is now; nothing: it was changed, or is gone.
  std::optional<int> now(int line) const;

 private:
  int before_ = 0, after_ = 0;  ///< how many lines they have
  int head_ = 0, tail_ = 0;     ///< so many at the start and at the end are the same
};

}  // namespace tilestep::ui
