#include "tests/lesson_contract/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace tilestep::contract {
namespace {

std::string place(ImVec2 min, ImVec2 max) {
  return fmt::format("{:.0f}x{:.0f} at {:.0f}, {:.0f}", max.x - min.x, max.y - min.y, min.x, min.y);
}

/// Whether the glyphs touch: lines of text have air above and below.
bool overprint(const ui::DrawnText& a, const ui::DrawnText& b) {
  const float least = std::min(a.max.y - a.min.y, b.max.y - b.min.y);
  const float x = std::min(a.max.x, b.max.x) - std::max(a.min.x, b.min.x);
  const float y = std::min(a.max.y, b.max.y) - std::max(a.min.y, b.min.y);
  return x > 1.5f && y > 0.34f * least;
}

void overprinted(std::vector<const ui::DrawnText*> texts, std::vector<std::string>& faults) {
  std::sort(texts.begin(), texts.end(),
            [](const auto* a, const auto* b) { return a->min.y < b->min.y; });
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (std::size_t j = i + 1; j < texts.size() && texts[j]->min.y < texts[i]->max.y; ++j) {
      if (!overprint(*texts[i], *texts[j])) continue;
      faults.push_back(fmt::format("'{}' ({}) overprints '{}' ({})", texts[i]->text,
                                   place(texts[i]->min, texts[i]->max), texts[j]->text,
                                   place(texts[j]->min, texts[j]->max)));
    }
  }
}

}  // namespace

std::string layout_faults(ui::Context& context) {
  std::vector<std::string> faults;
  const auto parts = [&](const std::vector<ui::MapEntry>& list, const char* fault) {
    for (const ui::MapEntry& part : list) {
      if (part.cut) {
        faults.push_back(
            fmt::format("{} {} ({})", part.id, fault, place(part.raw_min, part.raw_max)));
      }
      if (part.too_small()) {
        faults.push_back(fmt::format("{} ({}) is too small to read: it needs {:.0f}x{:.0f}",
                                     part.id, place(part.raw_min, part.raw_max), part.least.x,
                                     part.least.y));
      }
    }
  };
  parts(context.map(), "leaves its panel");
  parts(context.lost(), "is nowhere to be seen");
  std::map<ImGuiID, std::vector<const ui::DrawnText*>> windows;
  for (const ui::DrawnText& text : context.texts()) {
    if (text.seen) windows[text.window].push_back(&text);
    if (text.cut) {
      faults.push_back(
          fmt::format("'{}' leaves its panel ({})", text.text, place(text.min, text.max)));
    }
  }
  for (const auto& [window, texts] : windows) overprinted(texts, faults);
  std::string all;
  for (const std::string& fault : faults) all += fault + "\n";
  return all;
}

}  // namespace tilestep::contract
