#include "scenes/ui/markdown_document.hpp"

#include <md4c.h>

#include <cassert>
#include <functional>
#include <string>

namespace tilestep::ui {
namespace {

using Kind = MarkdownBlock::Kind;

/// Bytes behind a text that the parser may look at.
constexpr std::size_t kPastTheEnd = 64;

class Builder {
 public:
  /// `source`: all of the text, with kPastTheEnd bytes behind it.
  explicit Builder(std::string_view source) : source_(source) {}

  /// What of `text`, which the parser found, is in the source; or is the parser's own.
  std::string_view inside(std::string_view text) const {
    const std::less<> before;
    const char* const end = source_.data() + source_.size();
    if (before(text.data(), source_.data()) || before(end + kPastTheEnd, text.data())) return text;
    if (!before(text.data(), end)) return {};
    return text.substr(0, static_cast<std::size_t>(end - text.data()));
  }

  std::vector<MarkdownBlock> take() { return std::move(blocks_); }

  void enter(MD_BLOCKTYPE type, void* detail) {
    switch (type) {
      case MD_BLOCK_UL:
        lists_.push_back(-1);
        break;
      case MD_BLOCK_OL:
        lists_.push_back(static_cast<int>(static_cast<MD_BLOCK_OL_DETAIL*>(detail)->start));
        break;
      case MD_BLOCK_LI:
        start_item();
        break;
      case MD_BLOCK_QUOTE:
        ++quotes_;
        break;
      case MD_BLOCK_P:
        // The first paragraph of an item is the item itself.
        if (blocks_.empty() || blocks_.back().kind != Kind::item || !blocks_.back().text.empty()) {
          start(Kind::paragraph);
        }
        break;
      case MD_BLOCK_H:
        start(Kind::heading).level =
            static_cast<int>(static_cast<MD_BLOCK_H_DETAIL*>(detail)->level);
        break;
      case MD_BLOCK_HR:
        start(Kind::rule);
        break;
      case MD_BLOCK_CODE:
        start(Kind::code);
        break;
      case MD_BLOCK_TABLE:
        start(Kind::table);
        break;
      case MD_BLOCK_HTML:
        html_ = Html::begins;
        break;
      case MD_BLOCK_TR:
        blocks_.back().rows.emplace_back();
        break;
      case MD_BLOCK_TH:
      case MD_BLOCK_TD:
        start_cell(type, static_cast<MD_BLOCK_TD_DETAIL*>(detail));
        break;
      default:
        break;
    }
    joined_ = false;
  }

  void leave(MD_BLOCKTYPE type) {
    if (type == MD_BLOCK_UL || type == MD_BLOCK_OL) lists_.pop_back();
    if (type == MD_BLOCK_QUOTE) --quotes_;
    if (type == MD_BLOCK_HTML) html_ = Html::none;
    joined_ = false;
  }

  void span(MD_SPANTYPE type, bool entered, void* detail) {
    const int change = entered ? 1 : -1;
    if (type == MD_SPAN_STRONG || type == MD_SPAN_EM) bold_ += change;
    if (type == MD_SPAN_CODE) code_ += change;
    if (type != MD_SPAN_A) return;
    link_.clear();
    if (!entered) return;
    const MD_ATTRIBUTE& target = static_cast<MD_SPAN_A_DETAIL*>(detail)->href;
    link_.assign(target.text, target.size);
    ++links_;
  }

  void text(MD_TEXTTYPE type, std::string_view text) {
    if (type == MD_TEXT_HTML && comments(text)) return;
    if (blocks_.empty()) return;
    if (blocks_.back().kind == Kind::code) {
      blocks_.back().code += text;
      return;
    }
    switch (type) {
      case MD_TEXT_BR:
        target().emplace_back();
        joined_ = false;
        break;
      case MD_TEXT_SOFTBR:
        if (is_chip(link_)) return add(" ");
        joined_ = false;
        break;
      case MD_TEXT_ENTITY:
        add(entity(text));
        break;
      default:
        add(text);
        break;
    }
  }

 private:
  /// Of a block that begins as HTML does.
  enum class Html { none, begins, comment, shown };

  /// Whether `text` is (part of) a comment, which is never shown. Other HTML is shown as it is written.
  bool comments(std::string_view text) {
    const bool begins = text.starts_with("<!--");
    if (html_ == Html::begins) {
      html_ = begins ? Html::comment : Html::shown;
      if (!begins) start(Kind::paragraph);
    }
    return html_ == Html::comment || (html_ == Html::none && begins);
  }

