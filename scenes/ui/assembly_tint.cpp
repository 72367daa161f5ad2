#include <algorithm>
#include <cctype>

#include "kernels/base/lab/sentence.hpp"
#include "scenes/ui/assembly_view.hpp"

namespace tilestep::ui {
namespace {

constexpr std::size_t kIndent = 2;

bool is_decimal(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
/// With what names of registers and labels have in them.
bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}
bool is_space(char c) {
  return c == ' ' || c == '\t';
}

using lab::trimmed;

bool is_label(std::string_view text) {
  return text.ends_with(':') && text.find(' ') == text.npos;
}

/// Takes the first word off.
std::string_view next_word(std::string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && !is_space(text[end])) ++end;
  const std::string_view word = text.substr(0, end);
  text = trimmed(text.substr(end));
  return word;
}

/// "%r1", "%tid.x" of PTX; "R12", "UR4", "P0", "UP1", "PT", "RZ", "SR_TID.X", "B0" of SASS.
bool is_register(std::string_view word) {
  if (word.starts_with('%')) return true;
  if (word.starts_with("SR_")) return true;
  for (const std::string_view named : {"RZ", "URZ", "PT", "UPT"}) {
    if (word == named) return true;
  }
  for (const std::string_view kind : {"UR", "UP", "R", "P", "B"}) {
    if (!word.starts_with(kind) || word.size() == kind.size()) continue;
    if (std::all_of(word.begin() + static_cast<std::ptrdiff_t>(kind.size()), word.end(),
                    is_decimal))
      return true;
  }
  return false;
}

class Tinter {
 public:
  explicit Tinter(std::string_view text) : text_(text) {}

  std::vector<SyntaxSpan> spans() {
    const std::string_view all = trimmed(text_);
    if (is_label(all)) {
      add(text_.size(), Syntax::string);
      return std::move(spans_);
    }
    bool opcode_seen = false;
    while (at_ < text_.size()) next(opcode_seen);
    return std::move(spans_);
  }

 private:
  void add(std::size_t end, Syntax kind) {
    if (end == at_) return;
    spans_.push_back({at_, end, characters(text_.substr(at_, end - at_)), kind});
    at_ = end;
  }

  std::size_t word_end(std::size_t from) const {
    while (from < text_.size() && in_name(text_[from])) ++from;
    return from;
  }

  /// With its dots: "ld.global.nc.v4.f32", "LDG.E.128", ".reg".
  std::size_t dotted_end() const {
    std::size_t end = at_;
    while (end < text_.size() && !is_space(text_[end]) && text_[end] != ';') ++end;
    return end;
  }

  void next(bool& opcode_seen) {
    const char c = text_[at_];
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("//")) return add(text_.size(), Syntax::comment);
    if (rest.starts_with("/*")) {
      const std::size_t close = rest.find("*/");
      return add(close == rest.npos ? text_.size() : at_ + close + 2, Syntax::comment);
    }
    if (is_space(c)) return add(at_ + 1, Syntax::plain);
    if (c == '@' && !opcode_seen) {  // a predicate: "@!%p1"
      std::size_t end = at_ + 1;
      if (end < text_.size() && text_[end] == '!') ++end;
      return add(word_end(end), Syntax::cuda);
    }
    if (!opcode_seen) {
      opcode_seen = true;
      return add(std::max(dotted_end(), at_ + 1), Syntax::keyword);
    }
    if (is_decimal(c)) {
      std::size_t end = word_end(at_);
      if (end < text_.size() && text_[end] == '.' && end + 1 < text_.size() &&
          is_decimal(text_[end + 1])) {
        end = word_end(end + 1);
      }
      return add(end, Syntax::number);
    }
    if (!in_name(c)) return add(at_ + 1, Syntax::plain);
    const std::size_t end = word_end(at_);
    const std::string_view word = text_.substr(at_, end - at_);
    const bool label = word.starts_with('$') || word.starts_with("L_x") ||
                       (at_ > 0 && text_[at_ - 1] == '.' && word.starts_with("L_"));
    add(end, is_register(word) ? Syntax::cuda : label ? Syntax::string : Syntax::plain);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<SyntaxSpan> spans_;
};

}  // namespace

std::string aligned_instruction(std::string_view text, std::size_t operands) {
  text = trimmed(text);
  if (is_label(text) || text.starts_with("//")) return std::string(text);
  std::string shown(kIndent, ' ');
  std::string_view rest = text;
  if (rest.starts_with('@')) {
    shown += next_word(rest);
    shown += ' ';
  }
  shown += next_word(rest);
  if (!rest.empty()) {
    shown.append(shown.size() < operands ? operands - shown.size() : 1, ' ');
    for (const char c : rest) shown += c == '\t' ? ' ' : c;
  }
  // "EXIT ;" ends as "ret;" does.
  if (shown.ends_with(" ;")) shown.erase(shown.find_last_not_of(" ;") + 1) += ';';
  return shown;
}

std::vector<SyntaxSpan> tinted_instruction(std::string_view aligned) {
  return Tinter(aligned).spans();
}

}  // namespace tilestep::ui
