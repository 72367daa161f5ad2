#pragma once

#include <string>

namespace tilestep::tests {

/// The exit code by which ctest knows that a group was skipped (SKIP_RETURN_CODE in
/// tests/CMakeLists.txt). Catch2 2 has no word for it.
inline constexpr int kSkipped = 77;

/// Says that this test needs what is not here, and makes its group count as skipped rather than
/// passed: `if (!has_program("Xvfb")) return skip("there is no Xvfb here");`
void skip(const std::string& reason);

}  // namespace tilestep::tests
