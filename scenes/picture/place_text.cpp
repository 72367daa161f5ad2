// Words of a picture: which form has room, and where it stands.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/picture/placer.hpp"

namespace tilestep::picture {
namespace {

std::string with_minus(std::string text) {
  if (!text.empty() && text[0] == '-') text.replace(0, 1, "−");
  return text;
}

std::string fixed(double value, int digits) {
  std::string text = fmt::format("{:.{}f}", value, digits);
  // What is not 0 does not read as 0.
  const bool zero = text.find_first_not_of("-0.") == std::string::npos;
  if (zero && value != 0) return "≈0";
  return with_minus(zero && text[0] == '-' ? text.substr(1) : std::move(text));
}

std::string bytes(double value, int digits, std::string_view unit) {
  return with_minus(fmt::format("{:.{}f} {}", value, digits, unit.empty() ? "B" : unit));
}

/// Whether the line from `a` to `b` runs through `area`.
bool runs_through(const Area& area, Point a, Point b) {
  float from = 0, to = 1;
  const float way[] = {b.x - a.x, b.y - a.y};
  const float low[] = {area.x0 - a.x, area.y0 - a.y}, high[] = {area.x1 - a.x, area.y1 - a.y};
  for (int d = 0; d < 2; ++d) {
    if (way[d] == 0) {
      if (low[d] > 0 || high[d] < 0) return false;
      continue;
    }
    const float t0 = low[d] / way[d], t1 = high[d] / way[d];
    from = std::max(from, std::min(t0, t1));
    to = std::min(to, std::max(t0, t1));
  }
  return from <= to;
}

}  // namespace

/// Words stand on a patch of the panel's colour only where a line would run through them.
void Placer::drop_patches() {
  const float inset = px(2);
  for (Words& words : out_.words) {
    if (!words.patch) continue;
    const Area core{words.area.x0, words.area.y0 + inset, words.area.x1, words.area.y1 - inset};
    const auto outlined = [&](const Piece& piece) {
      if (piece.kind != Piece::dashed && piece.kind != Piece::frame) return false;
      const Area& a = piece.area;
      const bool inside = a.x0 < core.x0 && core.x1 < a.x1 && a.y0 < core.y0 && core.y1 < a.y1;
      return meet(a, core) && !inside;
    };
    const auto crossed = [&](const Stroke& stroke) {
      for (std::size_t i = 1; i < stroke.points.size(); ++i) {
        if (runs_through(core, stroke.points[i - 1], stroke.points[i])) return true;
      }
      return false;
    };
    words.patch = std::any_of(out_.pieces.begin(), out_.pieces.end(), outlined) ||
                  std::any_of(out_.strokes.begin(), out_.strokes.end(), crossed);
  }
}

std::string written(const Items& items, int item) {
  return items.names.empty() ? written(items.value[item], items.format) : items.names[item];
}

std::string written(float number, const Format& format) {
  const auto value = double(number);
  if (format.kind == Format::none || std::isnan(value)) return {};
  if (std::isinf(value)) return value > 0 ? "∞" : "−∞";
  std::string text;
  switch (format.kind) {
    case Format::fixed:
      text = fixed(value, format.digits);
      break;
    case Format::significant:
      text = with_minus(fmt::format("{:.{}g}", value, format.digits));
      break;
    case Format::bytes:
      return bytes(value, format.digits, format.unit.text());
    default:
      text = with_minus(fmt::format("{:.0f}", value));
  }
  if (!format.unit.empty()) text += fmt::format(" {}", format.unit.text());
  return text;
}

float Placer::width(const std::vector<Run>& runs, Face face) const {
  float all = 0;
  for (const Run& run : runs) all += width(run.text, face);
  return all;
}

const std::vector<Run>& Placer::form(const Text& text, float room, Face face) {
  const std::vector<Run>* forms[] = {&text.full, &text.brief, &text.least};
  int rung = text.group.empty() ? 0 : rung_[text.group];
  const std::vector<Run>* best = forms[0];
  for (int r = 0; r < 3; ++r) {
    if (forms[r]->empty()) continue;
    best = forms[r];
    if (r >= rung && width(*best, face) <= room) {
      rung = r;
      break;
    }
    if (r >= rung) rung = std::min(r + 1, 2);
  }
  if (!text.group.empty()) rung_[text.group] = rung;
  if (best != forms[0] || width(*best, face) > room) {
    const char* what = width(*best, face) > room ? "has no room" : "is shortened";
    out_.short_of.push_back(fmt::format("'{}' {}", plain(text.full), what));
  }
  return *best;
}

float Placer::say(std::string text, Point at, Face face, Ink ink, Identity of) {
  const float length = width(text, face);
  put_words(std::move(text), length, at, face, ink, of);
  return length;
}

void Placer::put_words(std::string text, float length, Point at, Face face, Ink ink, Identity of) {
  if (text.empty()) return;
  const float x = std::round(at.x), y = std::round(at.y);
  out_.words.push_back({.of = of,
                        .text = std::move(text),
                        .area = {x, y, x + length, y + height(face)},
                        .face = face,
                        .ink = ink});
}

float Placer::say(const std::vector<Run>& runs, Point at, Face face, Ink ink, Identity of) {
  float x = at.x;
  for (const Run& run : runs) {
    x += say(run.text, {x, at.y}, face, ink_of(run.state, ink), of);
    if (!run.text.empty()) name_words(run);
    // The words of one text are told apart by their order.
    if (of.part < 249) ++of.part;
  }
  return x - at.x;
}

/// The words put last are a symbol, if the run is one.
void Placer::name_words(const Run& run) {
  Words& words = out_.words.back();
  words.about = run.about;
  if (run.tone == 0 || run.state == State::to_come) return;
  words.ink = Ink::tone;
  words.tone = run.tone;
}

void Placer::say_right(const std::vector<Run>& runs, Point at, Face face, Ink ink, Identity of) {
  say(runs, {at.x - width(runs, face), at.y}, face, ink, of);
}

void Placer::say_centered(std::string text, Point middle, Face face, Ink ink, Identity of) {
  const float length = width(text, face);
  const Point at{middle.x - length / 2, middle.y - height(face) / 2};
  put_words(std::move(text), length, at, face, ink, of);
}

void Placer::say_on(std::string text, Identity of, Face face, Ink ink) {
  if (text.empty()) return;
  say_centered(std::move(text), out_.pieces.back().area.center(), face, ink, of);
  out_.words.back().on = static_cast<int>(out_.pieces.size()) - 1;
}

std::string Placer::cut(const std::string& text, float room, Face face) const {
  for (std::size_t end = text.size(); end > 0; --end) {
    if (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) continue;
    std::string shorter = text.substr(0, end) + "…";
    if (width(shorter, face) <= room) return shorter;
  }
  return {};
}

std::vector<std::string> Placer::wrapped(const std::string& text, float room, Face face,
                                         int most) const {
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    const std::string longer = line.empty() ? word : line + " " + word;
    if (!line.empty() && width(longer, face) > room) {
      lines.push_back(std::move(line));
      line = word;
    } else {
      line = longer;
    }
    at = end + 1;
  }
  if (!line.empty()) lines.push_back(std::move(line));
  if (static_cast<int>(lines.size()) > most) return {};
  return lines;
}

}  // namespace tilestep::picture
