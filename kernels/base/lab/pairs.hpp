#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/lab/list.hpp"
#include "kernels/base/lab/number.hpp"

namespace tilestep::lab {

/// Pairs of whole numbers from 0, "5:2,7:0", as a knob accepts them: which item goes where. Nothing for a
/// malformed text; the empty text has no pairs.
inline std::optional<std::vector<std::pair<int, int>>> pairs_of(std::string_view text) {
  return list_of(text, [](std::string_view one) -> std::optional<std::pair<int, int>> {
    const std::size_t colon = one.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto first = number_of<int>(one.substr(0, colon));
    const auto second = number_of<int>(one.substr(colon + 1));
    if (!first || !second || *first < 0 || *second < 0) return std::nullopt;
    return std::pair(*first, *second);
  });
}

}  // namespace tilestep::lab
