#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenes/shared/questions.hpp"

/// Questions about two numbers of a bench.
namespace tilestep::scenes {

/// Which is larger? `choices`: the first, the second, and that they are the same: within a factor of `apart`.
inline Question ask_larger(std::string text, double first, double second, double apart,
                           const std::vector<std::string>& choices, std::string because) {
  const std::size_t is = first > apart * second ? 0 : second > apart * first ? 1 : 2;
  return ask(std::move(text), choices[is], choices, std::move(because));
}

/// What share of `whole` is lost where only `left` is left? Those of `others`, in percent, that are near it are omitted.
inline Question ask_loss(std::string text, double left, double whole,
                         const std::vector<double>& others, std::string because) {
  const double loss = 100 * (1 - left / whole);
  const auto say = [](double percent) {
    return percent < 0.5 ? std::string("Nothing") : fmt::format("{:.0f} %", percent);
  };
  std::vector<std::string> apart;
  for (const double other : others) {
    if (other > 1.5 * loss || other < loss / 1.5) apart.push_back(say(other));
  }
  return ask(std::move(text), say(loss), apart, std::move(because));
}

}  // namespace tilestep::scenes
