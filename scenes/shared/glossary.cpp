#include "scenes/shared/glossary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/simt/error.hpp"
#include "scenes/shared/glossary_words.hpp"

namespace tilestep::scenes {
namespace {

using glossary_words::folded;
using glossary_words::Word;
using glossary_words::words_of;

using lab::trimmed;

std::vector<std::string> listed(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    if (const auto part = trimmed(text.substr(0, end)); !part.empty()) parts.emplace_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string id_of(std::string_view name) {
  std::string id;
  for (const char c : name) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      id += c;
    } else if (c >= 'A' && c <= 'Z') {
      id += static_cast<char>(c - 'A' + 'a');
    } else if (!id.empty() && id.back() != '-') {
      id += '-';
    }
  }
  while (!id.empty() && id.back() == '-') id.pop_back();
  return id;
}

/// What links of the kind "term:" or "lesson:" in `text` point to.
std::vector<std::string> targets(std::string_view text, std::string_view kind) {
  const std::string opening = fmt::format("]({}", kind);
  std::vector<std::string> found;
  for (std::size_t at = 0; (at = text.find(opening, at)) != text.npos;) {
    at += opening.size();
    const std::size_t end = std::min(text.find(')', at), text.size());
    std::string target(text.substr(at, end - at));
    if (std::find(found.begin(), found.end(), target) == found.end()) {
      found.push_back(std::move(target));
    }
  }
  return found;
}

/// Markdown of one paragraph as it reads: labels of links, no marks of emphasis, code as it is, one line.
std::string plain(std::string_view markdown) {
  std::string text;
  bool code = false, link = false;
  for (std::size_t i = 0; i < markdown.size(); ++i) {
    const char c = markdown[i];
    if (c == '`') {
      code = !code;
    } else if (!code && c == '[' &&
               markdown.substr(std::min(markdown.find(']', i), markdown.size()))
                   .starts_with("](")) {
      link = true;
    } else if (link && c == ']') {
      i = std::min(markdown.find(')', i), markdown.size());
      link = false;
    } else if (code || c != '*') {
      text += c == '\n' ? ' ' : c;
    }
  }
  return text;
}

}  // namespace

std::string first_sentence(std::string_view markdown) {
  const bool point = markdown.starts_with("- ");  // the first of a list
  const std::string text = plain(point ? markdown.substr(2) : markdown);
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    const bool ends = text[i] == '.' || text[i] == '?' || text[i] == '!';
    const auto next = static_cast<unsigned char>(text[i + 2]);
    if (ends && text[i + 1] == ' ' && !(next >= 'a' && next <= 'z')) return text.substr(0, i + 1);
  }
  return text;
}

