#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/lab/ladder.hpp"

/// What benches share beside their ladders: where they put what they found, data that fills a GPU,
/// and how a launch is compared.
namespace tilestep::lab {

/// What a bench works with, and the report that it fills.
struct Bench {
  simt::Device& device;
  Progress& progress;
  Report report = {};
  Ladder ladder = Ladder(device);

  double done = 0;  ///< how far the bench is, of 1

  /// Climbs, as the part of the bench from `from` to `to`; the measurements go to the report.
  Climb climb(const LadderPlan& plan, double from, double to);
  /// The same for the next `share` of the bench.
  Climb climb(const LadderPlan& plan, double share) { return climb(plan, done, done + share); }
  /// Adds a table of what was timed, as `table_of` makes it.
  void add_table(std::string id, std::string title, std::vector<Column> columns,
                 std::span<const Timed> rows) {
    report.add(table_of(std::move(id), std::move(title), std::move(columns), rows));
  }
  std::string headline(std::string_view id, std::string_view variant, int decimals) const {
    return lab::headline(report.measurement(id, variant), decimals);
  }
};

/// A rung called by its enum, with its reason, its check and what is compared there; configurations
/// are to be added.
template <Named Enum>
Rung rung_of(Enum rung, std::string check, std::string check_detail) {
  return {.name = std::string(name_of(rung)),
          .why = std::string(reason_of(rung)),
          .configurations = {},
          .check = std::move(check),
          .check_detail = std::move(check_detail)};
}

/// The launch, and its comparison: `compare()` is asked for the Closest once `output` was all NaN
/// and the launch is done.
template <class T, class Compare>
Runnable judged(simt::Device& device, simt::Buffer<T>& output, std::function<void()> launch,
                Compare compare) {
  const auto verify = [&device, &output, launch, compare] {
    output.fill(0xFF);
    launch();
    device.synchronize();
    return compare();
  };
  return {std::move(launch), verify};
}

/// An array on the device that repeats `period` over and over, so that the host knows each of its
/// numbers without holding all.
template <class T>
class Repeated {
 public:
  Repeated(simt::Device& device, std::size_t count, std::vector<T> period)
      : period_(std::move(period)), array_(device, count) {
    fill_with<T>(device, array_, period_);
  }

  simt::Span<const T> span() const { return array_.span(); }
  std::size_t bytes() const { return array_.bytes(); }
  /// `count` numbers from number `first` on.
  std::vector<T> values(std::size_t first, std::size_t count) const {
    std::vector<T> some(count);
    for (std::size_t i = 0; i < count; ++i) some[i] = period_[(first + i) % period_.size()];
    return some;
  }

 private:
  std::vector<T> period_;
  simt::Buffer<T> array_;
};

}  // namespace tilestep::lab
