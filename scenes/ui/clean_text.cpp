#include <algorithm>

#include "scenes/ui/text_buffer.hpp"

// Texts as they come from outside, and as they were before.
namespace tilestep::ui {
namespace {

bool is_continued(char c) {
  return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u;
}

/// How many bytes the character at `at` has; 0: they are none.
std::size_t character_at(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const std::size_t size = lead < 0x80   ? 1
                           : lead < 0xC2 ? 0
                           : lead < 0xE0 ? 2
                           : lead < 0xF0 ? 3
                           : lead < 0xF5 ? 4
                                         : 0;
  if (size == 0 || at + size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if (!is_continued(text[at + i])) return 0;
  }
  if (size < 3) return size;
  const auto second = static_cast<unsigned char>(text[at + 1]);
  // Longer than need be, half of a pair of UTF-16, or behind the last one.
  const bool wrong = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second >= 0xA0) ||
                     (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second >= 0x90);
  return wrong ? 0 : size;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end == text.npos ? text.npos : end - at));
    if (end == text.npos) return lines;
    at = end + 1;
  }
}

}  // namespace

std::string clean_text(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const std::size_t size = character_at(text, at);
    if (size == 0) {
      clean += "\uFFFD";
      for (++at; at < text.size() && is_continued(text[at]);) ++at;
      continue;
    }
    if (c == '\r') {
      clean += '\n';
      if (at + 1 < text.size() && text[at + 1] == '\n') ++at;
    } else if (c == '\t') {
      clean += "  ";
    } else if (c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F)) {
      clean.append(text.substr(at, size));
    }
    at += size;
  }
  return clean;
}

LineMap::LineMap(std::string_view before, std::string_view after) {
  const auto old = lines_of(before), now = lines_of(after);
  before_ = static_cast<int>(old.size());
  after_ = static_cast<int>(now.size());
  const auto head = std::mismatch(old.begin(), old.end(), now.begin(), now.end());
  head_ = static_cast<int>(head.first - old.begin());
  const auto tail =
      std::mismatch(old.rbegin(), old.rend() - head_, now.rbegin(), now.rend() - head_);
  tail_ = static_cast<int>(tail.first - old.rbegin());
}

std::optional<int> LineMap::now(int line) const {
  if (line >= 1 && line <= head_) return line;
  if (line > before_ - tail_ && line <= before_) return line + after_ - before_;
  return std::nullopt;
}

}  // namespace tilestep::ui
