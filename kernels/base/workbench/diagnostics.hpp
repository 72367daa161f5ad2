#pragma once

#include <string_view>
#include <vector>

#include "kernels/base/lab/edit.hpp"

namespace tilestep::workbench {

/// Limits on the compiler messages that are kept.
inline constexpr std::size_t kMostDiagnostics = 50;

/// What g++, clang++ or nvcc said about the source `path` ("kernels/…/one_pass.cu"), or said elsewhere because of one
/// of its lines: errors and warnings, errors first, each once, at most kMostDiagnostics. What is about no line of it
/// has line 0 and says where it is.
std::vector<lab::Diagnostic> diagnostics_in(std::string_view output, std::string_view path);

/// "one_pass.cu does not compile: line 12: expected ';' before '}' (and 3 more errors)".
std::string sentence_of(const std::vector<lab::Diagnostic>& diagnostics, std::string_view path);

}  // namespace tilestep::workbench
