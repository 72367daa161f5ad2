#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "kernels/base/lab/ladder.hpp"

/// A quick bench: the ladder and its peers in one short round, half a minute on an H100. Its report lists what it
/// omits of a full one.
namespace tilestep::lab {

/// The paces of a turn and of choosing among configurations.
inline constexpr Pace kQuickTurn{100, 14, 7, 5}, kQuickChoosing{10, 5, 3, 5};
/// The same in one short round, with nothing counted.
LadderPlan quick(LadderPlan plan);

/// The param that requests it in a bench request, with the value true.
inline constexpr const char* kQuickParam = "quick";
bool is_quick(const Request& request);

/// While it lives and if `asked`, benches begun by its thread are quick.
class QuickBench {
 public:
  explicit QuickBench(bool asked);
  ~QuickBench();
  QuickBench(const QuickBench&) = delete;
  QuickBench& operator=(const QuickBench&) = delete;
  static bool asked();
};
/// The sizes that a bench was called with, or those of a quick one if requested: by default Sizes() with `quick` set.
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

/// Runs a `Bench`, made of lab::Bench and the requested sizes, and returns its report with its ladder's checks.
template <class Bench, class Sizes>
Report run_bench(simt::Device& device, Progress& progress, const Sizes& sizes) {
  const Sizes asked = sizes_asked(sizes);
  Bench bench({device, progress}, asked);
  bench.run();
  append(bench.report.checks, bench.ladder.checks());
  return std::move(bench.report);
}

/// Marks a bench as quick: the table `left_out` gets a row for each thing omitted.
void leave_out(Report& report, std::initializer_list<std::string_view> what);
/// "other sizes, FP8"; empty: it is a full bench.
std::string left_out(const Report& report);

}  // namespace tilestep::lab
