#pragma once

#include <string>
#include <string_view>

namespace tilestep::workbench {

/// An edited source as the host's compiler is to read it: CUDA's words that no header can give it are written another
/// way, and what cannot be emulated, or not in an edit, becomes an error that says what to write instead, in the line
/// where it stands. Comments and strings, and the number of every line, stay; columns do where nothing was put in.
///
///     extern __shared__ T name[];      a pointer to the block's dynamic shared memory (simt/toolkit/threads.hpp)
///     reinterpret_cast, __noinline__   words of simt/toolkit of the same length
std::string for_emulation(std::string_view text);

}  // namespace tilestep::workbench
