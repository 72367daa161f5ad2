#pragma once

#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/catch.hpp"

// Catch2 v2 and v3 name their text matchers differently; these two are the same in both.
namespace tilestep::tests {

inline void check_contains(const std::string& text, const std::string& part) {
  INFO("looking for '" << part << "' in:\n" << text);
  CHECK(text.find(part) != std::string::npos);
}

/// UTF-8 without control characters, at most `most` bytes long.
inline void check_printable(const std::string& text, std::size_t most) {
  INFO(text);
  CHECK(text.size() <= most);
  CHECK_NOTHROW((void)nlohmann::json(text).dump());
  for (const char c : text) CHECK((c < 0 || (c >= 0x20 && c != 0x7f)));
}

/// The whole of `text` is of the form `pattern`.
inline void check_matches(const std::string& text, const std::string& pattern) {
  INFO("'" << text << "' should be of the form " << pattern);
  CHECK(std::regex_match(text, std::regex(pattern)));
}

}  // namespace tilestep::tests