namespace {

/// The value of a comment line `<!-- label: value -->`.
std::optional<std::string_view> comment(std::string_view line, std::string_view label) {
  line = trimmed(line);
  const std::string opening = fmt::format("<!-- {}:", label);
  if (!line.starts_with(opening) || !line.ends_with("-->")) return std::nullopt;
  return trimmed(line.substr(opening.size(), line.size() - opening.size() - 3));
}

void read_line(Term& term, std::string_view line) {
  if (const auto also = comment(line, "also")) {
    term.aliases = listed(*also);
  } else if (const auto only = comment(line, "only in")) {
    term.only_in = listed(*only);
  } else if (line.starts_with("Seen in:")) {
    term.lessons = targets(line, "lesson:");
  } else if (!line.starts_with("<!--")) {
    term.text += fmt::format("{}\n", line);
  }
}

void finish(Term& term) {
  term.text = std::string(trimmed(term.text));
  if (term.text.empty()) {
    throw Error(fmt::format("the glossary says nothing about '{}'", term.name));
  }
  term.first_sentence = first_sentence(term.text);
  term.related = targets(term.text, "term:");
}

void check(const std::vector<Term>& terms) {
  std::set<std::string> ids;
  std::map<std::string, std::string> names;
  for (const Term& term : terms) {
    ids.insert(term.id);
    std::vector<std::string> all = term.aliases;
    all.push_back(term.name);
    for (const std::string& name : all) {
      const auto [other, fresh] = names.emplace(folded(name), term.name);
      if (!fresh) {
        throw Error(fmt::format("the glossary has '{}' twice: under {} and {}", name, other->second,
                                term.name));
      }
    }
  }
  for (const Term& term : terms) {
    for (const std::string& id : term.related) {
      if (!ids.contains(id)) {
        throw Error(fmt::format("'{}' links to a term that is not there: {}", term.name, id));
      }
    }
  }
}

/// How well a term fits; lower is better.
enum class Fit { name, alias, name_begins, alias_begins, word_begins, text, no };

/// Each text starts with a space, so that a word that begins with `query` is found as " query".
struct Haystack {
  std::string name, text;
  std::vector<std::string> aliases;
};

Fit fit(const Haystack& in, const std::string& query) {
  const std::string begin = " " + query;
  const auto any = [&](auto&& holds) {
    return std::any_of(in.aliases.begin(), in.aliases.end(), holds);
  };
  if (in.name == begin) return Fit::name;
  if (any([&](const std::string& alias) { return alias == begin; })) return Fit::alias;
  if (in.name.starts_with(begin)) return Fit::name_begins;
  if (any([&](const std::string& alias) { return alias.starts_with(begin); })) {
    return Fit::alias_begins;
  }
  if (in.name.find(begin) != in.name.npos ||
      any([&](const std::string& alias) { return alias.find(begin) != alias.npos; })) {
    return Fit::word_begins;
  }
  return in.text.find(begin) != in.text.npos ? Fit::text : Fit::no;
}

const std::vector<Haystack>& haystacks() {
  static const std::vector<Haystack> kept = [] {
    std::vector<Haystack> all;
    for (const Term& term : glossary()) {
      Haystack one{" " + folded(term.name), " " + folded(plain(term.text)), {}};
      for (const std::string& alias : term.aliases) one.aliases.push_back(" " + folded(alias));
      all.push_back(std::move(one));
    }
    return all;
  }();
  return kept;
}

/// A name or alias as its words. One with a capital inside ("ZeRO") is only met as it is written.
struct Spelling {
  struct Part {
    std::string folded, exact;
  };
  std::vector<Part> words;
  const Term* term = nullptr;
};

bool is_capital(char c) {
  return c >= 'A' && c <= 'Z';
}

/// All spellings by their first word, the longest first.
const std::map<std::string, std::vector<Spelling>>& spellings() {
  static const auto kept = [] {
    std::map<std::string, std::vector<Spelling>> by_word;
    for (const Term& term : glossary()) {
      std::vector<std::string> names = term.aliases;
      names.push_back(term.name);
      for (const std::string& name : names) {
        Spelling spelling{{}, &term};
        for (const Word& word : words_of(name)) {
          const std::string raw = name.substr(word.begin, word.end - word.begin);
          const bool capitals = std::any_of(raw.begin() + 1, raw.end(), is_capital);
          spelling.words.push_back({word.folded, capitals ? raw : std::string()});
        }
        by_word[spelling.words.at(0).folded].push_back(std::move(spelling));
      }
    }
    for (auto& [word, list] : by_word) {
      std::stable_sort(list.begin(), list.end(), [](const Spelling& a, const Spelling& b) {
        return a.words.size() > b.words.size();
      });
    }
    return by_word;
  }();
  return kept;
}

bool means(const Term& term, std::string_view lesson) {
  return term.only_in.empty() ||
         std::find(term.only_in.begin(), term.only_in.end(), lesson) != term.only_in.end();
}

/// Whether `word` is `wanted`, perhaps with an s.
bool is(std::string_view word, std::string_view wanted, bool plural) {
  return word == wanted || (plural && word.size() == wanted.size() + 1 && word.ends_with('s') &&
                            word.starts_with(wanted));
}

/// Whether `spelling` stands at `words[at]` of `text`, its last word perhaps with a plural s.
bool stands(const Spelling& spelling, std::string_view text, const std::vector<Word>& words,
            std::size_t at) {
  const std::size_t count = spelling.words.size();
  if (at + count > words.size() || words[at].glued_before || words[at + count - 1].glued_after) {
    return false;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Word& word = words[at + i];
    const Spelling::Part& part = spelling.words[i];
    const bool plural = i + 1 == count;
    if (!is(word.folded, part.folded, plural) || (i > 0 && !word.continues)) return false;
    const std::string_view raw = text.substr(word.begin, word.end - word.begin);
    if (!part.exact.empty() && !is(raw, part.exact, plural)) return false;
  }
  return true;
}

const Spelling* spelling_at(std::string_view text, const std::vector<Word>& words, std::size_t at,
                            std::string_view lesson) {
  std::array<std::string, 2> starts{words[at].folded, {}};
  if (starts[0].ends_with('s')) starts[1] = starts[0].substr(0, starts[0].size() - 1);
  const Spelling* best = nullptr;
  for (const std::string& start : starts) {
    const auto found = spellings().find(start);
    if (found == spellings().end()) continue;
    for (const Spelling& spelling : found->second) {
      if (means(*spelling.term, lesson) && stands(spelling, text, words, at) &&
          (!best || spelling.words.size() > best->words.size())) {
        best = &spelling;
      }
    }
  }
  return best;
}

}  // namespace

