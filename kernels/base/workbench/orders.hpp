#pragma once

#include <chrono>
#include <span>

#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/simt/backends.hpp"
#include "kernels/base/workbench/fault_lines.hpp"

namespace tilestep::workbench {

inline constexpr const char* kOrderCheck = "thread_order";

/// A run of an edited kernel under emulation, to be had again with the threads of a block in other orders.
struct OrderedRun {
  const lab::Lesson& lesson;
  lab::Settings settings;
  std::span<const simt::KernelEntry> edited;
  std::span<const simt::KernelEntry> original;  ///< as they were built in
  simt::EmulationOptions emulation;             ///< of the first run
  EditedModule module;
};

/// Runs it again in the two other thread orders and adds the check `thread_order` to `report`, its first run: failed
/// where another order gives other numbers, or no run at all; its detail names the first row and column. What the
/// kernel that was built in shows too is no difference. A run that `took` long is had again once only, or not at all,
/// without a check then. Throws Cancelled, and KernelFault where that ends the process.
void check_orders(lab::Report& report, const OrderedRun& run, std::chrono::milliseconds took,
                  lab::Progress& progress);

}  // namespace tilestep::workbench
