#include "app/cli/site/pack.hpp"

#include <zlib.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "app/cli/output.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::app {

std::string base64(std::string_view bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      three = three << 8 | (at + k < bytes.size() ? static_cast<unsigned char>(bytes[at + k]) : 0u);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += at + k <= bytes.size() ? kDigits[three >> (18 - 6 * k) & 63u] : '=';
    }
  }
  return text;
}

std::string packed(const nlohmann::json& data) {
  const std::string text = json_text(data, -1);
  std::string small(::compressBound(text.size()), '\0');
  uLongf size = small.size();
  const int code = ::compress2(reinterpret_cast<Bytef*>(small.data()), &size,
                               reinterpret_cast<const Bytef*>(text.data()), text.size(), 9);
  if (code != Z_OK) throw Error("a page's data cannot be compressed", ExitCode::unavailable);
  small.resize(size);
  return base64(small);
}

std::string policy_hash(std::string_view hex) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(at, 2)), nullptr, 16));
  }
  return "sha256-" + base64(bytes);
}

}  // namespace tilestep::app
