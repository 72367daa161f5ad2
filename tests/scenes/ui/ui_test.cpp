#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/base/lab/report.hpp"
#include "scenes/picture/look.hpp"
#include "scenes/ui/axis.hpp"
#include "scenes/ui/markdown_document.hpp"
#include "scenes/ui/syntax.hpp"
#include "scenes/ui/theme.hpp"
#include "tests/catch.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using ui::Font;
using ui::Role;

namespace {

constexpr ui::ThemeKind kThemes[] = {ui::ThemeKind::dark, ui::ThemeKind::light};
const ImVec2 kSize(640, 480);

lab::Table table_of(int rows) {
  lab::Table table;
  table.id = "tiles";
  table.title = "Tiles";
  table.columns = {{"tile", "tile", "", 0}, {"m", "m", "", 1}};
  for (int row = 0; row < rows; ++row) {
    table.rows.push_back({static_cast<double>(row), row * 0.5});
  }
  return table;
}

}  // namespace

TEST_CASE("text keeps 4.5:1 and categories keep 3:1 against the panels", "[ui]") {
  for (const ui::ThemeKind theme : kThemes) {
    const auto ratio = [theme](Role a, Role b) {
      return ui::contrast(ui::palette(theme, a), ui::palette(theme, b));
    };
    for (const Role surface : {Role::background, Role::panel, Role::raised}) {
      CHECK(ratio(Role::text, surface) >= 7.0f);
      CHECK(ratio(Role::muted, surface) >= 4.5f);
    }
    for (const Role role : {Role::accent, Role::wrong, Role::good}) {
      CHECK(ratio(role, Role::panel) >= 4.5f);
    }
    CHECK(ratio(Role::on_accent, Role::accent) >= 4.5f);
    for (int tone = 1; tone <= picture::kToneCount; ++tone) {
      INFO(tone);
      CHECK(ratio(picture::tone_role(static_cast<std::uint8_t>(tone)), Role::panel) >= 3.0f);
    }
    CHECK(ratio(Role::panel, Role::background) > 1.0f);
    // What is to come is dimmer than a label, but it is there.
    CHECK(ratio(Role::faint, Role::panel) < ratio(Role::muted, Role::panel));
    CHECK(ratio(Role::faint, Role::panel) >= 2.0f);
  }
}

namespace {

using Triple = std::array<double, 3>;

Triple times(const std::array<Triple, 3>& m, const Triple& v) {
  Triple made{};
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c) made[r] += m[r][c] * v[c];
  }
  return made;
}

/// In Oklab (Ottosson, 2020), times 100; as a deuteranope sees it (Machado, Oliveira and Fernandes, 2009).
Triple seen(ImU32 color, bool deuteranope) {
  const ImVec4 c = ImGui::ColorConvertU32ToFloat4(color);
  const auto linear = [](double v) {
    return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  };
  Triple light{linear(double(c.x)), linear(double(c.y)), linear(double(c.z))};
  if (deuteranope) {
    light = times({{{0.367322, 0.860646, -0.227968},
                    {0.280085, 0.672501, 0.047413},
                    {-0.011820, 0.042940, 0.968881}}},
                  light);
  }
  Triple cones = times({{{0.4122214708, 0.5363325363, 0.0514459929},
                         {0.2119034982, 0.6806995451, 0.1073969566},
                         {0.0883024619, 0.2817188376, 0.6299787005}}},
                       light);
  for (double& cone : cones) cone = std::cbrt(std::max(cone, 0.0));
  return times({{{21.04542553, 79.36177850, -0.40720468},
                 {197.79984951, -242.85922050, 45.05937099},
                 {2.59040371, 78.27717662, -80.86757660}}},
               cones);
}

}  // namespace

