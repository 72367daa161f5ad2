#include "kernels/base/lab/assets.hpp"

#include <fmt/format.h>

#include "kernels/base/simt/error.hpp"

namespace tilestep::lab {

std::string_view asset(std::string_view path) {
  for (const Asset& asset : assets()) {
    if (asset.path == path) return asset.text;
  }
  throw Error(fmt::format("the text '{}' was not built into this program", path),
              ExitCode::unavailable);
}

}  // namespace tilestep::lab
