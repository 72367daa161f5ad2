#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "kernels/base/simt/error.hpp"

namespace tilestep::lab {

/// The member `name` of `json`, as a T. Throws Error naming `where`, the member and what is wrong.
template <class T>
T member(const nlohmann::json& json, std::string_view name, std::string_view where) {
  if (!json.is_object()) throw Error(fmt::format("{}: expected a JSON object", where));
  const auto found = json.find(name);
  if (found == json.end()) throw Error(fmt::format("{}: member '{}' is missing", where, name));
  try {
    return found->get<T>();
  } catch (const nlohmann::json::exception&) {
    throw Error(
        fmt::format("{}: member '{}' has the wrong type ({})", where, name, found->type_name()));
  }
}

/// The same for a member that may be absent or null.
template <class T>
T member_or(const nlohmann::json& json, std::string_view name, std::string_view where, T absent) {
  if (!json.is_object()) throw Error(fmt::format("{}: expected a JSON object", where));
  const auto found = json.find(name);
  if (found == json.end() || found->is_null()) return absent;
  return member<T>(json, name, where);
}

/// The array `name` of `json`; an empty one if it is absent.
inline const nlohmann::json& array_of(const nlohmann::json& json, std::string_view name,
                                      std::string_view where) {
  static const nlohmann::json kNone = nlohmann::json::array();
  if (!json.is_object()) throw Error(fmt::format("{}: expected a JSON object", where));
  const auto found = json.find(name);
  if (found == json.end()) return kNone;
  if (!found->is_array()) {
    throw Error(fmt::format("{}: member '{}' must be an array", where, name));
  }
  return *found;
}

}  // namespace tilestep::lab
