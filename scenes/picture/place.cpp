// Where the boxes of a picture stand, and its axes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "scenes/picture/look.hpp"
#include "scenes/picture/placer.hpp"

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
  return from + slot * static_cast<float>(inside - first) + gap * static_cast<float>(gaps);
}

float Span::at(double value) const {
  if (band()) {
    if (std::isnan(value)) return from;
    const double inside = std::clamp(value, double(first), double(first + count));
    const int item = std::min(static_cast<int>(inside), first + std::max(count - 1, 0));
    return begin(item) + slot * static_cast<float>(inside - item);
  }
  double share = 0;
  if (axis->kind == Axis::log) {
    share = value > 0 ? std::log(value / axis->low) / std::log(axis->high / axis->low) : 0;
  } else {
    share = (value - axis->low) / (axis->high - axis->low);
  }
  const auto inside = static_cast<float>(std::isnan(share) ? 0 : std::clamp(share, 0.0, 1.0));
  return upright ? to - (to - from) * inside : from + (to - from) * inside;
}

// ---- boxes ---------------------------------------------------------------------------------------

Placer::Placer(const Picture& picture, Area area, const Metrics& metrics)
    : picture_(picture), area_(area), metrics_(metrics) {
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
    if (std::holds_alternative<Strip>(mark)) node.bottom = height(Face::mono_note) + px(3);
  }
  for (const auto& [axis, lowest] : lowest_) {
    const Axis& a = *axes_.at(axis.first);
    const bool words = a.ticks || !a.group_name.empty() || !a.title.full.empty();
    if (lowest != &box || axis.second) continue;
    if (words) node.bottom = height(Face::note) + px(4);
    const bool window = static_cast<float>(a.count) * px(a.least_slot) > area_.width();
    if (a.kind == Axis::band && window) node.bottom += px(kOverview + 6);
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
  node.least.x = std::max(box.least_width * em_, within.x) + (box.left + box.right) * em_;
  node.least.y = std::max(box.least_height * em_, within.y) + node.top + node.bottom + node.head;
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

/// Where there is too little room type becomes smaller first, and what may stands side by side; then
/// boxes go, those of the highest
/// rank before others.
void Placer::fold(Node& root) {
  const auto set = [&](bool dense) {
    dense_ = dense;
    em_ = height(dense ? Face::note : Face::body);
    gap_ = px(dense ? 5 : 10);
    measure(root);
  };
  lowest_.clear();
  find_lowest(root);
  set(false);
  if (!fits(root)) set(true);
  if (root.least.y > root.area.height() + 0.5f) {
    turned_ = true;
    measure(root);
    turned_ = root.least.x <= root.area.width() + 0.5f;
    measure(root);
  }
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
  lay_along(node);
}

void Placer::lay_along(Node& node) {
  const Box& box = *node.box;
  const bool in_row = side_by_side(box);
  float least = 0, weight = 0;
  int shown = 0;
  for (const Node& inner : node.inner) {
    if (inner.folded) continue;
    least += in_row ? inner.least.x : inner.least.y;
    weight += inner.box->weight;
    ++shown;
  }
  const Area& room = node.inside;
  const float gap = gap_in(box), gaps = gap * static_cast<float>(std::max(shown - 1, 0));
  const float length = in_row ? room.width() : room.height();
  float extra = length - gaps - least;
  // Where even the least is too much, all give alike.
  const float shrunk = extra < 0 && least > 0 ? std::max(length - gaps, 1.0f) / least : 1;
  std::vector<float> sizes(node.inner.size(), 0);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Point& own = node.inner[i].least;
    if (!node.inner[i].folded) sizes[i] = (in_row ? own.x : own.y) * shrunk;
  }
  // What one that may not grow further leaves goes to the others.
  for (bool full = true; full && extra > 0 && weight > 0;) {
    full = false;
    for (std::size_t i = 0; i < sizes.size() && weight > 0; ++i) {
      Node& inner = node.inner[i];
      const Box& own = *inner.box;
      if (inner.folded || inner.full || in_row || own.most_height <= 0) continue;
      const float most = inner.least.y + (own.most_height - own.least_height) * em_;
      if (sizes[i] + extra * own.weight / weight < most) continue;
      inner.full = full = true;
      extra -= most - sizes[i];
      weight -= own.weight;
      sizes[i] = most;
    }
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Node& inner = node.inner[i];
    if (inner.folded || inner.full || extra <= 0 || weight <= 0) continue;
    sizes[i] += extra * inner.box->weight / weight;
  }
  if (box.even && shrunk == 1) even_out(node, sizes);
  float at = in_row ? room.x0 : room.y0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Node& inner = node.inner[i];
    if (inner.folded) continue;
    if (box.flow == Box::over) {
      lay(inner, room);
      continue;
    }
    const float end = at + sizes[i];
    lay(inner, in_row ? Area{at, room.y0, end, room.y1} : Area{room.x0, at, room.x1, end});
    at = end + gap;
  }
}

