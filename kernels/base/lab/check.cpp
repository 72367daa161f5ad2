#include "kernels/base/lab/check.hpp"

#include <bit>
#include <cmath>
#include <utility>

namespace tilestep::lab {

Check within(std::string id, AnyNumber error, AnyNumber tolerance, std::string detail) {
  return {std::move(id), error.value <= tolerance.value, error.value, tolerance.value,
          std::move(detail)};
}

Check none_wrong(std::string id, std::int64_t wrong, std::string detail) {
  return within(std::move(id), wrong, 0, std::move(detail));
}

Check equal(std::string id, AnyNumber got, AnyNumber want, std::string detail) {
  return within(std::move(id), std::abs(got.value - want.value), 0, std::move(detail));
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

bool same_number(float a, float b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

}  // namespace tilestep::lab
