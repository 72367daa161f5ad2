#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/inspect/session.hpp"
#include "kernels/base/lab/report.hpp"
#include "kernels/base/workbench/compiler.hpp"

/// Any CUDA file with its `main`: compiled for the emulation, run, and what its kernels do to memory (`tilestep inspect`).
namespace tilestep::inspect {

/// Compiles a program, the file `path` with this text, and what it includes from its folder. The folder holds
/// workbench::kHostModule. Throws lab::SourceError with the lines at fault, Error (unavailable) where there is no compiler,
/// Cancelled.
workbench::Compiled compile_program(const std::filesystem::path& path, std::string_view text,
                                    const workbench::CompileWatch& watch = {});

struct RunOptions {
  std::string module;                  ///< the file to load
  std::vector<std::string> arguments;  ///< of main, the program's name first
  Options session;
  std::chrono::milliseconds deadline = std::chrono::seconds(10);
};
/// Loads a compiled program and calls its `main`, in a process that does nothing else and ends with it: `told` is given the
/// report before. What the program prints is in the report. Never returns.
[[noreturn]] void run_program(const RunOptions& options,
                              const std::function<void(const lab::Report&)>& told);

/// For the program's own calls of exit: the same.
[[noreturn]] void end_program(int status);

/// What objcopy --redefine-syms takes of a program's object, beside workbench::kWatchedWords.
extern const char* const kProgramWords;

/// Where the course teaches it: the stop of a lesson (none: an empty name and 0), and an exercise with that mistake.
struct Taught {
  Kind kind;
  const char* lesson;
  int stop;
  const char* exercise;
};
/// Null: nowhere.
const Taught* taught_by(Kind kind);

/// The report of a session: findings, launches, accesses by line, events. `module`: what lines are looked up in.
lab::Report report_of(const Session& session, const std::string& module, int status,
                      std::string printed);

/// Most bytes of what a program printed that a report keeps.
inline constexpr std::size_t kMostPrinted = 64 << 10;

}  // namespace tilestep::inspect
