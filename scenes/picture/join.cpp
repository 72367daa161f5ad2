#include <algorithm>
#include <optional>
#include <set>

#include "scenes/picture/key_index.hpp"
#include "scenes/picture/mix.hpp"

namespace tilestep::picture {
namespace {

/// A thing that a Way names, in one of the two pictures.
struct Thing {
  const Piece* piece = nullptr;
  int words = -1;
  const Room* room = nullptr;
  const Placed* placed = nullptr;

  const Words* text() const {
    return words < 0 ? nullptr : &placed->words[static_cast<std::size_t>(words)];
  }
  std::optional<Area> area() const {
    if (piece != nullptr) return piece->area;
    if (words >= 0) return text()->area;
    if (room != nullptr) return room->area;
    return std::nullopt;
  }
};

bool same_look(const Piece* a, const Piece* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->state == b->state && a->tone == b->tone && a->kind == b->kind && a->heat == b->heat &&
         a->area == b->area;
}
bool same_words(const Words* a, const Words* b) {
  return a == nullptr || b == nullptr ? a == b : a->text == b->text;
}

}  // namespace

/// Finds out what becomes of each primitive.
class Joiner {
 public:
  using How = Join::How;
  using Step = Join::Step;

  Joiner(const Placed& from, const Placed& to, Join& join)
      : from_(from), to_(to), join_(join), named_(2 * (from.flights.size() + to.flights.size())) {
    find_flights();
    join_.pieces_ = steps(from.pieces, to.pieces);
    join_.strokes_ = steps(from.strokes, to.strokes);
    join_.words_ = steps(from.words, to.words);
    put_words_on_pieces();
    count_waves();
  }

 private:
  /// What a Way comes to between these two pictures.
  struct Move {
    int course = -1, wave = -1, saying = -1;
  };
  /// What is known of a key that a flight names.
  struct Named {
    Thing before, after;
    Move in, out;
    bool original = false;  ///< it is what flies, and leaves nothing behind
  };

  Named& name(const Key& key) {
    const int found = named_.find(key);
    if (found >= 0) return all_[static_cast<std::size_t>(found)];
    named_.add(key, static_cast<int>(all_.size()));
    return all_.emplace_back();
  }
  Named* named(const Key& key) {
    const int found = all_.empty() ? -1 : named_.find(key);
    return found < 0 ? nullptr : &all_[static_cast<std::size_t>(found)];
  }

  void look_at(const Placed& placed, Thing Named::*thing) {
    for (Named& each : all_) (each.*thing).placed = &placed;
    for (const Piece& piece : placed.pieces) {
      Named* each = named(piece.of.key);
      if (each != nullptr && (each->*thing).piece == nullptr) (each->*thing).piece = &piece;
    }
    for (std::size_t k = 0; k < placed.words.size(); ++k) {
      Named* each = named(placed.words[k].of.key);
      if (each != nullptr && (each->*thing).words < 0) (each->*thing).words = static_cast<int>(k);
    }
    for (const Room& room : placed.rooms) {
      if (Named* each = named(room.key)) (each->*thing).room = &room;
    }
  }

  void find_flights() {
    if (from_.flights.empty() && to_.flights.empty()) return;
    for (const auto& [key, way] : to_.flights) {
      name(key);
      name(way.from);
    }
    for (const auto& [key, way] : from_.flights) {
      name(key);
      name(way.to);
    }
    look_at(from_, &Named::before);
    look_at(to_, &Named::after);
    for (const auto& [key, way] : to_.flights) arrive(name(key), name(way.from), way);
    for (const auto& [key, way] : from_.flights) leave(name(key), name(way.to), way);
  }
  void arrive(Named& thing, Named& source, const Way& way) {
    // A Way that stands still on since its phase has nothing to move any more.
    if (same_look(thing.before.piece, thing.after.piece) &&
        same_words(thing.before.text(), thing.after.text())) {
      return;
    }
    thing.in.wave = std::max(way.wave, 0);
    const auto begin = source.before.area(), end = thing.after.area();
    if (!begin || !end || way.from.name.empty()) return;
    thing.in.course = static_cast<int>(join_.courses_.size());
    // What stays says its own; what is made of it, a weight of a score, says what it is from the start.
    thing.in.saying = way.copy ? -1 : source.before.words;
    join_.courses_.push_back({*begin, *end, true});
    if (!way.copy) source.original = true;
  }
  void leave(Named& thing, Named& target, const Way& way) {
    const auto begin = thing.before.area(), end = target.after.area();
    if (!begin || !end || way.to.name.empty() || thing.after.area()) return;
    thing.out = {static_cast<int>(join_.courses_.size()), std::max(way.wave, 0)};
    join_.courses_.push_back({*begin, *end, false});
  }

