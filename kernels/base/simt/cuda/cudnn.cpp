#include "kernels/base/simt/cuda/cudnn.hpp"

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/simt/cuda/cublas.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::simt::cuda {
namespace {

// Values from the cuDNN documentation ("Graph API", "Backend Descriptor Types"): the library is loaded at run
// time, so that no header and no link is needed.
constexpr int kSuccess = 0;
enum Descriptor { engine_config = 3, heuristics = 4, plan = 5, graph = 15, pack = 16, tensor = 17 };
constexpr int kSdpaForward = 41;
enum Kind { handle = 0, data_type = 1, boolean = 2, int64 = 3, pointer = 6, mode = 8 };
constexpr int kDescriptor = 15;
constexpr int kFp32 = 0, kFp16 = 2, kBf16 = 9;
constexpr int kHeuristicsMode = 200, kHeuristicsGraph = 201, kHeuristicsResults = 202;
constexpr int kPlanHandle = 400, kPlanConfig = 401, kPlanWorkspace = 402;
constexpr int kGraphHandle = 800, kGraphOperations = 801;
constexpr int kTensorAlignment = 900, kTensorType = 901, kTensorSizes = 902, kTensorStrides = 903;
constexpr int kTensorId = 906, kTensorByValue = 908;
constexpr int kPackIds = 1000, kPackPointers = 1001, kPackWorkspace = 1003;
constexpr int kSdpaQ = 2800, kSdpaK = 2801, kSdpaV = 2802, kSdpaO = 2803, kSdpaScale = 2805;
constexpr int kModeInstant = 0, kModeA = 3;
constexpr std::int64_t kMostPlans = 16;

enum Id : std::int64_t { q = 1, k, v, o, scale };

/// Functions of the library.
struct Functions {
  int (*create)(void** handle) = nullptr;
  std::size_t (*version)() = nullptr;
  void (*last_error)(char* text, std::size_t room) = nullptr;
  int (*make)(int type, void** descriptor) = nullptr;
  int (*destroy)(void* descriptor) = nullptr;
  int (*set)(void* descriptor, int attribute, int kind, std::int64_t count,
             const void* values) = nullptr;
  int (*get)(const void* descriptor, int attribute, int kind, std::int64_t room,
             std::int64_t* count, void* values) = nullptr;
  int (*finalize)(void* descriptor) = nullptr;
  int (*execute)(void* handle, void* plan, void* pack) = nullptr;

  bool whole() const {
    return create && version && make && destroy && set && get && finalize && execute;
  }
};

/// What a plan needs besides the arrays.
struct Plan {
  std::shared_ptr<void> descriptor;
  std::size_t workspace = 0;
};

class Library final : public Cudnn {
 public:
  Library() { load(); }

  bool available() const override { return handle_ != nullptr; }
  const std::string& name() const override { return name_; }
  const std::string& reason() const override { return reason_; }

  int plans(const LibraryAttention& attention) override {
    return static_cast<int>(ready(attention).size());
  }

  void attend(const LibraryAttention& attention, int number,
              const LibraryAttentionArrays& arrays) override {
    const Plan& chosen = ready(attention).at(static_cast<std::size_t>(number));
    need_workspace(chosen.workspace);
    scale_ = 1 / std::sqrt(static_cast<float>(attention.head_dim));
    const std::shared_ptr<void> with = make(pack, "the arrays");
    const std::array<std::int64_t, 5> ids = {Id::q, Id::k, Id::v, Id::o, Id::scale};
    const std::array<const void*, 5> pointers = {arrays.q, arrays.k, arrays.v, arrays.o, &scale_};
    set(with, kPackIds, Kind::int64, ids.size(), ids.data());
    set(with, kPackPointers, Kind::pointer, pointers.size(), pointers.data());
    set(with, kPackWorkspace, Kind::pointer, 1, &workspace_);
    check(call_.finalize(with.get()), "take the arrays");
    check(call_.execute(handle_, chosen.descriptor.get(), with.get()), "run");
  }

 private:
  void load();
  void need_workspace(std::size_t bytes);
  std::shared_ptr<void> tensor_of(const LibraryAttention& attention, std::int64_t id, int heads,
                                  int rows);
  std::shared_ptr<void> scale_tensor();
  std::shared_ptr<void> graph_of(const LibraryAttention& attention);
  std::vector<std::shared_ptr<void>> configs_of(const std::shared_ptr<void>& graph, int mode);
  const std::vector<Plan>& ready(const LibraryAttention& attention);

  void check(int status, const char* what) const {
    if (status == kSuccess) return;
    std::array<char, 512> text{};
    if (call_.last_error != nullptr) call_.last_error(text.data(), text.size() - 1);
    throw Error("cuDNN did not " + std::string(what) + " (status " + std::to_string(status) +
                    (text[0] != '\0' ? std::string(": ") + text.data() : std::string()) + ")",
                ExitCode::unavailable);
  }
  std::shared_ptr<void> make(int type, const char* what) {
    void* made = nullptr;
    check(call_.make(type, &made), what);
    return {made, [destroy = call_.destroy](void* it) { destroy(it); }};
  }
  void set(const std::shared_ptr<void>& descriptor, int attribute, int kind, std::size_t count,
           const void* values) {
    check(call_.set(descriptor.get(), attribute, kind, static_cast<std::int64_t>(count), values),
          ("take attribute " + std::to_string(attribute)).c_str());
  }
  void set(const std::shared_ptr<void>& descriptor, int attribute,
           const std::shared_ptr<void>& other) {
    void* raw = other.get();
    set(descriptor, attribute, kDescriptor, 1, &raw);
  }

  Functions call_;
  void* handle_ = nullptr;
  void* workspace_ = nullptr;
  std::size_t workspace_bytes_ = 0;
  float scale_ = 1;  ///< read when a plan is run
  std::string name_, reason_;
  std::map<LibraryAttention, std::vector<Plan>> ready_;
};

template <class Function>
void take(Function& to, void* library, const char* name) {
  to = reinterpret_cast<Function>(dlsym(library, name));
}

void Library::load() {
  void* library = open_library({"libcudnn.so.9"}, "TILESTEP_CUDNN");
  if (library == nullptr) {
    reason_ =
        "cuDNN 9 was not found; install it, or set TILESTEP_CUDNN to the folder of libcudnn.so.9";
    return;
  }
  take(call_.create, library, "cudnnCreate");
  take(call_.version, library, "cudnnGetVersion");
  take(call_.last_error, library, "cudnnGetLastErrorString");
  take(call_.make, library, "cudnnBackendCreateDescriptor");
  take(call_.destroy, library, "cudnnBackendDestroyDescriptor");
  take(call_.set, library, "cudnnBackendSetAttribute");
  take(call_.get, library, "cudnnBackendGetAttribute");
  take(call_.finalize, library, "cudnnBackendFinalize");
  take(call_.execute, library, "cudnnBackendExecute");
  if (!call_.whole()) {
    reason_ = "the cuDNN that was found lacks a function that tilestep needs";
    return;
  }
  const std::size_t version = call_.version();
  void* handle = nullptr;
  if (const int status = call_.create(&handle); status != kSuccess) {
    reason_ = "cuDNN was found but does not start (status " + std::to_string(status) + ")";
    return;
  }
  handle_ = handle;
  name_ = "cuDNN " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
          "." + std::to_string(version % 100);
}

void Library::need_workspace(std::size_t bytes) {
  if (bytes <= workspace_bytes_) return;
  cudaFree(workspace_);
  workspace_ = nullptr;
  workspace_bytes_ = 0;
  if (cudaMalloc(&workspace_, bytes) != cudaSuccess) {
    throw Error("no memory on the GPU for cuDNN's workspace of " + std::to_string(bytes) + " bytes",
                ExitCode::unavailable);
  }
  workspace_bytes_ = bytes;
}

/// [batch, heads, rows, head_dim], as cuDNN counts sizes.
std::shared_ptr<void> Library::tensor_of(const LibraryAttention& attention, std::int64_t id,
                                         int heads, int rows) {
  const std::int64_t d = attention.head_dim;
  const std::array<std::int64_t, 4> sizes = {attention.batch, heads, rows, d};
  const std::array<std::int64_t, 4> strides = {static_cast<std::int64_t>(heads) * rows * d,
                                               rows * d, d, 1};
  const int type = attention.type == LibraryAttention::Type::bf16 ? kBf16 : kFp16;
  const std::int64_t alignment = 16;
  const std::shared_ptr<void> made = make(tensor, "describe a tensor");
  set(made, kTensorType, Kind::data_type, 1, &type);
  set(made, kTensorSizes, Kind::int64, sizes.size(), sizes.data());
  set(made, kTensorStrides, Kind::int64, strides.size(), strides.data());
  set(made, kTensorId, Kind::int64, 1, &id);
  set(made, kTensorAlignment, Kind::int64, 1, &alignment);
  check(call_.finalize(made.get()), "describe a tensor");
  return made;
}

/// One FP32 number on the host.
std::shared_ptr<void> Library::scale_tensor() {
  const std::array<std::int64_t, 4> ones = {1, 1, 1, 1};
  const int type = kFp32;
  const std::int64_t id = Id::scale, alignment = 4;
  const bool by_value = true;
  const std::shared_ptr<void> made = make(tensor, "describe the scale");
  set(made, kTensorType, Kind::data_type, 1, &type);
  set(made, kTensorSizes, Kind::int64, ones.size(), ones.data());
  set(made, kTensorStrides, Kind::int64, ones.size(), ones.data());
  set(made, kTensorId, Kind::int64, 1, &id);
  set(made, kTensorAlignment, Kind::int64, 1, &alignment);
  set(made, kTensorByValue, Kind::boolean, 1, &by_value);
  check(call_.finalize(made.get()), "describe the scale");
  return made;
}

std::shared_ptr<void> Library::graph_of(const LibraryAttention& attention) {
  const std::shared_ptr<void> operation = make(kSdpaForward, "describe SDPA_FWD");
  set(operation, kSdpaQ, tensor_of(attention, Id::q, attention.heads, attention.query_rows()));
  set(operation, kSdpaK, tensor_of(attention, Id::k, attention.kv_heads, attention.length));
  set(operation, kSdpaV, tensor_of(attention, Id::v, attention.kv_heads, attention.length));
  set(operation, kSdpaO, tensor_of(attention, Id::o, attention.heads, attention.query_rows()));
  set(operation, kSdpaScale, scale_tensor());
  check(call_.finalize(operation.get()), "describe SDPA_FWD");
  const std::shared_ptr<void> made = make(graph, "make a graph");
  set(made, kGraphHandle, Kind::handle, 1, &handle_);
  set(made, kGraphOperations, operation);
  check(call_.finalize(made.get()), "make a graph");
  return made;
}

/// What the heuristics of a mode propose for the graph; none is no error.
std::vector<std::shared_ptr<void>> Library::configs_of(const std::shared_ptr<void>& of, int how) {
  const std::shared_ptr<void> asked = make(heuristics, "search");
  set(asked, kHeuristicsGraph, of);
  set(asked, kHeuristicsMode, Kind::mode, 1, &how);
  if (call_.finalize(asked.get()) != kSuccess) return {};
  std::vector<std::shared_ptr<void>> configs;
  std::vector<void*> raw;
  for (std::int64_t i = 0; i < kMostPlans; ++i) {
    configs.push_back(make(engine_config, "search"));
    raw.push_back(configs.back().get());
  }
  std::int64_t count = 0;
  const int status =
      call_.get(asked.get(), kHeuristicsResults, kDescriptor, kMostPlans, &count, raw.data());
  configs.resize(status == kSuccess ? static_cast<std::size_t>(count) : 0);
  return configs;
}

const std::vector<Plan>& Library::ready(const LibraryAttention& attention) {
  if (handle_ == nullptr) throw Error(reason_, ExitCode::unavailable);
  const auto known = ready_.find(attention);
  if (known != ready_.end()) return known->second;
  const std::shared_ptr<void> of = graph_of(attention);
  std::vector<std::shared_ptr<void>> configs = configs_of(of, kModeA);
  if (configs.empty()) configs = configs_of(of, kModeInstant);
  std::vector<Plan> plans;
  for (const std::shared_ptr<void>& config : configs) {
    const std::shared_ptr<void> made = make(plan, "plan");
    set(made, kPlanHandle, Kind::handle, 1, &handle_);
    set(made, kPlanConfig, config);
    // A proposal that does not compile is left out.
    if (call_.finalize(made.get()) != kSuccess) continue;
    std::int64_t workspace = 0, count = 0;
    check(call_.get(made.get(), kPlanWorkspace, Kind::int64, 1, &count, &workspace), "plan");
    plans.push_back({made, static_cast<std::size_t>(workspace)});
  }
  return ready_.emplace(attention, std::move(plans)).first->second;
}

}  // namespace

Cudnn& Cudnn::loaded() {
  static Library library;
  return library;
}

}  // namespace tilestep::simt::cuda
