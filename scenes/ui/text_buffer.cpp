#include "scenes/ui/text_buffer.hpp"

#include <algorithm>
#include <cctype>

#include "scenes/ui/syntax.hpp"

namespace tilestep::ui {
namespace {

constexpr std::size_t kTab = 2;
constexpr std::size_t kMostSteps = 2000;

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u;
}

enum class Class { space, word, sign };
Class class_of(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (c == ' ' || c == '\n') return Class::space;
  return byte >= 0x80 || std::isalnum(byte) != 0 || c == '_' ? Class::word : Class::sign;
}

std::string utf8_of(char32_t c) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | (c >> 6)), byte(0x80 | (c & 0x3F))};
  if (c < 0x10000) {
    return {byte(0xE0 | (c >> 12)), byte(0x80 | ((c >> 6) & 0x3F)), byte(0x80 | (c & 0x3F))};
  }
  return {byte(0xF0 | (c >> 18)), byte(0x80 | ((c >> 12) & 0x3F)), byte(0x80 | ((c >> 6) & 0x3F)),
          byte(0x80 | (c & 0x3F))};
}

}  // namespace

TextBuffer::TextBuffer(std::string_view text) : text_(clean_text(text)) {
  changed();
}

// ---- lines -----------------------------------------------------------------------------------------

void TextBuffer::changed() {
  starts_.assign(1, 0);
  for (std::size_t at = text_.find('\n'); at != text_.npos; at = text_.find('\n', at + 1)) {
    starts_.push_back(at + 1);
  }
  ++revision_;
}

std::size_t TextBuffer::end_of(int line) const {
  return line + 1 < lines() ? start_of(line + 1) - 1 : text_.size();
}

std::string_view TextBuffer::line(int line) const {
  const std::size_t from = start_of(line);
  return std::string_view(text_).substr(from, end_of(line) - from);
}

int TextBuffer::line_of(std::size_t offset) const {
  const auto behind = std::upper_bound(starts_.begin(), starts_.end(), offset);
  return static_cast<int>(behind - starts_.begin()) - 1;
}

TextSpot TextBuffer::spot_of(std::size_t offset) const {
  const int line = line_of(offset);
  const std::size_t from = start_of(line);
  return {line, characters(std::string_view(text_).substr(from, offset - from))};
}

std::size_t TextBuffer::offset_of(TextSpot spot) const {
  const int line = std::clamp(spot.line, 0, lines() - 1);
  std::size_t at = start_of(line);
  const std::size_t end = end_of(line);
  for (int column = 0; column < spot.column && at < end; ++column) at = behind(at);
  return at;
}

std::pair<std::size_t, std::size_t> TextBuffer::selection() const {
  return std::minmax(cursor_, anchor_);
}

std::string_view TextBuffer::selected() const {
  const auto [from, to] = selection();
  return std::string_view(text_).substr(from, to - from);
}

std::size_t TextBuffer::text_start_of(int line) const {
  const std::size_t end = end_of(line);
  return std::min(text_.find_first_not_of(' ', start_of(line)), end);
}

std::pair<int, int> TextBuffer::selected_lines() const {
  const auto [from, to] = selection();
  const int first = line_of(from);
  int last = line_of(to);
  if (last > first && to == start_of(last)) --last;  // only its very start
  return {first, last};
}

// ---- moving ----------------------------------------------------------------------------------------

std::size_t TextBuffer::before(std::size_t offset) const {
  if (offset == 0) return 0;
  --offset;
  while (offset > 0 && continues(text_[offset])) --offset;
  return offset;
}

std::size_t TextBuffer::behind(std::size_t offset) const {
  if (offset >= text_.size()) return text_.size();
  ++offset;
  while (offset < text_.size() && continues(text_[offset])) ++offset;
  return offset;
}

std::size_t TextBuffer::word_before(std::size_t offset) const {
  while (offset > 0 && class_of(text_[offset - 1]) == Class::space) --offset;
  if (offset == 0) return 0;
  const Class kind = class_of(text_[offset - 1]);
  while (offset > 0 && class_of(text_[offset - 1]) == kind) --offset;
  return offset;
}

