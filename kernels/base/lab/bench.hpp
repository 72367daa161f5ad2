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

  double done = 0;  ///< progress of the bench, 0–1

  /// Climbs as the part `from`–`to` of the bench; adds the measurements to the report.
  Climb climb(const LadderPlan& plan, double from, double to);
  /// The same for the next `share` of the bench.
  Climb climb(const LadderPlan& plan, double share) { return climb(plan, done, done + share); }
  /// Adds a table of timed rows, made by `table_of`.
  void add_table(std::string id, std::string title, std::vector<Column> columns,
                 std::span<const Timed> rows) {
    report.add(table_of(std::move(id), std::move(title), std::move(columns), rows));
  }
  std::string headline(std::string_view id, std::string_view variant, int decimals) const {
    return lab::headline(report.measurement(id, variant), decimals);
  }
};

/// A rung named by its enum, with its reason, its check and the check's detail; the caller adds
/// configurations.
template <Named Enum>
Rung rung_of(Enum rung, std::string check, std::string check_detail) {
  return {.name = std::string(name_of(rung)),
          .why = std::string(reason_of(rung)),
          .configurations = {},
          .check = std::move(check),
          .check_detail = std::move(check_detail)};
}

/// A launch with its comparison: verifying fills `output` with NaN, launches, and then calls
/// `compare()` for the Closest.
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

/// A device array that repeats `period`, so that the host knows every number without holding
/// them all.
template <class T>
class Repeated {
 public:
  Repeated(simt::Device& device, std::size_t count, std::vector<T> period)
      : period_(std::move(period)), array_(device, count) {
    fill_with<T>(device, array_, period_);
  }

  simt::Span<const T> span() const { return array_.span(); }
  std::size_t bytes() const { return array_.bytes(); }
  /// `count` numbers, starting at index `first`.
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