  /// For each of `to`, which of `from` is the same; −1: none. Most follow each other in both, so that
  /// the next few are looked at before an index is made.
  template <class T>
  static std::vector<int> matches(const std::vector<T>& from, const std::vector<T>& to) {
    constexpr std::size_t kAhead = 8;
    std::vector<int> found(to.size(), -1);
    std::vector<char> taken(from.size(), 0);
    std::optional<KeyIndex> index;
    std::size_t next = 0;
    for (std::size_t k = 0; k < to.size(); ++k) {
      const Identity& of = to[k].of;
      const std::size_t until = std::min(from.size(), next + kAhead);
      std::size_t at = next;
      while (at < until && (taken[at] != 0 || !same(from[at].of, of))) ++at;
      if (at == until) {
        if (!index) index.emplace(index_of(from));
        int match = index->take(of.key, of.part);
        while (match >= 0 && taken[static_cast<std::size_t>(match)] != 0) {
          match = index->take(of.key, of.part);
        }
        if (match < 0) continue;
        at = static_cast<std::size_t>(match);
      }
      taken[at] = 1;
      found[k] = static_cast<int>(at);
      next = at + 1;
    }
    return found;
  }
  static bool same(const Identity& a, const Identity& b) {
    return a.part == b.part && same_key(a.key, b.key);
  }
  template <class T>
  static KeyIndex index_of(const std::vector<T>& all) {
    KeyIndex index(all.size());
    for (std::size_t k = 0; k < all.size(); ++k) {
      index.add(all[k].of.key, static_cast<int>(k), all[k].of.part);
    }
    return index;
  }

  /// Steps in the order in which they are drawn: that of `to`; what is in `from` alone stands behind
  /// what it stood behind there.
  template <class T>
  std::vector<Step> steps(const std::vector<T>& from, const std::vector<T>& to) {
    const std::vector<int> match = matches(from, to);
    std::vector<Step> arriving(to.size());
    std::vector<int> partner(from.size(), -1);
    for (std::size_t k = 0; k < to.size(); ++k) {
      Step& step = arriving[k];
      step.to = static_cast<int>(k);
      if (const Named* thing = named(to[k].of.key)) {
        step.course = thing->in.course;
        step.wave = thing->in.wave;
        step.saying = thing->in.saying;
      }
      if (match[k] >= 0 && step.course < 0) {
        step.from = match[k];
        partner[static_cast<std::size_t>(match[k])] = step.to;
      } else {
        step.how = How::enters;
      }
    }
    return merged(from, partner, std::move(arriving));
  }

  struct Left {
    int behind;
    Step step;
  };
  template <class T>
  std::vector<Step> merged(const std::vector<T>& from, const std::vector<int>& partner,
                           std::vector<Step> arriving) {
    std::vector<Left> left;
    int behind = -1;
    for (std::size_t k = 0; k < from.size(); ++k) {
      if (partner[k] >= 0) {
        behind = partner[k];
      } else if (const auto step = leaving(static_cast<int>(k), from[k].of.key)) {
        left.push_back({behind, *step});
      }
    }
    if (left.empty()) return arriving;
    std::stable_sort(left.begin(), left.end(),
                     [](const Left& a, const Left& b) { return a.behind < b.behind; });
    std::vector<Step> all;
    all.reserve(arriving.size() + left.size());
    auto next = left.begin();
    for (int k = -1; k < static_cast<int>(arriving.size()); ++k) {
      if (k >= 0) all.push_back(arriving[static_cast<std::size_t>(k)]);
      for (; next != left.end() && next->behind == k; ++next) all.push_back(next->step);
    }
    return all;
  }
  std::optional<Step> leaving(int number, const Key& key) {
    Step step;
    step.from = number;
    step.how = How::leaves;
    const Named* thing = named(key);
    if (thing == nullptr) return step;
    if (thing->original) return std::nullopt;
    const bool stays = thing->in.course >= 0;
    if (stays) step.how = How::stays;
    step.course = stays ? -1 : thing->out.course;
    step.wave = stays ? thing->in.wave : thing->out.wave;
    return step;
  }

  /// Words stand on pieces by number, which are others among those that come out.
  void put_words_on_pieces() {
    std::vector<int> from_at(from_.pieces.size(), -1), to_at(to_.pieces.size(), -1);
    for (std::size_t k = 0; k < join_.pieces_.size(); ++k) {
      const Step& step = join_.pieces_[k];
      if (step.from >= 0) from_at[static_cast<std::size_t>(step.from)] = static_cast<int>(k);
      if (step.to >= 0) to_at[static_cast<std::size_t>(step.to)] = static_cast<int>(k);
    }
    const auto looked_up = [](const std::vector<int>& at, int on) {
      const bool stands = on >= 0 && on < static_cast<int>(at.size());
      return stands ? at[static_cast<std::size_t>(on)] : -1;
    };
    for (Step& step : join_.words_) {
      const Words& words = step.to >= 0 ? to_.words[static_cast<std::size_t>(step.to)]
                                        : from_.words[static_cast<std::size_t>(step.from)];
      step.headline = words.of.key == kHeadline;
      step.on = looked_up(step.to >= 0 ? to_at : from_at, words.on);
    }
  }

  /// Numbers the waves that there are from 0 on.
  void count_waves() {
    if (all_.empty()) return;
    std::set<int> used;
    const auto for_each = [&](const auto& visit) {
      for (auto* steps : {&join_.pieces_, &join_.strokes_, &join_.words_}) {
        for (Step& step : *steps) {
          if (step.wave >= 0) visit(step);
        }
      }
    };
    for_each([&](const Step& step) { used.insert(step.wave); });
    for_each([&](Step& step) {
      step.wave = static_cast<int>(std::distance(used.begin(), used.find(step.wave)));
    });
    join_.waves_ = std::max(1, static_cast<int>(used.size()));
  }

  const Placed &from_, &to_;
  Join& join_;
  KeyIndex named_;
  std::vector<Named> all_;
};

Join::Join(const Placed& from, const Placed& to) {
  const Joiner joiner(from, to, *this);
}

}  // namespace tilestep::picture
