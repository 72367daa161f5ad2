#include "scenes/picture/shot.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "scenes/picture/look.hpp"

namespace tilestep::picture {
namespace {

/// Room for every box with all its marks, whatever the window's.
constexpr float kAmple = 4000;

bool stands_on_axes(const Box& box) {
  return std::any_of(box.marks.begin(), box.marks.end(), [](const Mark& mark) {
    return std::visit(
        [](const auto& m) {
          if constexpr (requires { m.ax; }) {
            return true;
          } else if constexpr (requires { m.x; }) {
            return !m.x.empty();
          } else {
            return false;
          }
        },
        mark);
  });
}

std::set<Name> bands_of(const Box& box, const Picture& picture) {
  std::set<Name> used;
  for (const Mark& mark : box.marks) {
    std::visit(
        [&](const auto& m) {
          if constexpr (requires { m.ax; }) {
            used.insert({m.ax, m.ay});
          } else {
            if constexpr (requires { m.x; }) used.insert(m.x);
            if constexpr (requires { m.y; }) used.insert(m.y);
            if constexpr (requires { m.lanes; }) used.insert(m.lanes);
          }
        },
        mark);
  }
  std::erase_if(used, [&](Name name) {
    return std::none_of(picture.axes.begin(), picture.axes.end(), [&](const Axis& axis) {
      return axis.name == name && axis.kind == Axis::band;
    });
  });
  return used;
}

/// The marks of `box` and of what is in it, as Identity::mark counts them.
bool find_marks(const Box& box, const Key& wanted, bool inside, int& next, std::set<int>& marks) {
  inside = inside || box.key == wanted;
  for (std::size_t k = 0; k < box.marks.size(); ++k, ++next) {
    if (inside) marks.insert(next);
  }
  for (const Box& inner : box.boxes) find_marks(inner, wanted, inside, next, marks);
  return !marks.empty();
}

class Cast {
 public:
  Cast(const Picture& picture, const std::vector<std::string>& subject, const Metrics& metrics)
      : picture_(picture), subject_(subject.begin(), subject.end()) {
    const Placed placed = place(picture, {0, 0, kAmple, kAmple}, metrics);
    const auto look_at = [&](const Identity& of) {
      if (subject_.count(to_text(of.key)) == 0) return;
      marks_.insert(of.mark);
    };
    for (const Piece& piece : placed.pieces) look_at(piece.of);
    for (const Stroke& stroke : placed.strokes) look_at(stroke.of);
    for (const Words& words : placed.words) look_at(words.of);
    find(picture.root, false);
    for (const Box* box : leading_) {
      for (const Name band : bands_of(*box, picture_)) bands_.insert(band);
    }
  }

  /// `strictly`: those on the same bands too.
  std::vector<const Box*> aside(bool strictly) {
    std::vector<const Box*> all;
    if (strictly) bands_.clear();
    if (!leading_.empty()) collect(picture_.root, all);
    return all;
  }
  /// What its boxes, and those on the same bands, take of all below the headline.
  float share(const Placed& placed) const {
    std::optional<Area> all;
    float own = 0;
    for (const Room& room : placed.rooms) {
      const Box* box = box_of(picture_.root, room.key);
      if (box == nullptr || box->marks.empty()) continue;
      all = all ? joined(*all, room.whole) : room.whole;
      if (stays(*box)) own += room.whole.width() * room.whole.height();
    }
    return all ? own / std::max(all->width() * all->height(), 1.0f) : 0;
  }
  bool all_in(const Placed& placed) const {
    return std::all_of(leading_.begin(), leading_.end(), [&](const Box* box) {
      return std::any_of(placed.rooms.begin(), placed.rooms.end(),
                         [&](const Room& room) { return room.key == box->key; });
    });
  }

