#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/lab/pairs.hpp"
#include "kernels/base/lab/source.hpp"
#include "kernels/base/numeric/random.hpp"
#include "kernels/memory/coalescing/lesson.hpp"

namespace tilestep::coalescing {
namespace {

constexpr std::int64_t kMaxArrayBytes = std::int64_t{512} << 20;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 24;
constexpr std::int64_t kSmallestMatrixSide = 32;

std::int64_t rounded_up(std::int64_t value, std::int64_t to) {
  return (value + to - 1) / to * to;
}

void set_permutations(PatternShape& shape, std::int64_t seed) {
  const std::uint64_t random = numeric::mixed(static_cast<std::uint64_t>(seed));
  // 1 would leave the lanes in their order, and only an odd number reaches every lane.
  shape.lane_multiplier = static_cast<unsigned>(3 + 2 * (random % 15));
  shape.lane_addend = static_cast<unsigned>(random >> 8 & 31);
  shape.multiplier = static_cast<unsigned>(random >> 32) | 1U;
  const auto bits =
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(shape.elements - 1)));
  shape.mask = (1U << bits) - 1;
  shape.shift = static_cast<unsigned>(bits + 1) / 2;
}

/// Elements of the array that the pattern indexes, and the index as an expression.
std::pair<std::int64_t, std::string> indexed(const PatternShape& s) {
  switch (s.pattern) {
    case Pattern::sequential:
      break;
    case Pattern::strided:
      return {s.elements * s.stride, fmt::format("i × {}", s.stride)};
    case Pattern::offset:
      return {s.elements + s.offset, fmt::format("i + {}", s.offset)};
    case Pattern::reversed:
      return {s.elements, fmt::format("{} − i", s.elements - 1)};
    case Pattern::permuted_warp:
      return {rounded_up(s.elements, kLanes), fmt::format("warp's first + (lane × {} + {}) mod 32",
                                                          s.lane_multiplier, s.lane_addend)};
    case Pattern::permuted:
      return {s.elements, "permutation(i)"};
    case Pattern::broadcast:
      return {(s.elements + kLanes - 1) / kLanes, "i / 32"};
    case Pattern::aos:
      return {s.elements * s.fields, fmt::format("i × {} + 1", s.fields)};
    case Pattern::soa:
      return {s.fields * s.pitch, fmt::format("{} + i", s.pitch)};
    case Pattern::matrix_row:
      return {s.rows * s.columns, fmt::format("(i / {0}) × {0} + i mod {0}", s.columns)};
    case Pattern::matrix_column:
      return {s.rows * s.columns, fmt::format("(i mod {0}) × {1} + i / {0}", s.rows, s.columns)};
    case Pattern::custom:
      return {rounded_up(s.elements, kLanes) / kLanes * kLaneElements,
              "i / 32 × 256 + element of lane i mod 32"};
  }
  return {s.elements, "i"};
}

std::int64_t array_bytes(const Params& params) {
  return shape_of(params).array_elements * params.element_bytes();
}

/// The most elements for which the pattern's array is not too large.
std::int64_t most_elements(Params params) {
  std::int64_t low = 1, high = kMaxElements;
  while (low < high) {
    params.elements = (low + high + 1) / 2;
    if (array_bytes(params) <= kMaxArrayBytes) {
      low = params.elements;
    } else {
      high = params.elements - 1;
    }
  }
  return low;
}

/// The array must not be too large.
void check_elements(const Params& params) {
  if (array_bytes(params) <= kMaxArrayBytes) return;
  std::string with = fmt::format("pattern = {}", name_of(params.pattern));
  if (const auto setting = setting_of(params)) {
    with += fmt::format(", {} = {}", knob_of(params.pattern), lab::to_text(*setting));
  }
  with += fmt::format(" and element_bytes = {}", params.element_bytes());
  const std::int64_t most = most_elements(params);
  lab::refuse_with("elements", params.elements, with,
                   fmt::format("{}–{}: the array is limited to 512 MiB", kLanes, most), most);
}

bool is_list_of_lanes(std::string_view text) {
  const auto pairs = lab::pairs_of(text);
  return pairs && std::all_of(pairs->begin(), pairs->end(), [](const auto& pair) {
           return pair.first < kLanes && pair.second < kLaneElements;
         });
}

