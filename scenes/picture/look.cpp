#include "scenes/picture/look.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace tilestep::picture {

Subject subject_of(const Ref& about) {
  return {std::string(about.kind.text()), about.index};
}

Role tone_role(std::uint8_t tone) {
  return static_cast<Role>(static_cast<int>(Role::blue) + (tone - 1) % kToneCount);
}

namespace {

/// The part of a tone that a state leaves; what is current has its frame besides.
float tone_alpha(State state) {
  if (state == State::to_come) return 0.28f;
  return state == State::done ? 0.7f : 1.0f;
}

float distance(Point p, Point a, Point b) {
  const float x = b.x - a.x, y = b.y - a.y, square = x * x + y * y;
  const float t = square > 0 ? ((p.x - a.x) * x + (p.y - a.y) * y) / square : 0;
  const float inside = std::clamp(t, 0.0f, 1.0f);
  return std::hypot(p.x - a.x - inside * x, p.y - a.y - inside * y);
}

bool is_near(const Stroke& stroke, Point at, float near) {
  for (std::size_t k = 1; k < stroke.points.size(); ++k) {
    if (distance(at, stroke.points[k - 1], stroke.points[k]) <= near) return true;
  }
  return false;
}

const Mark* mark_of(const std::vector<const Mark*>& marks, const Identity& of) {
  const bool known = of.mark >= 0 && of.mark < static_cast<int>(marks.size());
  return known ? marks[of.mark] : nullptr;
}
std::pair<const Items*, int> item_at(const std::vector<const Mark*>& marks, const Identity& of) {
  const Mark* mark = mark_of(marks, of);
  if (mark == nullptr || of.item < 0) return {nullptr, -1};
  const auto found = item_of(*mark, of.item);
  return found.first != nullptr && found.second < found.first->count
             ? found
             : std::pair<const Items*, int>{nullptr, -1};
}

const Curve* curve_at(const std::vector<const Mark*>& marks, const Identity& of) {
  const Mark* mark = mark_of(marks, of);
  return mark != nullptr ? std::get_if<Curve>(mark) : nullptr;
}

}  // namespace

bool is_hatched(const Piece& piece) {
  return piece.kind == Piece::hatch || (piece.kind == Piece::fill && piece.state == State::wasted);
}

bool shows_heat(const Piece& piece) {
  return piece.heat >= 0 && piece.kind != Piece::slab && piece.tone == 0 &&
         piece.state != State::to_come && piece.state != State::wrong &&
         piece.state != State::wasted && piece.state != State::predicted;
}

bool has_own_colour(const Piece& piece) {
  return (piece.kind == Piece::fill || piece.kind == Piece::chip) &&
         (piece.tone > 0 || piece.heat >= 0);
}

bool stands_for_ground(const Piece& piece) {
  const bool faint = piece.state == State::to_come && piece.tone == 0;
  return !is_hatched(piece) && piece.kind != Piece::dashed && piece.kind != Piece::outline &&
         piece.state != State::predicted && !faint;
}

Coat coat_of(const Piece& piece) {
  const bool line =
      piece.kind == Piece::outline || piece.kind == Piece::dashed || piece.kind == Piece::frame;
  const bool sign = piece.kind == Piece::dot || piece.kind == Piece::up ||
                    piece.kind == Piece::down || piece.kind == Piece::cross;
  // What comes with a growth is a bar.
  const bool bar = piece.entry != Entry::fades || sign;
  if (piece.state == State::wrong) return {Role::wrong, piece.alpha};
  if (piece.kind == Piece::wash)
    return {piece.tone > 0 ? tone_role(piece.tone) : Role::accent, 0.15f * piece.alpha};
  if ((piece.flags & kWas) != 0) return {Role::muted, piece.alpha};
  if (piece.state == State::wasted) return {Role::wasted, piece.alpha};
  if (piece.kind == Piece::outline && piece.state == State::current)
    return {Role::accent, piece.alpha};
  const float depth = piece.heat >= 0 ? 0.2f + 0.8f * piece.heat : 1;
  if (piece.tone > 0) {
    return {tone_role(piece.tone), tone_alpha(piece.state) * depth * piece.alpha};
  }
  switch (piece.state) {
    case State::current:
      return {Role::accent, piece.alpha};
    case State::to_come:
      return {line ? Role::border : Role::faint, (line ? 1.0f : 0.45f) * piece.alpha};
    case State::predicted:
      return {Role::text, piece.alpha};
    default:
      break;
  }
  if (piece.kind == Piece::frame) return {Role::text, piece.alpha};
  if (line || bar) return {line ? Role::faint : Role::muted, piece.alpha};
  return {piece.state == State::done ? Role::border : Role::raised, piece.alpha};
}

