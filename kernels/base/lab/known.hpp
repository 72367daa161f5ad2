#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <random>
#include <string>
#include <vector>

/// From when on what a trace says is known: nothing that comes later may show in a picture. Tests
/// hold the pictures to it by giving a trace another future.
namespace tilestep::lab {

/// A place on the way through a trace, as scenes::Cursor has it: a step, counted from 1, and a phase
/// of it. {0, 0} is before the first.
struct When {
  int step = 0, phase = 0;
  friend auto operator<=>(const When&, const When&) = default;
};

/// Of a list with an entry for each step.
inline constexpr auto kOneAStep = [](const auto&, std::size_t place) {
  return When{static_cast<int>(place) + 1, 0};
};

/// Of a member of a list's entries: it is known from the start, whatever its entry says.
inline constexpr When kAhead{-1, 0};

/// Members of a list's entries by the phase of the entry's step from which on they are known ({0,
/// phase}), or by a step of their own.
using Moments = std::map<When, std::vector<std::string>>;

/// How a trace gets another future.
struct Change {
  When now;  ///< what is known by then stays
  std::mt19937& random;

  /// A value of the same kind: a number of another size, a flag turned, a list in another order.
  nlohmann::json other(const nlohmann::json& was) const;
  /// Entries of `list` that are not known yet change places with each other: whole ones, or, of
  /// objects (or an object of columns), the members of each moment on their own.
  void mix(nlohmann::json& list, const Moments& moments,
           const std::function<When(std::size_t)>& when) const;
};

}  // namespace tilestep::lab