std::vector<Term> parse_glossary(std::string_view markdown) {
  std::vector<Term> terms;
  while (!markdown.empty()) {
    const std::size_t end = std::min(markdown.find('\n'), markdown.size());
    const std::string_view line = trimmed(markdown.substr(0, end));
    markdown.remove_prefix(std::min(end + 1, markdown.size()));
    if (line.starts_with("## ")) {
      if (!terms.empty()) finish(terms.back());
      Term& term = terms.emplace_back();
      term.name = trimmed(line.substr(3));
      term.id = id_of(term.name);
    } else if (!terms.empty()) {
      read_line(terms.back(), line);
    }
  }
  if (!terms.empty()) finish(terms.back());
  check(terms);
  return terms;
}

const std::vector<Term>& glossary() {
  static const std::vector<Term> terms = parse_glossary(lab::asset("assets/glossary.md"));
  return terms;
}

const Term* term_of(std::string_view id) {
  for (const Term& term : glossary()) {
    if (term.id == id) return &term;
  }
  return nullptr;
}

std::vector<const Term*> find_terms(std::string_view query) {
  const std::string wanted = folded(query);
  std::vector<std::pair<Fit, const Term*>> found;
  for (std::size_t i = 0; i < glossary().size(); ++i) {
    const Fit how = wanted.empty() ? Fit::name : fit(haystacks()[i], wanted);
    if (how != Fit::no) found.emplace_back(how, &glossary()[i]);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const Term*> terms;
  for (const auto& [how, term] : found) terms.push_back(term);
  return terms;
}

std::vector<TermMention> terms_in(std::string_view markdown, std::string_view lesson) {
  const std::string prose = glossary_words::prose(markdown);
  const std::vector<Word> words = words_of(prose);
  std::set<const Term*> seen;
  std::vector<TermMention> mentions;
  for (std::size_t i = 0; i < words.size();) {
    const Spelling* spelling = spelling_at(prose, words, i, lesson);
    if (!spelling) {
      ++i;
      continue;
    }
    const Word& last = words[i + spelling->words.size() - 1];
    if (seen.insert(spelling->term).second) {
      mentions.push_back({spelling->term, words[i].begin, last.end - words[i].begin});
    }
    i += spelling->words.size();
  }
  return mentions;
}

}  // namespace tilestep::scenes
