// The CUDA backend's device: memory, copies, timing and the launches of simt::launch.

#include "kernels/base/simt/cuda/cuda_device.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "kernels/base/simt/cuda/cuda_launch.hpp"
#include "kernels/base/simt/cuda/cuda_module.hpp"
#include "kernels/base/simt/cuda/cuda_streams.hpp"
#include "kernels/base/simt/cuda/cupti_counters.hpp"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define TILESTEP_NVTX 1
#endif

namespace tilestep::simt::cuda {
namespace {

constexpr std::size_t kDefaultSharedBytes = 48 * 1024;  // beyond it a kernel must opt in
constexpr int kLeastSamples = 20;
constexpr int kBatch = 10;  // samples queued before the host waits
constexpr int kLeastCapability = 75;

/// Names of launches are string literals of this module, which is never unloaded.
std::atomic<const char*> launched_last{nullptr};
cudaStream_t captured = nullptr;  ///< whose launches become a graph
std::atomic<bool> edited_are_used{true};

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Errors after which every further call of this process fails: those of which CUDA's documentation
// says that the process must be ended to use CUDA again.
bool is_sticky(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
#if CUDART_VERSION >= 13000
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
#endif
      return true;
    default:
      return false;
  }
}

std::string text_of(cudaError_t error) {
  return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
}

/// As nvidia-smi spells it, without its hyphens.
std::string text_of(const cudaUUID_t& uuid) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text = "GPU-";
  for (const char byte : uuid.bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

DeviceInfo info_of(int device) {
  cudaDeviceProp properties{};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device);
      error != cudaSuccess) {
    throw Error("the CUDA device does not report its properties: " + text_of(error),
                ExitCode::unavailable);
  }
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  DeviceInfo info;
  info.backend = "cuda";
  info.name = properties.name;
  info.uuid = text_of(properties.uuid);
  info.driver = "CUDA " + version_text(driver);
  info.toolkit = version_text(runtime);
  info.compute_capability = properties.major * 10 + properties.minor;
  info.multiprocessors = properties.multiProcessorCount;
  info.memory_bytes = properties.totalGlobalMem;
  info.l2_bytes = static_cast<std::size_t>(properties.l2CacheSize);
  info.shared_bytes_per_block = properties.sharedMemPerBlockOptin;
  return info;
}

// Why there is no usable device, or empty.
std::string reason_against_use() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    return "no NVIDIA driver is installed here (libcuda.so.1 was not found)";
  }
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver) {
    int runtime = 0;
    cudaRuntimeGetVersion(&runtime);
    return "the NVIDIA driver supports CUDA " + version_text(driver) +
           ", but the CUDA backend was built with " + version_text(runtime) +
           "; update the driver or build with an older toolkit";
  }
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) {
    return "the NVIDIA driver is there, but it sees no GPU (nvidia-smi lists them; "
           "CUDA_VISIBLE_DEVICES may hide them)";
  }
  if (error != cudaSuccess) return "CUDA does not start: " + text_of(error);
  return "";
}

