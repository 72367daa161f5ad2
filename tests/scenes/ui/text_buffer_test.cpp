#include "scenes/ui/text_buffer.hpp"

#include <random>
#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace tilestep;
using ui::TextBuffer;
using ui::TextMove;
using ui::TextSpot;

namespace {

void type(TextBuffer& buffer, std::string_view text) {
  for (const char c : text) {
    if (c == '\n') {
      buffer.new_line();
    } else {
      buffer.type(static_cast<char32_t>(c));
    }
  }
}

bool starts_character(const std::string& text, std::size_t offset) {
  return offset == text.size() || (static_cast<unsigned char>(text[offset]) & 0xC0u) != 0x80u;
}

}  // namespace

TEST_CASE("what comes into a text is UTF-8 with plain line ends", "[ui_text]") {
  CHECK(TextBuffer("a\r\nb\rc\td").text() == "a\nb\nc  d");
  CHECK(TextBuffer(std::string_view("x\0y\x1b\x7fz", 6)).text() == "xyz");
  CHECK(TextBuffer("Σ \xff \xe2\x82 \xc0\xaf \xed\xa0\x80|").text() == "Σ � � � �|");
  CHECK(TextBuffer("\U0001F600").text() == "\U0001F600");
  CHECK(TextBuffer().lines() == 1);
  CHECK(TextBuffer("one\n").lines() == 2);
  CHECK(TextBuffer("one\ntwo").line(1) == "two");
}

TEST_CASE("the cursor moves by characters, words, lines and keeps its column", "[ui_text]") {
  TextBuffer text("  Σab = f(x);\n\nlonger line\n");
  text.move(TextMove::line_start, false);
  CHECK(text.spot() == TextSpot{0, 2});  // where the text begins
  text.move(TextMove::line_start, false);
  CHECK(text.spot() == TextSpot{0, 0});
  text.move(TextMove::right, false, 3);
  CHECK(text.cursor() == 4);  // Σ has two bytes
  CHECK(text.spot() == TextSpot{0, 3});
  text.move(TextMove::word_right, false);
  CHECK(text.spot() == TextSpot{0, 5});
  text.move(TextMove::word_right, false);
  CHECK(text.spot() == TextSpot{0, 7});
  text.move(TextMove::line_end, false);
  CHECK(text.spot() == TextSpot{0, 13});
  text.move(TextMove::down, false);
  CHECK(text.spot() == TextSpot{1, 0});
  text.move(TextMove::down, false);
  CHECK(text.spot() == TextSpot{2, 11});  // as far as the line goes
  text.move(TextMove::up, false, 2);
  CHECK(text.spot() == TextSpot{0, 13});
  text.move(TextMove::word_left, true);
  CHECK(text.selected() == ");");
  text.move(TextMove::left, false);  // to the start of what was selected
  CHECK(text.spot() == TextSpot{0, 11});
  CHECK_FALSE(text.has_selection());
  text.move(TextMove::text_end, false);
  CHECK(text.spot() == TextSpot{3, 0});
  text.move(TextMove::right, false);
  CHECK(text.cursor() == text.text().size());
  CHECK(text.offset_of({99, 99}) == text.text().size());
  text.select_word(5);
  CHECK(text.selected() == "Σab");
  text.select_line(2);
  CHECK(text.selected() == "longer line\n");
}

TEST_CASE("typing is undone word by word, erasing run by run", "[ui_text]") {
  TextBuffer text;
  type(text, "float a;");
  CHECK(text.text() == "float a;");
  CHECK(text.undo());
  CHECK(text.text() == "float ");
  CHECK(text.undo());
  CHECK(text.text().empty());
  CHECK_FALSE(text.undo());
  CHECK(text.redo());
  CHECK(text.redo());
  CHECK(text.text() == "float a;");
  CHECK(text.cursor() == 8);
  CHECK_FALSE(text.redo());
  for (int i = 0; i < 3; ++i) text.erase_back();
  CHECK(text.text() == "float");
  text.undo();
  CHECK(text.text() == "float a;");
  // A move between two letters parts them.
  text = TextBuffer();
  type(text, "ab");
  text.move(TextMove::left, false);
  text.move(TextMove::right, false);
  type(text, "cd");
  text.undo();
  CHECK(text.text() == "ab");
  // What is typed after an undo takes the place of what could be redone.
  type(text, "x");
  CHECK_FALSE(text.redo());
  const auto revision = text.revision();
  text.undo();
  CHECK(text.revision() != revision);
}

