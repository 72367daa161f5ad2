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

/// Of at least one.
double middle(std::vector<double> all);

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
/// The cost of a frame of each lesson, with each of its panels in front.
BenchPart bench_frames(const BenchCases& cases);
/// The cost of building, placing, moving and drawing pictures, and of frames in motion.
BenchPart bench_pictures(const BenchCases& cases);
/// How soon `program`'s window shows a first picture, what memory it takes, and what it draws with nothing to
/// do. Without a display, of a picture that is drawn without one.
BenchPart bench_window(const std::string& program);

struct EditBench {
  std::string program;                ///< path of tilestep itself, for the worker
  std::vector<std::string> lessons;   ///< ids; empty: all
  std::vector<std::string> backends;  ///< "emulated", "cuda"
};
/// How long it takes from Ctrl+Enter in the editor to the first frame that shows the edited kernel's run, compiled afresh,
/// and how long frames keep the window from its events meanwhile. Of the lessons' first sources, with default knobs.
BenchPart bench_edits(const EditBench& what);
/// How long `tilestep inspect` takes from a saved file to its findings, sandbox and two other thread orders included, and how
/// many accesses it traces per second. The peer is the C++ compiler on a file of two headers.
BenchPart bench_inspections(const std::string& program);
/// How long a trace of 100,000 events takes to open, and a frame of its page in all of it, zoomed in and while it pans.
BenchPart bench_profiles();

}  // namespace tilestep::app
