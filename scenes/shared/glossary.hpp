#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// The glossary: assets/glossary.md in a form that can be searched and linked.
namespace tilestep::scenes {

struct Term {
  std::string id;  ///< as links name it: "shared-memory" in `[...](term:shared-memory)`
  std::string name;
  std::vector<std::string> aliases;
  std::string text;                  ///< Markdown, without what follows under `lessons`
  std::string first_sentence;        ///< plain text; stands alone
  std::vector<std::string> related;  ///< ids of the terms that `text` links, in its order
  std::vector<std::string> lessons;  ///< names of the lessons that show it ("online-softmax")
  /// Lessons in whose texts this everyday word is the term ("key", "value"); empty: all.
  std::vector<std::string> only_in;
};

/// The first sentence as plain text on one line.
std::string first_sentence(std::string_view markdown);

/// Reads a glossary. A term is a heading `## Name`, then comments on lines of their own if there are
/// any, `<!-- also: alias, alias -->` and `<!-- only in: lesson -->`, its text, and a last line
/// `Seen in: [Title](lesson:name)`. Throws Error for a duplicate name or alias, a term without
/// text, and a link to a missing term.
std::vector<Term> parse_glossary(std::string_view markdown);

/// The terms of assets/glossary.md, in its order (alphabetical).
const std::vector<Term>& glossary();
/// The term of that id; nullptr: none.
const Term* term_of(std::string_view id);

/// Terms that match `query`, best first: by name, by the beginning of a name, of an alias, of a word in
/// either, of a word in the text. Upper case, accents and hyphens do not matter. An empty query finds
/// all.
std::vector<const Term*> find_terms(std::string_view query);

/// A term in a text.
struct TermMention {
  const Term* term = nullptr;
  std::size_t begin = 0, size = 0;  ///< bytes of the text
};

/// First occurrences of terms in `markdown`, in text order: whole words, a plural s allowed, the longest
/// matching term, capitals inside a word as they are ("ZeRO" is not zero). Headings, code, links and comments are
/// skipped. `lesson` is the lesson that the text belongs to; without it, terms with `only_in` are not searched.
std::vector<TermMention> terms_in(std::string_view markdown, std::string_view lesson = {});

}  // namespace tilestep::scenes
