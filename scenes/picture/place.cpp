// Where the boxes of a picture stand, and its axes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "scenes/picture/look.hpp"
#include "scenes/picture/placer.hpp"
#include "scenes/picture/shot.hpp"

namespace tilestep::picture {
namespace {

/// Ways in which marks stand on axes, for all kinds of marks alike.
struct Use {
  Name x, y;
};
Use use_of(const Mark& mark) {
  return std::visit(
      [](const auto& m) -> Use {
        if constexpr (requires { m.lanes; }) {
          return {m.x, m.lanes};
        } else if constexpr (requires { m.ax; }) {
          return {m.ax, m.ay};
        } else if constexpr (requires { m.y; }) {
          return {m.x, m.y};
        } else if constexpr (requires { m.x; }) {
          return {m.x, {}};
        } else {
          return {};
        }
      },
      mark);
}

const Bars* bars_with_values(const Mark& mark) {
  const auto* bars = std::get_if<Bars>(&mark);
  return bars != nullptr && bars->items.format.kind != Format::none ? bars : nullptr;
}

}  // namespace

// ---- axes on screen ------------------------------------------------------------------------------

float Span::begin(int item) const {
  const int inside = std::clamp(item, first, first + count);
  const int group = axis->group > 0 ? axis->group : std::max(axis->count, 1);
  const int gaps = std::min(inside, first + std::max(count - 1, 0)) / group - first / group;
  return from + slot * float(inside - first) + gap * float(gaps);
}

float Span::at(double value) const {
  if (band()) {
    if (std::isnan(value)) return from;
    const double inside = std::clamp(value, double(first), double(first + count));
    const int item = std::min(static_cast<int>(inside), first + std::max(count - 1, 0));
    return begin(item) + slot * float(inside - item);
  }
  double share = 0;
  if (axis->kind == Axis::log) {
    share = value > 0 ? std::log(value / axis->low) / std::log(axis->high / axis->low) : 0;
  } else {
    share = (value - axis->low) / (axis->high - axis->low);
  }
  const auto inside = float(std::isnan(share) ? 0 : std::clamp(share, 0.0, 1.0));
  return upright ? to - (to - from) * inside : from + (to - from) * inside;
}

// ---- boxes ---------------------------------------------------------------------------------------

Placer::Placer(const Picture& picture, Area area, const Metrics& metrics,
               const std::vector<Key>& off)
    : picture_(picture), area_(area), metrics_(metrics), off_(off) {
  for (const Axis& axis : picture.axes) axes_[axis.name] = &axis;
}

Placer::Node Placer::tree(const Box& box) {
  Node node;
  node.box = &box;
  node.first_mark = next_mark_;
  next_mark_ += static_cast<int>(box.marks.size());
  for (const Box& inner : box.boxes) node.inner.push_back(tree(inner));
  return node;
}

/// Boxes that are off, and those in which nothing is left. Returns whether it is one.
bool Placer::set_aside(Node& node) const {
  bool empty = !node.inner.empty() && node.box->marks.empty();
  for (Node& inner : node.inner) empty = set_aside(inner) && empty;
  node.folded = empty || std::find(off_.begin(), off_.end(), node.box->key) != off_.end();
  return node.folded;
}

/// The last box that stands on an axis says its words: the lowest of a column. Of an upright one it is
/// the first.
void Placer::find_lowest(const Node& node) {
  if (node.folded) return;
  for (const Mark& mark : node.box->marks) {
    const Use use = use_of(mark);
    if (!use.x.empty()) lowest_[{use.x, false}] = node.box;
    if (!use.y.empty()) lowest_.try_emplace({use.y, true}, node.box);
  }
  for (const Node& inner : node.inner) find_lowest(inner);
}

/// How much room a box needs at least, with all that is written round it.
void Placer::measure(Node& node) const {
  const Box& box = *node.box;
  node.top = !box.label.full.empty() && box.left <= 0 ? height(Face::note) + px(dense_ ? 1 : 3) : 0;
  node.bottom = node.head = 0;
  for (const Mark& mark : box.marks) {
    const Bars* bars = bars_with_values(mark);
    if (bars != nullptr && axes_.at(bars->x)->kind == Axis::band) {
      node.head = height(Face::mono_note) + px(2);
    }
    const auto* strip = std::get_if<Strip>(&mark);
    if (strip != nullptr && strip->x.empty()) node.bottom = height(Face::mono_note) + px(3);
  }
  for (const auto& [axis, lowest] : lowest_) {
    const Axis& a = *axes_.at(axis.first);
    const bool words = a.ticks || !a.group_name.empty() || !a.title.full.empty();
    if (lowest != &box || axis.second) continue;
    if (words) node.bottom = height(Face::note) + px(4);
    const float widest = area_.width() - (box.left + box.right) * em_;
    const bool window = float(a.count) * px(a.least_slot) > widest;
    const bool overview =
        window && std::any_of(box.marks.begin(), box.marks.end(), [&](const Mark& mark) {
          return use_of(mark).x == a.name && items_of(mark) && items_of(mark)->count == a.count;
        });
    if (a.kind == Axis::band && overview) node.bottom += px(kOverview + 6);
  }
  const bool in_row = side_by_side(box);
  float along = 0, across = 0;
  int shown = 0;
  for (Node& inner : node.inner) {
    if (inner.folded) continue;
    measure(inner);
    const float length = in_row ? inner.least.x : inner.least.y;
    along = box.flow == Box::over ? std::max(along, length)
                                  : along + length + (shown > 0 ? gap_in(box) : 0);
    across = std::max(across, in_row ? inner.least.y : inner.least.x);
    ++shown;
  }
  const Point within = in_row ? Point{along, across} : Point{across, along};
  const float wish = wishes_ ? box.wish : 0;
  const float least_width = std::max(box.least_width, wish) * em_,
              least_height = std::max(box.least_height, wish) * em_;
  node.least.x = std::max(least_width, within.x) + (box.left + box.right) * em_;
  node.least.y = std::max(least_height, within.y) + node.top + node.bottom + node.head;
}

bool Placer::fits(const Node& root) const {
  return root.least.x <= root.area.width() + 0.5f && root.least.y <= root.area.height() + 0.5f;
}

int Placer::highest_rank(const Node& node) {
  if (node.folded) return 0;
  int rank = node.box->rank;
  for (const Node& inner : node.inner) rank = std::max(rank, highest_rank(inner));
  return rank;
}

Placer::Node* Placer::last_of_rank(Node& node, int rank) {
  if (node.folded) return nullptr;
  for (auto inner = node.inner.rbegin(); inner != node.inner.rend(); ++inner) {
    if (Node* found = last_of_rank(*inner, rank)) return found;
  }
  return node.box->rank == rank ? &node : nullptr;
}

/// Where there is too little room tall boxes stand side by side, then type becomes smaller, and what may stands side by
/// side; then boxes go, those of the highest rank before others.
void Placer::fold(Node& root) {
  const bool headed = !picture_.headline.full.empty();
  const auto set = [&](bool dense) {
    dense_ = dense;
    // The headline's room does not hang on its words, or all would move with them.
    const float line = dense ? height(Face::bold) + px(2) : height(Face::section) + px(6);
    root.area = {area_.x0, area_.y0 + (headed ? line : 0), area_.x1, area_.y1};
    em_ = height(dense ? Face::note : Face::body);
    gap_ = px(dense ? 5 : 10);
    measure(root);
  };
  lowest_.clear();
  find_lowest(root);
  set(false);
  tall_ = fits(root);
  measure(root);
  if (!fits(root)) set(true);
  if (root.least.y > root.area.height() + 0.5f) {
    turned_ = true;
    measure(root);
    turned_ = root.least.x <= root.area.width() + 0.5f;
    measure(root);
  }
  wishes_ = true;
  low_ = false;
  measure(root);
  granted_ = low_ = !fits(root);
  measure(root);
  granted_ = wishes_ = granted_ && fits(root);
  measure(root);
  while (!fits(root)) {
    const int rank = highest_rank(root);
    Node* node = rank > 0 ? last_of_rank(root, rank) : nullptr;
    if (node == nullptr) break;
    node->folded = true;
    out_.folded.push_back(node->box->key);
    lowest_.clear();
    find_lowest(root);
    measure(root);
  }
  if (!fits(root)) out_.short_of.push_back("the picture: its boxes have not the room they need");
}

void Placer::lay(Node& node, Area area) {
  const Box& box = *node.box;
  node.area = area;
  node.inside = {area.x0 + box.left * em_, area.y0 + node.top + node.head,
                 area.x1 - box.right * em_, area.y1 - node.bottom};
  node.inside.x1 = std::max(node.inside.x1, node.inside.x0 + 1);
  node.inside.y1 = std::max(node.inside.y1, node.inside.y0 + 1);
  if (box.aspect > 0) {
    // Centred, as large as there is room for: a circle stays round.
    const float wide = std::min(node.inside.width(), box.aspect * node.inside.height());
    const float high = wide / box.aspect;
    const Point middle = node.inside.center();
    node.inside = {middle.x - wide / 2, middle.y - high / 2, middle.x + wide / 2,
                   middle.y + high / 2};
  }
  lay_along(node);
}

/// How long the boxes in one are: each has its least and a share of what is left by its weight; of an even
/// one a share of all. What one may not use goes to the others.
std::vector<float> Placer::lengths_of(const Node& node, float length) const {
  struct Share {
    double base, weight, low, high;
    double at(double each) const { return std::clamp(base + weight * each, low, high); }
  };
  const bool in_row = side_by_side(*node.box);
  std::vector<Share> parts;
  double least = 0;
  for (const Node& inner : node.inner) {
    const Box& box = *inner.box;
    const double own = inner.folded ? 0 : in_row ? inner.least.x : inner.least.y;
    const bool grows = in_row || box.most_height <= 0;
    const double most = own + double((box.most_height - box.least_height) * em_);
    parts.push_back({node.box->even ? 0 : own, inner.folded ? 0 : double(box.weight), own,
                     grows ? 1e9 : std::max(most, own)});
    least += own;
  }
  const auto sum = [&](double share) {
    double all = 0;
    for (const Share& part : parts) all += part.at(share);
    return all;
  };
  double from = 0, to = 1e7;
  for (int turn = 0; turn < 60; ++turn) {
    const double middle = (from + to) / 2;
    (sum(middle) < double(length) ? from : to) = middle;
  }
  // Where even the least is too much, all give alike.
  const double shrunk = least > double(length) ? std::max(double(length), 1.0) / least : 1;
  std::vector<float> lengths;
  for (const Share& part : parts) lengths.push_back(float(part.at(from) * shrunk));
  return lengths;
}

void Placer::lay_along(Node& node) {
  const Box& box = *node.box;
  const bool in_row = side_by_side(box);
  const auto shown = std::count_if(node.inner.begin(), node.inner.end(),
                                   [](const Node& inner) { return !inner.folded; });
  const Area& room = node.inside;
  const float gaps = gap_in(box) * float(std::max<std::ptrdiff_t>(shown - 1, 0));
  const std::vector<float> lengths =
      lengths_of(node, (in_row ? room.width() : room.height()) - gaps);
  float at = in_row ? room.x0 : room.y0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    Node& inner = node.inner[i];
    if (inner.folded) continue;
    if (box.flow == Box::over) {
      lay(inner, room);
      continue;
    }
    const float end = at + lengths[i];
    lay(inner, in_row ? Area{at, room.y0, end, room.y1} : Area{room.x0, at, room.x1, end});
    at = end + gap_in(box);
  }
}

