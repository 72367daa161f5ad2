#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "kernels/base/lab/ladder.hpp"

/// A quick bench: the ladder and its peers in one short round, half a minute on an H100. It says what a whole one has
/// besides.
namespace tilestep::lab {

/// Of a turn, and of a choice among configurations.
inline constexpr Pace kQuickTurn{100, 14, 7, 5}, kQuickChoosing{10, 5, 3, 5};
/// The same in one short round, with nothing counted.
LadderPlan quick(LadderPlan plan);

/// In a request for a bench this stands among the params: true.
inline constexpr const char* kQuickParam = "quick";
bool is_quick(const Request& request);

/// For as long as it lives, benches that its thread begins are quick, if it is `asked`.
class QuickBench {
 public:
  explicit QuickBench(bool asked);
  ~QuickBench();
  QuickBench(const QuickBench&) = delete;
  QuickBench& operator=(const QuickBench&) = delete;
  static bool asked();
};
/// The sizes that a bench was called with, or those of a quick one where that is asked: by default all with `quick`.
template <class Sizes>
Sizes sizes_asked(const Sizes& sizes) {
  if (!QuickBench::asked()) return sizes;
  if constexpr (requires { Sizes::of_quick(); }) {
    return Sizes::of_quick();
  } else {
    Sizes quick;
    quick.quick = true;
    return quick;
  }
}

/// What a bench says: a `Bench` made of lab::Bench and the sizes that were asked for, run, with its ladder's checks.
template <class Bench, class Sizes>
Report run_bench(simt::Device& device, Progress& progress, const Sizes& sizes) {
  const Sizes asked = sizes_asked(sizes);
  Bench bench({device, progress}, asked);
  bench.run();
  append(bench.report.checks, bench.ladder.checks());
  return std::move(bench.report);
}

/// Makes a bench a quick one: in the table `left_out` stands what it has not, each a row.
void leave_out(Report& report, std::initializer_list<std::string_view> what);
/// "other sizes, FP8"; empty: it is a whole bench.
std::string left_out(const Report& report);

}  // namespace tilestep::lab
