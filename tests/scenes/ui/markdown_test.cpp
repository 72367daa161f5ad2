#include "scenes/ui/markdown_document.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;

namespace {

const ImVec2 kPage(900, 600);

std::string words_of(const ui::MarkdownText& text) {
  std::string words;
  for (const ui::MarkdownWord& word : text) {
    for (const ui::MarkdownPiece& piece : word) words += piece.text;
    words += '|';
  }
  return words;
}

/// The marked pieces of a document: "term:words", in its order.
std::vector<std::string> marked(std::string_view text, const std::vector<std::string>& phrases) {
  std::vector<ui::MarkdownBlock> blocks = ui::parse_markdown(text);
  ui::mark_terms(blocks, phrases);
  std::vector<std::string> found;
  const auto look = [&](const ui::MarkdownText& words) {
    for (const ui::MarkdownWord& word : words) {
      for (const ui::MarkdownPiece& piece : word) {
        if (piece.term >= 0) found.push_back(std::to_string(piece.term) + ":" + piece.text);
      }
    }
  };
  for (const ui::MarkdownBlock& block : blocks) {
    look(block.text);
    for (const auto& row : block.rows) {
      for (const ui::MarkdownText& cell : row) look(cell);
    }
  }
  return found;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("links keep their targets, and a chip is one word", "[ui]") {
  const auto blocks = ui::parse_markdown(
      "See [two words](https://example.org), ([stride `32`\nnow](try:stride=32)) [m](light:m).");
  REQUIRE(blocks.size() == 1);
  const ui::MarkdownText& text = blocks[0].text;
  CHECK(words_of(text) == "See|two|words,|(stride 32 now)|m.|");
  CHECK(text[0][0].link.empty());
  CHECK(text[1][0].link == "https://example.org");
  CHECK(text[2][0].link == "https://example.org");
  CHECK(text[2][1].link.empty());
  CHECK(text[1][0].link_number == text[2][0].link_number);
  CHECK(text[3][0].link.empty());
  CHECK(text[3][1].link == "try:stride=32");
  CHECK(text[4][0].link == "light:m");
  CHECK(text[4][0].link_number == 2);
}

TEST_CASE("comments are never shown, other HTML is", "[ui]") {
  const auto blocks = ui::parse_markdown(
      "# T\n\n<!-- stop: step=1 -->\n## One\n\na <!-- inside --> b\n\n<!--\nlong\n\ncomment "
      "-->\nc\n\n<b>\n");
  REQUIRE(blocks.size() == 5);
  CHECK(words_of(blocks[1].text) == "One|");
  CHECK(words_of(blocks[2].text) == "a|b|");
  CHECK(words_of(blocks[3].text) == "c|");
  CHECK(words_of(blocks[4].text) == "<b>|");
}

TEST_CASE("the first use of a term is marked", "[ui]") {
  CHECK(marked("# warp\n\n`warp` A Warp, a warp.", {"warp"}) == Texts{"0:Warp"});
  CHECK(marked("[warp](light:m) of warps.", {"warp"}) == Texts{"0:warps"});
  CHECK(marked("warped warp-tile", {"warp"}) == Texts{"0:warp"});
  CHECK(marked("swarm", {"warm"}).empty());
  CHECK(marked("words in ms", {"m"}).empty());
  CHECK(marked("In shared\nmemory memory", {"memory", "shared memory"}) ==
        Texts{"1:shared", "1:memory", "0:memory"});
  CHECK(marked("| warp |\n|---|\n| a warp |\n", {"warp"}) == Texts{"0:warp"});
  CHECK(marked("a **b**old", {"bold"}) == Texts{"0:b", "0:old"});
  CHECK(marked("nothing", {"", "warp"}).empty());
}

TEST_CASE("chips, lights and terms say where they are and what happens to them", "[ui]") {
  tests::SceneFrame frame;
  ui::MarkdownEvents events;
  std::string clicked;
  ui::MarkdownLook look;
  look.terms = {{"sector", "32 bytes."}};
  const auto draw = [&] {
    events = ui::markdown(
        "Look at [the m](light:m).\n\n- [stride 32](try:stride=32): a sector\n- "
        "[8](try:stride=8)\n\n"
        "[page](https://example.org)\n",
        look);
    if (!events.clicked.empty()) clicked = events.clicked;
  };
  const tests::Parts parts = frame.draw(kPage, draw);
  CHECK(parts.at("light_0").label == "the m");
  CHECK(parts.at("light_0").value == "light:m");
  CHECK(parts.at("try_0").label == "stride 32");
  CHECK(parts.at("try_1").value == "try:stride=8");
  CHECK(parts.at("link_0").value == "https://example.org");
  CHECK(parts.at("term_0").label == "sector");
  CHECK(parts.at("try_0").max.x < parts.at("term_0").min.x);
  CHECK(parts.at("try_1").min.y >= parts.at("try_0").max.y);
  CHECK(events.hovered.empty());

  frame.click("try_1", kPage, draw);
  CHECK(clicked == "try:stride=8");
  CHECK(events.hovered == "try:stride=8");
  frame.click("light_0", kPage, draw);
  CHECK(clicked == "light:m");
  frame.click("term_0", kPage, draw);
  CHECK(clicked == "term:sector");
  CHECK(events.clicked.empty());  // once
}

TEST_CASE("a link on two lines is two parts of one name", "[ui]") {
  tests::SceneFrame frame;
  std::string text = "[";
  for (int i = 0; i < 12; ++i) text += "eleven letters ";
  text += "end](light:m) [b](light:l)";
  const tests::Parts parts = frame.draw(kPage, [&] { ui::markdown(text); });
  REQUIRE(parts.count("light_0") == 1);
  REQUIRE(parts.count("light_0_1") == 1);
  CHECK(parts.at("light_0_1").min.y > parts.at("light_0").min.y);
  CHECK(parts.at("light_1").label == "b");
}

TEST_CASE("lines of text are at most 68 characters long, tables may be wider", "[ui]") {
  tests::SceneFrame frame;
  frame.context().record_texts(true);
  std::string text;
  for (int i = 0; i < 200; ++i) text += i % 3 == 0 ? "ill " : "letters ";
  frame.draw({2000, 900}, [&] { ui::markdown(text); });
  std::map<float, std::string> lines;
  float right = 0;
  for (const ui::DrawnText& drawn : frame.context().texts()) {
    lines[drawn.min.y] += drawn.text + " ";
    right = std::max(right, drawn.max.x);
  }
  REQUIRE(lines.size() > 10);
  std::size_t longest = 0;
  for (const auto& [y, line] : lines) longest = std::max(longest, line.size() - 1);
  CHECK(longest <= 68);
  CHECK(longest > 50);
  CHECK(right < 700);

  std::string row = "|";
  for (int i = 0; i < 12; ++i) row += " some words |";
  const std::string rule = "\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  frame.draw({2000, 900}, [&] { ui::markdown(row + rule + row); });
  for (const ui::DrawnText& drawn : frame.context().texts()) right = std::max(right, drawn.max.x);
  CHECK(right > 1000);
}

TEST_CASE("code that is wider than a line wraps", "[ui]") {
  tests::SceneFrame frame;
  frame.context().record_texts(true);
  frame.draw({300, 900}, [] {
    ui::markdown(
        "(`a formula = that is much longer than any line of three hundred pixels`).\n\n"
        "`l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum`, "
        "aWordThatNobodyEverWouldWriteWithoutAnySignToBreakAt\n\n"
        "[a chip that says so much more than anybody would put on a chip](try:a=1)\n");
  });
  std::map<float, std::string> lines;
  for (const ui::DrawnText& drawn : frame.context().texts()) {
    CHECK(drawn.max.x <= 300);
    lines[drawn.min.y] += drawn.text + " ";
  }
  CHECK(lines.size() >= 6);
}

TEST_CASE("a text of which nothing is in sight draws nothing", "[ui]") {
  tests::SceneFrame frame;
  frame.context().record_texts(true);
  frame.draw({300, 300}, [] {
    ImGui::SetCursorPosY(500);
    ImGui::BeginChild("below", {300, 300});
    ui::markdown("One.\n\nTwo.");
    ImGui::EndChild();
  });
  CHECK(frame.context().texts().empty());
}

TEST_CASE("what is out of sight keeps its room", "[ui]") {
  tests::SceneFrame frame;
  std::string text;
  for (int i = 0; i < 100; ++i) text += "Paragraph of a few words.\n\n";
  float first = 0, later = 0;
  frame.draw(kPage, [&] {
    ui::markdown(text);
    first = ImGui::GetCursorPosY();
  });
  frame.draw(kPage, [&] {
    ui::markdown(text);
    later = ImGui::GetCursorPosY();
  });
  CHECK(first == later);
  CHECK(first > 1000);
}
