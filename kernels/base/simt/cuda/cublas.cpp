#include "kernels/base/simt/cuda/cublas.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/simt/error.hpp"

namespace tilestep::simt::cuda {
namespace {

// Values from the cuBLAS and CUDA documentation ("cublasComputeType_t", "cudaDataType_t"): the
// library is loaded at run time, so that no header and no link is needed.
constexpr int kNoTranspose = 0;
constexpr int kTranspose = 1;
constexpr int kTypeFp32 = 0;
constexpr int kTypeBf16 = 14;
constexpr int kComputeFp32 = 68;
constexpr int kComputeFp32Pedantic = 69;
constexpr int kDefaultAlgorithm = -1;
constexpr int kSuccess = 0;

/// The folders below `root` that a Python package or a toolkit puts its libraries into.
void add_folders(std::vector<std::filesystem::path>& folders, const std::filesystem::path& root) {
  for (const char* below :
       {"", "lib", "lib64", "cublas/lib", "nvidia/cublas/lib", "nvidia/cudnn/lib", "cu13/lib"}) {
    folders.push_back(root / below);
  }
}

std::vector<std::string> candidates(std::initializer_list<const char*> names,
                                    const char* variable) {
  std::vector<std::string> files;
  std::vector<std::filesystem::path> folders;
  if (const char* named = std::getenv(variable); named != nullptr && *named != '\0') {
    std::error_code ignored;
    if (std::filesystem::is_directory(named, ignored)) {
      add_folders(folders, named);
    } else {
      const std::filesystem::path file(named);
      const std::string wanted = std::filesystem::path(*names.begin()).stem().stem().string();
      // Beside libcublas.so lies libcublasLt.so.
      if (file.filename().string().starts_with(wanted + ".")) files.emplace_back(named);
      folders.push_back(file.parent_path());
    }
  }
  const auto add_files = [&] {
    for (const auto& folder : folders) {
      for (const char* file : names) files.push_back((folder / file).string());
    }
    folders.clear();
  };
  add_files();
  for (const char* file : names) files.emplace_back(file);
  for (const char* home : {"CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* root = std::getenv(home); root != nullptr && *root != '\0') {
      add_folders(folders, root);
    }
  }
  for (const char* root : {"/usr/local/cuda", "/opt/cuda", "/usr/lib/x86_64-linux-gnu",
                           "/usr/lib/aarch64-linux-gnu"}) {
    add_folders(folders, root);
  }
  add_files();
  return files;
}

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

void* open_library(std::initializer_list<const char*> names, const char* variable) {
  for (const std::string& file : candidates(names, variable)) {
    if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) {
      return library;
    }
  }
  return nullptr;
}

const Cublas& Cublas::loaded() {
  static const Cublas cublas;
  return cublas;
}

Cublas::Cublas() {
  load();
}

void Cublas::load() {
  void* library = open_library({"libcublas.so.13", "libcublas.so.12"});
  if (library == nullptr) {
    reason_ =
        "cuBLAS was not found; install the CUDA Toolkit's libcublas, or set TILESTEP_CUBLAS to the "
        "file libcublas.so.13 or its folder";
    return;
  }
  const auto create = symbol<int (*)(void**)>(library, "cublasCreate_v2");
  const auto get_property = symbol<int (*)(int, int*)>(library, "cublasGetProperty");
  gemm_ex_ = symbol<GemmEx>(library, "cublasGemmEx");
  if (create == nullptr || gemm_ex_ == nullptr) {
    reason_ = "the cuBLAS that was found has no cublasCreate_v2 or cublasGemmEx";
    return;
  }
  // Both would let the library compute FP32 products in another format.
  setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  unsetenv("CUBLAS_EMULATE_SINGLE_PRECISION");
  void* handle = nullptr;
  if (const int status = create(&handle); status != kSuccess) {
    reason_ = "cuBLAS was found but does not start (status " + std::to_string(status) + ")";
    return;
  }
  handle_ = handle;
  name_ = "cuBLAS";
  if (get_property == nullptr) return;
  int major = 0;
  int minor = 0;
  int patch = 0;
  if (get_property(0, &major) == kSuccess && get_property(1, &minor) == kSuccess &&
      get_property(2, &patch) == kSuccess) {
    name_ +=
        " " + std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  }
}

void Cublas::gemm_fp32(int m, int n, int k, const float* a, const float* b, float* c,
                       bool pedantic) const {
  gemm(m, n, k, a, b, false, c, kTypeFp32, pedantic ? kComputeFp32Pedantic : kComputeFp32);
}

void Cublas::gemm_bf16(int m, int n, int k, const void* a, const void* b, float* c) const {
  gemm(m, n, k, a, b, false, c, kTypeBf16, kComputeFp32);
}

void Cublas::gemm_bf16_transposed(int m, int n, int k, const void* a, const void* b,
                                  float* c) const {
  gemm(m, n, k, a, b, true, c, kTypeBf16, kComputeFp32);
}

// cuBLAS counts columns first: its C is our C turned, and C turned is B turned times A turned,
// which in memory are B and A as they lie. Where B is given as its transpose, it is turned back.
void Cublas::gemm(int m, int n, int k, const void* a, const void* b, bool transposed_b, float* c,
                  int type, int compute_type) const {
  if (handle_ == nullptr) throw Error(reason_, ExitCode::unavailable);
  const float one = 1.0f;
  const float zero = 0.0f;
  const int status = gemm_ex_(handle_, transposed_b ? kTranspose : kNoTranspose, kNoTranspose, n, m,
                              k, &one, b, type, transposed_b ? k : n, a, type, k, &zero, c,
                              kTypeFp32, n, compute_type, kDefaultAlgorithm);
  if (status != kSuccess) {
    throw Error("cuBLAS refused a product of " + std::to_string(m) + " x " + std::to_string(n) +
                    " x " + std::to_string(k) + " (status " + std::to_string(status) + ")",
                ExitCode::unavailable);
  }
}

}  // namespace tilestep::simt::cuda
