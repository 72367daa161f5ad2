// The picture of the coalescing lesson: lanes above, connectors, and below them the 128-byte lines
// that the request touches, with every sector and every byte in its place.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "scenes/memory/coalescing/scene.hpp"
#include "scenes/shared/strokes.hpp"

namespace tilestep::scenes {

using coalescing::kLanes, coalescing::kLineBytes, coalescing::kSectorBytes,
    coalescing::RequestStats, coalescing::Sector, coalescing::WarpRequest;

namespace {

constexpr int kSectorsPerLine = kLineBytes / kSectorBytes;

}  // namespace

/// The touched lines side by side, with a gap where lines between them are left out.
struct CoalescingScene::Strip {
  struct Line {
    std::int64_t index = 0;
    float left = 0;
    bool after_gap = false;  ///< lines between this one and the one before are left out
  };
  ImVec2 min, max;
  float line_width = 0;
  std::vector<Line> lines;

  float byte_width() const { return line_width / kLineBytes; }
  /// x of a byte's left edge; the byte must be in one of the lines.
  float x(std::int64_t byte) const {
    for (const Line& one : lines) {
      if (one.index == byte / kLineBytes) {
        return one.left + byte_width() * static_cast<float>(byte % kLineBytes);
      }
    }
    return min.x;
  }
};

CoalescingScene::Strip CoalescingScene::strip(const std::vector<Sector>& sectors, ImVec2 min,
                                              ImVec2 max) const {
  Strip strip;
  strip.min = min;
  strip.max = max;
  for (const Sector& sector : sectors) {
    if (!strip.lines.empty() && strip.lines.back().index == sector.line()) continue;
    const bool gap = !strip.lines.empty() && strip.lines.back().index + 1 != sector.line();
    strip.lines.push_back({sector.line(), 0, gap});
  }
  if (strip.lines.empty()) return strip;
  const float count = static_cast<float>(strip.lines.size());
  const float near = std::min(px(4), 0.1f * (max.x - min.x) / count);
  const float far = std::min(px(22), 0.3f * (max.x - min.x) / count);
  float gaps = 0;
  for (std::size_t i = 1; i < strip.lines.size(); ++i)
    gaps += strip.lines[i].after_gap ? far : near;
  // One line alone is not blown up to the whole width.
  strip.line_width = std::min((max.x - min.x - gaps) / count, px(360));
  float x = min.x + std::max(0.0f, (max.x - min.x - gaps - strip.line_width * count) / 2);
  for (std::size_t i = 0; i < strip.lines.size(); ++i) {
    if (i > 0) x += strip.lines[i].after_gap ? far : near;
    strip.lines[i].left = x;
    x += strip.line_width;
  }
  return strip;
}

void CoalescingScene::draw_picture(Cursor cursor) {
  if (trace_.requests.empty()) return;
  const Frame frame = picture_frame(330);
  const auto [min, max, tight, heading, label] = frame;
  const ImVec2 size = at(frame.width(), frame.height());
  const float code_y = min.y + draw_sentence(frame, sentence(cursor)) + px(tight ? 2 : 10);
  const ImVec2 code =
      ui::draw_text(at(min.x, code_y), ui::fitted(trace_.statement, Font::mono, size.x), Font::mono,
                    Role::accent);

  const WarpRequest* shown = request(cursor);
  const float lanes_top = code_y + code.y + px(tight ? 4 : 16) + label;
  const float lane_height = px(tight ? 20 : 30);
  const float share_height = px(tight ? 34 : 62);
  const float memory_height = px(tight ? 34 : 64);
  const float memory_top = max.y - share_height - memory_height - label - px(tight ? 6 : 20);
  ui::draw_text(at(min.x, lanes_top - label - px(2)), "32 lanes of the warp", Font::note,
                Role::muted);
  if (!tight) {
    ui::draw_text(at(max.x, max.y - share_height - label + px(8)),
                  "memory: 32-byte sectors in 128-byte lines", Font::note, Role::muted,
                  Align::right);
  }
  lit_lanes_ = 0;
  const ImVec2 lanes_min = at(min.x, lanes_top);
  const ImVec2 lanes_max = at(max.x, lanes_top + lane_height);
  const ImVec2 memory_min = at(min.x, memory_top);
  const ImVec2 memory_max = at(max.x, memory_top + memory_height);
  if (shown == nullptr) {
    draw_lanes(nullptr, lanes_min, lanes_max);
    ui::dashed_rect(memory_min, memory_max, Role::faint);
    ui::draw_text(at((min.x + max.x) / 2, memory_top + memory_height / 2 - label / 2),
                  "memory: nothing asked for yet", Font::note, Role::muted, Align::center);
    return;
  }
  const std::vector<Sector> sectors = touched_sectors(*shown, trace_.element_bytes);
  const Strip where = strip(sectors, memory_min, memory_max);
  // What the mouse is on decides what is lit, so that it is looked up before anything is drawn.
  lit_sector_ = -1;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  for (const Sector& sector : sectors) {
    const float x = where.x(sector.index * kSectorBytes);
    if (inside(mouse, at(x, memory_top),
               at(x + where.line_width / kSectorsPerLine, memory_max.y))) {
      lit_sector_ = sector.index;
      lit_lanes_ = sector.lanes;
    }
  }
  const float lane_width = size.x / kLanes;
  for (int lane = 0; lane < kLanes; ++lane) {
    const float x = min.x + lane_width * static_cast<float>(lane);
    if (shown->active(lane) && inside(mouse, at(x, lanes_min.y), at(x + lane_width, lanes_max.y))) {
      lit_lanes_ = 1u << lane;
    }
  }
  draw_connectors(*shown, where, lanes_min, lanes_max);
  draw_lanes(shown, lanes_min, lanes_max);
  draw_memory(where, sectors);
  draw_share(request_stats(*shown, trace_.element_bytes), at(min.x, max.y - share_height + px(4)),
             max);
}

void CoalescingScene::draw_lanes(const WarpRequest* request, ImVec2 min, ImVec2 max) {
  const float width = (max.x - min.x) / kLanes;
  const bool numbers = width > ui::text_size("31", Font::mono_note).x + px(2);
  for (int lane = 0; lane < kLanes; ++lane) {
    const float x = min.x + width * static_cast<float>(lane);
    const ImVec2 from = at(x + px(1), min.y);
    const ImVec2 to = at(x + width - px(1), max.y);
    const bool active = request != nullptr && request->active(lane);
    const bool lit = (lit_lanes_ >> lane & 1u) != 0;
    if (active) {
      fill(from, to, lit ? Role::accent : Role::sky, lit || lit_lanes_ == 0 ? 1.0f : 0.35f);
    } else {
      outline(from, to, Role::faint);
    }
    if (numbers) {
      const float y = (min.y + max.y - height_of(Font::mono_note)) / 2;
      ui::draw_text(at(x + width / 2, y), std::to_string(lane), Font::mono_note,
                    active ? Role::on_accent : Role::faint, Align::center);
    }
    const std::string value =
        active ? fmt::format("byte {}", request->byte_offset[static_cast<std::size_t>(lane)])
               : "idle";
    ui::map(fmt::format("lane_{}", lane), fmt::format("lane {}", lane), value, from, to);
  }
}

void CoalescingScene::draw_connectors(const WarpRequest& request, const Strip& strip,
                                      ImVec2 lanes_min, ImVec2 lanes_max) const {
  const float width = (lanes_max.x - lanes_min.x) / kLanes;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!request.active(lane)) continue;
    const bool lit = (lit_lanes_ >> lane & 1u) != 0;
    const std::int64_t byte = request.byte_offset[static_cast<std::size_t>(lane)];
    const float from = lanes_min.x + width * (static_cast<float>(lane) + 0.5f);
    const float to =
        strip.x(byte) + strip.byte_width() * static_cast<float>(trace_.element_bytes) / 2;
    const float top = lanes_max.y;
    const float bottom = strip.min.y;
    const float bend = (bottom - top) * 0.45f;
    draw_list()->AddBezierCubic(
        at(from, top), at(from, top + bend), at(to, bottom - bend), at(to, bottom),
        ui::color(lit ? Role::accent : Role::sky, lit ? 1.0f : (lit_lanes_ == 0 ? 0.6f : 0.15f)),
        px(lit ? 2.5f : 1.2f));
  }
}