Coat coat_of(const Stroke& stroke) {
  if (stroke.state == State::wrong) return {Role::wrong, stroke.alpha};
  // Links are many and run over other things.
  const float alpha = stroke.curved && stroke.state != State::current ? 0.65f : 1.0f;
  if (stroke.tone > 0) return {tone_role(stroke.tone), alpha * stroke.alpha};
  switch (stroke.state) {
    case State::current:
      return {Role::accent, stroke.alpha};
    case State::to_come:
      return {stroke.layer == Layer::ground ? Role::border : Role::faint, stroke.alpha};
    case State::predicted:
      return {Role::text, stroke.alpha};
    case State::wasted:
      return {Role::wasted, stroke.alpha};
    default:
      return {Role::muted, stroke.alpha};
  }
}

Role role_of(const Words& words) {
  switch (words.ink) {
    case Ink::text:
    case Ink::on_piece:
      return Role::text;
    case Ink::faint:
      return Role::faint;
    case Ink::accent:
      return Role::accent;
    case Ink::wrong:
      return Role::wrong;
    case Ink::tone:
      return words.tone > 0 ? tone_role(words.tone) : Role::text;
    default:
      return Role::muted;
  }
}

const Identity* hit(const Placed& placed, Point at, float near) {
  const Identity* mark = nullptr;
  for (const Layer layer : {Layer::over, Layer::body, Layer::ground}) {
    for (auto piece = placed.pieces.rbegin(); piece != placed.pieces.rend(); ++piece) {
      if (piece->layer != layer || !piece->area.holds(at)) continue;
      if (piece->of.item >= 0) return &piece->of;
      if (mark == nullptr && piece->of.mark >= 0 && piece->kind != Piece::frame) mark = &piece->of;
    }
  }
  for (const Words& words : placed.words) {
    if (words.of.mark < 0 || !words.area.holds(at)) continue;
    if (words.of.item >= 0) return &words.of;
    mark = &words.of;
  }
  if (mark != nullptr) return mark;
  for (const Stroke& stroke : placed.strokes) {
    if (stroke.of.mark >= 0 && is_near(stroke, at, near)) return &stroke.of;
  }
  return nullptr;
}

Place place_of(const Placed& placed, const std::vector<const Mark*>& marks, const Identity& of,
               Point at) {
  const Mark* mark = mark_of(marks, of);
  const auto* cells = mark != nullptr ? std::get_if<Cells>(mark) : nullptr;
  if (cells != nullptr && of.item >= 0 && cells->items.glyph[of.item] == kHollow)
    return Place::nowhere;
  Place found = Place::nowhere;
  for (const Room& room : placed.rooms) {  // those in a box come after it
    if (room.place != Place::nowhere && room.whole.holds(at)) found = room.place;
  }
  return found;
}

const Words* symbol_at(const Placed& placed, Point at) {
  for (const Words& words : placed.words) {
    if (!words.about.kind.empty() && words.area.holds(at)) return &words;
  }
  return nullptr;
}

// ---- what is about the same ----------------------------------------------------------------------

std::vector<Subject> subjects_of(const std::vector<const Mark*>& marks, const Identity& of) {
  std::vector<Subject> subjects;
  if (const Curve* curve = curve_at(marks, of)) {
    if (!curve->about.kind.empty()) {
      subjects.push_back({std::string(curve->about.kind.text()), curve->about.index});
    }
  }
  const auto [items, item] = item_at(marks, of);
  if (items == nullptr) return subjects;
  for (const auto& [kind, column] : items->about) {
    subjects.push_back({std::string(kind.text()), column[item]});
  }
  return subjects;
}

Act act_of(const std::vector<const Mark*>& marks, const Identity& of) {
  const Curve* curve = curve_at(marks, of);
  const Items* items = item_at(marks, of).first;
  return curve != nullptr ? curve->act : items != nullptr ? items->act : Act{};
}

Lighting::Lighting(const std::vector<const Mark*>& marks, const std::vector<Subject>& subjects,
                   std::vector<Key> keys)
    : rules_(marks.size()),
      keys_(std::move(keys)),
      any_(!keys_.empty() || !subjects.empty()),
      subjects_(subjects) {
  if (subjects.empty()) return;
  for (std::size_t m = 0; m < marks.size(); ++m) {
    const Items* items = items_of(*marks[m]);
    const auto* stacks = std::get_if<Stacks>(marks[m]);
    const auto add = [&](const Items& of, int first) {
      for (const auto& [kind, column] : of.about) {
        for (const Subject& subject : subjects) {
          if (kind.text() == subject.kind && subject.index >= 0) {
            rules_[m].push_back({&column, first, first + of.count, subject.index});
          }
        }
      }
    };
    if (const auto* curve = std::get_if<Curve>(marks[m])) {
      const Subject of{std::string(curve->about.kind.text()), curve->about.index};
      if (std::find(subjects.begin(), subjects.end(), of) != subjects.end()) {
        rules_[m].push_back({nullptr, 0, 0, of.index});
      }
    }
    if (items != nullptr) add(*items, 0);
    if (stacks != nullptr) add(stacks->held, stacks->items.count);
  }
}

