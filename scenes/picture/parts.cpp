#include "scenes/picture/parts.hpp"

#include <algorithm>

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

}  // namespace tilestep::picture
