#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/lab/number.hpp"

namespace tilestep::lab {

/// Pairs of whole numbers from 0, "5:2,7:0", as a knob accepts them: which item goes where. Nothing for a
/// malformed text; the empty text has no pairs.
inline std::optional<std::vector<std::pair<int, int>>> pairs_of(std::string_view text) {
  std::vector<std::pair<int, int>> pairs;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    const std::size_t colon = one.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto first = number_of<int>(one.substr(0, colon));
    const auto second = number_of<int>(one.substr(colon + 1));
    if (!first || !second || *first < 0 || *second < 0) return std::nullopt;
    pairs.emplace_back(*first, *second);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return std::nullopt;  // a comma with nothing behind it
  }
  return pairs;
}

}  // namespace tilestep::lab
