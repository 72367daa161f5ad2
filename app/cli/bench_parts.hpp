#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/shell/shell.hpp"
#include "kernels/base/lab/report.hpp"

/// The benches that belong to no lesson.
namespace tilestep::app {

struct BenchPart {
  lab::Table table;
  nlohmann::json json;
};

/// The window that frames are built for, and the step that they show: in the middle of a trace, where the
/// picture is busy.
inline constexpr int kBenchWidth = 1440, kBenchHeight = 900, kBusyStep = 2;

/// A run that frames are built of.
struct BenchCase {
  std::string knobs;  ///< "default" or "largest"
  lab::Report report;
};
using BenchCases = std::map<std::string, std::vector<BenchCase>>;  ///< by lesson

/// Of every lesson the default knobs, and all numbers among them as large as it takes them together.
BenchCases bench_cases();
/// A shell that shows such a run at `step`, without running anything.
ShellOptions shell_at(const BenchCase& one, int step);

/// How fast the CPU emulation runs kernels on this machine.
BenchPart bench_emulator();
/// What a frame of each lesson costs, with each thing that it can show to the front.
BenchPart bench_frames(const BenchCases& cases);
/// What it costs to build, place, move and draw the pictures that are data, and frames in motion.
BenchPart bench_pictures(const BenchCases& cases);
/// How soon `program`'s window shows a first picture, what memory it takes, and what it draws with nothing to
/// do. Without a display, of a picture that is drawn without one.
BenchPart bench_window(const std::string& program);

}  // namespace tilestep::app