TEST_CASE("a new line keeps the indent, and a brace changes it", "[ui_text]") {
  TextBuffer text;
  type(text, "void f() {\nint a;\nif (a) {\nb();\n}\n}");
  CHECK(text.text() == "void f() {\n  int a;\n  if (a) {\n    b();\n  }\n}");
  // In the indent backspace takes a level.
  text = TextBuffer("    x");
  text.move(TextMove::line_start, false);
  text.erase_back();
  CHECK(text.text() == "  x");
  text = TextBuffer("   x");
  text.go_to(3, false);
  text.erase_back();
  CHECK(text.text() == "  x");
  // Before the indent a new line has none of its own.
  text = TextBuffer("  x");
  text.new_line();
  CHECK(text.text() == "\n  x");
}

TEST_CASE("selected lines are indented and commented as one edit", "[ui_text]") {
  const std::string before = "if (a) {\n  b();\n\n  c();\n}\nd();\n";
  TextBuffer text(before);
  text.select(0, before.find("\nd"));
  text.indent();
  CHECK(text.text() == "  if (a) {\n    b();\n\n    c();\n  }\nd();\n");
  CHECK(text.selected() == "if (a) {\n    b();\n\n    c();\n  }");
  text.unindent();
  CHECK(text.text() == before);
  text.toggle_comment();
  CHECK(text.text() == "// if (a) {\n//   b();\n\n//   c();\n// }\nd();\n");
  text.toggle_comment();
  CHECK(text.text() == before);
  text.undo();
  CHECK(text.text() == "// if (a) {\n//   b();\n\n//   c();\n// }\nd();\n");
  text.undo();
  CHECK(text.text() == before);
  text = TextBuffer("a");
  text.move(TextMove::line_end, false);
  text.indent();
  CHECK(text.text() == "a ");  // to the next even column
  text.toggle_comment();
  CHECK(text.text() == "// a ");
  text.select(5, 5);
  text.unindent();  // there is nothing to take
  CHECK(text.text() == "// a ");
}

TEST_CASE("cut takes the selection, or else the line", "[ui_text]") {
  TextBuffer text("one\ntwo\nthree");
  text.go_to(5, false);
  CHECK(text.copy() == "two\n");
  CHECK(text.cut() == "two\n");
  CHECK(text.text() == "one\nthree");
  text.insert("a\tb");
  CHECK(text.text() == "one\na  bthree");
  text.select_all();
  CHECK(text.cut() == "one\na  bthree");
  CHECK(text.text().empty());
  text.undo();
  CHECK(text.text() == "one\na  bthree");
}

TEST_CASE("finding goes round, and capitals count only where they are asked for", "[ui_text]") {
  TextBuffer text("Sum sum SUM\nsum");
  CHECK(text.matches("sum").size() == 4);
  CHECK(text.matches("Sum").size() == 1);
  CHECK(text.matches("").empty());
  CHECK(text.find("sum", true, true));
  CHECK(text.selection() == std::pair<std::size_t, std::size_t>{0, 3});
  CHECK(text.find("sum", true, true));  // what is selected may be it
  CHECK(text.cursor() == 3);
  CHECK(text.find("sum", true));
  CHECK(text.cursor() == 7);
  CHECK(text.find("sum", false));
  CHECK(text.find("sum", false));
  CHECK(text.spot() == TextSpot{1, 3});
  CHECK(text.find("sum", true));
  CHECK(text.cursor() == 3);
  CHECK_FALSE(text.find("none", true));
  CHECK(text.cursor() == 3);
}

