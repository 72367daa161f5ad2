#include "kernels/base/lab/sentence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tilestep::lab {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kLeftOut = "…";

/// Characters that change how a terminal shows later text: ASCII and Latin-1 controls, line and paragraph
/// separators, and bidirectional controls.
bool is_control(std::string_view c) {
  if (c.size() == 1) return static_cast<unsigned char>(c[0]) < 0x20 || c[0] == 0x7f;
  if (c.size() == 2) return c[0] == '\xC2' && static_cast<unsigned char>(c[1]) < 0xA0;
  return c.size() == 3 && ((c >= "\xE2\x80\xA8" && c <= "\xE2\x80\xAE") ||
                           (c >= "\xE2\x81\xA6" && c <= "\xE2\x81\xA9"));
}

std::string spelled(std::string_view control) {
  if (control == "\n") return "\\n";
  if (control == "\t") return "\\t";
  std::string text;
  for (const unsigned char byte : control) text += fmt::format("\\x{:02x}", byte);
  return text;
}

/// The characters as they may be shown.
std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> all;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view one = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0) {
      all.emplace_back(kReplacement);
    } else if (is_control(one)) {
      all.push_back(spelled(one));
    } else {
      all.emplace_back(one);
    }
    text.remove_prefix(one.size());
  }
  return all;
}

/// A quote opens a value where a word could begin; an apostrophe is inside a word.
bool opens(const std::vector<std::string>& text, std::size_t at) {
  return text[at] == "'" && (at == 0 || text[at - 1] == " " || text[at - 1] == "(");
}

/// Whether the text after a quote looks like the sentence again: "'; allowed", "' cannot", "')".
bool closes(const std::vector<std::string>& text, std::size_t at) {
  constexpr std::string_view kAfter = " ;:,.)";
  return text[at] == "'" &&
         (at + 1 == text.size() ||
          (text[at + 1].size() == 1 && kAfter.find(text[at + 1][0]) != kAfter.npos));
}

/// Characters `from` to `end`, without the middle if there are more than `most`.
void append(std::string& to, const std::vector<std::string>& text, std::size_t from,
            std::size_t end, std::size_t most) {
  const std::size_t head = end - from > most ? most / 2 : end - from;
  for (std::size_t i = from; i < from + head; ++i) to += text[i];
  if (head == end - from) return;
  to += kLeftOut;
  for (std::size_t i = end - (most - head); i < end; ++i) to += text[i];
}

/// The text's characters, made safe to show; only its ends if it is very long.
std::vector<std::string> enough_characters(std::string_view text) {
  // Only the ends can be shown: the middle need not be looked at.
  constexpr std::size_t kEnough = 1 << 16;
  if (text.size() <= 2 * kEnough) return characters(text);
  return characters(std::string(text.substr(0, kEnough)) +
                    std::string(text.substr(text.size() - kEnough)));
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto within = [&](std::size_t i, unsigned least, unsigned most) {
    return byte(i) >= least && byte(i) <= most;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return within(1, 0x80, 0xBF) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool second = within(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF);
    return second && within(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool second = within(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF);
    return second && within(2, 0x80, 0xBF) && within(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

std::string shown_value(std::string_view value) {
  const std::vector<std::string> text = enough_characters(value);
  std::string all;
  append(all, text, 0, text.size(), kMostShownValue);
  return all;
}

std::string printable(std::string_view text) {
  std::string all;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\n\t", begin), text.size());
    for (const std::string& one : characters(text.substr(begin, end - begin))) all += one;
    if (end < text.size()) all += text[end];
    begin = end + 1;
  }
  return all;
}

std::string shown(std::string_view sentence) {
  const std::vector<std::string> text = enough_characters(sentence);
  std::string all;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (opens(text, at)) {
      while (end < text.size() && !closes(text, end)) ++end;
    }
    append(all, text, at, end, kMostShownValue);
    at = end;
  }
  const std::vector<std::string> kept = characters(all);
  if (kept.size() <= kMostShown) return all;
  std::string cut;
  append(cut, kept, 0, kept.size(), kMostShown);
  return cut;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace tilestep::lab
