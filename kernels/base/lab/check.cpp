#include "kernels/base/lab/check.hpp"

#include <bit>
#include <cmath>
#include <utility>

namespace tilestep::lab {

Check within(std::string id, double error, double tolerance, std::string detail) {
  return {std::move(id), error <= tolerance, error, tolerance, std::move(detail)};
}

Check none_wrong(std::string id, std::int64_t wrong, std::string detail) {
  return within(std::move(id), static_cast<double>(wrong), 0, std::move(detail));
}

Check equal(std::string id, double got, double want, std::string detail) {
  return within(std::move(id), std::abs(got - want), 0, std::move(detail));
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

}  // namespace tilestep::lab
