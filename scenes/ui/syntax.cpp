#include "scenes/ui/syntax.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace tilestep::ui {
namespace {

constexpr std::array<std::string_view, 66> kKeywords = {
    "alignas",     "auto",     "bool",     "break",     "case",      "catch",     "char",
    "class",       "concept",  "const",    "constexpr", "consteval", "constinit", "continue",
    "decltype",    "default",  "delete",   "do",        "double",    "else",      "enum",
    "explicit",    "extern",   "false",    "float",     "for",       "friend",    "goto",
    "if",          "inline",   "int",      "long",      "mutable",   "namespace", "new",
    "noexcept",    "nullptr",  "operator", "override",  "private",   "protected", "public",
    "requires",    "return",   "short",    "signed",    "sizeof",    "static",    "static_assert",
    "static_cast", "struct",   "switch",   "template",  "this",      "throw",     "true",
    "try",         "typename", "union",    "unsigned",  "using",     "virtual",   "void",
    "volatile",    "while",    "final"};
constexpr std::array<std::string_view, 9> kCudaWords = {
    "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "dim3", "float2", "float4", "half"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

Syntax word_kind(std::string_view word) {
  if (std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end())
    return Syntax::keyword;
  if (std::find(kCudaWords.begin(), kCudaWords.end(), word) != kCudaWords.end())
    return Syntax::cuda;
  // __global__, __shared__, __syncthreads, __shfl_xor_sync, …
  return word.starts_with("__") ? Syntax::cuda : Syntax::plain;
}

class Scanner {
 public:
  explicit Scanner(std::string_view source) : source_(source) {}

  std::vector<SyntaxLine> lines() {
    while (at_ < source_.size()) {
      if (source_[at_] == '\n') {
        end_line();
        line_.begin = ++at_;
        continue;
      }
      const std::size_t begin = at_;
      const Syntax kind = next();
      add(begin, at_, kind);
    }
    if (line_.begin < source_.size()) end_line();
    return std::move(lines_);
  }

 private:
  char peek(std::size_t ahead) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  std::size_t line_end() const { return std::min(source_.find('\n', at_), source_.size()); }

  /// Moves over one piece of the line and says what it is.
  Syntax next() {
    if (in_comment_ || (source_[at_] == '/' && peek(1) == '*')) return block_comment();
    if (source_[at_] == '/' && peek(1) == '/') {
      at_ = line_end();
      return Syntax::comment;
    }
    const char c = source_[at_];
    const bool starts_line =
        source_.substr(line_.begin, at_ - line_.begin).find_first_not_of(' ') ==
        std::string_view::npos;
    if (c == '#' && starts_line) {
      ++at_;
      while (is_word(peek(0))) ++at_;
      return Syntax::keyword;
    }
    if (c == '"' || (c == '\'' && (at_ == 0 || !is_word(source_[at_ - 1])))) return quoted(c);
    if (is_digit(c)) {
      while (is_word(peek(0)) || peek(0) == '.' || (peek(0) == '\'' && is_word(peek(1)))) ++at_;
      return Syntax::number;
    }
    if (is_word(c)) {
      const std::size_t begin = at_;
      while (is_word(peek(0))) ++at_;
      return word_kind(source_.substr(begin, at_ - begin));
    }
    ++at_;
    return Syntax::plain;
  }

  Syntax block_comment() {
    const std::size_t stop = line_end();
    const std::size_t close = source_.find("*/", in_comment_ ? at_ : at_ + 2);
    in_comment_ = close == std::string_view::npos || close >= stop;
    at_ = in_comment_ ? stop : close + 2;
    return Syntax::comment;
  }

  Syntax quoted(char quote) {
    const std::size_t stop = line_end();
    ++at_;
    while (at_ < stop && source_[at_] != quote) at_ += source_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_ + 1, stop);
    return Syntax::string;
  }

  void add(std::size_t begin, std::size_t end, Syntax kind) {
    if (end == begin) return;
    const int columns = characters(source_.substr(begin, end - begin));
    if (!line_.spans.empty() && line_.spans.back().kind == kind) {
      line_.spans.back().end = end;
      line_.spans.back().columns += columns;
    } else {
      line_.spans.push_back({begin, end, columns, kind});
    }
    line_.columns += columns;
  }

  void end_line() {
    line_.end = at_;
    lines_.push_back(std::move(line_));
    line_ = {};
  }

  std::string_view source_;
  std::size_t at_ = 0;
  bool in_comment_ = false;
  SyntaxLine line_;
  std::vector<SyntaxLine> lines_;
};

}  // namespace

int characters(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
  }));
}

std::vector<SyntaxLine> tinted(std::string_view source) {
  return Scanner(source).lines();
}

}  // namespace tilestep::ui
