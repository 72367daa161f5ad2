#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

/// Long sweeps: whole with `./test --long`, else a part of them that the seed chooses.
namespace tilestep::tests {

/// Whether all is wanted (TILESTEP_LONG in the environment).
inline bool all_is_wanted() {
  return std::getenv("TILESTEP_LONG") != nullptr;
}

/// Of the cases of a sweep one in so many, evenly over the sweep; TILESTEP_SEED says which. Two sweeps take
/// other ones, and days one after the other.
///
///     Part part("knob ends", 3);
///     for (const Case& one : cases) {
///       if (part.skips()) continue;
class Part {
 public:
  Part(std::string_view sweep, std::size_t one_in) : one_in_(all_is_wanted() ? 1 : one_in) {
    const char* named = std::getenv("TILESTEP_SEED");
    std::uint64_t hash = named == nullptr ? 1 : std::strtoull(named, nullptr, 10);
    for (const char c : sweep) hash = hash * 31 + static_cast<unsigned char>(c);
    next_ = hash % one_in_;
  }
  /// Of the next case.
  bool skips() { return (next_++) % one_in_ != 0; }

 private:
  std::size_t one_in_;
  std::uint64_t next_ = 0;
};

}  // namespace tilestep::tests