std::size_t TextBuffer::word_behind(std::size_t offset) const {
  const std::size_t size = text_.size();
  while (offset < size && class_of(text_[offset]) == Class::space) ++offset;
  if (offset == size) return size;
  const Class kind = class_of(text_[offset]);
  while (offset < size && class_of(text_[offset]) == kind) ++offset;
  return offset;
}

std::size_t TextBuffer::moved(TextMove move) {
  const TextSpot at = spot();
  switch (move) {
    case TextMove::left:
      return before(cursor_);
    case TextMove::right:
      return behind(cursor_);
    case TextMove::word_left:
      return word_before(cursor_);
    case TextMove::word_right:
      return word_behind(cursor_);
    case TextMove::up:
    case TextMove::down: {
      if (!column_) column_ = at.column;
      const int line = at.line + (move == TextMove::up ? -1 : 1);
      if (line < 0) return 0;
      if (line >= lines()) return text_.size();
      return offset_of({line, *column_});
    }
    case TextMove::line_start: {
      const std::size_t start = text_start_of(at.line);
      return cursor_ == start ? start_of(at.line) : start;
    }
    case TextMove::line_end:
      return end_of(at.line);
    case TextMove::text_start:
      return 0;
    case TextMove::text_end:
      return text_.size();
  }
  return cursor_;
}

void TextBuffer::move(TextMove move, bool select, int count) {
  joining_ = false;
  const bool vertical = move == TextMove::up || move == TextMove::down;
  if (!vertical) column_.reset();
  if (!select && has_selection() && (move == TextMove::left || move == TextMove::right)) {
    const auto [from, to] = selection();
    cursor_ = anchor_ = move == TextMove::left ? from : to;
    return;
  }
  for (int i = 0; i < count; ++i) cursor_ = moved(move);
  if (!select) anchor_ = cursor_;
}

void TextBuffer::go_to(std::size_t offset, bool select) {
  joining_ = false;
  column_.reset();
  cursor_ = std::min(offset, text_.size());
  while (cursor_ > 0 && cursor_ < text_.size() && continues(text_[cursor_])) --cursor_;
  if (!select) anchor_ = cursor_;
}

void TextBuffer::select(std::size_t from, std::size_t to) {
  go_to(from, false);
  go_to(to, true);
}

void TextBuffer::select_word(std::size_t offset) {
  const int line = line_of(std::min(offset, text_.size()));
  const std::size_t first = start_of(line), last = end_of(line);
  if (first == last) return go_to(first, false);
  offset = std::min(offset, last - 1);
  while (offset > first && continues(text_[offset])) --offset;
  const Class kind = class_of(text_[offset]);
  std::size_t from = offset, to = offset;
  while (from > first && class_of(text_[from - 1]) == kind) --from;
  while (to < last && class_of(text_[to]) == kind) ++to;
  select(from, to);
}

void TextBuffer::select_line(int line) {
  line = std::clamp(line, 0, lines() - 1);
  select(start_of(line), line + 1 < lines() ? start_of(line + 1) : text_.size());
}

// ---- edits and undo --------------------------------------------------------------------------------

TextBuffer::Step TextBuffer::begin(Kind kind) const {
  Step step;
  step.cursor_before = cursor_;
  step.anchor_before = anchor_;
  step.kind = kind;
  return step;
}

void TextBuffer::apply(Step& step, std::size_t at, std::size_t removed, std::string_view inserted) {
  if (removed == 0 && inserted.empty()) return;
  step.edits.push_back({at, text_.substr(at, removed), std::string(inserted)});
  text_.replace(at, removed, inserted);
}

/// A run of typed characters is one step, until a word begins; so is a run of the same erasing key.
bool TextBuffer::joins(const Step& step) const {
  if (!joining_ || done_.empty() || step.kind == Kind::other || step.edits.size() != 1) {
    return false;
  }
  const Step& last = done_.back();
  if (last.kind != step.kind || last.cursor_after != step.cursor_before) return false;
  if (step.kind != Kind::typed) return true;
  const std::string &typed = step.edits[0].inserted, &run = last.edits.back().inserted;
  const bool word_begins =
      class_of(typed[0]) != Class::space && !run.empty() && class_of(run.back()) == Class::space;
  return step.edits[0].removed.empty() && !word_begins;
}

