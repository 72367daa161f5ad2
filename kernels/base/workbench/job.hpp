#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/edit.hpp"
#include "kernels/base/workbench/compiler.hpp"
#include "kernels/base/workbench/program.hpp"

/// Shared by compiling for the host and for a GPU.
namespace tilestep::workbench {

/// An edited source on its way through a compiler.
struct Job {
  std::string lesson;
  lab::KernelEdit edit;
  Compiler compiler;
  std::vector<std::string> flags;
  bool emulated = false;          ///< for g++ or clang++: with simt/toolkit and precompiled headers
  int memory_mb = 0;              ///< a template that never ends must not take the machine with it
  std::string ending;             ///< of the file that one source becomes: ".o"
  std::filesystem::path headers;  ///< header_folder()
  std::filesystem::path draft;    ///< where what is made goes
  CompileWatch watch;

  /// Where the file that `source` becomes lies.
  std::filesystem::path made_of(const std::string& source) const;
};

/// Compiles the sources of the lesson that the edit reaches, as many at a time as there are processors, and
/// finds again what was compiled before. `finish` is called with the sources when each has its file in `job.draft`. Throws as
/// compile_for_host does.
Compiled compile(Job job,
                 const std::function<void(const Job&, const std::vector<std::string>&)>& finish);

/// Throws the lab::SourceError that says why a compiler or linker did not do it.
[[noreturn]] void fail(const Job& job, const Ran& ran);

/// For the emulation: with what edited sources are compiled.
std::vector<std::string> host_flags(const Compiler& compiler);
/// Whose functions are watched, and the sanitizer's that this program has its own of (simt/memory_words.cpp): what objcopy
/// --redefine-syms takes.
inline constexpr const char* kWatchedWords =
    "memset tilestep_memset\n"
    "memcpy tilestep_memcpy\n"
    "memmove tilestep_memmove\n"
    "__ubsan_handle_out_of_bounds tilestep_out_of_bounds\n";

/// How long a compiler may take.
inline constexpr std::chrono::seconds kCompileLimit{120};

}  // namespace tilestep::workbench
