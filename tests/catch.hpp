#pragma once

// Catch2 v2 (one header) and v3 (a library) side by side.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

#include <string>
#include <string_view>
#include <utility>

#include "kernels/base/simt/error.hpp"

namespace tilestep::tests {

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// The sentence of the Error that `act` throws; empty (and a failed test) if it throws none.
template <class Act>
std::string error_of(Act&& act) {
  try {
    std::forward<Act>(act)();
  } catch (const Error& error) {
    return error.what();
  }
  FAIL_CHECK("expected a tilestep::Error, but nothing was thrown");
  return "";
}

}  // namespace tilestep::tests
