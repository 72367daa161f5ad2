#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilestep::inspect {

/// How the emulation of a program differs from a GPU, in a sentence for each group of words that the source has; none:
/// everything in it runs exactly.
std::vector<std::string> differences_in(std::string_view source);

}  // namespace tilestep::inspect