  MarkdownBlock& start(Kind kind) {
    MarkdownBlock block;
    block.kind = kind;
    block.depth = static_cast<int>(lists_.size()) + quotes_;
    blocks_.push_back(std::move(block));
    return blocks_.back();
  }

  void start_item() {
    assert(!lists_.empty());
    MarkdownBlock& item = start(Kind::item);
    int& number = lists_.back();
    item.marker = number < 0 ? "•" : std::to_string(number++) + ".";
  }

  void start_cell(MD_BLOCKTYPE type, const MD_BLOCK_TD_DETAIL* detail) {
    MarkdownBlock& table = blocks_.back();
    table.rows.back().emplace_back();
    if (type == MD_BLOCK_TH) table.right.push_back(detail->align == MD_ALIGN_RIGHT);
  }

  MarkdownText& target() {
    MarkdownBlock& block = blocks_.back();
    if (block.kind == Kind::table && !block.rows.empty() && !block.rows.back().empty()) {
      return block.rows.back().back();
    }
    return block.text;
  }

  static std::string entity(std::string_view name) {
    if (name == "&amp;") return "&";
    if (name == "&lt;") return "<";
    if (name == "&gt;") return ">";
    if (name == "&quot;") return "\"";
    if (name == "&nbsp;") return "\u00A0";
    return std::string(name);
  }

  /// Cuts at spaces; a piece that follows another without a space joins its word. Code and chips stay
  /// whole.
  void add(std::string_view text) {
    const bool whole = code_ > 0 || is_chip(link_);
    std::size_t at = 0;
    while (at < text.size()) {
      const bool space = text[at] == ' ' || text[at] == '\n';
      if (space && !whole) {
        joined_ = false;
        ++at;
        continue;
      }
      const std::size_t end =
          whole ? text.size() : std::min(text.find_first_of(" \n", at), text.size());
      add_piece({std::string(text.substr(at, end - at)), bold_ > 0, code_ > 0, link_,
                 link_.empty() ? -1 : links_});
      at = end;
    }
  }

  void add_piece(MarkdownPiece piece) {
    MarkdownText& words = target();
    if (!joined_ || words.empty()) words.emplace_back();
    words.back().push_back(std::move(piece));
    joined_ = true;
  }

  std::string_view source_;
  std::vector<MarkdownBlock> blocks_;
  std::vector<int> lists_;  ///< the next number, or −1 for bullets
  int quotes_ = 0;
  int bold_ = 0, code_ = 0;
  std::string link_;  ///< the target of the link that is open; empty: none
  int links_ = -1;    ///< the number of the last link
  Html html_ = Html::none;
  bool joined_ = false;  ///< no space since the last piece
};

Builder& builder(void* user) {
  return *static_cast<Builder*>(user);
}

}  // namespace

std::vector<MarkdownBlock> parse_markdown(std::string_view text) {
  // md4c 0.4.8 looks past the end where code is not closed, and hands on what it finds there.
  std::string padded(text);
  padded.append(kPastTheEnd, '\0');
  MD_PARSER parser{};
  parser.flags = MD_FLAG_TABLES;
  parser.enter_block = [](MD_BLOCKTYPE type, void* detail, void* user) {
    builder(user).enter(type, detail);
    return 0;
  };
  parser.leave_block = [](MD_BLOCKTYPE type, void*, void* user) {
    builder(user).leave(type);
    return 0;
  };
  parser.enter_span = [](MD_SPANTYPE type, void* detail, void* user) {
    builder(user).span(type, true, detail);
    return 0;
  };
  parser.leave_span = [](MD_SPANTYPE type, void* detail, void* user) {
    builder(user).span(type, false, detail);
    return 0;
  };
  parser.text = [](MD_TEXTTYPE type, const MD_CHAR* bytes, MD_SIZE size, void* user) {
    builder(user).text(type, builder(user).inside(std::string_view(bytes, size)));
    return 0;
  };
  Builder built(std::string_view(padded).substr(0, text.size()));
  md_parse(padded.data(), static_cast<MD_SIZE>(text.size()), &parser, &built);
  return built.take();
}

}  // namespace tilestep::ui
