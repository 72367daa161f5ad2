// Finds the first use of each of a list of phrases in a Markdown document.
#include <algorithm>
#include <cctype>
#include <numeric>

#include "scenes/ui/markdown_document.hpp"

namespace tilestep::ui {
namespace {

/// In UTF-8 every byte of a letter beyond ASCII is one of these too.
bool in_word(char byte) {
  const auto code = static_cast<unsigned char>(byte);
  return code >= 0x80 || std::isalnum(code) != 0 || byte == '_';
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& byte : result) {
    if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte - 'A' + 'a');
  }
  return result;
}

/// A text as one string, a blank between words; code and links are '\n's.
std::string searched(const MarkdownText& text) {
  std::string flat;
  for (const MarkdownWord& word : text) {
    for (const MarkdownPiece& piece : word) {
      const bool free = !piece.code && piece.link.empty();
      flat += free ? lower(piece.text) : std::string(piece.text.size(), '\n');
    }
    flat += ' ';
  }
  return flat;
}

/// Where `phrase` stands in `flat` as whole words, and how long it is there; npos: nowhere.
std::pair<std::size_t, std::size_t> place_of(const std::string& flat, const std::string& phrase) {
  for (std::size_t at = flat.find(phrase); at != std::string::npos;
       at = flat.find(phrase, at + 1)) {
    std::size_t end = at + phrase.size();
    if (phrase.size() > 2 && end < flat.size() && flat[end] == 's') ++end;
    const bool begins = at == 0 || !in_word(flat[at - 1]);
    if (begins && (end == flat.size() || !in_word(flat[end]))) return {at, end - at};
  }
  return {std::string::npos, 0};
}

/// Makes pieces of their own of what stands from `begin` to `end` in searched(text).
void mark(MarkdownText& text, std::size_t begin, std::size_t end, int term) {
  std::size_t at = 0;  // of the piece
  for (MarkdownWord& word : text) {
    MarkdownWord made;
    for (const MarkdownPiece& piece : word) {
      const std::size_t size = piece.text.size();
      const std::size_t from = std::clamp(begin, at, at + size) - at;
      const std::size_t to = std::clamp(end, at, at + size) - at;
      const auto part = [&](std::size_t first, std::size_t last, int of) {
        if (first >= last) return;
        made.push_back(piece);
        made.back().text = piece.text.substr(first, last - first);
        made.back().term = of;
      };
      part(0, from, piece.term);
      part(from, to, term);
      part(to, size, piece.term);
      at += size;
    }
    word = std::move(made);
    ++at;  // the blank
  }
}

/// A text in which terms may stand, and the same for searching.
struct Place {
  MarkdownText* text;
  std::string flat;
};

std::vector<Place> places_in(std::vector<MarkdownBlock>& blocks) {
  std::vector<Place> places;
  const auto add = [&](MarkdownText& text) { places.push_back({&text, searched(text)}); };
  for (MarkdownBlock& block : blocks) {
    if (block.kind == MarkdownBlock::Kind::heading || block.kind == MarkdownBlock::Kind::code)
      continue;
    add(block.text);
    for (std::size_t row = 1; row < block.rows.size(); ++row) {
      for (MarkdownText& cell : block.rows[row]) add(cell);
    }
  }
  return places;
}

void mark_first(std::vector<Place>& places, const std::string& phrase, int term) {
  for (Place& place : places) {
    const auto [at, size] = place_of(place.flat, phrase);
    if (at == std::string::npos) continue;
    mark(*place.text, at, at + size, term);
    std::fill_n(place.flat.begin() + static_cast<std::ptrdiff_t>(at), size, '\n');
    return;
  }
}

}  // namespace

void mark_terms(std::vector<MarkdownBlock>& blocks, const std::vector<std::string>& phrases) {
  std::vector<std::size_t> order(phrases.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
    return phrases[one].size() > phrases[other].size();
  });
  std::vector<Place> places = places_in(blocks);
  for (const std::size_t term : order) {
    if (!phrases[term].empty()) mark_first(places, lower(phrases[term]), static_cast<int>(term));
  }
}

}  // namespace tilestep::ui
