// Finds and loads the CUDA backend, a module beside the program.

#include "kernels/base/simt/cuda/cuda_module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "kernels/base/simt/source_hash.hpp"

namespace tilestep::simt {
namespace {

constexpr const char* kFileName = "tilestep_cuda.so";
constexpr const char* kOverride = "TILESTEP_CUDA_MODULE";

/// Beside the program, also when that was deleted or replaced by a newer one since it started: the
/// link then reads "/folder/tilestep (deleted)", whose folder is the same.
std::filesystem::path module_path() {
  if (const char* path = std::getenv(kOverride); path != nullptr && *path != '\0') return path;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return kFileName;
  // Beside the program where it was built, in the library folder where it was installed.
  const auto built = program.parent_path() / kFileName;
  const auto installed = program.parent_path().parent_path() / "lib" / "tilestep" / kFileName;
  return !std::filesystem::exists(built, error) && std::filesystem::exists(installed, error)
             ? installed
             : built;
}

template <class Function>
Function symbol(void* module, const char* name) {
  return reinterpret_cast<Function>(dlsym(module, name));
}

const CudaModule& loaded_module() {
  static const CudaModule module = load_cuda_module(module_path());
  return module;
}

}  // namespace

CudaModule load_cuda_module(const std::filesystem::path& path) {
  CudaModule module;
  std::error_code error;
  module.built = std::filesystem::exists(path, error);
  if (!module.built) {
    module.reason = fmt::format(
        "the CUDA backend was not built ({} is not there); install the CUDA Toolkit 12 or newer "
        "and build again",
        path.string());
    return module;
  }
  // Never unloaded: objects made by the module may outlive any handle.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* why = dlerror();
    module.reason = fmt::format("the CUDA backend cannot be loaded: {}",
                                why == nullptr ? "unknown reason" : why);
    return module;
  }
  const auto hash = symbol<CudaHashFunction>(handle, kCudaHashSymbol);
  if (hash == nullptr || std::string_view(hash()) != source_hash()) {
    module.reason = fmt::format(
        "the CUDA backend {} was built from other sources than this program, so it is not used; "
        "build both again or, if that was just done, start tilestep again",
        path.string());
    return module;
  }
  module.status = symbol<CudaStatusFunction>(handle, kCudaStatusSymbol);
  module.make_device = symbol<CudaDeviceFunction>(handle, kCudaDeviceSymbol);
  module.last_launch = symbol<CudaLastLaunchFunction>(handle, kCudaLastLaunchSymbol);
  module.use_edited = symbol<CudaUseEditedFunction>(handle, kCudaUseEditedSymbol);
  if (module.status == nullptr || module.make_device == nullptr || module.last_launch == nullptr ||
      module.use_edited == nullptr) {
    module.reason =
        fmt::format("{} is no CUDA backend of this program; build again", path.string());
  }
  return module;
}

CudaStatus cuda_status() {
  const CudaModule& module = loaded_module();
  CudaStatus status;
  status.built = module.built;
  status.reason = module.reason;
  if (module.reason.empty()) module.status(status);
  return status;
}

std::string why_cuda_refused() {
  const CudaModule& module = loaded_module();
  return module.built ? module.reason : std::string();
}

std::string last_cuda_launch() {
  const CudaModule& module = loaded_module();
  const char* name = module.last_launch == nullptr ? nullptr : module.last_launch();
  return name == nullptr ? "" : name;
}

void use_edited_kernels(bool use) {
  if (const CudaModule& module = loaded_module(); module.use_edited != nullptr) {
    module.use_edited(use);
  }
}

std::unique_ptr<Device> make_cuda_device() {
  const CudaStatus status = cuda_status();
  if (!status.available) throw Error(status.reason, ExitCode::unavailable);
  return std::unique_ptr<Device>(loaded_module().make_device());
}

}  // namespace tilestep::simt
