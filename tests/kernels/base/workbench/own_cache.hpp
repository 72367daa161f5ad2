#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace tilestep::tests {

/// For as long as it lives, edited kernels are compiled in a folder of this process alone, which is gone with it.
struct OwnCache {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("tilestep-workbench-" + std::to_string(::getpid()));
  OwnCache() { ::setenv("TILESTEP_CACHE", folder.c_str(), 1); }
  ~OwnCache() {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    ::unsetenv("TILESTEP_CACHE");
  }
  OwnCache(const OwnCache&) = delete;
  OwnCache& operator=(const OwnCache&) = delete;
};

}  // namespace tilestep::tests
