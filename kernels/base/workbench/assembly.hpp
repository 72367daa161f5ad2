#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/edit.hpp"
#include "kernels/base/lab/names.hpp"
#include "kernels/base/workbench/compiler.hpp"

/// The compiled form of a source for a GPU, line by line: PTX by nvcc and ptxas, SASS by nvdisasm.
namespace tilestep::workbench {

enum class AssemblyForm { ptx, sass };
constexpr auto names_of(AssemblyForm) {
  return std::to_array<std::string_view>({"ptx", "sass"});
}

struct AssemblyLine {
  std::string text;
  /// Of the source, 1-based: where it stands, or where what it belongs to was inlined, the innermost; 0: elsewhere.
  int line = 0;
  /// Further lines of the source, going out, through which it was inlined: of `block_reduce(…)` the call.
  std::vector<int> callers = {};
};

/// A kernel as compiled.
struct AssemblyKernel {
  std::string symbol;  ///< as the compiler names it
  std::string name;    ///< "online_softmax<Fp32, NoTape>", without the namespaces
  // What a thread and a block of it take, in bytes but for the registers; −1: not said.
  int registers = -1, stack_bytes = -1, spill_store_bytes = -1, spill_load_bytes = -1,
      shared_bytes = -1;
  std::vector<AssemblyLine> lines;
};

struct Assembly {
  lab::EditedKernel info;
  std::vector<AssemblyKernel> kernels;  ///< in the order of the compiler's files
};

/// The capabilities offered without a GPU to determine one, and the default: 9.0.
inline constexpr int kCapabilities[] = {75, 80, 86, 89, 90, 100, 120};
inline constexpr int kDefaultCapability = 90;
/// "sm_90a": from 9.0 on with what that GPU alone has.
std::string architecture_of(int compute_capability);

/// Compiles the source for a GPU of this compute capability, which need not be here: to PTX, which ptxas says the
/// resources of; SASS is what ptxas makes of the same PTX. Throws as compile_for_gpu does, and Error (unavailable) that
/// says what to install where nvcc is missing, or nvdisasm where SASS is asked for.
Assembly assembly_of(std::string_view lesson, const lab::KernelEdit& edit, AssemblyForm form,
                     int compute_capability, const CompileWatch& watch = {});

// ---- the readers, for tests ----------------------------------------------------------------------

/// The kernels of a PTX text; lines are those of the file that ends in `path`.
std::vector<AssemblyKernel> read_ptx(std::string_view text, std::string_view path);
/// The same of what `nvdisasm -c -gi` prints: code alone, with lines and where they were inlined.
std::vector<AssemblyKernel> read_sass(std::string_view text, std::string_view path);
/// Puts what `ptxas -v` says into the kernels that it names.
void read_resources(std::string_view said, std::vector<AssemblyKernel>& kernels);
/// As in C++, with namespaces and parameters; the symbol itself where it is no C++ name.
std::string full_name_of(const std::string& symbol);
/// "tilestep::a::cuda_backend::f<tilestep::b::Fp32>(float*)" becomes "f<Fp32>".
std::string short_name_of(std::string_view demangled);

}  // namespace tilestep::workbench