TEST_CASE("eight categories are told apart, without red or green too, and none is near amber",
          "[ui]") {
  for (const ui::ThemeKind theme : kThemes) {
    const auto apart = [theme](Role a, Role b, bool deuteranope) {
      const Triple p = seen(ui::palette(theme, a), deuteranope),
                   q = seen(ui::palette(theme, b), deuteranope);
      return std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
    };
    for (int i = 0; i < picture::kCategories; ++i) {
      const Role one = picture::tone_role(picture::category_tone(i));
      CHECK(apart(one, Role::accent, false) >= 18);
      CHECK(apart(one, Role::accent, true) >= 9.5);
      for (int j = 0; j < i; ++j) {
        CAPTURE(theme, i, j);
        const Role other = picture::tone_role(picture::category_tone(j));
        CHECK(apart(one, other, false) >= 13);
        CHECK(apart(one, other, true) >= 9);
      }
    }
  }
  CHECK(picture::category_tone(8) == 0);
  CHECK(picture::category_tone(1, 9) == 0);
}

TEST_CASE("heat colours and the text on them can be told apart", "[ui]") {
  tests::SceneFrame frame;
  for (const ui::ThemeKind theme : kThemes) {
    frame.look().theme = theme;
    frame.draw(kSize, [&] {
      for (const float t :
           {-1.0f, 0.0f, 0.3f, 0.7f, 1.0f, 2.0f, std::numeric_limits<float>::quiet_NaN()}) {
        const ImU32 heat = ui::heat(t);
        CHECK(ui::contrast(heat, ui::readable_on(heat)) >= 4.5f);
        CHECK(ui::contrast(heat, ui::color(Role::panel)) > 1.2f);
      }
      CHECK(ui::heat(0) != ui::heat(1));
    });
  }
}

TEST_CASE("fitted text fits, and keeps whole characters", "[ui]") {
  tests::SceneFrame frame;
  frame.draw(kSize, [] {
    const std::string text = "ΔO = Σ exp(sⱼ − m)·vⱼ, and more of it";
    CHECK(ui::fitted(text, Font::body, 1e6f) == text);
    for (float width = 4; width < 300; width += 7) {
      const std::string cut = ui::fitted(text, Font::body, width);
      CHECK(ui::text_size(cut, Font::body).x <= width);
      // A cut inside a character would leave a byte that starts one without its rest.
      if (cut.size() > 3) {
        const std::string kept = cut.substr(0, cut.size() - 3);
        CHECK(text.starts_with(kept));
        CHECK((static_cast<unsigned char>(text[kept.size()]) & 0xC0u) != 0x80u);
      }
    }
  });
}

TEST_CASE("everything scales together", "[ui]") {
  tests::SceneFrame frame;
  float one = 0, two = 0;
  frame.draw(kSize, [&] { one = ui::text_size("0000", Font::mono).x; });
  frame.look().text_scale = 2;
  frame.draw(kSize, [&] {
    two = ui::text_size("0000", Font::mono).x;
    CHECK(ui::px(8) == Approx(16));
  });
  CHECK(two == Approx(2 * one).epsilon(0.06));
}

TEST_CASE("digits of the mono fonts keep their place", "[ui]") {
  tests::SceneFrame frame;
  frame.draw(kSize, [] {
    for (const Font font : {Font::mono_note, Font::mono, Font::mono_large}) {
      CHECK(ui::text_size("1111", font).x == Approx(ui::text_size("8080", font).x));
    }
  });
}

TEST_CASE("marks and shapes draw without a display", "[ui]") {
  tests::SceneFrame frame;
  frame.draw(kSize, [] {
    const int before = ImGui::GetWindowDrawList()->VtxBuffer.Size;
    ui::hatch({10, 10}, {60, 60}, Role::wasted);
    ui::hatch({60, 60}, {10, 10}, Role::wasted);  // nothing
    ui::dashed_rect({10, 10}, {60, 60}, Role::accent);
    ui::dashed_line({10, 10}, {10, 10}, Role::accent);  // nothing
    ui::arrow({10, 10}, {60, 60}, Role::muted);
    ui::cross({30, 30}, 8, Role::wrong);
    ui::check({30, 30}, 8, Role::good);
    for (int icon = 0; icon <= static_cast<int>(ui::Icon::cross); ++icon) {
      ui::draw_icon(static_cast<ui::Icon>(icon), {30, 30}, 16, ui::color(Role::text));
    }
    CHECK(ImGui::GetWindowDrawList()->VtxBuffer.Size > before);
  });
}

