#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// How the glossary compares words: without case, accents and hyphens.
namespace tilestep::scenes::glossary_words {

struct Word {
  std::string folded;              ///< lower case, without accents
  std::size_t begin = 0, end = 0;  ///< bytes of the text
  bool continues = false;     ///< only spaces, or one of - . / :, lie between it and the one before
  bool glued_before = false;  ///< part of a longer word, as "tile" in "shared-tile"
  bool glued_after = false;
};

std::vector<Word> words_of(std::string_view text);
/// The words of `text` with a space between.
std::string folded(std::string_view text);
/// `markdown` at the same length, with everything blanked that is not running text: headings, code,
/// links, comments.
std::string prose(std::string_view markdown);

}  // namespace tilestep::scenes::glossary_words