void TextBuffer::end(Step step, std::size_t cursor, std::size_t anchor) {
  column_.reset();
  cursor_ = step.cursor_after = cursor;
  anchor_ = step.anchor_after = anchor;
  if (step.edits.empty()) return;
  changed();
  undone_.clear();
  if (joins(step)) {
    Step& last = done_.back();
    last.edits.push_back(std::move(step.edits[0]));
    last.cursor_after = cursor;
    last.anchor_after = anchor;
  } else {
    joining_ = step.kind != Kind::other;
    if (done_.size() == kMostSteps) done_.erase(done_.begin());
    done_.push_back(std::move(step));
  }
}

void TextBuffer::put(const Edit& edit, bool back) {
  const std::string &out = back ? edit.inserted : edit.removed,
                    &in = back ? edit.removed : edit.inserted;
  text_.replace(edit.at, out.size(), in);
}

bool TextBuffer::undo() {
  if (done_.empty()) return false;
  Step step = std::move(done_.back());
  done_.pop_back();
  for (auto edit = step.edits.rbegin(); edit != step.edits.rend(); ++edit) put(*edit, true);
  cursor_ = step.cursor_before;
  anchor_ = step.anchor_before;
  undone_.push_back(std::move(step));
  joining_ = false;
  column_.reset();
  changed();
  return true;
}

bool TextBuffer::redo() {
  if (undone_.empty()) return false;
  Step step = std::move(undone_.back());
  undone_.pop_back();
  for (const Edit& edit : step.edits) put(edit, false);
  cursor_ = step.cursor_after;
  anchor_ = step.anchor_after;
  done_.push_back(std::move(step));
  joining_ = false;
  column_.reset();
  changed();
  return true;
}

void TextBuffer::type(char32_t character) {
  const bool is_none = character > 0x10FFFF || (character >= 0xD800 && character < 0xE000);
  const std::string typed = is_none ? "\uFFFD" : clean_text(utf8_of(character));
  if (typed.empty()) return;
  auto [from, to] = selection();
  Step step = begin(Kind::typed);
  const std::size_t line = start_of(line_of(from));
  const bool closes = typed == "}" && from == to && from >= line + kTab &&
                      text_.find_first_not_of(' ', line) >= from;
  if (closes) from -= kTab;
  apply(step, from, to - from, typed);
  end(std::move(step), from + typed.size());
}

void TextBuffer::insert(std::string_view text) {
  const std::string clean = clean_text(text);
  const auto [from, to] = selection();
  Step step = begin();
  apply(step, from, to - from, clean);
  end(std::move(step), from + clean.size());
}

void TextBuffer::new_line() {
  const auto [from, to] = selection();
  const int line = line_of(from);
  const std::size_t text = std::min(text_start_of(line), from);
  std::string inserted = "\n" + std::string(text - start_of(line), ' ');
  const std::size_t last = from == 0 ? text_.npos : text_.find_last_not_of(' ', from - 1);
  if (last != text_.npos && last >= text && text_[last] == '{') inserted.append(kTab, ' ');
  Step step = begin();
  apply(step, from, to - from, inserted);
  end(std::move(step), from + inserted.size());
}

void TextBuffer::erase(std::size_t from, std::size_t to, Kind kind) {
  Step step = begin(kind);
  apply(step, from, to - from, {});
  end(std::move(step), from);
}

void TextBuffer::erase_back(bool word) {
  const auto [from, to] = selection();
  if (from != to) return erase(from, to, Kind::other);
  std::size_t back = word ? word_before(from) : before(from);
  const int line = line_of(from);
  const std::size_t columns = from - start_of(line);
  // In a line's indent a whole level goes.
  if (!word && columns > 0 && text_start_of(line) >= from) {
    back = from - (columns % kTab == 0 ? kTab : columns % kTab);
  }
  erase(back, from, Kind::erased_back);
}

void TextBuffer::erase_on(bool word) {
  const auto [from, to] = selection();
  if (from != to) return erase(from, to, Kind::other);
  erase(from, word ? word_behind(from) : behind(from), Kind::erased_on);
}

