#pragma once

#include <concepts>
#include <memory>
#include <nlohmann/json_fwd.hpp>

namespace tilestep::lab {

/// A JSON value for headers that many files include but few look into: only those few include <nlohmann/json.hpp>. It
/// converts to the value wherever one is expected, and gives access by `->` and `*`.
class JsonValue {
 public:
  JsonValue();  ///< null
  // NOLINTNEXTLINE(google-explicit-constructor): it is the value
  JsonValue(nlohmann::json value);
  JsonValue(const JsonValue& other);
  JsonValue(JsonValue&& other) noexcept;
  JsonValue& operator=(const JsonValue& other);
  JsonValue& operator=(JsonValue&& other) noexcept;
  ~JsonValue();

  // NOLINTNEXTLINE(google-explicit-constructor): it is the value
  operator const nlohmann::json&() const { return **this; }
  const nlohmann::json& operator*() const;
  nlohmann::json& operator*();
  const nlohmann::json* operator->() const { return &**this; }

  /// Only for two of them: next to a nlohmann::json it converts to one.
  template <std::same_as<JsonValue> Value>
  friend bool operator==(const Value& a, const Value& b) {
    return a.equals(b);
  }

 private:
  bool equals(const JsonValue& other) const;

  std::unique_ptr<nlohmann::json> value_;  ///< nothing: null, or moved from
};

}  // namespace tilestep::lab