/// If two lanes store to one place, which one wins is undefined.
void check_lanes(const Params& params) {
  if (params.pattern != Pattern::custom || params.access != Access::store) return;
  const std::array<int, kLanes> elements = lane_elements(params);
  if (std::set<int>(elements.begin(), elements.end()).size() == kLanes) return;
  lab::refuse_with("lanes", params.lanes, "access = store",
                   "no two lanes may store to the same element", std::string());
}

}  // namespace

std::array<int, kLanes> lane_elements(const Params& params) {
  std::array<int, kLanes> elements{};
  std::iota(elements.begin(), elements.end(), 0);
  for (const auto& [lane, element] :
       lab::pairs_of(params.lanes).value_or(std::vector<std::pair<int, int>>{})) {
    elements.at(lane) = element;
  }
  return elements;
}

std::string lanes_text(const std::array<int, kLanes>& elements) {
  std::string text;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (elements[lane] == static_cast<int>(lane)) continue;
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", lane, elements[lane]);
  }
  return text;
}

const lab::KnobTable<Params>& knob_table() {
  static const auto table =
      lab::KnobTable<Params>()
          .choice(&Params::pattern, {"pattern", "Which element each thread accesses."})
          .integer(&Params::stride,
                   {"stride", "Stride", "elements",
                    "Distance between the elements of neighbouring threads."},
                   1, 64)
          .with("pattern", {"strided"})
          .integer(&Params::offset,
                   {"offset", "Offset", "elements",
                    "Distance of the first element from an aligned address."},
                   0, 31)
          .with("pattern", {"offset"})
          .choice(&Params::element_size,
                  {"element_bytes", "Element", "bytes", "Bytes per access of a thread."})
          .choice(&Params::access,
                  {"access", "Whether the pattern applies to the loads or to the stores."})
          .integer(&Params::fields, {"fields", "Fields per structure."}, 2, 8)
          .with("pattern", {"aos", "soa"})
          .integer(&Params::elements,
                   {"elements", "Elements that the launch accesses, one per thread."}, kLanes,
                   kMaxElements, true)
          .seed("Seed of the data and of the order (permuted, permuted-warp).")
          .text(&Params::lanes,
                {"lanes",
                 "Which of its warp's elements each lane accesses; lanes that are not "
                 "listed access their own."},
                "pairs lane:element with commas between, lanes 0–31 and elements 0–255, such as "
                "0:5,3:0, or nothing",
                is_list_of_lanes)
          .with("pattern", {"custom"})
          .require(check_lanes)
          .require(check_elements);
  return table;
}

std::optional<lab::KnobValue> setting_of(const Params& params) {
  const std::string_view knob = knob_of(params.pattern);
  if (knob.empty()) return {};
  return knob_table().settings(params).find(knob)->second;
}

std::string statement(const Params& params) {
  const std::string index = indexed(shape_of(params)).second;
  return params.access == Access::load ? fmt::format("out[i] = in[{}]", index)
                                       : fmt::format("out[{}] = in[i]", index);
}

SourceLines source_lines(Pattern pattern, Access access) {
  const lab::SourceMarks marks = lab::source_marks(kSourcePath);
  const int line = marks.line(fmt::format("{} {}", name_of(access), name_of(pattern)));
  const bool apart = pattern == Pattern::permuted || pattern == Pattern::permuted_warp;
  return {line, apart ? marks.line(name_of(pattern)) : line};
}

PatternShape shape_of(const Params& params) {
  PatternShape shape;
  shape.pattern = params.pattern;
  shape.access = params.access;
  shape.element_bytes = params.element_bytes();
  shape.elements = params.elements;
  shape.stride = params.stride;
  shape.offset = params.offset;
  shape.fields = params.fields;
  // Whole blocks, so that every field's array starts on a sector, a line and more.
  shape.pitch = rounded_up(params.elements, kThreadsPerBlock);
  // As square as powers of two allow, but never so flat that a warp holds whole columns.
  shape.columns = kSmallestMatrixSide;
  while (shape.columns * shape.columns < params.elements) shape.columns *= 2;
  shape.rows = rounded_up(params.elements, shape.columns) / shape.columns;
  if (shape.rows < kSmallestMatrixSide) shape.rows = kSmallestMatrixSide;
  const std::array<int, kLanes> lanes = lane_elements(params);
  std::transform(lanes.begin(), lanes.end(), shape.lane_element,
                 [](int element) { return static_cast<std::uint8_t>(element); });
  set_permutations(shape, params.seed);
  shape.array_elements = indexed(shape).first;
  return shape;
}

}  // namespace tilestep::coalescing
