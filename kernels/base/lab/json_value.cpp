#include "kernels/base/lab/json_value.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace tilestep::lab {

JsonValue::JsonValue() = default;
JsonValue::JsonValue(nlohmann::json value)
    : value_(std::make_unique<nlohmann::json>(std::move(value))) {}
JsonValue::JsonValue(const JsonValue& other) : JsonValue(*other) {}
JsonValue::JsonValue(JsonValue&& other) noexcept = default;
JsonValue& JsonValue::operator=(const JsonValue& other) {
  return *this = JsonValue(other);
}
JsonValue& JsonValue::operator=(JsonValue&& other) noexcept = default;
JsonValue::~JsonValue() = default;

const nlohmann::json& JsonValue::operator*() const {
  static const nlohmann::json kNull;
  return value_ ? *value_ : kNull;
}

nlohmann::json& JsonValue::operator*() {
  if (!value_) value_ = std::make_unique<nlohmann::json>();
  return *value_;
}

bool JsonValue::equals(const JsonValue& other) const {
  return **this == *other;
}

}  // namespace tilestep::lab