TEST_CASE("controls are in the map with label, value and place", "[ui]") {
  tests::SceneFrame frame;
  lab::Knob keys;
  keys.id = "keys";
  keys.label = "Keys";
  keys.kind = lab::KnobKind::integer;
  keys.min = 1;
  keys.max = 65536;
  keys.logarithmic = true;
  lab::Knob skip;
  skip.id = "skip";
  skip.label = "Skip the rescale";
  skip.kind = lab::KnobKind::toggle;
  lab::Knob format;
  format.id = "format";
  format.label = "Format";
  format.kind = lab::KnobKind::choice;
  format.choices = {"fp32", "fp16", "bf16"};
  const auto parts = frame.draw(kSize, [&] {
    ui::button("next", "Next tile", {.icon = ui::Icon::forward, .enabled = false});
    ui::segmented("speed", {"1×", "2×"}, 1);
    ui::scrubber("scrubber", 2, 4, 200);
    CHECK_FALSE(ui::knob(keys, lab::KnobValue(std::int64_t{16})));
    CHECK_FALSE(ui::knob(skip, lab::KnobValue(true)));
    CHECK_FALSE(ui::knob(format, lab::KnobValue(std::string("fp16"))));
    ui::readout({"l", "denominator", "1.32", "", lab::Provenance::traced, "", Role::text});
    ui::badge("device", "Emulated on CPU", Role::sky);
  });
  CHECK(parts.at("next").label == "Next tile");
  CHECK(parts.at("next").value == "disabled");
  CHECK(parts.at("speed_1").value == "selected");
  CHECK(parts.at("scrubber").value == "2/4");
  CHECK(parts.at("knob_keys").value == "16");
  CHECK(parts.at("knob_skip").value == "true");
  CHECK(parts.at("knob_format").value == "fp16");
  CHECK(parts.at("l").value == "1.32");
  CHECK(parts.count("device") == 1);
  for (const auto& [id, part] : parts) {
    INFO(id);
    CHECK(part.min.x < part.max.x);
    CHECK(part.min.y < part.max.y);
    CHECK(part.max.x <= kSize.x);
    CHECK(part.max.y <= kSize.y);
  }
}

TEST_CASE("a table of 65536 rows draws only what is seen, and scrolls to its row", "[ui]") {
  tests::SceneFrame frame;
  const lab::Table table = table_of(65536);
  std::map<std::string, ui::MapEntry> parts;
  for (int times = 0; times < 3; ++times) {
    parts = frame.draw(kSize, [&] {
      ui::data_table(table,
                     {.current_row = 40000, .hidden = [](int row, int) { return row > 40000; }});
      CHECK(ImGui::GetWindowDrawList()->VtxBuffer.Size < 20000);
    });
  }
  CHECK(parts.at("row_40000").value == "current");
  frame.draw(kSize, [] { CHECK(ui::data_table({}, {}).row == -1); });
}

