#pragma once

#include <cstddef>

namespace tilestep::numeric {

/// Number of the element (row, column) of a row-major matrix with so many columns.
constexpr std::size_t index_of(int row, int column, int columns) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
         static_cast<std::size_t>(column);
}

/// How many elements a matrix has.
constexpr std::size_t elements_of(int rows, int columns) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
}

}  // namespace tilestep::numeric
