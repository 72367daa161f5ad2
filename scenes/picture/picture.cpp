#include "scenes/picture/picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

namespace tilestep::picture {

#define TILESTEP_COPIED_HERE(Type)                        \
  Type::Type(const Type& other) = default;                \
  Type::Type(Type&& other) noexcept = default;            \
  Type& Type::operator=(const Type& other) = default;     \
  Type& Type::operator=(Type&& other) noexcept = default; \
  Type::~Type() = default;
TILESTEP_COPIED_HERE(Text)
TILESTEP_COPIED_HERE(Items)
TILESTEP_COPIED_HERE(Mark)
TILESTEP_COPIED_HERE(Box)
TILESTEP_COPIED_HERE(Picture)
#undef TILESTEP_COPIED_HERE

Text::Text() = default;
Text::Text(std::vector<Run> in_full, std::vector<Run> in_brief, std::vector<Run> at_least,
           Name of_group)
    : full(std::move(in_full)),
      brief(std::move(in_brief)),
      least(std::move(at_least)),
      group(of_group) {}
Items::Items() = default;
Box::Box() = default;
Picture::Picture() = default;
Picture::Picture(Text its_headline, std::vector<Axis> its_axes, Box its_root,
                 std::vector<std::string> its_subject)
    : headline(std::move(its_headline)),
      axes(std::move(its_axes)),
      root(std::move(its_root)),
      subject(std::move(its_subject)) {}

namespace {

/// Length in characters, not bytes.
std::size_t length(const std::vector<Run>& runs) {
  const std::string all = plain(runs);
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

template <class Visit>
void for_each_box(const Box& box, const Visit& visit) {
  visit(box);
  for (const Box& inner : box.boxes) for_each_box(inner, visit);
}

/// Looks through a picture, and writes down what is not as it should be.
class Inspector {
 public:
  explicit Inspector(const Picture& picture) {
    for (const Axis& axis : picture.axes) look_at(axis);
    look_at(picture.headline, "headline");
    for (const Axis& axis : picture.axes) collect(axis);
    for_each_box(picture.root, [&](const Box& box) { collect(box); });
    for_each_box(picture.root, [&](const Box& box) { look_at(box); });
  }

  std::vector<std::string> problems;

 private:
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    problems.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void claim(const Key& key) {
    if (key.name.empty()) say("a thing has no key");
    if (!keys_.insert(key).second) say("{} stands twice", to_text(key));
  }
  void collect(const Axis& axis) {
    if (axis.group_name.empty() || axis.group < 1) return;
    for (int g = 0; g * axis.group < axis.count; ++g) claim({axis.group_name, g});
  }
  void collect(const Box& box) {
    claim(box.key);
    for (const Mark& mark : box.marks) {
      const Items* items = items_of(mark);
      if (items != nullptr && (items->ids.empty() || items->ids.size() == size_of(*items))) {
        for (int k = 0; k < items->count; ++k) claim(items->key(k));
      }
      if (const auto* stacks = std::get_if<Stacks>(&mark)) {
        for (int k = 0; k < stacks->held.count; ++k) claim(stacks->held.key(k));
        if (!stacks->limit.key.name.empty()) claim(stacks->limit.key);
      }
      std::visit([&](const auto& m) { claim_own(m); }, mark);
    }
  }
  template <class M>
  void claim_own(const M& mark) {
    if constexpr (requires { mark.key; }) claim(mark.key);
  }

  void look_at(const Axis& axis) {
    const std::string_view name = axis.name.text();
    if (name.empty()) say("an axis has no name");
    if (!axes_.insert(axis.name).second) say("axis {} stands twice", name);
    if (axis.kind == Axis::band) {
      if (axis.count < 0 || axis.group < 0) say("axis {} has a negative count", name);
      if (!axis.names.empty() && std::ssize(axis.names) != axis.count) {
        say("axis {} has {} items and {} names", name, axis.count, axis.names.size());
      }
      if (axis.focus >= axis.count)
        say("axis {} stands round {}, behind its end", name, axis.focus);
    } else if (!(axis.low < axis.high) || (axis.kind == Axis::log && axis.low <= 0)) {
      say("axis {} goes from {} to {}", name, axis.low, axis.high);
    }
    look_at(axis.title, name);
    if (axis.current_group >= 0 &&
        (axis.group < 1 || axis.current_group * axis.group >= axis.count)) {
      say("axis {} has no group {}", name, axis.current_group);
    }
  }

  void look_at(const Text& text, std::string_view where) {
    std::size_t room = length(text.full);
    for (const auto* shorter : {&text.brief, &text.least}) {
      const std::size_t needs = length(*shorter);
      if (needs > room) say("{}: '{}' is a short form and longer", where, plain(*shorter));
      if (needs > 0) room = needs;
    }
  }

  void look_at(const Box& box) {
    const std::string name = to_text(box.key);
    if (box.rank < 0) say("{} has rank {}", name, box.rank);
    if (!(box.weight >= 0)) say("{} has weight {}", name, box.weight);
    if (!(box.least_width > 0 && box.least_height > 0)) say("{} has no least size", name);
    if (!box.marks.empty() && !box.boxes.empty() && box.flow != Box::over) {
      say("{} has marks and boxes beside each other", name);
    }
    look_at(box.label, name);
    look_at(box.value, name);
    if (box.most_height != 0 && !(box.most_height >= box.least_height)) {
      say("{} grows from {} to {}", name, box.least_height, box.most_height);
    }
    if (!(box.left >= 0 && box.right >= 0)) say("{} has a negative margin", name);
    for (const Mark& mark : box.marks) {
      if (const Items* items = items_of(mark)) look_at(*items);
      std::visit([&](const auto& m) { look_inside(m); }, mark);
    }
  }

  static std::size_t size_of(const Items& items) { return static_cast<std::size_t>(items.count); }
  template <class T>
  void fits(const std::vector<T>& column, const Items& items, std::string_view what) {
    if (column.empty() || column.size() == size_of(items)) return;
    say("{} has {} items and {} {}", items.name.text(), items.count, column.size(), what);
  }
  template <class T>
  void needs(const std::vector<T>& column, const Items& items, std::string_view what) {
    if (column.size() != size_of(items)) {
      say("{} has {} items and {} {}", items.name.text(), items.count, column.size(), what);
    }
  }
  void look_at(const Items& items) {
    if (items.count < 0 || items.per_row < 0) say("{} has a negative count", items.name.text());
    fits(items.ids, items, "numbers of their own");
    fits(items.value.each, items, "values");
    fits(items.base.each, items, "bases");
    fits(items.state.each, items, "states");
    fits(items.flags.each, items, "flags");
    fits(items.tone.each, items, "tones");
    fits(items.glyph.each, items, "glyphs");
    fits(items.names, items, "names");
    if (items.first_way < 0 || items.first_way + std::ssize(items.ways) > items.count) {
      say("{} has {} items and ways from {} to {}", items.name.text(), items.count, items.first_way,
          items.first_way + std::ssize(items.ways));
    }
    for (const auto& [kind, index] : items.about) {
      if (kind.empty()) say("{} is about nothing named", items.name.text());
      fits(index.each, items, "indices of what they are about");
    }
  }

  void axis(Name name, const Key& of, bool wanted = true) {
    if (name.empty() ? wanted : axes_.count(name) == 0) {
      say("{} stands on axis '{}', which there is not", to_text(of), name.text());
    }
  }
  void place(double at, const Key& of) {
    if (std::isnan(at)) say("{} stands at a place that is no number", to_text(of));
  }
  void anchor(const Anchor& a, const Key& of) {
    if (keys_.count(a.key) == 0)
      say("{} holds on to {}, which there is not", to_text(of), to_text(a.key));
    if (!(0 <= a.from && a.from <= a.to && a.to <= 1)) {
      say("{} holds on to the part {}–{} of {}", to_text(of), a.from, a.to, to_text(a.key));
    }
  }

  void look_inside(const Cells& m) {
    if (m.columns < 0 || m.groups < 0) say("{} has negative columns", m.items.name.text());
    if (m.parts < 1 || m.items.count % std::max(m.parts, 1) != 0) {
      say("{} has {} items in cells of {}", m.items.name.text(), m.items.count, m.parts);
    }
    axis(m.x, {m.items.name}, false);
    axis(m.y, {m.items.name}, false);
  }
  void look_inside(const Chips& m) {
    if (m.items.names.empty() && m.items.count > 0) say("{} has no words", m.items.name.text());
  }
  void look_inside(const Strip& m) {
    needs(m.address, m.items, "addresses");
    fits(m.used, m.items, "masks");
    if (m.bytes < 1 || m.bytes > 64 || m.line < m.bytes) {
      say("{} has {} bytes in lines of {}", m.items.name.text(), m.bytes, m.line);
    }
    axis(m.x, {m.items.name}, false);
    for (const std::int64_t at : m.address) {
      if (!m.names.empty() && at / m.line >= std::ssize(m.names)) {
        say("{} has byte {} in {} lines", m.items.name.text(), at, m.names.size());
      }
    }
  }
  void look_inside(const Bars& m) {
    axis(m.x, {m.items.name});
    axis(m.y, {m.items.name});
  }
  void look_inside(const Stacks& m) {
    needs(m.kept, m.items, "numbers of what is kept");
    needs(m.tiles, m.items, "numbers of tiles");
    fits(m.dropped, m.items, "numbers of what is dropped");
    if (m.tile < 1) say("{} has tiles of {}", m.items.name.text(), m.tile);
    look_at(m.held);
    place(m.limit.at, m.limit.key);
    look_at(m.limit.label, to_text(m.limit.key));
    const int held = std::accumulate(m.kept.begin(), m.kept.end(), 0) +
                     std::accumulate(m.dropped.begin(), m.dropped.end(), 0);
    if (m.held.count > 0 && m.held.count != held) {
      say("{} hold {} and there are {}", m.items.name.text(), held, m.held.count);
    }
    axis(m.x, {m.items.name}, false);
  }
  void look_inside(const Spans& m) {
    needs(m.lane, m.items, "lanes");
    needs(m.begin, m.items, "beginnings");
    needs(m.end, m.items, "ends");
    axis(m.x, {m.items.name});
    axis(m.lanes, {m.items.name});
    for (std::size_t k = 0; k < std::min(m.begin.size(), m.end.size()); ++k) {
      const Key key = m.items.key(static_cast<int>(k));
      if (!(m.begin[k] <= m.end[k])) say("{} ends before it begins", to_text(key));
      if (m.begin[k] > m.now) say("{} begins after now", to_text(key));
    }
  }
  void look_inside(const Ring& m) {
    needs(m.phase, m.stages, "phases");
    needs(m.bytes_expected, m.stages, "numbers of bytes");
    if (std::max(m.fill, m.drain) >= m.stages.count) {
      say("{} fills stage {} and drains {} of {}", m.stages.name.text(), m.fill, m.drain,
          m.stages.count);
    }
  }
  void look_inside(const Curve& m) {
    const auto fits_x = [&](const std::vector<double>& column, bool wanted) {
      if (column.empty() && !wanted) return;
      if (column.size() != m.x.size()) say("{} has columns of two lengths", to_text(m.key));
    };
    fits_x(m.y, true);
    fits_x(m.low, false);
    fits_x(m.high, false);
    if (m.base.size() > 1) fits_x(m.base, true);
    axis(m.ax, m.key);
    axis(m.ay, m.key);
    look_at(m.end, to_text(m.key));
  }
  void look_inside(const Ticks& m) {
    needs(m.at, m.items, "places");
    for (const double at : m.at) place(at, {m.items.name});
    axis(m.x, {m.items.name});
  }
  void look_inside(const Rule& m) {
    place(m.at, m.key);
    axis(m.axis, m.key);
    look_at(m.label, to_text(m.key));
  }
  void look_inside(const Arrow& m) {
    place(m.from, m.key);
    place(m.to, m.key);
    axis(m.axis, m.key);
    look_at(m.label, to_text(m.key));
  }
  void look_inside(const Wall& m) { look_at(m.label, to_text(m.key)); }
  void look_inside(const Links& m) {
    needs(m.from, m.items, "beginnings");
    needs(m.to, m.items, "ends");
    for (const auto* ends : {&m.from, &m.to}) {
      for (const Anchor& a : *ends) {
        const bool nowhere = ends == &m.from && a.key.name.empty() && !m.items.names.empty();
        if (!nowhere) anchor(a, {m.items.name});
      }
    }
  }
  void look_inside(const Frame& m) {
    if (m.round.empty()) say("{} is round nothing", to_text(m.key));
    for (const Key& key : m.round) anchor({key}, m.key);
    look_at(m.label, to_text(m.key));
  }
  void look_inside(const Note& m) {
    anchor(m.at, m.key);
    look_at(m.text, to_text(m.key));
  }
  void look_inside(const Lines& m) {
    needs(m.rows, m.items, "rows");
    for (const Text& text : m.rows) look_at(text, m.items.name.text());
  }
  void look_inside(const Ledger& m) {
    const std::size_t cells = m.rows.size() * m.columns.size();
    if (cells != static_cast<std::size_t>(m.items.count)) {
      say("{} has {} cells and {} items", m.items.name.text(), cells, m.items.count);
    }
    for (const auto* texts : {&m.rows, &m.columns}) {
      for (const Text& text : *texts) look_at(text, m.items.name.text());
    }
  }

  std::set<Key> keys_;
  std::set<Name> axes_;
};

}  // namespace

std::string to_text(const Key& key) {
  std::string text(key.name.text());
  for (const int index : {key.i, key.j}) {
    if (index >= 0) text += fmt::format("_{}", index);
  }
  return text;
}

Text text(std::string full, std::string brief, std::string least) {
  const auto form = [](std::string words) {
    return words.empty() ? std::vector<Run>{} : std::vector<Run>{{std::move(words)}};
  };
  return {form(std::move(full)), form(std::move(brief)), form(std::move(least))};
}

namespace {

bool of_a_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// The longest symbol that stands at `at` as a word of its own; nullptr: none.
const Symbol* symbol_in(std::string_view text, std::size_t at, const std::vector<Symbol>& symbols) {
  const Symbol* best = nullptr;
  for (const Symbol& each : symbols) {
    const std::size_t end = at + each.word.size();
    if (each.word.empty() || text.substr(at, each.word.size()) != each.word) continue;
    const bool joined = (at > 0 && of_a_word(text[at - 1]) && of_a_word(each.word.front())) ||
                        (end < text.size() && of_a_word(text[end]) && of_a_word(each.word.back()));
    if (!joined && (best == nullptr || best->word.size() < each.word.size())) best = &each;
  }
  return best;
}

}  // namespace

std::vector<Run> marked(std::string_view text, const std::vector<Symbol>& symbols) {
  std::vector<Run> runs;
  std::string words;
  const auto flush = [&] {
    if (!words.empty()) runs.push_back({std::exchange(words, {})});
  };
  for (std::size_t at = 0; at < text.size();) {
    const Symbol* symbol = symbol_in(text, at, symbols);
    if (symbol == nullptr) {
      words += text[at++];
      continue;
    }
    flush();
    runs.push_back({symbol->word, symbol->about, State::plain, symbol->tone});
    at += symbol->word.size();
  }
  flush();
  return runs;
}

std::string plain(const std::vector<Run>& runs) {
  std::string all;
  for (const Run& run : runs) all += run.text;
  return all;
}

Key Items::key(int item) const {
  if (!ids.empty()) return {name, ids[static_cast<std::size_t>(item)]};
  return per_row > 0 ? Key{name, item / per_row, item % per_row} : Key{name, item};
}

Items items(Name name, int count) {
  Items made;
  made.name = name;
  made.count = count;
  return made;
}

std::vector<int> numbers(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Items items(Name name, std::vector<float> values, Format format) {
  Items made = items(name, static_cast<int>(values.size()));
  made.value.each = std::move(values);
  made.format = format;
  return made;
}

Key key_of(const Mark& mark) {
  return std::visit(
      [](const auto& m) {
        if constexpr (requires { m.key; }) {
          return m.key;
        } else {
          return Key{};
        }
      },
      mark);
}

bool has(const Mark& mark, const Key& key) {
  if (key_of(mark) == key) return true;
  const Items* items = items_of(mark);
  const auto* stacks = std::get_if<Stacks>(&mark);
  const auto of = [&](const Items& all) {
    for (int k = 0; k < all.count; ++k) {
      if (all.key(k) == key) return true;
    }
    return false;
  };
  return (items != nullptr && of(*items)) || (stacks != nullptr && of(stacks->held));
}

const Items* items_of(const Mark& mark) {
  return std::visit(
      [](const auto& m) -> const Items* {
        if constexpr (requires { m.items; }) {
          return &m.items;
        } else if constexpr (requires { m.stages; }) {
          return &m.stages;
        } else {
          return nullptr;
        }
      },
      mark);
}

std::pair<const Items*, int> item_of(const Mark& mark, int item) {
  const Items* items = items_of(mark);
  const auto* stacks = std::get_if<Stacks>(&mark);
  if (stacks != nullptr && item >= items->count) return {&stacks->held, item - items->count};
  return {items, item};
}

Lines lines(Name name, std::vector<Text> rows, Lines::Voice voice) {
  Lines made{items(name, static_cast<int>(rows.size())), std::move(rows)};
  made.voice = voice;
  return made;
}

Box box(Key key, std::vector<Mark> marks, Text label, const Layout& layout) {
  Box made;
  static_cast<Layout&>(made) = layout;
  made.key = key;
  made.label = std::move(label);
  made.marks = std::move(marks);
  return made;
}

Box row(Key key, std::vector<Box> boxes, Layout layout) {
  layout.flow = Layout::row;
  return column(key, std::move(boxes), layout);
}

Box column(Key key, std::vector<Box> boxes, const Layout& layout) {
  Box made = box(key, {}, {}, layout);
  made.boxes = std::move(boxes);
  return made;
}

std::pair<double, double> rounded(double low, double high) {
  if (!std::isfinite(low)) low = 0;
  if (!std::isfinite(high)) high = low;
  if (high < low) std::swap(low, high);
  if (high - low < 1e-9 * std::max(1.0, std::abs(high))) high = low + std::max(1.0, std::abs(low));
  const double span = high - low;
  const double power = std::pow(10.0, std::floor(std::log10(span)) - 1);
  double unit = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    unit = factor * power;
    if (span / unit <= 12) break;
  }
  return {std::floor(low / unit + 1e-9) * unit, std::ceil(high / unit - 1e-9) * unit};
}

std::vector<std::string> problems(const Picture& picture) {
  return std::move(Inspector(picture).problems);
}

}  // namespace tilestep::picture
