#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tilestep::app {

/// The bytes in base64.
std::string base64(std::string_view bytes);
/// JSON without white space, deflated (RFC 1950), in base64: as a page carries its data.
std::string packed(const nlohmann::json& data);
/// "sha256-…" of a Content-Security-Policy, from the hash in hexadecimal digits.
std::string policy_hash(std::string_view hex);

}  // namespace tilestep::app
