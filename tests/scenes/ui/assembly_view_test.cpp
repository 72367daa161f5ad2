#include "scenes/ui/assembly_view.hpp"

#include "tests/catch.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using ui::Syntax;

namespace {

/// The words of an instruction that have a colour.
std::vector<std::pair<std::string, Syntax>> tinted(std::string_view text) {
  std::vector<std::pair<std::string, Syntax>> words;
  std::size_t end = 0;
  for (const ui::SyntaxSpan& span : ui::tinted_instruction(text)) {
    CHECK(span.begin == end);  // they cover it
    end = span.end;
    if (span.kind == Syntax::plain) continue;
    words.emplace_back(text.substr(span.begin, span.end - span.begin), span.kind);
  }
  CHECK(end == text.size());
  return words;
}

using Words = std::vector<std::pair<std::string, Syntax>>;

}  // namespace

TEST_CASE("operands stand in a column, behind predicate and opcode", "[ui_editor]") {
  CHECK(ui::aligned_instruction("mov.u32 \t%r1, %tid.x;") == "  mov.u32           %r1, %tid.x;");
  CHECK(ui::aligned_instruction("@!%p1 bra \t$L__BB0_3;") == "  @!%p1 bra         $L__BB0_3;");
  CHECK(ui::aligned_instruction("add.f32 %f1, %f2;", 12) == "  add.f32   %f1, %f2;");
  CHECK(ui::aligned_instruction("LDG.E R2, [R2.64] ;") == "  LDG.E             R2, [R2.64];");
  CHECK(ui::aligned_instruction("EXIT ;") == "  EXIT;");
  CHECK(ui::aligned_instruction("ret;") == "  ret;");
  CHECK(ui::aligned_instruction("$L__BB0_3:") == "$L__BB0_3:");
  CHECK(ui::aligned_instruction("a.very.long.opcode.of.ptx %r1;") ==
        "  a.very.long.opcode.of.ptx %r1;");
  CHECK(ui::aligned_instruction("").find_first_not_of(' ') == std::string::npos);
}

TEST_CASE("opcodes, registers, numbers, labels and comments are told apart", "[ui_editor]") {
  CHECK(tinted("  @%p1 bra $L__BB0_3;") ==
        Words{{"@%p1", Syntax::cuda}, {"bra", Syntax::keyword}, {"$L__BB0_3", Syntax::string}});
  CHECK(tinted("  LDG.E.128 R2, [UR4+0x10] ; // here") == Words{{"LDG.E.128", Syntax::keyword},
                                                                {"R2", Syntax::cuda},
                                                                {"UR4", Syntax::cuda},
                                                                {"0x10", Syntax::number},
                                                                {"// here", Syntax::comment}});
  CHECK(tinted("  S2R R0, SR_TID.X;") ==
        Words{{"S2R", Syntax::keyword}, {"R0", Syntax::cuda}, {"SR_TID", Syntax::cuda}});
  CHECK(tinted("  mov.f32 %f1, 0f3F800000;") ==
        Words{{"mov.f32", Syntax::keyword}, {"%f1", Syntax::cuda}, {"0f3F800000", Syntax::number}});
  CHECK(tinted(".L_x_0:") == Words{{".L_x_0:", Syntax::string}});
  CHECK(tinted("").empty());
}

TEST_CASE("a listing shows what is in sight, says what is lit, and where it was pressed",
          "[ui_editor]") {
  std::vector<std::string> texts;
  for (int i = 0; i < 500; ++i) texts.push_back("add.s32 %r" + std::to_string(i) + ", %r1, 1;");
  std::vector<ui::AssemblyRow> rows;
  for (int i = 0; i < 500; ++i) {
    rows.push_back({texts[static_cast<std::size_t>(i)], i / 10, i / 10 == 30});
  }
  tests::SceneFrame stage;
  ui::AssemblyLook look;
  ui::AssemblyPointed pointed;
  const auto draw = [&] {
    const auto now = ui::assembly_view("code", rows, look);
    if (now.clicked >= 0) pointed = now;
    look.go_to = -1;
  };
  const ImVec2 size(640, 320);
  stage.draw(size, draw);
  auto parts = stage.draw(size, draw);
  CHECK(parts.at("assembly").value.empty());
  CHECK(parts.at("assembly_row_11").value == "1");
  CHECK(parts.at("assembly_row_1").value.empty());
  CHECK(parts.count("assembly_row_301") == 0);
  look.go_to = 300;
  look.stale = true;
  for (int frame = 0; frame < 3; ++frame) parts = stage.draw(size, draw);
  REQUIRE(parts.count("assembly_row_301") == 1);
  CHECK(parts.at("assembly_row_301").value == "lit");
  CHECK(parts.at("assembly_row_300").value == "29");
  CHECK(parts.at("assembly").value == "stale");
  CHECK(tests::within(parts.at("assembly_row_301"), parts.at("assembly")));
  stage.click("assembly_row_305", size, draw);
  CHECK(pointed.clicked == 304);
}
