#include "scenes/picture/parts.hpp"

#include <algorithm>
#include <string>

#include "scenes/picture/placed.hpp"

namespace tilestep::picture {
namespace {

/// The same train in a box or those in it; nullptr: there is none.
Strip* same_train(Box& box, const Strip& other) {
  for (Mark& mark : box.marks) {
    auto* strip = std::get_if<Strip>(&mark);
    if (strip != nullptr && strip->items.name == other.items.name) return strip;
  }
  for (Box& inner : box.boxes) {
    if (Strip* found = same_train(inner, other)) return found;
  }
  return nullptr;
}

}  // namespace

Strip train(Name unit, Name x, int bytes, int most) {
  Strip strip{items(unit, 0)};
  strip.bytes = bytes;
  strip.line = bytes * most;
  strip.x = x;
  return strip;
}

void add_row(Strip& train, std::string name, const std::vector<int>& used) {
  std::int64_t at = std::ssize(train.names) * train.line;
  train.names.push_back(std::move(name));
  for (const int bytes : used) {
    train.address.push_back(at);
    train.used.push_back(bytes < 64 ? (std::uint64_t{1} << bytes) - 1 : ~std::uint64_t{0});
    train.items.ids.push_back(static_cast<int>(at / train.bytes));
    train.items.value.each.push_back(static_cast<float>(bytes));
    at += train.bytes;
  }
  train.items.count += static_cast<int>(used.size());
}

void add_earlier(Picture& picture, const Picture& earlier, const std::string& name) {
  for (const Mark* mark : marks_of(earlier)) {
    const auto* before = std::get_if<Strip>(mark);
    if (before == nullptr || before->names.empty() || before->items.count == 0) continue;
    Strip* now = same_train(picture.root, *before);
    if (now == nullptr) continue;
    const auto units = std::count_if(before->address.begin(), before->address.end(),
                                     [&](std::int64_t at) { return at < before->line; });
    now->items.flags.each.resize(static_cast<std::size_t>(now->items.count), kNone);
    add_row(*now, name, std::vector<int>(static_cast<std::size_t>(units), now->bytes));
    const auto all = static_cast<std::size_t>(now->items.count);
    now->items.flags.each.resize(all, kWas);
    for (auto& [kind, column] : now->items.about) {
      if (!column.each.empty()) column.each.resize(all, -1);
    }
  }
}

Curve lane_end(Key key, Name x, Name lanes, double at, Text said, std::uint8_t tone, Ref about,
               bool free) {
  const double lane = std::max(key.i, 0) + 0.5;
  return {.key = key,
          .x = {at, at},
          .y = {lane, lane},
          .ax = x,
          .ay = lanes,
          .tone = tone,
          .about = about,
          .end = std::move(said),
          .ends_free = free};
}

Box labelled(Key key, Box inner, Text label, const Layout& layout) {
  return labelled(key, std::vector<Box>{std::move(inner)}, std::move(label), layout);
}

Box labelled(Key key, std::vector<Box> boxes, Text label, const Layout& layout) {
  Box made = column(key, std::move(boxes), layout);
  made.label = std::move(label);
  return made;
}

SpanList::SpanList(Name name, Name x, Name lanes, Name about_what) : of(about_what) {
  spans.items = items(name, 0);
  spans.x = x;
  spans.lanes = lanes;
}

void SpanList::add(Bar bar) {
  Items& items = spans.items;
  ++items.count;
  if (bar.id >= 0) items.ids.push_back(bar.id);
  spans.lane.push_back(bar.lane);
  spans.begin.push_back(bar.begin);
  spans.end.push_back(bar.end);
  spans.now = std::max(spans.now, bar.end);
  items.state.each.push_back(bar.state);
  items.tone.each.push_back(bar.tone);
  items.flags.each.push_back(bar.flags);
  items.glyph.each.push_back(bar.lanes);
  items.names.push_back(std::move(bar.name));
  about.push_back(bar.about);
}

Spans SpanList::made(double now) {
  spans.now = now;
  if (!of.empty()) spans.items.about.insert(spans.items.about.begin(), {of, {-1, about}});
  return std::move(spans);
}

// At one event all that had begun ends first, then what takes no time begins and ends, then the rest begins.
Beats::Beats(const std::vector<std::pair<double, double>>& things, int most) {
  std::vector<std::pair<double, bool>> moments;  // and whether something begins then
  for (const auto& [begin, end] : things) {
    moments.emplace_back(begin == end ? begin + 0.125 : begin + 0.5, true);
    moments.emplace_back(begin == end ? end + 0.25 : end, false);
  }
  std::sort(moments.begin(), moments.end());
  bool ended = true;
  for (const auto& [moment, begins] : moments) {
    if (begins && ended) starts_.push_back(moment);
    ended = !begins;
  }
  most_ = std::max(most > 0 ? most : static_cast<int>(starts_.size()), 1);
}

int Beats::last_start(double moment) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), moment);
  return std::max(static_cast<int>(after - starts_.begin()) - 1, 0);
}

std::pair<double, double> Beats::of(double begin, double end, double now) const {
  const bool at_once = begin == end;
  const int first = last_start(begin + (at_once ? 0.125 : 0.5));
  return {first, (at_once ? first : last_start(std::min(end, now + 0.5))) + 1};
}

Axis Beats::axis(Name name, int current) const {
  Axis axis{.name = name, .kind = Axis::band, .count = most_, .group = 1, .focus = current};
  for (int beat = 1; beat <= axis.count; ++beat) axis.names.push_back(std::to_string(beat));
  axis.title = text("beats: order, not time", "order, not time", "beats");
  axis.group_name = "beat";
  axis.current_group = current;
  axis.ticks = true;
  axis.least_slot = 15;
  return axis;
}

}  // namespace tilestep::picture
