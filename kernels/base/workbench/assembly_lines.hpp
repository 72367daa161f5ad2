#pragma once

#include <string>
#include <vector>

#include "kernels/base/workbench/assembly.hpp"

/// Which lines of a source and which instructions belong together.
namespace tilestep::workbench {

/// The instruction came of line `line` of the source, in itself or by a call that was inlined.
bool is_of(const AssemblyLine& instruction, int line);

/// The first row of the listing that came of line `line` of the source; −1: none did.
int row_of_line(const AssemblyKernel& kernel, int line);

/// Which of the kernels is to be shown for a line: `now`, where it has instructions of it; else the shortest that has,
/// which is the one without a tape that records; else, where nothing came of the line, the one whose instructions stand
/// nearest to it, `now` before others; `now` where there is nothing at all.
int kernel_of_line(const std::vector<AssemblyKernel>& kernels, int line, int now);

/// The index of the kernel with this symbol; −1: none.
int place_of(const std::vector<AssemblyKernel>& kernels, const std::string& symbol);

/// What stands for `text` where long names would fill the view: "[_ZN…_param_0]" as "[param_0]", a mangled name as its
/// last part. The same text where there is nothing to shorten.
std::string readable_instruction(std::string_view text);

/// "39 registers · no spills · 256 B shared · no stack", of a thread, a thread, a block and a thread; spills are said as
/// stored and loaded. `brief`: "39 reg · 0 spilled · 256 B shared". What is not said is left out.
std::string resources_of(const AssemblyKernel& kernel, bool brief = false);

}  // namespace tilestep::workbench
