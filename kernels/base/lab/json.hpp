#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/lab/names.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::lab {

/// JSON has no inf or NaN: they are written as the strings "inf", "-inf", "nan".
nlohmann::json number_to_json(double value);
/// The same for a float, as its shortest decimal form: 0.1f is written as 0.1 and not as
/// 0.10000000149011612. Reading it back gives the same float.
nlohmann::json shortest_to_json(float value);

inline constexpr std::int64_t kLeastWhole = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kMostWhole = std::numeric_limits<std::int64_t>::max();

/// A place in a JSON document and the path to it, so that an error there can be described in words:
///
///     const Place root(json, "tiling trace");
///     const Place tiles = root.at("k_tiles");
///     tiles.at(3).whole<int>(0, 31);
///     // Error: tiling trace: 'k_tiles[3]' is 32; allowed: 0–31 (a whole number)
///
/// A Place points at its parent, which must outlive it. Nothing is ever cast: a number that does
/// not fit, or is not a whole number where one is required, is an Error.
class Place {
 public:
  /// `where` names the document in error texts.
  Place(const nlohmann::json& json, std::string_view where) : json_(&json), name_(where) {}

  const nlohmann::json& json() const { return *json_; }

  /// A member. Throws Error if this is not an object or has no such member.
  Place at(std::string_view member) const&;
  Place at(std::string_view) && = delete;
  /// A member that may be absent or null.
  std::optional<Place> find(std::string_view member) const&;
  std::optional<Place> find(std::string_view) && = delete;
  /// An entry of an array; `index` is below size().
  Place at(std::size_t index) const&;
  Place at(std::size_t) && = delete;
  /// How many entries the array has. Throws Error if this is not an array.
  std::size_t size() const;
  /// Throws Error naming both numbers unless this is an array of `count` entries.
  void require_size(std::size_t count) const;

  /// A whole number from `least` to `most` that Int can hold.
  template <std::integral Int = int>
  Int whole(std::int64_t least = kLeastWhole, std::int64_t most = kMostWhole) const {
    using Limits = std::numeric_limits<Int>;
    constexpr auto kMost =
        static_cast<std::int64_t>(std::min<std::uint64_t>(Limits::max(), kMostWhole));
    return static_cast<Int>(
        whole_number(std::max<std::int64_t>(least, Limits::min()), std::min(most, kMost)));
  }
  /// A number, "inf", "-inf" or "nan"; as float only a number that rounds to a finite one.
  template <std::floating_point Real>
  Real real() const {
    return std::same_as<Real, float> ? static_cast<Real>(float_number())
                                     : static_cast<Real>(real_number());
  }
  bool flag() const;
  std::string text() const;
  /// The value of Enum with this name.
  template <Named Enum>
  Enum name() const {
    if (const std::string* word = text_if_any()) {
      if (const auto value = named<Enum>(*word)) return *value;
    }
    std::string allowed;
    for (const std::string_view word : kNamesOf<Enum>) {
      allowed += (allowed.empty() ? "" : ", ") + std::string(word);
    }
    refuse(allowed);
  }

  /// Throws Error with the value found and the values allowed.
  [[noreturn]] void refuse(std::string_view allowed) const;
  /// Throws Error with a sentence about the value found.
  [[noreturn]] void fail(std::string_view sentence) const;

 private:
  static constexpr std::size_t kNoIndex = static_cast<std::size_t>(-1);
  Place(const Place* from, const nlohmann::json& json, std::string_view name, std::size_t index)
      : from_(from), json_(&json), name_(name), index_(index) {}

  const std::string* text_if_any() const;
  std::int64_t whole_number(std::int64_t least, std::int64_t most) const;
  double real_number() const;
  float float_number() const;
  void require_object() const;
  std::string subject() const;
  std::string_view where() const;
  std::string way() const;

  const Place* from_ = nullptr;  ///< none: the whole document
  const nlohmann::json* json_;
  std::string_view name_;  ///< of the member; of the document
  std::size_t index_ = kNoIndex;
};

}  // namespace tilestep::lab
