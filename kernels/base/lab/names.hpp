#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

/// The names of an enum are listed once, beside it, in the order of its values from 0:
///
///     enum class Access { load, store };
///     constexpr auto names_of(Access) { return std::to_array<std::string_view>({"load", "store"}); }
///
/// Knobs, JSON, tables and error texts all read them. Light enough for kernel files.
namespace tilestep {

template <class Enum>
concept Named = std::is_enum_v<Enum> && requires(Enum value) {
  names_of(value)[0];
};

/// Made once: a call of `names_of` makes them anew where nothing is optimized, at each event of a trace.
template <Named Enum>
inline constexpr auto kNamesOf = names_of(Enum{});

/// How many values there are.
template <Named Enum>
constexpr std::size_t count_of() {
  return kNamesOf<Enum>.size();
}

template <Named Enum>
constexpr std::string_view name_of(Enum value) {
  return kNamesOf<Enum>.at(static_cast<std::size_t>(value));
}

/// The value with this name, if any.
template <Named Enum>
constexpr std::optional<Enum> named(std::string_view name) {
  for (std::size_t i = 0; i < count_of<Enum>(); ++i) {
    if (kNamesOf<Enum>[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

/// Each rung of a ladder has a sentence, beside the names and in the same order: the change from the
/// previous rung, and why it is faster.
///
///     constexpr auto reasons_of(Rung) { return std::to_array<std::string_view>({"…", "…"}); }
template <Named Enum>
constexpr std::string_view reason_of(Enum value) {
  static_assert(reasons_of(Enum{}).size() == count_of<Enum>());
  return reasons_of(Enum{}).at(static_cast<std::size_t>(value));
}

/// All values, in order: `for (const Pattern pattern : all_of<Pattern>())`.
template <Named Enum>
constexpr auto all_of() {
  std::array<Enum, count_of<Enum>()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Enum>(i);
  return all;
}

}  // namespace tilestep
