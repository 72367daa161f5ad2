#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/occupancy.hpp"
#include "kernels/base/lab/report.hpp"
#include "kernels/base/workbench/compiler.hpp"

namespace tilestep::inspect {

/// A GPU to hold a program's launches against, by NVIDIA's data sheets and whitepapers; limits by the CUDA C++ Programming
/// Guide, "Compute Capabilities".
struct Gpu {
  std::string_view id;    ///< "h100"
  std::string_view name;  ///< "H100 SXM"
  int compute_capability = 90, multiprocessors = 0;
  double memory_tb_s = 0, fp32_tflops = 0, fp64_tflops = 0;  ///< without tensor cores
  lab::Multiprocessor sm = {};
};
/// Throws Error that names those there are.
const Gpu& gpu_named(std::string_view id);
std::string gpu_names();
/// The one that CUDA calls `device`, "NVIDIA H200"; null: it is not in the list.
const Gpu* gpu_of_device(std::string_view device);

/// The registers of a thread of each kernel, by its name ("scale<float>"), as nvcc compiles the file.
struct Registers {
  std::map<std::string, int> of_kernel;
  std::string why_not;  ///< they are not known
};
/// What was compiled before is found again.
Registers registers_of(const std::filesystem::path& path, std::string_view text,
                       int compute_capability, const workbench::CompileWatch& watch = {});

/// Adds the tables `occupancy` and `roofline`: what limits the blocks on a multiprocessor, and what the launch would take on
/// this GPU at least. `report` is one of run_program's.
void add_resources(lab::Report& report, const Gpu& gpu, const Registers& registers);

}  // namespace tilestep::inspect