/// By their weights alone, but for those that need more.
void Placer::even_out(const Node& node, std::vector<float>& sizes) const {
  const auto least = [&](std::size_t i) {
    const Point& own = node.inner[i].least;
    return side_by_side(*node.box) ? own.x : own.y;
  };
  std::vector<std::size_t> shared;
  float room = 0, weight = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Node& inner = node.inner[i];
    if (inner.folded || inner.full || inner.box->weight <= 0) continue;
    shared.push_back(i);
    room += sizes[i];
    weight += inner.box->weight;
  }
  for (bool fixed = true; fixed && !shared.empty();) {
    fixed = false;
    for (std::size_t n = 0; n < shared.size(); ++n) {
      const std::size_t i = shared[n];
      const float own = node.inner[i].box->weight;
      sizes[i] = room * own / weight;
      if (sizes[i] >= least(i)) continue;
      sizes[i] = least(i);
      room -= sizes[i];
      weight -= own;
      shared.erase(shared.begin() + static_cast<std::ptrdiff_t>(n));
      fixed = true;
      break;
    }
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
  if (static_cast<float>(span.count) * least > room) {
    int visible = std::max(1, static_cast<int>(room / least));
    if (axis.group > 1) visible = std::max(axis.group, visible / axis.group * axis.group);
    visible = std::min(visible, span.count);
    int first = axis.focus - visible / 2;
    if (axis.group > 1) first = (first + axis.group / 2) / axis.group * axis.group;
    span.first = std::clamp(first, 0, span.count - visible);
    span.count = visible;
  }
  const int groups = axis.group > 0 ? (span.count + axis.group - 1) / axis.group : 1;
  span.gap =
      groups > 1 ? std::min(px(dense_ ? 8 : 14), 0.15f * room / static_cast<float>(groups)) : 0;
  const float gaps = span.gap * static_cast<float>(groups - 1);
  span.slot = (room - gaps) / static_cast<float>(std::max(span.count, 1));
}

/// Cells of one scale have one size in all boxes: the largest for which all have room.
void Placer::scale_cells() {
  for (const Node* node : leaves_) {
    for (const Mark& mark : node->box->marks) {
      const auto* cells = std::get_if<Cells>(&mark);
      if (cells == nullptr || cells->scale.empty() || cells->items.count == 0) continue;
      const int columns = cells->columns > 0 ? cells->columns : cells->items.count;
      const int rows = (cells->items.count + columns - 1) / columns;
      const float size = std::min(node->inside.width() / static_cast<float>(columns),
                                  node->inside.height() / static_cast<float>(rows));
      const auto [found, fresh] = cell_.try_emplace(cells->scale, size);
      if (!fresh) found->second = std::min(found->second, size);
    }
  }
  for (const Node* node : leaves_) {
    for (const Mark& mark : node->box->marks) {
      const auto* cells = std::get_if<Cells>(&mark);
      if (cells == nullptr || cells->scale.empty()) continue;
      for (const auto& [axis, upright] : {std::pair{cells->x, false}, {cells->y, true}}) {
        const auto found = spans_.find({axis, upright});
        if (axis.empty() || found == spans_.end()) continue;
        Span& span = found->second;
        const auto whole = static_cast<float>(std::max(span.axis->count, 1));
        const float size = std::max(std::floor(cell_.at(cells->scale)), 1.0f);
        const float length = std::min(size * whole, span.to - span.from);
        span.from += std::round((span.to - span.from - length) * span.axis->align);
        span.to = span.from + length;
      }
    }
  }
}

void Placer::make_spans() {
  for (const Node* node : leaves_) {
    for (const Mark& mark : node->box->marks) {
      const Use use = use_of(mark);
      offer(*node, use.x, false);
      offer(*node, use.y, true);
    }
  }
  // A rule or an arrow stands on an axis of its box's other marks, or has the box's width for its own.
  for (const Node* node : leaves_) {
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
  if (node.folded) return;
  // Whole pixels: a box that has exactly its least would else miss it by a rounding.
  const Point least{std::floor(node.box->least_width * em_ - 0.01f),
                    std::floor(node.box->least_height * em_ - 0.01f)};
  out_.rooms.push_back({node.box->key, node.inside, least});
  at_.try_emplace(node.box->key, node.inside);
  emit_axes(node);
  emit_labels(node);
  here_ = &node;
  mark_ = node.first_mark;
  for (const Mark& mark : node.box->marks) {
    // What holds on to other things comes when all of them have their place.
    const bool later = std::holds_alternative<Links>(mark) ||
                       std::holds_alternative<picture::Frame>(mark) ||
                       std::holds_alternative<Note>(mark);
    if (!later) std::visit([&](const auto& m) { put(m); }, mark);
    ++mark_;
  }
  put_ends();
  for (const Node& inner : node.inner) emit(inner);
}

Placed Placer::run() {
  out_.area = area_;
  Node root = tree(picture_.root);
  // The headline's room does not hang on its words, or all would move with them.
  const float line = picture_.headline.full.empty() ? 0 : height(Face::section) + px(6);
  root.area = {area_.x0, area_.y0 + line, area_.x1, area_.y1};
  fold(root);
  if (dense_ && line > 0) root.area.y0 = area_.y0 + height(Face::bold) + px(2);
  lay(root, root.area);
  const auto collect = [&](const auto& self, const Node& node) -> void {
    if (node.folded) return;
    leaves_.push_back(&node);
    for (const Node& inner : node.inner) self(self, inner);
  };
  collect(collect, root);
  make_spans();
  headline();
  emit(root);
  for (const Node* node : leaves_) {
    here_ = node;
    mark_ = node->first_mark;
    for (const Mark& mark : node->box->marks) {
      if (const auto* links = std::get_if<Links>(&mark)) put(*links);
      if (const auto* frame = std::get_if<picture::Frame>(&mark)) put(*frame);
      if (const auto* note = std::get_if<Note>(&mark)) put(*note);
      ++mark_;
    }
  }
  drop_patches();
  return std::move(out_);
}

Placed place(const Picture& picture, Area area, const Metrics& metrics) {
  Placed placed = Placer(picture, area, metrics).run();
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