// ---- axes ----------------------------------------------------------------------------------------

/// A box that stands on an axis offers its room; what all offer is the axis' span.
void Placer::offer(const Node& node, Name axis, bool upright) {
  if (axis.empty() || axes_.count(axis) == 0) return;
  const float from = upright ? node.inside.y0 : node.inside.x0;
  const float to = upright ? node.inside.y1 : node.inside.x1;
  const auto [found, fresh] = spans_.try_emplace({axis, upright});
  Span& span = found->second;
  if (fresh) {
    span = {axes_.at(axis), upright, from, to};
    return;
  }
  // Boxes side by side have no room in common: the axis is then the first one's alone.
  const float common = std::min(span.to, to) - std::max(span.from, from);
  if (common < 0.25f * std::min(span.to - span.from, to - from)) return;
  span.from = std::max(span.from, from);
  span.to = std::min(span.to, to);
}

void Placer::cut_to_bands(Span& span, const Axis& axis) const {
  const float room = std::max(span.to - span.from, 1.0f);
  const float least = std::max(px(axis.least_slot), 1.0f);
  span.count = std::max(axis.count, 0);
  span.first = 0;
  if (float(span.count) * least > room) {
    int visible = std::max(1, static_cast<int>(room / least));
    if (axis.group > 1) visible = std::max(axis.group, visible / axis.group * axis.group);
    visible = std::min(visible, span.count);
    int first = axis.focus - visible / 2;
    if (axis.group > 1) first = (first + axis.group / 2) / axis.group * axis.group;
    span.first = std::clamp(first, 0, span.count - visible);
    span.count = visible;
  }
  const int groups = axis.group > 0 ? (span.count + axis.group - 1) / axis.group : 1;
  span.gap = groups > 1 ? std::min(px(dense_ ? 8 : 14), 0.15f * room / float(groups)) : 0;
  const float gaps = span.gap * float(groups - 1);
  span.slot = (room - gaps) / float(std::max(span.count, 1));
}