 private:
  void find(const Box& box, bool lit) {
    lit = lit || subject_.count(to_text(box.key)) > 0;
    for (std::size_t k = 0; k < box.marks.size(); ++k, ++next_mark_) {
      lit = lit || marks_.count(next_mark_) > 0;
    }
    if (lit && !box.marks.empty()) leading_.insert(&box);
    for (const Box& inner : box.boxes) find(inner, lit);
  }
  bool stays(const Box& box) const {
    if (leading_.count(&box) > 0) return true;
    const std::set<Name> bands = bands_of(box, picture_);
    if (std::any_of(bands.begin(), bands.end(), [&](Name band) { return bands_.count(band) > 0; }))
      return true;
    return std::any_of(box.boxes.begin(), box.boxes.end(),
                       [&](const Box& inner) { return stays(inner); });
  }
  void collect(const Box& box, std::vector<const Box*>& all) const {
    const bool named = std::any_of(box.boxes.begin(), box.boxes.end(), [&](const Box& inner) {
      return !inner.marks.empty() && stays(inner);
    });
    for (const Box& inner : box.boxes) {
      if (stays(inner)) {
        collect(inner, all);
      } else if (!named || !is_name(inner)) {
        all.push_back(&inner);
      }
    }
  }

  const Picture& picture_;
  const std::set<std::string> subject_;
  std::set<int> marks_;           ///< that have a thing of the subject
  std::set<const Box*> leading_;  ///< boxes of these marks
  std::set<Name> bands_;          ///< that those stand on
  int next_mark_ = 0;
};

/// A subject and two boxes beside it are no crowd, as long as it is the largest.
constexpr int kBeside = 3;
constexpr float kLargest = 0.55f;

int boxes_with_marks(const Box& box) {
  int count = box.marks.empty() ? 0 : 1;
  for (const Box& inner : box.boxes) count += boxes_with_marks(inner);
  return count;
}

bool is_short_of_room(const Placed& placed) {
  return std::any_of(placed.rooms.begin(), placed.rooms.end(), [](const Room& room) {
    return room.area.width() < room.least.x || room.area.height() < room.least.y;
  });
}

/// An area with the labels of boxes that stand on its upper edge, so that its frame goes round them.
Area with_labels(Area area, const Placed& placed) {
  const Area marks = area;
  for (const Words& words : placed.words) {
    const Area& label = words.area;
    const float reach = 0.4f * label.height();
    const bool above = label.y0 < marks.y0 && label.y1 > marks.y0 - reach && label.x0 < marks.x1 &&
                       label.x1 > marks.x0;
    const bool of_box = std::any_of(placed.rooms.begin(), placed.rooms.end(),
                                    [&](const Room& room) { return room.key == words.of.key; });
    // A line of text has some room above its letters.
    const float top = label.y0 + 0.25f * label.height();
    if (above && of_box) area = joined(area, {label.x0, top, label.x1, label.y1});
  }
  return area;
}

}  // namespace

const Box* box_of(const Box& box, const Key& key) {
  if (box.key == key) return &box;
  for (const Box& inner : box.boxes) {
    if (const Box* found = box_of(inner, key)) return found;
  }
  return nullptr;
}

std::vector<Key> boxes_of(const Picture& picture) {
  std::vector<Key> keys;
  const std::function<void(const Box&)> note = [&](const Box& box) {
    keys.push_back(box.key);
    for (const Box& inner : box.boxes) note(inner);
  };
  note(picture.root);
  return keys;
}

bool is_bare(const Box& box) {
  const bool marks = std::any_of(box.marks.begin(), box.marks.end(), [](const Mark& mark) {
    const Items* items = items_of(mark);
    const auto* curve = std::get_if<Curve>(&mark);
    return curve != nullptr ? !curve->x.empty() : items != nullptr && items->count > 0;
  });
  return !marks && std::all_of(box.boxes.begin(), box.boxes.end(), is_bare);
}

bool is_name(const Box& box) {
  const auto* words = box.marks.size() == 1 ? std::get_if<Lines>(&box.marks.front()) : nullptr;
  return words != nullptr && words->rows.size() == 1 && plain(words->rows.front().full).size() < 4;
}

Area content_of(const Key& box, const Picture& picture, const Placed& placed) {
  std::set<int> marks;
  int next = 0;
  std::optional<Area> all;
  const auto add = [&](const Identity& of, const Area& area) {
    if (marks.count(of.mark) > 0) all = all ? joined(*all, area) : area;
  };
  if (find_marks(picture.root, box, false, next, marks)) {
    for (const Piece& piece : placed.pieces) add(piece.of, piece.area);
    for (const Words& words : placed.words) add(words.of, words.area);
    for (const Stroke& stroke : placed.strokes) {
      for (const Point& p : stroke.points) add(stroke.of, {p.x, p.y, p.x, p.y});
    }
  }
  const auto room = std::find_if(placed.rooms.begin(), placed.rooms.end(),
                                 [&](const Room& each) { return each.key == box; });
  return all ? *all : room == placed.rooms.end() ? Area() : room->area;
}

float filled_by(const Picture& picture, const Placed& placed) {
  std::map<Key, const Box*> boxes;
  const std::function<void(const Box&)> note = [&](const Box& box) {
    if (!box.marks.empty()) boxes[box.key] = &box;
    for (const Box& inner : box.boxes) note(inner);
  };
  note(picture.root);
  float all = 0;
  for (const Room& room : placed.rooms) {
    const auto found = boxes.find(room.key);
    if (found == boxes.end()) continue;
    const Area area =
        stands_on_axes(*found->second) ? room.whole : content_of(room.key, picture, placed);
    all += area.width() * area.height();
  }
  return all / std::max(placed.area.width() * placed.area.height(), 1.0f);
}

std::vector<const Box*> beside(const Picture& picture, const std::vector<std::string>& subject,
                               const Area& area, const Metrics& metrics, bool exactly) {
  if (subject.empty()) return {};
  if (!exactly && boxes_with_marks(picture.root) <= kBeside) {
    const Cast first(picture, {subject.front()}, metrics);
    if (first.share(place(picture, area, metrics)) >= kLargest) return {};
  }
  Cast cast(picture, subject, metrics);
  const auto without = [&](const std::vector<const Box*>& boxes) {
    std::vector<Key> keys;
    for (const Box* box : boxes) keys.push_back(box->key);
    return place(picture, area, metrics, keys);
  };
  std::vector<const Box*> off = cast.aside(false);
  Placed now = without(off);
  if (!cast.all_in(now)) now = without(off = cast.aside(true));
  // A subject that is a line of words needs a picture beside it: the box that fills most comes back, if there is room.
  while (!exactly && !off.empty() && filled_by(picture, now) < kFilled) {
    std::size_t best = off.size();
    Placed next;
    for (std::size_t k = 0; k < off.size(); ++k) {
      std::vector<const Box*> others = off;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(k));
      Placed with = without(others);
      const bool crowded = !cast.all_in(with) || is_short_of_room(with);
      if (crowded || (best < off.size() && filled_by(picture, with) <= filled_by(picture, next)))
        continue;
      best = k;
      next = std::move(with);
    }
    if (best == off.size()) break;
    off.erase(off.begin() + static_cast<std::ptrdiff_t>(best));
    now = std::move(next);
  }
  return off;
}

Lit lit_by(const std::vector<std::string>& names, const Picture& picture,
           const std::vector<const Mark*>& marks, const Placed& placed) {
  Lit lit;
  const auto is_named = [&](const Key& key) {
    return std::find(names.begin(), names.end(), to_text(key)) != names.end();
  };
  const auto look_at = [&](const Identity& of) {
    if (std::find(lit.keys.begin(), lit.keys.end(), of.key) != lit.keys.end()) return;
    if (!is_named(of.key)) return;
    lit.keys.push_back(of.key);
    for (Subject& subject : subjects_of(marks, of)) lit.subjects.push_back(std::move(subject));
  };
  for (const Piece& piece : placed.pieces) look_at(piece.of);
  for (const Words& words : placed.words) look_at(words.of);
  for (const Room& room : placed.rooms) {
    if (!is_named(room.key)) continue;
    lit.boxes.push_back(with_labels(content_of(room.key, picture, placed), placed));
  }
  return lit;
}

}  // namespace tilestep::picture
