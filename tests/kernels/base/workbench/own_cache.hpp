#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "kernels/answer.hpp"

namespace tilestep::tests {

/// The source that these tests edit, and a run of it with `text` in its place.
inline const std::string kOnePass = "kernels/attention/online_softmax/one_pass.cu";
inline lab::Report run_one_pass(const std::string& text, const std::string& backend = "emulated") {
  lab::Request request;
  request.lesson = "online-softmax";
  request.backend = backend;
  request.kernel = lab::KernelEdit{kOnePass, text};
  lab::NoProgress progress;
  return answer(request, progress);
}

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

/// The same, kept until the process ends: what a test before it compiled need not be compiled again.
struct KeptCache {
  KeptCache() { ::setenv("TILESTEP_CACHE", folder().c_str(), 1); }
  ~KeptCache() { ::unsetenv("TILESTEP_CACHE"); }
  KeptCache(const KeptCache&) = delete;
  KeptCache& operator=(const KeptCache&) = delete;

 private:
  static const std::filesystem::path& folder() {
    static const struct Kept {
      std::filesystem::path path = std::filesystem::temp_directory_path() /
                                   ("tilestep-workbench-kept-" + std::to_string(::getpid()));
      ~Kept() {
        std::error_code error;
        std::filesystem::remove_all(path, error);
      }
    } kept;
    return kept.path;
  }
};

}  // namespace tilestep::tests
