#include "kernels/base/simt/cuda/cupti_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "kernels/base/simt/error.hpp"

namespace tilestep::simt::cuda {
namespace {

namespace fs = std::filesystem;

// Newest first. The driver of a newer CUDA runs the older ones too.
constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

void add_folder(std::vector<std::string>& candidates, const fs::path& folder) {
  std::error_code ignored;
  for (const char* name : kNames) {
    const fs::path file = folder / name;
    if (fs::exists(file, ignored)) candidates.push_back(file.string());
  }
}

void add_toolkit(std::vector<std::string>& candidates, const fs::path& toolkit) {
  add_folder(candidates, toolkit / "extras/CUPTI/lib64");
  add_folder(candidates, toolkit / "lib64");
  add_folder(candidates, toolkit / "lib");
  add_folder(candidates, toolkit / "targets/x86_64-linux/lib");
}

/// NVIDIA's Python packages of the interpreters under `prefix`.
void add_python(std::vector<std::string>& candidates, const fs::path& prefix) {
  std::error_code error;
  for (fs::directory_iterator it(prefix / "lib", error), end; !error && it != end;
       it.increment(error)) {
    if (!it->path().filename().string().starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const fs::path nvidia = it->path() / packages / "nvidia";
      add_folder(candidates, nvidia / "cu13/lib");
      add_folder(candidates, nvidia / "cuda_cupti/lib");
    }
  }
}

}  // namespace

std::vector<std::string> cupti_candidates() {
  std::vector<std::string> candidates;
  if (const char* chosen = std::getenv("TILESTEP_CUPTI"); chosen != nullptr && *chosen != '\0') {
    std::error_code ignored;
    if (fs::is_directory(chosen, ignored)) {
      add_folder(candidates, chosen);
    } else {
      candidates.emplace_back(chosen);
    }
  }
  for (const char* name : kNames) candidates.emplace_back(name);
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* toolkit = std::getenv(variable)) add_toolkit(candidates, toolkit);
  }
  add_toolkit(candidates, "/usr/local/cuda");
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* prefix = std::getenv(variable)) add_python(candidates, prefix);
  }
  add_python(candidates, "/usr/local");
  add_python(candidates, "/usr");
  return candidates;
}

void* open_cupti() {
  for (const std::string& candidate : cupti_candidates()) {
    if (void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  throw Error(
      "CUPTI, which reads the hardware counters, was not found; install the CUDA Toolkit, "
      "or set TILESTEP_CUPTI to the folder of libcupti.so",
      ExitCode::unavailable);
}

}  // namespace tilestep::simt::cuda
