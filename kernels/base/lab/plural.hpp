#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilestep::lab {

/// "1 tile", "4 tiles"; `many` if the plural is not noun + s.
inline std::string plural(std::int64_t count, std::string_view noun, std::string_view many = {}) {
  std::string text = std::to_string(count) + " ";
  if (count == 1) return text.append(noun);
  return many.empty() ? text.append(noun) + "s" : text.append(many);
}

}  // namespace tilestep::lab
