#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/report.hpp"
#include "kernels/base/workbench/compiler.hpp"

namespace tilestep::inspect {

/// What a program did on the GPU that is here.
struct GpuRun {
  static constexpr int kRuns = 5;  ///< of the program, whose launches are timed

  std::string device = "GPU";
  int compute_capability = 0, multiprocessors = 0;
  double copy_bytes_s = 0;  ///< read and written by a copy from device to device; 0: not measured
  int status = 0;
  std::string printed;
  std::vector<std::vector<double>>
      launch_ms;  ///< by launch, one for each run; none where it was refused
  /// What Nsight Compute counted of each launch, by metric.
  std::vector<std::map<std::string, double>> counted;
  std::string not_counted;    ///< why not, else empty
  int sanitizer_errors = -1;  ///< of compute-sanitizer's memcheck; −1: it is not here
};

/// Compiles the program with nvcc for the GPU that is here and runs it, outside of any sandbox: each launch by itself between two
/// events, in five processes; once more under ncu and under compute-sanitizer where they are. Throws Error (unavailable)
/// where there is no nvcc or no GPU, Error for what does not compile or end, Cancelled.
GpuRun run_on_gpu(const std::filesystem::path& path, std::string_view text,
                  const std::vector<std::string>& arguments, std::chrono::seconds limit,
                  const workbench::CompileWatch& watch = {});

/// Adds the tables `measured` and `counted` beside what the emulation traced, and checks that both print the same, numbers
/// to a thousandth. `report` is one of run_program's.
void add_gpu_run(lab::Report& report, const GpuRun& run);

/// Whether two texts are the same but for numbers that differ by at most `tolerance` of the larger, or of 1.
bool agree(std::string_view a, std::string_view b, double tolerance);
/// The launches of what `ncu --csv` wrote, in their order.
std::vector<std::map<std::string, double>> read_counted(std::string_view csv);

}  // namespace tilestep::inspect
