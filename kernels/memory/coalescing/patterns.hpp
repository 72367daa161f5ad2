#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/base/lab/names.hpp"

/// Names shared by kernels and driver: access patterns, element sizes, launch sizes.
namespace tilestep::coalescing {

inline constexpr int kLanes = 32;             ///< threads of a warp
inline constexpr int kThreadsPerBlock = 256;  ///< of the lesson's kernel
inline constexpr int kWarpsPerBlock = kThreadsPerBlock / kLanes;
inline constexpr int kSectorBytes = 32;  ///< the unit of a fetch
inline constexpr int kLineBytes = 128;   ///< of L1 and L2: four sectors
inline constexpr int kTracedBlocks = 8;  ///< the first blocks of the launch, whose warps are traced

/// Which element thread i takes. The kernel source has the arithmetic of each.
enum class Pattern {
  sequential,     ///< i
  strided,        ///< i × stride
  offset,         ///< i + offset
  reversed,       ///< elements − 1 − i
  permuted_warp,  ///< the 32 elements of the warp, in another order
  permuted,       ///< all elements, in another order
  broadcast,      ///< i / 32: one element for the whole warp
  aos,            ///< i × fields + 1: the second field of structure i
  soa,            ///< pitch + i: the second of `fields` arrays
  matrix_row,     ///< consecutive threads along a row of a row-major matrix
  matrix_column,  ///< consecutive threads down a column of it
  custom,         ///< each lane's chosen element, within kLaneElements of the warp's own
};
constexpr auto names_of(Pattern) {
  return std::to_array<std::string_view>({"sequential", "strided", "offset", "reversed",
                                          "permuted-warp", "permuted", "broadcast", "aos", "soa",
                                          "matrix-row", "matrix-column", "custom"});
}
inline constexpr auto kPatterns = all_of<Pattern>();
/// The setting that the pattern depends on besides element_bytes, access and elements; "" if none.
constexpr std::string_view knob_of(Pattern pattern) {
  constexpr std::string_view kKnobs[] = {"", "stride", "offset", "", "seed", "seed",
                                         "", "fields", "fields", "", "",     "lanes"};
  return kKnobs[static_cast<std::size_t>(pattern)];
}
/// The patterns that a bench times: those with one form.
constexpr bool is_timed(Pattern pattern) {
  return pattern != Pattern::custom;
}
inline constexpr int kLaneElements = 256;  ///< of a warp, in the pattern custom

enum class ElementSize { bytes_1, bytes_2, bytes_4, bytes_8, bytes_16 };
constexpr auto names_of(ElementSize) {
  return std::to_array<std::string_view>({"1", "2", "4", "8", "16"});
}
inline constexpr auto kElementSizes = all_of<ElementSize>();

/// load: out[i] = in[index]; store: out[index] = in[i].
enum class Access { load, store };
constexpr auto names_of(Access) {
  return std::to_array<std::string_view>({"load", "store"});
}

/// All numbers that a launch of a pattern needs.
struct PatternShape {
  Pattern pattern = Pattern::sequential;
  Access access = Access::load;
  int element_bytes = 4;
  std::int64_t elements = 0;        ///< one per thread
  std::int64_t array_elements = 0;  ///< of the array that the pattern indexes
  std::int64_t stride = 1;
  std::int64_t offset = 0;
  std::int64_t fields = 1;
  std::int64_t pitch = 0;              ///< soa: elements from one field's array to the next
  std::int64_t rows = 1, columns = 1;  ///< of the matrix
  unsigned lane_multiplier = 1;        ///< permuted_warp: odd
  unsigned lane_addend = 0;
  unsigned multiplier = 1;                 ///< permuted: odd
  unsigned mask = 0;                       ///< permuted: the smallest 2^k − 1 ≥ elements − 1
  unsigned shift = 0;                      ///< permuted: half the bits of the mask
  std::uint8_t lane_element[kLanes] = {};  ///< custom: which of the warp's elements each lane takes
};

}  // namespace tilestep::coalescing
