#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/edit.hpp"

namespace tilestep::workbench {

/// A compiler that edited kernels are compiled with.
struct Compiler {
  std::string program;  ///< where it lies
  std::string name;     ///< "g++ 12.2.0"
};
/// $TILESTEP_CXX, else the kind that this program was built with, g++ or clang++, or c++ of PATH. Throws Error (unavailable) that says what to install.
Compiler host_compiler();
/// $TILESTEP_NVCC, else nvcc of PATH, of $CUDA_HOME or of /usr/local/cuda. Throws Error (unavailable) that says
/// what to install.
Compiler gpu_compiler();

/// An edited source, compiled.
struct Compiled {
  lab::EditedKernel info;
  std::filesystem::path folder;  ///< below cache_folder(); what is in it depends on what it is for
};

/// How a run reports its activity, and checks whether it was cancelled.
struct CompileWatch {
  std::function<void(std::string_view note)> tell;
  std::function<bool()> stop;
};

/// Compiles the kernels of `lesson` with `edit` in place of its source, for the emulation: the files that include
/// it, by themselves; what else the lesson has is the program's own. What was compiled before is found again. The
/// folder holds `kernels.so`, to be loaded. Throws lab::SourceError with the lines at fault for a source that does not
/// compile; Error for a source that is none of the lesson's, Error (unavailable) where there is no compiler,
/// and Cancelled.
Compiled compile_for_host(std::string_view lesson, const lab::KernelEdit& edit,
                          const CompileWatch& watch = {});
inline constexpr const char* kHostModule = "kernels.so";

/// The same for a GPU of this compute capability (90 for 9.0): device code alone, which the module that was built
/// launches in place of its own. The folder holds a `.cubin` for each file that was compiled.
Compiled compile_for_gpu(std::string_view lesson, const lab::KernelEdit& edit,
                         int compute_capability, const CompileWatch& watch = {});
/// The same as text, a `.ptx` for each file.
Compiled compile_to_ptx(std::string_view lesson, const lab::KernelEdit& edit,
                        int compute_capability, const CompileWatch& watch = {});
/// The cubins of a folder, in the order of their names.
std::vector<std::filesystem::path> cubins_in(const std::filesystem::path& folder);

}  // namespace tilestep::workbench
