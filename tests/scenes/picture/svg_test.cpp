#include "scenes/picture/svg.hpp"

#include <cstdio>
#include <fstream>
#include <set>

#include "tests/catch.hpp"
#include "tests/scenes/picture/stubs.hpp"
#include "tests/skip.hpp"

using namespace tilestep;
using namespace tilestep::picture;

namespace {

/// Type whose letters are all of one width.
class FixedMetrics final : public Metrics {
 public:
  float width(std::string_view text, Face) const override {
    return 7.0f * static_cast<float>(text.size());
  }
  float height(Face) const override { return 16; }
  float px(float design) const override { return design; }
};

std::string drawn(const Picture& picture, const std::function<std::string(const Key&)>& explain) {
  Palette palette;
  for (std::uint32_t k = 0; k < palette.paints.size(); ++k) palette.paints[k] = 0x101010u * k;
  palette.inks = palette.paints;
  const FixedMetrics metrics;
  return svg(place(picture, {10, 20, 810, 520}, metrics), marks_of(picture), palette, metrics,
             explain);
}

/// What is wrong with a text as XML; empty: nothing. Elements, attributes in double quotes, entities.
std::string xml_fault(const std::string& text) {
  std::vector<std::string> open;
  std::set<std::string> ids;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '&') {
      const std::string entity = text.substr(at, text.find(';', at) - at + 1);
      if (entity != "&lt;" && entity != "&gt;" && entity != "&amp;" && entity != "&quot;") {
        return "entity " + entity;
      }
    }
    if (text[at] != '<') continue;
    const std::size_t end = text.find('>', at);
    if (end == std::string::npos) return "an element does not end";
    std::string tag = text.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos) return "< in " + tag;
    at = end;
    if (tag[0] == '?') continue;
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "unexpected " + tag;
      open.pop_back();
      continue;
    }
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "quotes in " + tag;
    const std::size_t id = tag.find(" id=\"");
    if (id != std::string::npos) {
      const std::string value = tag.substr(id + 5, tag.find('"', id + 5) - id - 5);
      if (!ids.insert(value).second) return "id " + value + " stands twice";
    }
    if (tag.back() != '/') open.push_back(tag.substr(0, tag.find(' ')));
  }
  return open.empty() ? "" : open.back() + " stays open";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("an SVG is well-formed and holds what the map holds", "[picture]") {
  const std::function<std::string(const Key&)> explain = [](const Key& key) {
    return key.i < 0 ? std::string() : "It is <" + to_text(key) + "> & \"more\".";
  };
  const Picture pictures[] = {tests::attention_grid(3, 4),   tests::copy_ring(4, 6),
                              tests::warps_over_time(4, 90), tests::page_table(3, 40),
                              tests::byte_ledger(2),         tests::two_gpus(4, 3)};
  const FixedMetrics metrics;
  for (const Picture& picture : pictures) {
    const std::string text = drawn(picture, explain);
    CHECK(xml_fault(text) == "");
    const Placed placed = place(picture, {10, 20, 810, 520}, metrics);
    const auto parts = parts_of(placed, marks_of(picture));
    CHECK(parts.size() > 5);
    for (const Part& part : parts) {
      INFO(part.id << " = " << part.value);
      const std::size_t at = text.find(" id=\"" + part.id + "\"");
      REQUIRE(at != std::string::npos);
      const std::string element = text.substr(at, text.find('>', at) - at);
      if (!part.value.empty()) CHECK(has(element, "data-value=\"" + part.value + "\""));
    }
    for (const Words& words : placed.words) CHECK(has(text, ">" + words.text + "</text>"));
    CHECK(has(text, "viewBox=\"10 20 800 500\""));
    CHECK(has(text, "width=\"277.0mm\""));
    CHECK_FALSE(has(text, "nan"));
  }
  const std::string grid = drawn(pictures[0], explain);
  CHECK(has(grid, "<title>It is &lt;score_0_1&gt; &amp; &quot;more&quot;.</title>"));
  CHECK(has(grid, "<pattern id=\"hatch-"));
  CHECK(has(grid, "textLength=\""));
}

TEST_CASE("an SVG has the places of its boxes, whole and by name", "[picture]") {
  Picture picture;
  picture.root = column({"all"}, {box({"tiles"}, {Cells{items("tile", 4)}}, text("tiles"),
                                      {.place = Place::shared_memory})});
  const std::string text = drawn(picture, {});
  CHECK(xml_fault(text) == "");
  CHECK(has(text, "id=\"tiles\" data-value=\"shared memory\""));
  CHECK(has(text, ">shared memory</text>"));
  CHECK(has(text, "viewBox=\"4.4 14.4 811.2 511.2\""));
}

TEST_CASE("what is written cannot break an SVG", "[picture]") {
  Chips chips;
  chips.items = items("chip", 3);
  chips.items.names = {"a < b && c > \"d\"", "\x01\x02 bell", "λ → ∞"};
  Picture picture;
  picture.headline = text("5 < 6 & <script>alert(\"x\")</script>");
  picture.root = box({"box"}, {chips});
  const std::string text = drawn(picture, {});
  CHECK(xml_fault(text) == "");
  CHECK_FALSE(has(text, "<script"));
  CHECK_FALSE(has(text, "\x01"));
  CHECK(has(text, "λ → ∞"));
  CHECK(has(text, "data-value=\"a &lt; b &amp;&amp; c &gt; &quot;d&quot;\""));
}

TEST_CASE("xmllint takes an SVG without a remark", "[picture]") {
  if (std::system("xmllint --version > /dev/null 2>&1") != 0) {
    return tests::skip("there is no xmllint here");
  }
  const std::string path = std::string(std::tmpnam(nullptr)) + ".svg";
  std::ofstream(path) << drawn(tests::page_table(3, 40), {});
  CHECK(std::system(("xmllint --noout " + path).c_str()) == 0);
  std::remove(path.c_str());
}