class Event {
 public:
  Event() { cudaEventCreate(&event_); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(std::span<const KernelEntry> table) : table_(table), info_(info_of(0)) {
    check(cudaSetDevice(0), "choose the GPU");
    check(cudaFree(nullptr), "give this program a context");  // makes the context
  }
  ~CudaDevice() override {
    cudaFree(flush_);
    for (const Image& image : images_) cudaLibraryUnload(image.library);
  }

  const DeviceInfo& info() const override { return info_; }

  const KernelSet& kernels(std::string_view lesson) const override {
    for (const KernelEntry& entry : table_) {
      if (entry.belongs_to(lesson)) return entry.kernels();
    }
    throw Error("the lesson " + std::string(lesson) + " has no kernels for CUDA",
                ExitCode::unavailable);
  }

  void* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // the error is not to be seen by the next launch
      std::size_t available = 0;
      std::size_t total = 0;
      cudaMemGetInfo(&available, &total);
      throw Error("the GPU has no room for " + std::to_string(bytes) + " more bytes (" +
                      std::to_string(available) + " of " + std::to_string(total) + " are free)",
                  ExitCode::unavailable);
    }
    check(error, "allocate memory");
    return memory;
  }
  void release(void* memory) noexcept override { cudaFree(memory); }
  void copy_in(void* device, const void* host, std::size_t bytes) override {
    check(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "copy to the GPU");
  }
  void copy_out(void* host, const void* device, std::size_t bytes) override {
    check(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost), "copy from the GPU");
  }
  void copy_on_device(void* to, const void* from, std::size_t bytes) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "copy on the GPU");
    if (streams_ != nullptr)
      streams_->submit({"copy", {{from, bytes, false}, {to, bytes, true}}, nullptr});
  }
  void fill(void* device, int byte, std::size_t bytes) override {
    check(cudaMemsetAsync(device, byte, bytes, stream_), "fill memory");
    if (streams_ != nullptr) streams_->submit({"fill", {{device, bytes, true}}, nullptr});
  }
  void synchronize() override {
    throw_if_given_up();
    check(cudaDeviceSynchronize(), "wait for the GPU");
  }
  std::function<void()> graph_of(std::function<void()> work) override;
  std::shared_ptr<Streams> make_streams(const StreamOptions& options) override {
    return std::make_shared<CudaStreams>(
        options, [this](cudaError_t error, const char* what) { check(error, what); },
        [this](Streams* streams, cudaStream_t stream) {
          streams_ = streams;
          stream_ = stream;
          captured = streams == nullptr ? nullptr : stream;
        });
  }
  Streams* streams() const { return streams_; }
  bool can_time() const override { return true; }
  std::vector<double> time_ms(const std::function<void()>& work, const TimingPlan& plan) override;
  void stop_when(std::function<bool()> asked) override { stop_ = std::move(asked); }
  CounterStatus counters() override { return counters_.status(); }
  std::vector<std::map<std::string, double>> count(
      const std::vector<std::string>& metrics,
      const std::vector<std::function<void()>>& works) override {
    throw_if_given_up();
    tell_of_timing();
    return counters_.count(metrics, works);
  }

  std::vector<Watched> watched() const override;
  std::size_t watched_dropped() const override;
  void use_image(std::span<const char> image) override;
  /// Null: the kernel that was built in.
  cudaKernel_t edited(const void* kernel);

  /// Throws Error that names what failed; after an error that CUDA does not recover from,
  /// DeviceLost with the last kernel launched.
  void check(cudaError_t error, const char* what);
  void launching(const char* name, const void* kernel) {
    last_launch_ = name;
    last_kernel_ = kernel;
    launched_last = name;
  }
  cudaStream_t stream() const { return stream_; }
  /// Throws the Error of a launch that did not come about: what the last kernel takes of a block, and what there is.
  [[noreturn]] void refuse(const Launch& shape, cudaError_t error);

 private:
  void throw_if_given_up() const {
    if (stop_ && stop_()) throw Cancelled();
  }
  void flush_l2();
  void time_batch(const std::function<void()>& work, const TimingPlan& plan, int count,
                  std::vector<double>& samples);

  struct Image {
    cudaLibrary_t library = nullptr;
    WatchPage* page = nullptr;  ///< on the device
  };
  WatchPage page_of(const Image& image) const;

  std::span<const KernelEntry> table_;
  std::vector<Image> images_;
  std::map<const void*, cudaKernel_t> edited_;
  DeviceInfo info_;
  std::function<bool()> stop_;
  std::string last_launch_;
  const void* last_kernel_ = nullptr;
  void* flush_ = nullptr;
  cudaStream_t stream_ = nullptr;  ///< the default one, or the one that launches go to now
  Streams* streams_ = nullptr;     ///< inside Streams::in
  CuptiCounters counters_;
};

void CudaDevice::check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // so that the next call does not report it again
  if (is_sticky(error)) {
    const std::string who = last_launch_.empty() ? std::string("the GPU did not ") + what + ": "
                                                 : last_launch_ + kFailedOnGpu;
    // Of an edited kernel the workbench looks for the line itself.
    throw DeviceLost(who + text_of(error) +
                     (images_.empty()
                          ? ". CUDA does no more work for this process; the emulated backend names "
                            "the thread for most such errors, compute-sanitizer for the rest"
                          : ""));
  }
  throw Error(std::string("the GPU did not ") + what + ": " + text_of(error),
              ExitCode::unavailable);
}

void CudaDevice::refuse(const Launch& shape, cudaError_t error) {
  std::string why;
  cudaFuncAttributes takes{};
  const cudaKernel_t changed = edited(last_kernel_);
  const void* kernel = changed != nullptr ? static_cast<const void*>(changed) : last_kernel_;
  if (cudaFuncGetAttributes(&takes, kernel) == cudaSuccess) {
    const unsigned threads = shape.block.x * shape.block.y * shape.block.z;
    const std::size_t shared = takes.sharedSizeBytes + shape.shared_bytes;
    if (threads > static_cast<unsigned>(takes.maxThreadsPerBlock)) {
      why = "its blocks have " + std::to_string(threads) + " threads, but with " +
            std::to_string(takes.numRegs) + " registers per thread, as compiled, they may have " +
            std::to_string(takes.maxThreadsPerBlock);
    } else if (shared > info_.shared_bytes_per_block) {
      why = "a block takes " + std::to_string(shared) + " bytes of shared memory (" +
            std::to_string(takes.sharedSizeBytes) +
            " of them declared in the kernel), but may have " +
            std::to_string(info_.shared_bytes_per_block);
    }
  }
  cudaGetLastError();
  throw Error(std::string(shape.name) + ": the GPU refused the launch: " +
                  (why.empty() ? text_of(error) : why + "; " + text_of(error)),
              ExitCode::check_failed);
}

