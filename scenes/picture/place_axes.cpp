// What is written along the axes of a picture and round its boxes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/picture/look.hpp"
#include "scenes/picture/placer.hpp"

namespace tilestep::picture {

std::vector<std::pair<double, std::string>> ticks_of(const Axis& axis, int most) {
  std::vector<std::pair<double, std::string>> ticks;
  if (axis.kind == Axis::log) {
    const int low = static_cast<int>(std::ceil(std::log10(axis.low) - 1e-9));
    const int high = static_cast<int>(std::floor(std::log10(axis.high) + 1e-9));
    const int step = std::max(1, (high - low + most) / std::max(most, 1));
    for (int e = low; e <= high; e += step) {
      const double value = std::pow(10.0, e);
      ticks.emplace_back(
          value, value < 1e6 && value > 1e-5 ? fmt::format("{:g}", value) : fmt::format("1e{}", e));
    }
    return ticks;
  }
  if (!(axis.high > axis.low)) return ticks;
  const double span = axis.high - axis.low;
  double unit = std::pow(10.0, std::floor(std::log10(span)) - 1);
  while (span / unit > std::max(most, 1)) {
    const double lead = unit / std::pow(10.0, std::floor(std::log10(unit) + 1e-9));
    unit *= lead > 1.5 && lead < 3 ? 2.5 : 2;  // 1, 2, 5, 10, …
  }
  if (axis.step > 0) unit = axis.step;
  for (double n = std::ceil(axis.low / unit - 1e-9); n * unit <= axis.high + 1e-9 * span; ++n) {
    std::string text = fmt::format("{:.6g}", n == 0 ? 0.0 : n * unit);
    if (text[0] == '-') text.replace(0, 1, "−");
    ticks.emplace_back(n * unit, std::move(text));
  }
  return ticks;
}

/// The groups of a band, named below it; the one worked on is washed in every box with the axis.
void Placer::emit_groups(const Node& node, const Span& span, bool lowest) {
  const Axis& axis = *span.axis;
  if (axis.group < 1 || axis.group_name.empty() || span.upright) return;
  float taken = -1e9f;
  const int groups = (axis.count + axis.group - 1) / axis.group;
  for (int g = span.first / axis.group; g < groups && span.shows(g * axis.group); ++g) {
    const int last = std::min({(g + 1) * axis.group, axis.count, span.first + span.count}) - 1;
    const float pad = span.gap * 0.35f;
    const Area area{span.begin(g * axis.group) - pad, node.area.y0 + node.top,
                    span.begin(last) + span.slot + pad, node.inside.y1 + px(2)};
    const State state = g == axis.current_group  ? State::current
                        : g < axis.current_group ? State::done
                                                 : State::to_come;
    const Key key{axis.group_name, g};
    const auto [whole, fresh] = groups_.try_emplace(key, area);
    if (!fresh) whole->second.y1 = std::max(whole->second.y1, area.y1);
    const auto part = static_cast<std::uint8_t>(node.first_mark % 250);
    if (state == State::current) {
      out_.pieces.push_back({.of = {key, part},
                             .area = area,
                             .kind = Piece::wash,
                             .state = state,
                             .layer = Layer::ground});
    }
    const bool named = axis.group == 1 && !axis.names.empty();
    const std::string name =
        fmt::format("{} {}", axis.group_name.text(), named ? axis.names[g] : std::to_string(g));
    if (!lowest) continue;
    out_.said.push_back({key, name, std::string(word_for(state)), whole->second});
    if (axis.ticks) continue;  // its items are named one by one
    const float middle = (area.x0 + area.x1) / 2, half = width(name, Face::note) / 2;
    if (middle - half < taken + px(6)) continue;
    say(name, {middle - half, node.inside.y1 + px(3)}, Face::note, ink_of(state), {key, 255});
    taken = middle + half;
  }
}

void Placer::emit_ticks(const Node& node, const Span& span, bool lowest) {
  const Axis& axis = *span.axis;
  const float length = span.to - span.from;
  const float line = height(Face::note);
  if (axis.ticks && span.upright && !span.band()) {
    const int most = std::max(2, static_cast<int>(length / (line * 1.8f)));
    int number = 0;
    float taken = INFINITY;  // from here on downwards
    for (const auto& [value, words] : ticks_of(axis, most)) {
      const float y = std::round(span.at(value)), top = std::max(y - line / 2, node.area.y0);
      put_stroke({.of = {{axis.name, number++}},
                  .points = {{node.inside.x0, y}, {node.inside.x1, y}},
                  .state = State::to_come,
                  .layer = Layer::ground});
      if (!lowest || node.box->left <= 0) continue;
      if (top + line > taken) continue;
      const float x = node.inside.x0 - px(6) - width(words, Face::note);
      say(words, {x, top}, Face::note, Ink::muted, {{axis.name, number - 1}, 1});
      taken = top;
    }
  }
  if (span.upright && lowest && !axis.title.full.empty() && length >= 3 * line) {
    say(form(axis.title, length, Face::note), {node.inside.x0 + px(6), node.area.y0}, Face::note,
        Ink::muted, {{axis.name}, 2});
    out_.words.back().patch = true;
  }
  if (span.upright || !lowest) return;
  const float y = node.inside.y1 + px(3);
  // A fixed scale names both its ends.
  float room = axis.fixed ? node.area.x1 : span.to;
  if (!axis.title.full.empty()) {
    const std::vector<Run>& title = form(axis.title, length * 0.5f, Face::note);
    room -= width(title, Face::note) + px(8);
    say(title, {room + px(8), y}, Face::note, Ink::muted, {{axis.name}, 2});
  }
  if (!axis.ticks) return;
  if (span.band()) return emit_names(span, {span.from, y, room, y + line});
  const int most = std::max(2, static_cast<int>(length / (line * 4)));
  const auto ticks = ticks_of(axis, most);
  // Between its ends a name gives way to those beside it.
  float taken = -INFINITY, end = INFINITY;
  if (axis.fixed && !ticks.empty())
    end = span.at(ticks.back().first) - width(ticks.back().second, Face::note) / 2;
  int number = 0;
  for (const auto& [value, words] : ticks) {
    const float x = std::round(span.at(value)), half = width(words, Face::note) / 2;
    if (x + half > room) break;
    put_stroke({.of = {{axis.name, number++}, 3},
                .points = {{x, node.inside.y1}, {x, node.inside.y1 + px(3)}},
                .state = State::to_come});
    const bool last = number == static_cast<int>(ticks.size());
    if (x - half < taken || (!last && x + half + px(2) > end)) continue;
    say(words, {std::max(x - half, node.area.x0), y}, Face::note, Ink::muted,
        {{axis.name, number - 1}, 4});
    taken = x + half + px(2);
  }
}

/// What the items of a band are called: of all, or of every second one, fourth, …
void Placer::emit_names(const Span& span, Area room) {
  const Axis& axis = *span.axis;
  const auto name = [&](int item) {
    return axis.names.empty() ? std::to_string(item) : axis.names[item];
  };
  float widest = 0;
  for (int k = span.first; k < span.first + span.count; ++k)
    widest = std::max(widest, width(name(k), Face::note));
  int every = 1;
  while (float(every) * span.slot < widest + px(4) && every < axis.count) every *= 2;
  for (int k = (span.first + every - 1) / every * every; k < span.first + span.count; k += every) {
    const std::string words = name(k);
    const float half = width(words, Face::note) / 2;
    const float middle = std::max(span.middle(k), room.x0 + (every > 1 ? half : 0));
    if (middle + half > room.x1 + px(2)) break;
    say(words, {middle - half, room.y0}, Face::note, Ink::muted, {{axis.name, k}, 4});
  }
}

/// All of a band of which the boxes show a window: its first values, the most of each few, with the
/// window framed.
void Placer::emit_overview(const Node& node, const Span& span) {
  const Items* items = nullptr;
  for (const Node* leaf : shown_) {
    for (const Mark& mark : leaf->box->marks) {
      if (items == nullptr && uses(mark, span.axis->name, false)) items = items_of(mark);
    }
  }
  const int count = span.axis->count;
  if (items == nullptr || items->count != count) return;
  const Area strip{span.from, node.area.y1 - px(kOverview), span.to, node.area.y1 - 1};
  const auto x_of = [&](int item) { return strip.x0 + strip.width() * float(item) / float(count); };
  float low = 0, high = 0;
  for (const float value : items->value.each) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const int columns = std::clamp(static_cast<int>(strip.width() / px(2)), 1, count);
  for (int c = 0; c < columns && high > low; ++c) {
    const auto first = static_cast<std::size_t>(static_cast<std::int64_t>(count) * c / columns);
    const auto end = static_cast<std::size_t>(static_cast<std::int64_t>(count) * (c + 1) / columns);
    float most = low;
    for (std::size_t k = first; k < end; ++k) {
      if (std::isfinite(items->value[k])) most = std::max(most, items->value[k]);
    }
    const float tall = std::max(1.0f, (most - low) / (high - low) * strip.height());
    const float x = x_of(static_cast<int>(first));
    out_.pieces.push_back(
        {.of = {{"overview", c}},
         .area = {x, strip.y1 - tall, x + px(1), strip.y1},
         .state = items->state[first] == State::to_come ? State::to_come : State::done});
  }
  const Area window{x_of(span.first), strip.y0, x_of(span.first + span.count), strip.y1};
  out_.pieces.push_back(
      {.of = {{"overview"}}, .area = window, .kind = Piece::frame, .state = State::current});
  out_.said.push_back({{"overview"},
                       fmt::format("{}–{} of {}", span.first, span.first + span.count - 1, count),
                       "",
                       window});
}

void Placer::emit_axes(const Node& node) {
  here_ = &node;
  for (const auto& [which, shared] : spans_) {
    const auto& [name, upright] = which;
    const auto stands_on = [&, axis = name, up = upright](const Mark& m) {
      return uses(m, axis, up);
    };
    const std::vector<Mark>& marks = node.box->marks;
    const auto lowest = lowest_.find(which);
    const bool says = lowest != lowest_.end() && lowest->second == node.box;
    if (std::none_of(marks.begin(), marks.end(), stands_on)) continue;
    const Span span = this->span(name, upright);
    emit_groups(node, span, says);
    emit_ticks(node, span, says);
    if (says && !upright && span.band() && span.count < span.axis->count) emit_overview(node, span);
  }
}

float Placer::label_top(const Node& node) const {
  if (node.box->left <= 0) return node.area.y0;
  const float line = height(Face::note);
  const bool low = node.inside.height() < 2.5f * line;
  return low ? (node.inside.y0 + node.inside.y1 - line) / 2 : node.inside.y0;
}

void Placer::emit_labels(const Node& node) {
  const Box& box = *node.box;
  const bool beside = box.left > 0;
  if (!box.label.full.empty() || !box.value.full.empty()) {
    out_.said.push_back({box.key, plain(box.label.full), plain(box.value.full), node.inside});
  }
  if (!box.label.full.empty()) {
    const float room = beside ? box.left * em_ - px(4) : node.area.width();
    say(form(box.label, room, Face::note), {node.area.x0, label_top(node)}, Face::note, Ink::muted,
        {box.key, 250});
    out_.words.back().patch = true;
  }
  if (box.value.full.empty()) return;
  const Face face = dense_ ? Face::mono_note : Face::mono;
  const float y = (node.inside.y0 + node.inside.y1 - height(face)) / 2;
  say_right(form(box.value, box.right * em_ - px(4), face), {node.area.x1, y}, face, Ink::text,
            {box.key, 251});
}

/// Within the gap between boxes, so that none of them moves.
void Placer::emit_place(const Node& node) {
  if (node.box->place == Place::nowhere) return;
  const float out = 0.36f * gap_;
  const Area& a = node.area;
  out_.pieces.push_back({.of = {node.box->key, kPlacePart},
                         .area = {a.x0 - out, a.y0 - out, a.x1 + out, a.y1 + out},
                         .kind = Piece::slab,
                         .layer = Layer::ground,
                         .heat = float(int(Place::tensor_cores) - int(node.box->place)) / 4});
}

/// At the end of the label's row, or below a label in the margin, where nothing else is.
void Placer::name_place(const Node& node) {
  const Box& box = *node.box;
  const bool beside = box.left > 0, bare = box.label.full.empty();
  if (box.place == Place::nowhere || (bare && !beside && !box.marks.empty())) return;
  const float line = height(Face::note), room = beside ? box.left * em_ : node.inside.width();
  const float top = label_top(node) + (beside && !bare ? line : 0);
  for (const bool brief : {false, true}) {
    const std::string name(name_of(box.place, brief));
    const std::vector<std::string> rows = wrapped(name, room, Face::note, beside ? 2 : 1);
    const float high = line * float(rows.size());
    float wide = 0;
    for (const std::string& row : rows) wide = std::max(wide, width(row, Face::note));
    const float left = beside ? node.area.x0 : node.inside.x1 - wide;
    const Area near{left - (beside ? 0 : px(6)), top + 1, left + wide + px(2), top + high - 1};
    const bool taken = std::any_of(out_.words.begin(), out_.words.end(),
                                   [&](const Words& words) { return meet(words.area, near); }) ||
                       std::any_of(out_.pieces.begin(), out_.pieces.end(), [&](const Piece& piece) {
                         const bool under = piece.kind == Piece::slab || piece.kind == Piece::frame;
                         return !under && meet(piece.area, near);
                       });
    if (rows.empty() || wide > room || top + high > node.area.y1 || taken) continue;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const auto part = static_cast<std::uint8_t>(kPlacePart + k);
      say(rows[k], {left, top + line * float(k)}, Face::note, Ink::faint, {box.key, part});
      out_.words.back().patch = true;
    }
    return;
  }
}

}  // namespace tilestep::picture
