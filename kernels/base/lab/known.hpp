#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <random>
#include <string>
#include <vector>

/// The moment from which each part of a trace is known: a picture must not show anything later. Tests
/// enforce this by giving a trace another future.
namespace tilestep::lab {

/// A position in a trace, like scenes::Cursor: a step, counted from 1, and a phase of it. {0, 0} is
/// before the first step.
struct When {
  int step = 0, phase = 0;
  friend auto operator<=>(const When&, const When&) = default;
};

/// For a list with one entry per step.
inline constexpr auto kOneAStep = [](const auto&, std::size_t place) {
  return When{static_cast<int>(place) + 1, 0};
};

/// For a member of a list's entries that is known from the start, whatever its entry says.
inline constexpr When kAhead{-1, 0};

/// Members of a list's entries by the moment they become known: a phase of the entry's step ({0,
/// phase}), or a step of their own.
using Moments = std::map<When, std::vector<std::string>>;

/// Gives a trace another future.
struct Change {
  When now;  ///< everything known by then stays
  std::mt19937& random;

  /// Another value of the same kind: a different number, a flipped flag, a list in another order.
  nlohmann::json other(const nlohmann::json& was) const;
  /// Permutes the entries of `list` that are not known yet: whole entries, or, for objects (or an object
  /// of columns), the members of each moment separately.
  void mix(nlohmann::json& list, const Moments& moments,
           const std::function<When(std::size_t)>& when) const;
};

}  // namespace tilestep::lab
