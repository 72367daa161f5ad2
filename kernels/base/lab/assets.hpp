#pragma once

#include <span>
#include <string_view>

namespace tilestep::lab {

/// A text file of the repository, built into the program: lesson texts, recordings, kernel sources.
struct Asset {
  std::string_view path;  ///< as in the repository: "assets/glossary.md"
  std::string_view text;
};

std::span<const Asset> assets();
/// The text of `path`. Throws Error (unavailable) if it was not built in.
std::string_view asset(std::string_view path);

}  // namespace tilestep::lab
