#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/simt/error.hpp"

namespace tilestep::simt {

/// A backend's description of its device.
struct DeviceInfo {
  std::string backend;           ///< "cuda" or "emulated"
  std::string name;              ///< "NVIDIA H200", or the CPU's name under emulation
  std::string driver;            ///< driver version, empty under emulation
  std::string toolkit;           ///< CUDA runtime version the kernels were built with, or empty
  int compute_capability = 0;    ///< 90 for 9.0; 0 under emulation
  int multiprocessors = 0;       ///< SMs, or OS threads under emulation
  std::size_t memory_bytes = 0;  ///< device memory
  std::size_t l2_bytes = 0;      ///< 0 where unknown
  std::size_t shared_bytes_per_block = 0;  ///< most dynamic shared memory a block may request
  std::string uuid = {};  ///< tells a GPU from others; empty under emulation. Not in reports.
};

/// The kernels of one lesson, compiled for one backend. Each lesson derives an interface from it.
class KernelSet {
 public:
  virtual ~KernelSet() = default;
};

/// How a piece of device work is timed.
struct TimingPlan {
  int warmups = 5;
  int samples = 30;        ///< at least 20 for a number that is shown
  bool flush_l2 = false;   ///< overwrite a buffer larger than L2 before each sample
  double max_seconds = 5;  ///< stop early, but never under 20 samples
};

/// Whether hardware counters can be read here.
struct CounterStatus {
  bool available = false;
  std::string reason;  ///< one sentence: why not, and what to do; empty when available
};

/// A value that an edited kernel showed by simt::watch.
struct Watched {
  std::string name;
  std::string kernel;
  unsigned line = 0;         ///< of the source, 1-based
  std::uint32_t block = 0;   ///< linear, x fastest
  std::uint32_t thread = 0;  ///< linear in its block, x fastest
  double value = 0;
};
/// How many a device keeps; later ones are only counted.
inline constexpr std::size_t kMostWatched = 4096;

/// Memory that a piece of work uses.
struct MemoryUse {
  const void* begin = nullptr;
  std::size_t bytes = 0;  ///< 0: to the end of what has a name there (stream.hpp)
  bool written = false;
};
class Streams;
struct StreamOptions;

/// A device that kernels run on. One thread uses a Device at a time.
/// Every call throws `Error` with a sentence that names the kernel when the device refuses, and
/// `DeviceLost` when it can do no more work for this process.
class Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual const DeviceInfo& info() const = 0;

  /// The kernels of `lesson` for this backend; throws Error (unavailable) if it has none.
  virtual const KernelSet& kernels(std::string_view lesson) const = 0;

  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  virtual void copy_in(void* device, const void* host, std::size_t bytes) = 0;
  virtual void copy_out(void* host, const void* device, std::size_t bytes) = 0;
  virtual void copy_on_device(void* to, const void* from, std::size_t bytes) = 0;  ///< asynchronous
  virtual void fill(void* device, int byte, std::size_t bytes) = 0;                ///< asynchronous

  /// Waits for all work; throws Error for a kernel that failed.
  virtual void synchronize() = 0;

  /// Records the launches, fills and copies of `work`, without running them, as a CUDA graph that the returned function
  /// starts any number of times. Under emulation it returns `work` itself. `work` must not wait for the device, and
  /// everything it uses must outlive the function, which must not outlive the device.
  virtual std::function<void()> graph_of(std::function<void()> work) { return work; }

  /// Streams, events and graphs (stream.hpp), one of them at a time; the device must outlive it. None: the device has
  /// no such words.
  virtual std::shared_ptr<Streams> make_streams(const StreamOptions&) { return {}; }

  /// False under emulation: emulated run times are never shown as throughput.
  virtual bool can_time() const = 0;

  /// Milliseconds of each sample of `work` (device events around it). Throws Error if !can_time().
  virtual std::vector<double> time_ms(const std::function<void()>& work,
                                      const TimingPlan& plan) = 0;