TEST_CASE("another text in place of this one is one edit", "[ui_text]") {
  TextBuffer text("a\nb\nc");
  text.go_to(4, false);
  const auto revision = text.revision();
  text.replace_all("a\nb\nc");
  CHECK(text.revision() == revision);
  text.replace_all("x\r\ny\nlonger");
  CHECK(text.text() == "x\ny\nlonger");
  CHECK(text.spot() == TextSpot{2, 0});
  text.undo();
  CHECK(text.text() == "a\nb\nc");
  text.redo();
  CHECK(text.text() == "x\ny\nlonger");
}

TEST_CASE("a line is found again in a text that was edited elsewhere", "[ui_text]") {
  const std::string before = "a\nb\nc\nd\ne";
  CHECK(ui::LineMap(before, before).now(3) == 3);
  CHECK(ui::LineMap(before, "a\nb\nc\nnew\nd\ne").now(3) == 3);
  CHECK(ui::LineMap(before, "a\nb\nc\nnew\nd\ne").now(4) == 5);
  CHECK(ui::LineMap(before, "a\nb\nd\ne").now(5) == 4);
  CHECK_FALSE(ui::LineMap(before, "a\nb\nC\nd\ne").now(3));
  CHECK_FALSE(ui::LineMap(before, "a\nb\nd\ne").now(3));
  CHECK_FALSE(ui::LineMap(before, "").now(5));
  CHECK_FALSE(ui::LineMap(before, before).now(6));
  CHECK_FALSE(ui::LineMap(before, before).now(0));
}

TEST_CASE("whatever is done to a text can be undone, and no character is ever split", "[ui_text]") {
  const std::string before = "void Σ() {\n  // größer → kleiner\n  f(\"€\");\n}\n";
  std::mt19937 random(7);
  TextBuffer text(before);
  const auto any = [&](std::size_t most) { return random() % most; };
  constexpr TextMove kMoves[] = {TextMove::left,       TextMove::right,     TextMove::up,
                                 TextMove::down,       TextMove::word_left, TextMove::word_right,
                                 TextMove::line_start, TextMove::line_end,  TextMove::text_start,
                                 TextMove::text_end};
  for (int i = 0; i < 1500; ++i) {
    switch (any(12)) {
      case 0:
        text.type(U"aΣ€\U0001F600}{ "[any(7)]);
        break;
      case 1:
        text.new_line();
        break;
      case 2:
        text.erase_back(any(2) == 0);
        break;
      case 3:
        text.erase_on(any(2) == 0);
        break;
      case 4:
        text.insert("é\n\xff");
        break;
      case 5:
        any(2) == 0 ? text.indent() : text.unindent();
        break;
      case 6:
        text.toggle_comment();
        break;
      case 7:
        text.select_word(any(text.text().size() + 1));
        break;
      case 8:
        any(4) == 0 ? (void)text.cut() : (void)text.find("f", any(2) == 0);
        break;
      case 9:
        any(2) == 0 ? text.undo() : text.redo();
        break;
      default:
        text.move(kMoves[any(std::size(kMoves))], any(2) == 0, static_cast<int>(any(3)));
    }
    REQUIRE(ui::clean_text(text.text()) == text.text());
    REQUIRE(starts_character(text.text(), text.cursor()));
    REQUIRE(starts_character(text.text(), text.selection().first));
    REQUIRE(starts_character(text.text(), text.selection().second));
    REQUIRE(text.offset_of(text.spot()) == text.cursor());
  }
  while (text.redo()) {
  }
  const std::string last = text.text();
  int steps = 0;
  for (; text.undo(); ++steps) REQUIRE(ui::clean_text(text.text()) == text.text());
  CHECK(steps > 100);
  CHECK(text.text() == before);
  while (text.redo()) {
  }
  CHECK(text.text() == last);
}