TEST_CASE("source is cut into tinted pieces that cover every line", "[ui]") {
  const std::string source =
      "#include <x>\n// a comment\n__global__ void f() { /* two\nlines */ return 1.5e3f; }  // "
      "[step: "
      "back]\n\nconst char* s = \"a // b\";\n";
  const auto lines = ui::tinted(source);
  REQUIRE(lines.size() == 6);
  for (const ui::SyntaxLine& line : lines) {
    std::size_t at = line.begin;
    for (const ui::SyntaxSpan& span : line.spans) {
      CHECK(span.begin == at);
      at = span.end;
    }
    CHECK(at == line.end);
  }
  CHECK(lines[0].spans[0].kind == ui::Syntax::keyword);
  CHECK(lines[1].spans[0].kind == ui::Syntax::comment);
  CHECK(lines[2].spans[0].kind == ui::Syntax::cuda);
  CHECK(lines[2].spans.back().kind == ui::Syntax::comment);
  CHECK(lines[3].spans[0].kind == ui::Syntax::comment);
  CHECK(lines[5].spans[lines[5].spans.size() - 2].kind == ui::Syntax::string);

  tests::SceneFrame frame;
  std::map<std::string, ui::MapEntry> parts;
  for (int times = 0; times < 3; ++times) {
    parts = frame.draw(kSize, [&] { ui::source_view("kernel", source, {4, {3, 4}}); });
  }
  CHECK(parts.at("source_line").value == "4");
  CHECK(parts.at("source_line").label == "lines */ return 1.5e3f; }  ");  // the mark is not shown
}

TEST_CASE("a source folds what records, says what lines computed, and knows its words", "[ui]") {
  const std::string source = "m = 1;\ntape.note(1, m,\n          2);\nmm = m;\n";
  tests::SceneFrame frame;
  const ui::SourceLook look{4, {1, 4}, {{1, "m = 1"}}, {{"m", ui::Role::blue, true}}};
  int hovered = -1;
  const auto draw = [&] {
    return frame.draw(kSize, [&] { hovered = ui::source_view("kernel", source, look); });
  };
  draw();
  auto parts = draw();
  CHECK(parts.at("fold_2").label == "2 lines that record the picture");
  CHECK(parts.at("fold_2").value == "folded");
  CHECK(parts.at("value_1").label == "m = 1");
  const float folded = parts.at("source_line").min.y;
  // The word in line 1, in front of the value; the same letter within another word is none.
  const ui::MapEntry& value = parts.at("value_1");
  const float middle = (value.min.y + value.max.y) / 2;
  std::set<int> words;
  for (float x = 0; x < value.min.x; x += 2) {
    ImGui::GetIO().MousePos = {x, middle};
    draw();
    words.insert(hovered);
  }
  CHECK(words == std::set<int>{-1, 0});
  parts = frame.click("fold_2", kSize, [&] { ui::source_view("kernel", source, look); });
  CHECK(parts.at("fold_2").value == "open");
  CHECK(parts.at("source_line").min.y > folded);
}

TEST_CASE("a function is a word where it is called, not where a name is declared", "[ui]") {
  const std::string source =
      "float f(float x) {\n  const Step f(x);\n  return f(x) + simt::f<2>(f);\n}\n  f(1);\n";
  tests::SceneFrame frame;
  const ui::SourceLook look{0, {}, {}, {{"f", ui::Role::sky, false, true}}};
  std::map<std::string, ui::MapEntry> parts;
  for (int times = 0; times < 2; ++times)
    parts = frame.draw(kSize, [&] { ui::source_view("kernel", source, look); });
  CHECK_FALSE(parts.contains("word_1_f"));
  CHECK_FALSE(parts.contains("word_2_f"));
  CHECK(parts.contains("word_3_f"));
  CHECK(parts.contains("word_5_f"));
}

