#pragma once

#include <string>
#include <vector>

#include "kernels/base/lab/report.hpp"
#include "scenes/ui/ui.hpp"

/// The roofline: attainable FLOP/s = min(compute roof, FLOP per byte · memory roof), both axes
/// logarithmic. Williams, Waterman & Patterson, "Roofline: an insightful visual performance model",
/// 2009.
namespace tilestep::ui {

/// A horizontal roof: peak arithmetic throughput.
struct ComputeRoof {
  std::string label;
  double tflops = 0;
  bool datasheet = false;  ///< from a datasheet, not measured: dim and dashed
};

/// A sloping roof: peak memory bandwidth.
struct MemoryRoof {
  std::string label;
  double tb_s = 0;
  bool datasheet = false;
};

struct RooflineDot {
  std::string label;
  double flop_per_byte = 0;
  double tflops = 0;
  Role role = Role::sky;
  lab::Provenance provenance = lab::Provenance::measured;  ///< derived: hollow
  std::string detail;                                      ///< shown while the pointer is on it
};

struct Roofline {
  std::string id;
  std::string title;
  std::vector<ComputeRoof> compute;
  std::vector<MemoryRoof> memory;
  std::vector<RooflineDot> dots;
};

/// Attainable TFLOP/s at `flop_per_byte`, under the measured compute roof `roof` and the best
/// measured memory roof; 0 if no memory roof was measured.
double attainable(const Roofline& plot, const ComputeRoof& roof, double flop_per_byte);

/// The least height at which the slope of a memory roof is seen as one, in real pixels.
float roofline_height();

/// Draws the plot into `size` as one ImGui item. Every dot is labelled beside it where there is
/// room, otherwise while the pointer is on it. Dots with non-positive numbers are omitted.
void roofline(const Roofline& plot, ImVec2 size);

}  // namespace tilestep::ui
