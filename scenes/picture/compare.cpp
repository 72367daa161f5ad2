#include "scenes/picture/compare.hpp"

#include <algorithm>
#include <cmath>

#include "scenes/picture/key_index.hpp"

namespace tilestep::picture {
namespace {

/// A thing and where it stands among marks.
struct Thing {
  Key key;
  const Mark* mark;
  int item;  ///< −1: of a mark without items
};

int count_of(const Mark& mark) {
  const Items* items = items_of(mark);
  if (items == nullptr) return -1;
  const auto* stacks = std::get_if<Stacks>(&mark);
  return items->count + (stacks == nullptr ? 0 : stacks->held.count);
}

std::vector<Thing> things_of(const std::vector<const Mark*>& marks) {
  std::vector<Thing> things;
  for (const Mark* mark : marks) {
    const int count = count_of(*mark);
    if (count < 0) things.push_back({key_of(*mark), mark, -1});
    for (int k = 0; k < count; ++k) {
      const auto [items, item] = item_of(*mark, k);
      things.push_back({items->key(item), mark, k});
    }
  }
  return things;
}

bool same_number(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

/// What a mark without items says: where it stands, and its words.
struct Saying {
  double at = 0;
  State state = State::plain;
  std::string words = {};
  bool operator==(const Saying&) const = default;
};
Saying saying_of(const Mark& mark) {
  if (const auto* rule = std::get_if<Rule>(&mark)) {
    return {rule->at, rule->state, plain(rule->label.full)};
  }
  if (const auto* arrow = std::get_if<Arrow>(&mark)) {
    return {arrow->to, arrow->state, plain(arrow->label.full)};
  }
  if (const auto* curve = std::get_if<Curve>(&mark)) {
    return {curve->y.empty() ? 0 : curve->y.back(), curve->state, plain(curve->end.full)};
  }
  if (const auto* wall = std::get_if<Wall>(&mark)) {
    return {wall->removed ? 1.0 : 0.0, wall->state, plain(wall->label.full)};
  }
  if (const auto* note = std::get_if<Note>(&mark)) return {0, State::plain, plain(note->text.full)};
  if (const auto* frame = std::get_if<Frame>(&mark)) {
    return {0, frame->state, plain(frame->label.full)};
  }
  return {};
}

/// Whether two items of the same key say the same.
bool same_item(const Thing& a, const Thing& b) {
  if (a.item < 0 || b.item < 0) {
    return a.item == b.item && saying_of(*a.mark) == saying_of(*b.mark);
  }
  const auto [mine, i] = item_of(*a.mark, a.item);
  const auto [other, j] = item_of(*b.mark, b.item);
  const auto x = static_cast<std::size_t>(i), y = static_cast<std::size_t>(j);
  const auto *lines = std::get_if<Lines>(a.mark), *others = std::get_if<Lines>(b.mark);
  if (lines != nullptr && others != nullptr && x < lines->rows.size() && y < others->rows.size() &&
      plain(lines->rows[x].full) != plain(others->rows[y].full)) {
    return false;
  }
  const bool named = !mine->names.empty() && !other->names.empty();
  return same_number(static_cast<double>(mine->value[x]), static_cast<double>(other->value[y])) &&
         mine->state[x] == other->state[y] && mine->tone[x] == other->tone[y] &&
         (!named || mine->names[x] == other->names[y]);
}

}  // namespace

Extent united(const Extent& mine, const Extent& other) {
  Extent both = mine;
  for (Axis& axis : both.axes) {
    for (const Axis& each : other.axes) {
      if (each.name != axis.name || each.kind != axis.kind || axis.kind == Axis::band) continue;
      axis.low = std::min(axis.low, each.low);
      axis.high = std::max(axis.high, each.high);
    }
  }
  return both;
}

Differences::Differences(const std::vector<const Mark*>& marks,
                         const std::vector<const Mark*>& others)
    : items_(marks.size()), marks_(marks.size(), 0) {
  const std::vector<Thing> mine = things_of(marks), theirs = things_of(others);
  KeyIndex index(theirs.size());
  for (std::size_t k = 0; k < theirs.size(); ++k) index.add(theirs[k].key, static_cast<int>(k));
  std::size_t next = 0;
  for (std::size_t m = 0; m < marks.size(); ++m) {
    const int count = std::max(count_of(*marks[m]), 0);
    items_[m].resize(static_cast<std::size_t>(count));
    for (int k = 0; k < std::max(count, 1) && next < mine.size(); ++k) {
      if (mine[next].mark != marks[m]) break;  // a mark of no items
      const Thing& thing = mine[next++];
      const int found = index.find(thing.key);
      const bool same = found >= 0 && same_item(thing, theirs[static_cast<std::size_t>(found)]);
      char& slot = thing.item < 0 ? marks_[m] : items_[m][static_cast<std::size_t>(k)];
      slot = same ? 0 : 1;
      ++total_;
      if (!same) ++count_;
    }
  }
}

bool Differences::differs(const Identity& of) const {
  if (of.mark < 0 || of.mark >= static_cast<int>(items_.size())) return false;
  const auto mark = static_cast<std::size_t>(of.mark);
  if (of.item < 0) return marks_[mark] != 0;
  const auto item = static_cast<std::size_t>(of.item);
  return item < items_[mark].size() && items_[mark][item] != 0;
}

}  // namespace tilestep::picture