void CudaDevice::use_image(std::span<const char> image) {
  Image taken;
  // The loader wants it to end with a zero, which text (PTX) needs.
  const std::string copy(image.begin(), image.end());
  const cudaError_t error =
      cudaLibraryLoadData(&taken.library, copy.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (error != cudaSuccess) {
    cudaGetLastError();
    throw Error(info_.name + " rejects the edited kernel: " + text_of(error),
                ExitCode::check_failed);
  }
  std::size_t bytes = 0;
  void* page = nullptr;
  if (cudaLibraryGetGlobal(&page, &bytes, taken.library, "simt_watch_page") == cudaSuccess &&
      bytes == sizeof(WatchPage)) {
    taken.page = static_cast<WatchPage*>(page);
    check(cudaMemset(page, 0, bytes), "clear the page of watched values");
  }
  cudaGetLastError();
  images_.push_back(taken);
  edited_.clear();
}

cudaKernel_t CudaDevice::edited(const void* kernel) {
  if (images_.empty() || !edited_are_used) return nullptr;
  const auto [found, fresh] = edited_.try_emplace(kernel, nullptr);
  if (!fresh) return found->second;
  const char* name = nullptr;
  if (cudaFuncGetName(&name, kernel) == cudaSuccess) {
    for (const Image& image : images_) {
      if (cudaLibraryGetKernel(&found->second, image.library, name) == cudaSuccess) break;
      found->second = nullptr;
    }
  }
  cudaGetLastError();  // that a kernel is in no image is no error
  return found->second;
}

WatchPage CudaDevice::page_of(const Image& image) const {
  WatchPage page{};
  if (image.page != nullptr) cudaMemcpy(&page, image.page, sizeof page, cudaMemcpyDeviceToHost);
  return page;
}

std::vector<Watched> CudaDevice::watched() const {
  std::vector<Watched> all;
  for (const Image& image : images_) {
    const auto page = std::make_unique<WatchPage>(page_of(image));
    for (std::size_t i = 0; i < std::min<std::size_t>(page->count, kMostWatched); ++i) {
      const WatchPage::Entry& entry = page->entries[i];
      all.push_back({entry.name, "", entry.line, entry.block, entry.thread, entry.value});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Watched& a, const Watched& b) {
    return std::tie(a.block, a.thread) < std::tie(b.block, b.thread);
  });
  return all;
}

std::size_t CudaDevice::watched_dropped() const {
  std::size_t dropped = 0;
  for (const Image& image : images_) {
    const auto page = std::make_unique<WatchPage>(page_of(image));
    if (page->count > kMostWatched) dropped += static_cast<std::size_t>(page->count) - kMostWatched;
  }
  return dropped;
}

// Writes more than fits L2, so that what a sample reads comes from memory.
void CudaDevice::flush_l2() {
  const std::size_t bytes = std::max<std::size_t>(2 * info_.l2_bytes, 64 << 20);
  if (flush_ == nullptr) flush_ = allocate(bytes);
  check(cudaMemsetAsync(flush_, 0, bytes), "flush its L2 cache");
}

// Queues `count` samples at once: while one runs the next is already there, so that no sample
// contains the time that the host takes to launch it.
void CudaDevice::time_batch(const std::function<void()>& work, const TimingPlan& plan, int count,
                            std::vector<double>& samples) {
  const std::vector<Event> begin(static_cast<std::size_t>(count));
  const std::vector<Event> end(static_cast<std::size_t>(count));
  if (!plan.flush_l2) work();  // untimed: keeps the GPU busy while the samples are queued
  for (int i = 0; i < count; ++i) {
    if (plan.flush_l2) flush_l2();
    check(cudaEventRecord(begin[i].get()), "record a time");
    work();
    check(cudaEventRecord(end[i].get()), "record a time");
  }
  check(cudaEventSynchronize(end.back().get()), "finish the timed work");
  for (int i = 0; i < count; ++i) {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin[i].get(), end[i].get()), "tell a time");
    samples.push_back(static_cast<double>(ms));
  }
}

std::vector<double> CudaDevice::time_ms(const std::function<void()>& work, const TimingPlan& plan) {
  tell_of_timing();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < plan.warmups; ++i) {
    throw_if_given_up();
    work();
    check(cudaDeviceSynchronize(), "finish the warm-up");
  }
  std::vector<double> samples;
  while (static_cast<int>(samples.size()) < plan.samples) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const int done = static_cast<int>(samples.size());
    if (took.count() > plan.max_seconds && done >= kLeastSamples) break;
    throw_if_given_up();
    time_batch(work, plan, std::min(kBatch, plan.samples - done), samples);
  }
  return samples;
}