/// Cells of one scale have one size in all boxes: the largest for which all have room.
void Placer::scale_cells() {
  std::map<Name, float> widest;
  const auto units = [&](Name name, int cells) {
    const auto axis = axes_.find(name);
    return axis != axes_.end() && axis->second->high > 1 ? float(axis->second->high) : float(cells);
  };
  for (const Node* node : shown_) {
    for (const Mark& mark : node->box->marks) {
      const auto* cells = std::get_if<Cells>(&mark);
      if (cells == nullptr || cells->scale.empty() || cells->items.count == 0) continue;
      const int columns = cells->columns > 0 ? cells->columns : cells->items.count;
      const int rows = (cells->items.count + columns - 1) / columns;
      const Point size{node->inside.width() / units(cells->x, columns),
                       node->inside.height() / units(cells->y, rows)};
      widest[cells->scale] = cells->widest;
      const auto [found, fresh] = cell_.try_emplace(cells->scale, size);
      Point& least = found->second;
      if (!fresh) least = {std::min(least.x, size.x), std::min(least.y, size.y)};
    }
  }
  for (auto& [scale, size] : cell_) {
    size = {std::min(size.x, widest.at(scale) * size.y), std::min(size.y, size.x)};
  }
  for (const Node* node : shown_) {
    for (const Mark& mark : node->box->marks) {
      const auto* cells = std::get_if<Cells>(&mark);
      if (cells == nullptr || cells->scale.empty() || cells->items.count == 0) continue;
      for (const auto& [axis, upright] : {std::pair{cells->x, false}, {cells->y, true}}) {
        const auto found = spans_.find({axis, upright});
        if (axis.empty() || found == spans_.end()) continue;
        Span& span = found->second;
        const float whole = units(span.axis->name, std::max(span.axis->count, 1));
        const bool in_units = span.axis->high > 1;  // of which a cell has several
        const float unit = upright ? cell_.at(cells->scale).y : cell_.at(cells->scale).x;
        const float size = in_units ? unit : std::max(std::floor(unit), 1.0f);
        const float length = std::min(size * whole, span.to - span.from);
        const float align = granted_ && upright ? 0 : span.axis->align;  // of one line all tops
        span.from += std::round((span.to - span.from - length) * align);
        span.to = span.from + length;
      }
    }
  }
}

