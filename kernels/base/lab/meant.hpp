#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilestep::lab {

/// Which of `names` was meant by a word that is none: the one it is a word of ("softmax" of "online-softmax"), or the
/// nearest by letters added, left out, changed or swapped, at most one in three. Empty: none, or several.
std::string meant(std::string_view word, const std::vector<std::string>& names);

}  // namespace tilestep::lab