// The default stream can't be captured, and one that waits for it can't either.
std::function<void()> CudaDevice::graph_of(std::function<void()> work) {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "make a stream");
  captured = stream_;
  cudaGraph_t graph = nullptr;
  const auto end = [&] {
    captured = nullptr;
    const cudaError_t error = cudaStreamEndCapture(stream_, &graph);
    cudaStreamDestroy(std::exchange(stream_, nullptr));
    return error;
  };
  cudaError_t error = cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed);
  try {
    if (error == cudaSuccess) work();
  } catch (...) {
    end();
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  if (const cudaError_t ended = end(); error == cudaSuccess) error = ended;
  cudaGraphExec_t started = nullptr;
  if (error == cudaSuccess) error = cudaGraphInstantiateWithFlags(&started, graph, 0);
  if (graph != nullptr) cudaGraphDestroy(graph);
  check(error, "record a graph");
  const std::shared_ptr<CUgraphExec_st> kept(started, cudaGraphExecDestroy);
  return [this, kept] {
    throw_if_given_up();
    check(cudaGraphLaunch(kept.get(), nullptr), "start a graph");
  };
}

CudaDevice& as_cuda(Device& device, const char* kernel) {
  auto* cuda = dynamic_cast<CudaDevice*>(&device);
  if (cuda == nullptr) {
    throw Error(std::string(kernel) + " was compiled for CUDA, but launched on " +
                device.info().name);
  }
  return *cuda;
}

}  // namespace

cudaStream_t before_launch(Device& device, const Launch& shape, const void* kernel) {
  CudaDevice& cuda = as_cuda(device, shape.name);
  check_launch(shape, cuda.info());
  cuda.launching(shape.name, kernel);
  if (shape.shared_bytes > kDefaultSharedBytes) {
    const int bytes = static_cast<int>((shape.shared_bytes + 15) / 16 * 16);  // as launch() does
    constexpr auto kDynamic = cudaFuncAttributeMaxDynamicSharedMemorySize;
    const cudaKernel_t edited = cuda.edited(kernel);
    const cudaError_t error = edited != nullptr
                                  ? cudaKernelSetAttributeForDevice(edited, kDynamic, bytes, 0)
                                  : cudaFuncSetAttribute(kernel, kDynamic, bytes);
    if (error == cudaErrorInvalidValue) cuda.refuse(shape, error);
    cuda.check(error, "allow the kernel its dynamic shared memory");
  }
#if defined(TILESTEP_NVTX)
  nvtxRangePushA(shape.name);
#endif
  return cuda.stream();
}

void note_launch(Device& device, const Launch& shape, const PointerArgument* arguments,
                 std::size_t count) {
  Streams* const streams = as_cuda(device, shape.name).streams();
  if (streams == nullptr) return;
  std::vector<MemoryUse> uses;
  for (std::size_t i = 0; i < count; ++i) {
    if (arguments[i].begin != nullptr)
      uses.push_back({arguments[i].begin, 0, arguments[i].written});
  }
  streams->submit({shape.name, std::move(uses), nullptr});
}

const void* edited_kernel(Device& device, const void* kernel) {
  return as_cuda(device, "the kernel").edited(kernel);
}

void after_launch(Device& device, const Launch& shape) {
#if defined(TILESTEP_NVTX)
  nvtxRangePop();
#endif
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  CudaDevice& cuda = as_cuda(device, shape.name);
  if (is_sticky(error)) cuda.check(error, "launch");
  cuda.refuse(shape, error);
}

CudaStatus status() {
  // Streams that wait for each other must not share a queue (ranks_cuda.hpp).
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  CudaStatus status;
  status.built = true;
  status.reason = reason_against_use();
  if (!status.reason.empty()) return status;
  try {
    status.device = info_of(0);
  } catch (const Error& error) {
    status.reason = error.what();
    return status;
  }
  if (status.device.compute_capability < kLeastCapability) {
    status.reason = status.device.name + " has compute capability " +
                    std::to_string(status.device.compute_capability / 10) + "." +
                    std::to_string(status.device.compute_capability % 10) +
                    ", but the CUDA backend needs 7.5 or newer";
    return status;
  }
  status.available = true;
  return status;
}

void use_edited(bool use) {
  edited_are_used = use;
}

const char* last_launch() {
  return launched_last;
}

void* captured_stream() {
  return captured;
}

std::unique_ptr<Device> make_device(std::span<const KernelEntry> table) {
  return std::make_unique<CudaDevice>(table);
}

}  // namespace tilestep::simt::cuda