void Placer::make_spans() {
  for (const Node* node : shown_) {
    for (const Mark& mark : node->box->marks) {
      const Use use = use_of(mark);
      offer(*node, use.x, false);
      offer(*node, use.y, true);
    }
  }
  // A rule or an arrow stands on an axis of its box's other marks, or has the box's width for its own.
  for (const Node* node : shown_) {
    for (const Mark& mark : node->box->marks) {
      Name axis;
      if (const auto* rule = std::get_if<Rule>(&mark)) axis = rule->axis;
      if (const auto* arrow = std::get_if<Arrow>(&mark)) axis = arrow->axis;
      if (!axis.empty() && spans_.count({axis, true}) == 0) offer(*node, axis, false);
    }
  }
  scale_cells();
  for (auto& [key, span] : spans_) {
    if (span.band()) cut_to_bands(span, *span.axis);
  }
}

/// An axis where the marks are that stand on it now: what all its boxes share, or, where those stand
/// side by side and share nothing, this box' own.
Span Placer::span(Name axis, bool upright) const {
  auto found = spans_.find({axis, upright});
  if (found == spans_.end()) found = spans_.find({axis, !upright});
  Span span = found->second;
  const float from = span.upright ? here_->inside.y0 : here_->inside.x0;
  const float to = span.upright ? here_->inside.y1 : here_->inside.x1;
  const float common = std::min(span.to, to) - std::max(span.from, from);
  if (common >= 0.25f * std::min(span.to - span.from, to - from)) return span;
  span.from = from;
  span.to = to;
  if (span.band()) cut_to_bands(span, *span.axis);
  return span;
}

