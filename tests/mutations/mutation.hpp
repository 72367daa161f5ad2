#pragma once

// Included by the sources that tests/mutations/run has changed: `mutated(17)` is whether mutation 17 is the
// one that this process has. TILESTEP_MUTATION names it; with TILESTEP_MUTATIONS_REACHED, a folder, each mutation whose
// place is reached leaves a file there, so that only tests that can find it need to run.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

namespace tilestep_mutations {

inline constexpr int kMost = 1024;
inline int chosen() {
  const char* named = std::getenv("TILESTEP_MUTATION");
  return named == nullptr ? -1 : std::atoi(named);
}
inline bool reached(int number) {
  static const int active = chosen();
  static const char* const folder = std::getenv("TILESTEP_MUTATIONS_REACHED");
  static std::atomic<bool> seen[kMost];
  if (folder != nullptr && !seen[number].exchange(true)) {
    char path[4096];
    std::snprintf(path, sizeof path, "%s/%d", folder, number);
    if (std::FILE* file = std::fopen(path, "w")) std::fclose(file);
  }
  return number == active;
}
/// In constant expressions nothing is mutated.
constexpr bool mutated(int number) {
  return !std::is_constant_evaluated() && reached(number);
}

}  // namespace tilestep_mutations
