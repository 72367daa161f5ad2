#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "scenes/picture/picture.hpp"

namespace tilestep::picture {

/// Like ==, but faster: compares numbers first, and words by address.
inline bool same_key(const Key& a, const Key& b) {
  if (a.i != b.i || a.j != b.j) return false;
  const std::string_view x = a.name.text(), y = b.name.text();
  return x.size() == y.size() && (x.data() == y.data() || x == y);
}

/// Finds a number by a key and a part; duplicates are found in the order added. Made for tens of
/// thousands of keys per frame: a std::unordered_map takes ten times as long.
class KeyIndex {
 public:
  explicit KeyIndex(std::size_t count) : next_(count, -1), keys_(count), parts_(count) {
    std::size_t size = 16;
    while (size < 2 * count) size *= 2;
    slots_.assign(size, {});
  }

  /// Adds `number`, below the count, at most once each.
  void add(const Key& key, int number, unsigned part = 0) {
    const auto at = static_cast<std::size_t>(number);
    keys_[at] = key;
    parts_[at] = part;
    Slot& slot = slots_[place(key, part)];
    if (slot.first < 0) {
      slot = {number, number, number};
    } else {
      next_[static_cast<std::size_t>(slot.last)] = number;
      slot.last = number;
      if (slot.head < 0) slot.head = number;
    }
  }
  /// The first one added; −1: none.
  int find(const Key& key, unsigned part = 0) const { return slots_[place(key, part)].first; }
  /// The first one not taken yet; −1: none.
  int take(const Key& key, unsigned part = 0) {
    Slot& slot = slots_[place(key, part)];
    const int taken = slot.head;
    if (taken >= 0) slot.head = next_[static_cast<std::size_t>(taken)];
    return taken;
  }

 private:
  struct Slot {
    int first = -1, head = -1, last = -1;
  };

  static std::size_t hash(const Key& key, unsigned part) {
    const std::string_view name = key.name.text();
    std::uint64_t word = 0;
    if (!name.empty()) std::memcpy(&word, name.data(), name.size() < 8 ? name.size() : 8);
    const auto number = [](int n) { return std::uint64_t{static_cast<std::uint32_t>(n)}; };
    std::uint64_t h = (word + name.size()) * 0x9E3779B97F4A7C15u;
    h += number(key.i) * 0xC2B2AE3D27D4EB4Fu + number(key.j) * 0x165667B19E3779F9u + part;
    h = (h ^ (h >> 32)) * 0xBF58476D1CE4E5B9u;
    return h ^ (h >> 32);
  }
  /// Where it is, or where it would be.
  std::size_t place(const Key& key, unsigned part) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash(key, part) & mask;
    while (slots_[at].first >= 0) {
      const auto first = static_cast<std::size_t>(slots_[at].first);
      if (parts_[first] == part && same_key(keys_[first], key)) break;
      at = (at + 1) & mask;
    }
    return at;
  }

  std::vector<Slot> slots_;
  std::vector<int> next_;
  std::vector<Key> keys_;
  std::vector<unsigned> parts_;
};

}  // namespace tilestep::picture
