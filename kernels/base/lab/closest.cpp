#include "kernels/base/lab/closest.hpp"

#include <cmath>
#include <limits>
#include <utility>

namespace tilestep::lab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The share of its bound that an error takes; a bound of 0 allows no error at all.
double share_of(double error, double bound) {
  if (error == 0) return 0;
  return bound > 0 ? error / bound : kInfinity;
}

}  // namespace

bool Closest::takes(double got, double want, double bound) {
  double error = got == want ? 0 : std::abs(got - want);
  if (std::isnan(error)) error = kInfinity;
  const bool good = error <= bound;
  const bool worse = good == ok_ && share_of(error, bound) > share_of(error_, bound_);
  const bool taken = !any_ || (ok_ && !good) || worse;
  if (taken) {
    error_ = error;
    bound_ = bound;
  }
  any_ = true;
  ok_ = ok_ && good;
  return taken;
}

void Closest::add(const Closest& other) {
  if (!other.any_) return;
  if (takes(other.error_, 0, other.bound_)) where_ = other.where_;
  ok_ = ok_ && other.ok_;
}

Check Closest::check(std::string id, std::string detail) const {
  return {std::move(id), ok_, error_, bound_, std::move(detail)};
}

}  // namespace tilestep::lab