void CoalescingScene::draw_memory(const Strip& strip, const std::vector<Sector>& sectors) {
  const float sector_width = strip.line_width / kSectorsPerLine;
  for (const Strip::Line& one : strip.lines) {
    for (int s = 0; s < kSectorsPerLine; ++s) {
      const float x = one.left + sector_width * static_cast<float>(s);
      outline(at(x, strip.min.y), at(x + sector_width, strip.max.y), Role::border);
    }
    if (one.after_gap) {
      const float middle = (strip.min.y + strip.max.y) / 2;
      const float x = one.left - std::min(px(11), strip.line_width * 0.15f);
      for (const float dy : {-px(5), 0.0f, px(5)}) {
        draw_list()->AddCircleFilled(at(x, middle + dy), px(1.3f), ui::color(Role::muted));
      }
    }
  }
  for (const Sector& sector : sectors) {
    const float left = strip.x(sector.index * kSectorBytes);
    const ImVec2 min = at(left + px(0.5f), strip.min.y);
    const ImVec2 max = at(left + sector_width - px(0.5f), strip.max.y);
    const bool lit = sector.index == lit_sector_ || (sector.lanes & lit_lanes_) != 0;
    ui::hatch(min, max, Role::wasted, 5);
    // Runs of touched bytes are filled in one stroke each.
    for (int b = 0; b < kSectorBytes;) {
      if ((sector.used_bytes >> b & 1u) == 0) {
        ++b;
        continue;
      }
      int end = b;
      while (end < kSectorBytes && (sector.used_bytes >> end & 1u) != 0) ++end;
      const float from = left + strip.byte_width() * static_cast<float>(b);
      const float to = left + strip.byte_width() * static_cast<float>(end);
      fill(at(from, min.y), at(std::max(to - px(0.5f), from + px(1)), max.y),
           lit && lit_lanes_ != 0 ? Role::accent : Role::sky, lit_lanes_ == 0 || lit ? 1.0f : 0.4f);
      b = end;
    }
    outline(min, max, lit && lit_lanes_ != 0 ? Role::accent : Role::muted);
    ui::map(fmt::format("sector_{}", sector.index),
            fmt::format("bytes {}–{}", sector.index * kSectorBytes,
                        sector.index * kSectorBytes + kSectorBytes - 1),
            fmt::format("{} of 32 bytes used, {} lanes", std::popcount(sector.used_bytes),
                        std::popcount(sector.lanes)),
            min, max, {0, px(14)});
    if (sector.index == lit_sector_ && ImGui::IsWindowHovered()) {
      ImGui::SetTooltip("sector %lld: bytes %lld–%lld\n%d of 32 bytes used by %d lanes",
                        static_cast<long long>(sector.index),
                        static_cast<long long>(sector.index * kSectorBytes),
                        static_cast<long long>(sector.index * kSectorBytes + kSectorBytes - 1),
                        std::popcount(sector.used_bytes), std::popcount(sector.lanes));
    }
  }
  float taken = -1e9f;
  for (const Strip::Line& one : strip.lines) {
    const std::string text = std::to_string(one.index * kLineBytes);
    const ImVec2 size = ui::text_size(text, Font::mono_note);
    if (one.left < taken + px(8) || one.left + size.x > strip.max.x) continue;
    ui::draw_text(at(one.left, strip.max.y + px(3)), text, Font::mono_note, Role::muted);
    taken = one.left + size.x;
  }
}

void CoalescingScene::draw_share(const RequestStats& stats, ImVec2 min, ImVec2 max) const {
  const std::string text =
      fmt::format("{} of {} bytes used", stats.bytes_used, stats.bytes_fetched);
  const float label = ui::text_size(text, Font::mono).x;
  const float left = min.x;
  const float right = max.x - label - px(16);
  const float height = std::min(px(20), (max.y - min.y) * 0.5f);
  const float share = static_cast<float>(stats.efficiency() / 100);
  const float middle = max.y - height - px(4);
  const float end = left + (right - left) * share;
  ui::hatch(at(end, middle), at(right, middle + height), Role::wasted, 5);
  outline(at(left, middle), at(right, middle + height), Role::muted);
  fill(at(left, middle), at(end, middle + height), Role::sky);
  ui::draw_text(at(max.x, middle + (height - height_of(Font::mono)) / 2), text, Font::mono,
                Role::text, Align::right);
  ui::map("share", text, fmt::format("{:.0f} %", stats.efficiency()), at(left, middle),
          at(right, middle + height));
}

}  // namespace tilestep::scenes