  /// Whether `count` works here. Asks the hardware at the first call.
  virtual CounterStatus counters() {
    return {false, "there are no hardware counters under emulation; they need an NVIDIA GPU"};
  }

  /// The hardware counts during each of `works` (launches; run several times over, never in
  /// a timed run): one map from metric name to value for each. Metric names are those of NVIDIA's
  /// profilers ("dram__bytes_read.sum"). Throws Error (unavailable) with the reason of `counters`,
  /// and Error for a metric that the chip does not have.
  virtual std::vector<std::map<std::string, double>> count(
      const std::vector<std::string>& metrics, const std::vector<std::function<void()>>& works) {
    (void)metrics, (void)works;
    throw Error(counters().reason, ExitCode::unavailable);
  }

  /// Asked now and then during long work (the emulator asks between blocks); when it answers true
  /// the work ends with `Cancelled`. An empty function means never.
  virtual void stop_when(std::function<bool()> asked) = 0;

  /// Values shown by simt::watch since the device was made, in the order of blocks and threads.
  virtual std::vector<Watched> watched() const { return {}; }
  /// How many values were shown beyond those kept.
  virtual std::size_t watched_dropped() const { return 0; }

  /// Device code (a cubin; it is copied) that contains some of our kernels under the same names, to launch
  /// instead of the built-in ones. Throws Error for code that the device rejects.
  virtual void use_image(std::span<const char> image) {
    (void)image;
    throw Error(info().name + " takes no device code: kernels for it are compiled for the host",
                ExitCode::unavailable);
  }

  /// A function called before each piece of work that is timed or counted; empty: none.
  void before_timing(std::function<void()> told) { before_timing_ = std::move(told); }

 protected:
  /// For `time_ms` and `count`.
  void tell_of_timing() const {
    if (before_timing_) before_timing_();
  }

 private:
  std::function<void()> before_timing_;
};

/// A device array seen from the host: address on the device and number of elements.
template <class T>
struct Span {
  T* data = nullptr;
  std::size_t count = 0;

  template <class U>
  requires(std::is_same_v<U, const T> && !std::is_const_v<T>) operator Span<U>() const {
    return {data, count};
  }
};

/// An owned array of `count` elements of device memory. T is trivially copyable.
template <class T>
class Buffer {
 public:
  Buffer(Device& device, std::size_t count)
      : device_(&device),
        data_(count == 0 ? nullptr : static_cast<T*>(device.allocate(count * sizeof(T)))),
        count_(count) {}
  Buffer(Device& device, std::span<const T> host) : Buffer(device, host.size()) { upload(host); }
  Buffer(Buffer&& other) noexcept
      : device_(other.device_),
        data_(std::exchange(other.data_, nullptr)),
        count_(std::exchange(other.count_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) device_->release(data_);
  }

  std::size_t count() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(T); }
  Span<T> span() { return {data_, count_}; }
  Span<const T> span() const { return {data_, count_}; }

  /// Copies `host` (exactly `count()` elements) to the device.
  void upload(std::span<const T> host) {
    if (host.size() != count_)
      throw Error("upload: the host array and the buffer differ in length");
    if (count_ > 0) device_->copy_in(data_, host.data(), bytes());
  }
  /// Every byte set; 0xFF makes floats NaN, which exposes an element that no kernel wrote.
  void fill(int byte) {
    if (count_ > 0) device_->fill(data_, byte, bytes());
  }
  std::vector<T> download() const { return download(count_); }
  /// Only the first `count` elements: later ones may never have been written.
  std::vector<T> download(std::size_t count) const { return download(0, count); }
  /// `count` elements, starting at index `first`.
  std::vector<T> download(std::size_t first, std::size_t count) const {
    assert(first + count <= count_);
    std::vector<T> host(count);
    if (count > 0) device_->copy_out(host.data(), data_ + first, count * sizeof(T));
    return host;
  }

 private:
  Device* device_;
  T* data_;
  std::size_t count_;
};

}  // namespace tilestep::simt
