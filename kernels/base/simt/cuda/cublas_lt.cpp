#include "kernels/base/simt/cuda/cublas_lt.hpp"

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/base/simt/cuda/cuda_device.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::simt::cuda {
namespace {

// Values from the cuBLAS documentation ("cublasLt Datatypes Reference"): the library is loaded at run time,
// so that no header and no link is needed.
constexpr int kSuccess = 0;
constexpr int kTypeFp32 = 0, kTypeS8 = 3, kTypeS32 = 10, kTypeBf16 = 14, kTypeE4m3 = 28;
constexpr int kComputeFp32 = 68, kComputeS32 = 72;
constexpr int kTransposeA = 3, kScaleA = 17, kScaleB = 18, kFastAccumulation = 25;
constexpr int kScaleModeA = 31, kScaleModeB = 32;
constexpr int kByRow = 3, kByVector128 = 4, kByBlock128 = 5;
constexpr int kMaxWorkspace = 1;
constexpr int kMostAlgorithms = 32;
constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;

/// cublasLtMatmulHeuristicResult_t.
struct Found {
  std::array<std::uint64_t, 8> algorithm;
  std::size_t workspace;
  int status;
  float waves;
  std::array<int, 4> reserved;
};

int number_of(LibraryProduct::Type type) {
  switch (type) {
    case LibraryProduct::Type::bf16:
      return kTypeBf16;
    case LibraryProduct::Type::e4m3:
      return kTypeE4m3;
    case LibraryProduct::Type::s8:
      return kTypeS8;
    case LibraryProduct::Type::s32:
      return kTypeS32;
  }
  return -1;
}
/// Whether alpha and beta are int: where C is what sums are.
bool scaled_in_int(const LibraryProduct& product) {
  return product.c == LibraryProduct::Type::s32;
}

template <class Function>
void take(Function& to, void* library, const char* name) {
  to = reinterpret_cast<Function>(dlsym(library, name));
}

/// A product made ready: its descriptors and what the library proposes.
struct Ready {
  void* product = nullptr;
  void* a = nullptr;
  void* b = nullptr;
  void* c = nullptr;
  std::vector<Found> found = {};
};

class Library final : public CublasLt {
 public:
  Library() { load(); }

  bool available() const override { return handle_ != nullptr; }
  const std::string& reason() const override { return reason_; }

  int algorithms(const LibraryProduct& product, const LibraryArrays& arrays) override {
    return static_cast<int>(ready(product, arrays).found.size());
  }

  // The library counts columns first: its C is ours turned, which is our B times our A turned.
  void multiply(const LibraryProduct& product, int algorithm,
                const LibraryArrays& arrays) override {
    Ready& it = ready(product, arrays);
    const float one = 1;
    const std::int32_t whole_one = 1;
    const std::int32_t zero = 0;  // in FP32 too
    const void* alpha = scaled_in_int(product) ? static_cast<const void*>(&whole_one)
                                               : static_cast<const void*>(&one);
    const Found& found = it.found.at(static_cast<std::size_t>(algorithm));
    check(matmul_(handle_, it.product, alpha, arrays.b, it.a, arrays.a, it.b, &zero, arrays.c, it.c,
                  arrays.c, it.c, &found.algorithm, workspace_, kWorkspaceBytes, captured_stream()),
          product, "multiply");
  }

 private:
  void load();
  Ready& ready(const LibraryProduct& product, const LibraryArrays& arrays);
  bool set_scales(const Ready& it, const LibraryProduct& product, const LibraryArrays& arrays);

  void check(int status, const LibraryProduct& product, const char* what) const {
    if (status == kSuccess) return;
    throw Error("cuBLASLt did not " + std::string(what) + " a product of " +
                    std::to_string(product.m) + " x " + std::to_string(product.n) + " x " +
                    std::to_string(product.k) + " (status " + std::to_string(status) + ")",
                ExitCode::unavailable);
  }
  /// Whether the library knows the attribute and the value.
  template <class Value>
  bool set(void* product, int attribute, const Value& value) {
    return set_(product, attribute, &value, sizeof value) == kSuccess;
  }

  void* handle_ = nullptr;
  void* workspace_ = nullptr;
  float* ones_ = nullptr;  ///< the scale of whole tensors
  std::string reason_;
  std::map<LibraryProduct, Ready> ready_;

  int (*create_)(void**) = nullptr;
  int (*describe_)(void**, int compute, int scale) = nullptr;
  int (*set_)(void*, int attribute, const void* value, std::size_t bytes) = nullptr;
  int (*layout_)(void**, int type, std::uint64_t rows, std::uint64_t columns,
                 std::int64_t pitch) = nullptr;
  int (*prefer_)(void**) = nullptr;
  int (*set_preference_)(void*, int attribute, const void* value, std::size_t bytes) = nullptr;
  int (*search_)(void* handle, void* product, void* a, void* b, void* c, void* d, void* preference,
                 int most, Found* found, int* count) = nullptr;
  int (*matmul_)(void* handle, void* product, const void* alpha, const void* a, void* a_layout,
                 const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
                 void* d, void* d_layout, const void* algorithm, void* workspace, std::size_t bytes,
                 void* stream) = nullptr;
};

void Library::load() {
  void* library = open_library({"libcublasLt.so.13", "libcublasLt.so.12"});
  if (library == nullptr) {
    reason_ =
        "cuBLASLt was not found; install the CUDA Toolkit's libcublas, or set TILESTEP_CUBLAS to "
        "the folder of libcublasLt.so.13";
    return;
  }
  take(create_, library, "cublasLtCreate");
  take(describe_, library, "cublasLtMatmulDescCreate");
  take(set_, library, "cublasLtMatmulDescSetAttribute");
  take(layout_, library, "cublasLtMatrixLayoutCreate");
  take(prefer_, library, "cublasLtMatmulPreferenceCreate");
  take(set_preference_, library, "cublasLtMatmulPreferenceSetAttribute");
  take(search_, library, "cublasLtMatmulAlgoGetHeuristic");
  take(matmul_, library, "cublasLtMatmul");
  if (create_ == nullptr || describe_ == nullptr || set_ == nullptr || layout_ == nullptr ||
      prefer_ == nullptr || set_preference_ == nullptr || search_ == nullptr ||
      matmul_ == nullptr) {
    reason_ = "the cuBLASLt that was found lacks a function that tilestep needs";
    return;
  }
  void* handle = nullptr;
  const float one = 1;
  if (create_(&handle) != kSuccess || cudaMalloc(&workspace_, kWorkspaceBytes) != cudaSuccess ||
      cudaMalloc(reinterpret_cast<void**>(&ones_), sizeof one) != cudaSuccess ||
      cudaMemcpy(ones_, &one, sizeof one, cudaMemcpyHostToDevice) != cudaSuccess) {
    reason_ = "cuBLASLt was found but does not start";
    return;
  }
  handle_ = handle;
}

/// Whether the library has such scales.
bool Library::set_scales(const Ready& it, const LibraryProduct& product,
                         const LibraryArrays& arrays) {
  using Scaling = LibraryProduct::Scaling;
  if (product.type != LibraryProduct::Type::e4m3) return true;
  const auto fast = static_cast<std::int8_t>(product.fast_accumulation ? 1 : 0);
  set(it.product, kFastAccumulation, fast);
  if (product.scaling == Scaling::none) {
    set(it.product, kScaleA, ones_);
    set(it.product, kScaleB, ones_);
    return true;
  }
  const bool rows = product.scaling == Scaling::rows;
  const std::int32_t of_a = rows ? kByRow : kByBlock128;  // its A is our B
  const std::int32_t of_b = rows ? kByRow : kByVector128;
  const bool known = set(it.product, kScaleModeA, of_a) && set(it.product, kScaleModeB, of_b);
  set(it.product, kScaleA, arrays.b_scales);
  set(it.product, kScaleB, arrays.a_scales);
  return known;
}

Ready& Library::ready(const LibraryProduct& product, const LibraryArrays& arrays) {
  if (handle_ == nullptr) throw Error(reason_, ExitCode::unavailable);
  const auto known = ready_.find(product);
  if (known != ready_.end()) {
    set_scales(known->second, product, arrays);
    return known->second;
  }
  Ready it;
  const int type = number_of(product.type);
  const bool whole = product.type == LibraryProduct::Type::s8;
  const auto m = static_cast<std::uint64_t>(product.m);
  const auto n = static_cast<std::uint64_t>(product.n);
  const auto k = static_cast<std::uint64_t>(product.k);
  check(describe_(&it.product, whole ? kComputeS32 : kComputeFp32,
                  scaled_in_int(product) ? kTypeS32 : kTypeFp32),
        product, "describe");
  const std::int32_t transpose = 1;
  set(it.product, kTransposeA, transpose);
  check(layout_(&it.a, type, k, n, product.k), product, "describe");
  check(layout_(&it.b, type, k, m, product.k), product, "describe");
  check(layout_(&it.c, number_of(product.c), n, m, product.n), product, "describe");
  const bool known_scales = set_scales(it, product, arrays);
  void* preference = nullptr;
  check(prefer_(&preference), product, "search for");
  set_preference_(preference, kMaxWorkspace, &kWorkspaceBytes, sizeof kWorkspaceBytes);
  it.found.resize(kMostAlgorithms);
  int count = 0;
  const int status = search_(handle_, it.product, it.a, it.b, it.c, it.c, preference,
                             kMostAlgorithms, it.found.data(), &count);
  it.found.resize(status == kSuccess && known_scales ? static_cast<std::size_t>(count) : 0);
  return ready_.emplace(product, std::move(it)).first->second;
}

}  // namespace

CublasLt& CublasLt::loaded() {
  static Library library;
  return library;
}

}  // namespace tilestep::simt::cuda