bool Lighting::lights(const Identity& of) const {
  if (std::find(keys_.begin(), keys_.end(), of.key) != keys_.end()) return true;
  if (of.mark < 0 || of.mark >= static_cast<int>(rules_.size())) return false;
  const auto& rules = rules_[of.mark];
  return std::any_of(rules.begin(), rules.end(), [&](const Rule& rule) {
    if (rule.column == nullptr) return true;
    return of.item >= rule.first && of.item < rule.end &&
           (*rule.column)[of.item - rule.first] == rule.index;
  });
}

bool Lighting::lights(const Words& words) const {
  if (words.about.kind.empty()) return false;
  return std::any_of(subjects_.begin(), subjects_.end(), [&](const Subject& subject) {
    return subject.kind == words.about.kind.text() && subject.index == words.about.index;
  });
}

// ---- names ---------------------------------------------------------------------------------------

std::string in_words(const Key& key) {
  std::string words = to_text(key);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string_view name_of(Place place, bool brief) {
  constexpr std::string_view kNames[] = {"",          "device memory", "L2", "shared memory",
                                         "registers", "tensor cores"},
                             kShort[] = {"", "memory", "L2", "shared", "regs", "tensor"};
  return (brief ? kShort : kNames)[static_cast<std::size_t>(place)];
}

std::string_view word_for(State state) {
  constexpr std::string_view kWords[] = {"",       "done",  "current",  "to come",
                                         "wasted", "wrong", "predicted"};
  return kWords[static_cast<std::size_t>(state)];
}

namespace {

/// Collects parts, each name once; what is drawn of one thing makes one part.
class Parts {
 public:
  Part* add(const std::string& id, const Area& area) {
    const auto [at, fresh] = index_.try_emplace(id, all.size());
    if (fresh) {
      all.push_back({id, {}, {}, area});
      return &all.back();
    }
    Part& part = all[at->second];
    part.area = joined(part.area, area);
    return nullptr;
  }
  Part& at(const std::string& id) { return all[index_.at(id)]; }
  bool has(const std::string& id) const { return index_.count(id) != 0; }

  std::vector<Part> all;

 private:
  std::map<std::string, std::size_t> index_;
};

std::string value_of(const Items& items, int item) {
  const bool number = items.format.kind != Format::none;
  const std::string value =
      number ? written(items.value[item], items.format) : written(items, item);
  return value.empty() ? std::string(word_for(items.state[item])) : value;
}

}  // namespace

std::vector<Part> parts_of(const Placed& placed, const std::vector<const Mark*>& marks) {
  Parts parts;
  std::set<std::string> complete;
  for (const Said& said : placed.said) {
    const std::string id = to_text(said.key);
    complete.insert(id);
    if (Part* fresh = parts.add(id, said.area)) {
      fresh->label = said.label;
      fresh->value = said.value;
    }
  }
  const auto add = [&](const Identity& of, const Area& area, State state = State::plain) {
    if (of.mark < 0) return;
    const auto [items, item] = item_at(marks, of);
    Part* fresh = parts.add(to_text(of.key), area);
    if (fresh == nullptr) return;
    const bool named = items != nullptr && !items->names.empty();
    fresh->label = named ? items->names[item] : in_words(of.key);
    fresh->value = items != nullptr ? value_of(*items, item) : std::string(word_for(state));
  };
  for (const Piece& piece : placed.pieces) {
    if ((piece.flags & kWas) == 0 || piece.of.part > 0) add(piece.of, piece.area, piece.state);
  }
  for (const Stroke& stroke : placed.strokes) {
    if (stroke.points.empty()) continue;
    Area area{stroke.points[0].x, stroke.points[0].y, stroke.points[0].x, stroke.points[0].y};
    for (const Point p : stroke.points) area = joined(area, {p.x, p.y, p.x, p.y});
    add(stroke.of, area);
  }
  // What is written of a thing that has no number stands for it; other texts have names of their own.
  std::map<std::string, std::string> texts;
  for (const Words& words : placed.words) {
    const std::string id = to_text(words.of.key);
    if (complete.count(id) != 0) continue;
    if (words.of.mark < 0 && words.of.part >= kPlacePart && words.of.part < 255) continue;
    if (words.of.item >= 0 && parts.has(id)) continue;
    texts[id] += words.text;
    parts.add(id, words.area);
  }
  for (auto& [id, text] : texts) {
    Part& part = parts.at(id);
    if (part.label.empty()) {
      part.label = text;
    } else if (part.value.empty() || part.value == word_for(State::current)) {
      part.value = text;
    }
  }
  for (const Room& room : placed.rooms) {
    const std::string id = to_text(room.key);
    if (Part* fresh = parts.add(id, room.area)) fresh->label = in_words(room.key);
    parts.at(id).least = room.least;
    if (parts.at(id).value.empty()) parts.at(id).value = name_of(room.place);
  }
  return std::move(parts.all);
}

}  // namespace tilestep::picture
