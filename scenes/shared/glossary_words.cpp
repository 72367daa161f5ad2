#include "scenes/shared/glossary_words.hpp"

#include <algorithm>
#include <cstdint>

namespace tilestep::scenes::glossary_words {
namespace {

/// Stands for text that is left out; no word and no gap inside a term has it.
constexpr char kBlot = '\x01';

/// A letter or digit as it is compared; `size` bytes of the text. Empty: none.
struct Letter {
  std::string folded;
  std::size_t size = 1;
};

/// Latin letters with accents, U+00C0 to U+00FF, without them.
constexpr std::string_view kPlain =
    "aaaaaaaceeeeiiiidnooooo ouuuuypsaaaaaaaceeeeiiiidnooooo ouuuuypy";
static_assert(kPlain.size() == 64);

Letter letter_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned c = byte(at);
  if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_') {
    return {std::string(1, static_cast<char>(c))};
  }
  if (c >= 'A' && c <= 'Z') return {std::string(1, static_cast<char>(c - 'A' + 'a'))};
  if (c < 0xC2) return {};
  if (c == 0xC3 && byte(at + 1) >= 0x80 && byte(at + 1) < 0xC0) {
    const char plain = kPlain[byte(at + 1) - 0x80];
    return {plain == ' ' ? std::string() : std::string(1, plain), 2};
  }
  if (c == 0xE2 && byte(at + 1) == 0x84 && byte(at + 2) == 0x93) return {"l", 3};  // ℓ
  if (c == 0xCE || c == 0xCF) {                                                    // Greek
    return {std::string(text.substr(at, 2)), 2};
  }
  return {{}, c >= 0xF0 ? 4u : c >= 0xE0 ? 3u : 2u};
}

bool letter_before(std::string_view text, std::size_t end) {
  return end > 0 && letter_at(text, end - 1).folded.size() == 1;
}
bool letter_after(std::string_view text, std::size_t at) {
  return at < text.size() && !letter_at(text, at).folded.empty();
}

bool is_gap(std::string_view gap) {
  if (gap.size() == 1 && std::string_view("-./:").find(gap[0]) != gap.npos) return true;
  return !gap.empty() && std::count(gap.begin(), gap.end(), '\n') < 2 &&
         gap.find_first_not_of(" \t\r\n") == gap.npos;
}

/// Whether a hyphen or a point at `at` ties the letters on both of its sides into one word.
bool ties(std::string_view text, std::size_t at) {
  return at < text.size() && (text[at] == '-' || text[at] == '.') && letter_before(text, at) &&
         letter_after(text, at + 1);
}

/// The end of what starts at `at` and is no running text; `at` itself where nothing does.
std::size_t end_of_span(std::string_view text, std::size_t at) {
  const auto closed_by = [&](std::string_view closing, std::size_t from) {
    const std::size_t end = text.find(closing, from);
    return end == text.npos ? at : end + closing.size();
  };
  const bool line_start = at == 0 || text[at - 1] == '\n';
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("<!--")) return closed_by("-->", at);
  if (line_start && rest.starts_with("```")) return closed_by("\n```", at + 3);
  if (line_start && (rest.starts_with("#") || rest.starts_with("    "))) {
    return std::min(text.find('\n', at), text.size());
  }
  if (rest.starts_with("`")) {
    const std::size_t ticks = std::min(rest.find_first_not_of('`'), rest.size());
    return closed_by(rest.substr(0, ticks), at + ticks);
  }
  if (rest.starts_with("[")) {
    const std::size_t middle = text.find(']', at);
    if (middle == text.npos || middle + 1 >= text.size() || text[middle + 1] != '(') return at;
    return closed_by(")", middle);
  }
  return at;
}

}  // namespace

std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  std::size_t last_end = 0;
  for (std::size_t at = 0; at < text.size();) {
    Letter letter = letter_at(text, at);
    if (letter.folded.empty()) {
      at += letter.size;
      continue;
    }
    Word word;
    word.begin = at;
    while (at < text.size() && !(letter = letter_at(text, at)).folded.empty()) {
      word.folded += letter.folded;
      at += letter.size;
    }
    word.end = std::min(at, text.size());
    word.continues = !words.empty() && is_gap(text.substr(last_end, word.begin - last_end));
    word.glued_before = word.begin > 0 && ties(text, word.begin - 1);
    word.glued_after = ties(text, word.end);
    last_end = word.end;
    words.push_back(std::move(word));
  }
  return words;
}

std::string folded(std::string_view text) {
  std::string joined;
  for (const Word& word : words_of(text)) joined += (joined.empty() ? "" : " ") + word.folded;
  return joined;
}

std::string prose(std::string_view markdown) {
  std::string text(markdown);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_span(markdown, at);
    std::fill(text.begin() + static_cast<std::ptrdiff_t>(at),
              text.begin() + static_cast<std::ptrdiff_t>(end), kBlot);
    at = end > at ? end : at + 1;
  }
  return text;
}

}  // namespace tilestep::scenes::glossary_words