/// Calls `change(line, step)` for each selected line; it applies at most one edit there. The selection stays on the
/// same characters.
template <class Change>
void TextBuffer::change_lines(const Change& change) {
  const auto [first, last] = selected_lines();
  Step step = begin();
  std::size_t cursor = cursor_, anchor = anchor_;
  for (int line = last; line >= first; --line) {
    const std::size_t edits = step.edits.size();
    change(line, step);
    if (step.edits.size() == edits) continue;
    const Edit& edit = step.edits.back();
    for (std::size_t* at : {&cursor, &anchor}) {
      if (*at < edit.at) continue;
      *at = std::max(edit.at, *at - std::min(*at - edit.at, edit.removed.size())) +
            edit.inserted.size();
    }
  }
  end(std::move(step), cursor, anchor);
}

void TextBuffer::indent() {
  const auto [first, last] = selected_lines();
  if (!has_selection() || first == last) {
    const auto column = static_cast<std::size_t>(spot_of(selection().first).column);
    return insert(std::string(kTab - column % kTab, ' '));
  }
  change_lines([this](int line, Step& step) {
    if (start_of(line) != end_of(line)) apply(step, start_of(line), 0, std::string(kTab, ' '));
  });
}

void TextBuffer::unindent() {
  change_lines([this](int line, Step& step) {
    const std::size_t blanks = text_start_of(line) - start_of(line);
    apply(step, start_of(line), std::min(blanks, kTab), {});
  });
}

void TextBuffer::toggle_comment() {
  const auto [first, last] = selected_lines();
  bool all = true;
  std::size_t column = text_.npos;
  for (int at = first; at <= last; ++at) {
    const std::size_t text = text_start_of(at);
    if (text == end_of(at)) continue;
    column = std::min(column, text - start_of(at));
    all = all && text_.compare(text, 2, "//") == 0;
  }
  if (column == text_.npos) return;
  change_lines([&](int line, Step& step) {
    const std::size_t text = text_start_of(line);
    if (text == end_of(line)) return;
    if (!all) return apply(step, start_of(line) + column, 0, "// ");
    apply(step, text, text_.compare(text, 3, "// ") == 0 ? 3 : 2, {});
  });
}

std::string TextBuffer::copy() const {
  if (has_selection()) return std::string(selected());
  const int at = spot().line;
  return std::string(line(at)) + '\n';
}

std::string TextBuffer::cut() {
  std::string text = copy();
  if (!has_selection()) select_line(spot().line);
  const auto [from, to] = selection();
  erase(from, to, Kind::other);
  return text;
}

void TextBuffer::replace_all(std::string_view text) {
  const std::string clean = clean_text(text);
  if (clean == text_) return;
  const TextSpot at = spot();
  Step step = begin();
  apply(step, 0, text_.size(), clean);
  end(std::move(step), 0);
  cursor_ = anchor_ = offset_of(at);
  done_.back().cursor_after = done_.back().anchor_after = cursor_;
}

// ---- finding ---------------------------------------------------------------------------------------

std::vector<std::size_t> TextBuffer::matches(std::string_view words) const {
  std::vector<std::size_t> found;
  if (words.empty()) return found;
  const auto upper = [](char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; };
  const bool exact = std::any_of(words.begin(), words.end(), upper);
  const auto same = [exact](char a, char b) {
    return a == b || (!exact && std::tolower(static_cast<unsigned char>(a)) == b);
  };
  for (auto at = text_.begin();;) {
    at = std::search(at, text_.end(), words.begin(), words.end(), same);
    if (at == text_.end()) return found;
    found.push_back(static_cast<std::size_t>(at - text_.begin()));
    at += static_cast<std::ptrdiff_t>(words.size());
  }
}

bool TextBuffer::find(std::string_view words, bool on, bool here) {
  const std::vector<std::size_t> found = matches(words);
  if (found.empty()) return false;
  const auto [from, to] = selection();
  std::size_t at = 0;
  if (on) {
    const std::size_t least = here ? from : to;
    const auto next = std::lower_bound(found.begin(), found.end(), least);
    at = next == found.end() ? found.front() : *next;
  } else {
    const auto next = std::lower_bound(found.begin(), found.end(), from);
    at = next == found.begin() ? found.back() : *std::prev(next);
  }
  select(at, at + words.size());
  return true;
}

}  // namespace tilestep::ui
