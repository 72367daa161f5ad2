#include "kernels/base/lab/nesting.hpp"

#include <cstddef>

namespace tilestep::lab {

bool nested_too_deep(std::string_view text) {
  int open = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == ']' || c == '}') --open;
    if ((c == '[' || c == '{') && ++open > kMostNesting) return true;
  }
  return false;
}

}  // namespace tilestep::lab
