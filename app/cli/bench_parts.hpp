#pragma once

#include <nlohmann/json.hpp>

#include "kernels/base/lab/report.hpp"

/// The benches that belong to no lesson.
namespace tilestep::app {

struct BenchPart {
  lab::Table table;
  nlohmann::json json;
};

/// How fast the CPU emulation runs kernels on this machine.
BenchPart bench_emulator();
/// What a frame of each lesson costs, drawn off screen.
BenchPart bench_frames();
/// What it costs to build, place, move and draw the pictures that are data, and frames in motion.
BenchPart bench_pictures();

}  // namespace tilestep::app
