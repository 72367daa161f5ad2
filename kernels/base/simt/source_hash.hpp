#pragma once

namespace tilestep::simt {

/// SHA-256, in hexadecimal, of the sources that the program and its CUDA module have in common:
/// kernels and headers. Written at build time (kernels/CMakeLists.txt) and compiled into both, so
/// that a program never uses a module whose classes and kernels are others than its own.
const char* source_hash();

}  // namespace tilestep::simt