TEST_CASE("markdown becomes blocks of words", "[ui]") {
  const auto blocks = ui::parse_markdown(
      "# Title\n\nA **bold**, `code x` word.\n\n- one\n  - nested\n- two\n\n3. three\n\n"
      "| a | b |\n|---|--:|\n| 1 | 2 |\n\n```\nx = 1;\n```\n");
  using Kind = ui::MarkdownBlock::Kind;
  REQUIRE(blocks.size() == 8);
  CHECK(blocks[0].kind == Kind::heading);
  REQUIRE(blocks[1].text.size() == 4);
  CHECK(blocks[1].text[1] == ui::MarkdownWord{{"bold", true, false}, {",", false, false}});
  CHECK(blocks[1].text[2] == ui::MarkdownWord{{"code x", false, true}});
  CHECK(blocks[3].depth == 2);
  CHECK(blocks[4].marker == "•");
  CHECK(blocks[5].marker == "3.");
  CHECK(blocks[6].rows.size() == 2);
  CHECK(blocks[6].right == std::vector<bool>{false, true});
  CHECK(blocks[7].code == "x = 1;\n");
  tests::SceneFrame frame;
  frame.draw(kSize, [] { ui::markdown("# T\n\n1. a\n\n| a |\n|---|\n| 1 |\n\n---\n\n> q\n"); });
}

TEST_CASE("axes have round numbers inside their range", "[ui]") {
  const ui::Axis linear = ui::axis_for({12, 4271}, false, true);
  CHECK(linear.low == 0);
  CHECK(linear.place(linear.high) == Approx(1));
  CHECK(linear.ticks(5).front() == 0);
  CHECK(linear.ticks(5).size() <= 7);
  const ui::Axis log = ui::axis_for({1, 65536}, true, false);
  CHECK(log.ticks(8) == std::vector<double>{1, 10, 100, 1000, 10000});
  CHECK(ui::axis_for({}, true, false).high > 1);
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(ui::axis_for({inf, 5, 5}, false, false).high > 5);
  CHECK(ui::tick_text(20000) == "20k");
  CHECK(ui::value_text(0.8734) == "0.873");
  CHECK(ui::value_text(4271.3) == "4271");

  tests::SceneFrame frame;
  const auto parts = frame.draw(kSize, [] {
    ui::bar_plot(
        {"ladder", "Ladder", "GB/s", {{"naive", 900, 880, 910, Role::sky, ""}}, 4200.0, "copy"});
    ui::line_plot({"sweep",
                   "Sweep",
                   "columns",
                   "GB/s",
                   true,
                   false,
                   {{"online",
                     {1, 10, 100},
                     {1, 2, 3},
                     {0.9, 1.9, 2.9},
                     {1.1, 2.1, 3.1},
                     Role::accent,
                     false},
                    {"empty", {}, {}, {}, {}, Role::blue, true}},
                   4.0,
                   "roof",
                   10.0},
                  {400, 240});
  });
  CHECK(parts.at("ladder_0").value == "900 GB/s");
  CHECK(parts.count("sweep") == 1);
}

TEST_CASE("where a number comes from is said in a sentence", "[ui]") {
  lab::Report report;
  report.device.name = "NVIDIA H200";
  lab::Measurement measured;
  measured.provenance = lab::Provenance::measured;
  measured.value = 4000;
  measured.unit = "GB/s";
  measured.p10 = 3990;
  measured.p90 = 4010;
  measured.samples = 30;
  CHECK(lab::provenance_sentence(measured, report)
            .starts_with("Measured on NVIDIA H200, 30 samples"));
  measured.provenance = lab::Provenance::recorded;
  measured.device = "NVIDIA L4";
  measured.recorded_at = "2026-05-12";
  CHECK(
      lab::provenance_sentence(measured, report).starts_with("Recorded on NVIDIA L4, 2026-05-12"));
}

TEST_CASE("corners as good as sharp end nothing", "[ui]") {
  tests::SceneFrame frame;
  frame.draw(kSize, [] {
    // A side of 2 has corners of 0; an outline lies half a pixel inside.
    for (float more = 1; more > 0; more /= 2) {
      ImDrawList& list = *ImGui::GetWindowDrawList();
      list.AddRectFilled({0, 0}, {2 + more, 40}, ui::color(Role::text), 4);
      list.AddRect({0, 0}, {3 + more, 40}, ui::color(Role::text), 4);
    }
  });
}