bool Placer::uses(const Mark& mark, Name axis, bool upright) const {
  const Use use = use_of(mark);
  return (upright ? use.y : use.x) == axis;
}

// ---- all of it -----------------------------------------------------------------------------------

/// In the largest type in which it fits; then its shorter forms.
void Placer::headline() {
  const float room = area_.width();
  const Face largest = dense_ ? Face::bold : Face::section;
  Face face = largest;
  for (const Face smaller : {Face::bold, Face::body, Face::note}) {
    if (width(picture_.headline.full, face) > room) face = smaller;
  }
  const std::vector<Run>& runs = form(picture_.headline, room, face);
  const float y = area_.y0 + (height(largest) - height(face)) / 2;
  const bool fits = width(runs, face) <= room;
  const std::vector<Run> shown = fits ? runs : std::vector<Run>{{cut(plain(runs), room, face)}};
  say(shown, {area_.x0, y}, face, Ink::text, {kHeadline});
}

void Placer::emit(const Node& node) {
  // Whole pixels: a box that has exactly its least would else miss it by a rounding.
  const Point least{std::floor(node.box->least_width * em_ - 0.01f),
                    std::floor(node.box->least_height * em_ - 0.01f)};
  out_.rooms.push_back({node.box->key, node.inside, least, node.area, node.box->place});
  stands(node.box->key, node.inside);
  emit_place(node);
  emit_axes(node);
  emit_labels(node);
  put_marks(node, false);
  put_ends();
}

/// Those that hold on to other things, or those that do not.
void Placer::put_marks(const Node& node, bool holders) {
  here_ = &node;
  mark_ = node.first_mark;
  for (const Mark& mark : node.box->marks) {
    const bool holds = std::holds_alternative<Links>(mark) ||
                       std::holds_alternative<picture::Frame>(mark) ||
                       std::holds_alternative<Note>(mark);
    if (holds == holders) {
      if (const Items* items = items_of(mark)) flights(*items);
      if (const auto* stacks = std::get_if<Stacks>(&mark)) flights(stacks->held);
      std::visit([&](const auto& m) { put(m); }, mark);
    }
    ++mark_;
  }
}

void Placer::collect(const Node& node) {
  if (node.folded) return;
  shown_.push_back(&node);
  for (const Node& inner : node.inner) collect(inner);
}

Placed Placer::run() {
  out_.area = area_;
  Node root = tree(picture_.root);
  if (!off_.empty()) set_aside(root);
  fold(root);
  lay(root, root.area);
  collect(root);
  make_spans();
  for (const auto& [key, span] : spans_) {
    const Axis& axis = *span.axis;
    if (axis.kind != Axis::linear) continue;
    out_.scales.push_back(
        {axis.name, span.upright, span.at(axis.low), span.at(axis.high), axis.low, axis.high});
  }
  headline();
  for (const Node* node : shown_) emit(*node);
  // What holds on to other things comes when all of them have their place.
  for (const auto& [key, area] : groups_) stands(key, area);
  for (const Node* node : shown_) put_marks(*node, true);
  for (const Node* node : shown_) name_place(*node);
  drop_patches();
  return std::move(out_);
}

Placed place(const Picture& picture, Area area, const Metrics& metrics) {
  return place(picture, area, metrics, {});
}

Placed place(const Picture& picture, Area area, const Metrics& metrics,
             const std::vector<Key>& off) {
  Placed placed = Placer(picture, area, metrics, off).run();
  // Where a picture has not the room that its boxes need, a text is dropped, never cut.
  std::set<Key> dropped;
  const auto look_at = [&](const Key& key, const Area& a) {
    const bool leaves =
        a.x0 < area.x0 - 1 || a.x1 > area.x1 + 1 || a.y0 < area.y0 - 1 || a.y1 > area.y1 + 1;
    if (leaves) dropped.insert(key);
  };
  for (const Words& words : placed.words) look_at(words.of.key, words.area);
  for (const Said& said : placed.said) look_at(said.key, said.area);
  for (const Key& key : dropped) placed.short_of.push_back(to_text(key) + " has no room");
  std::erase_if(placed.words, [&](const Words& w) { return dropped.count(w.of.key) > 0; });
  std::erase_if(placed.said, [&](const Said& s) { return dropped.count(s.key) > 0; });
  return placed;
}

}  // namespace tilestep::picture
