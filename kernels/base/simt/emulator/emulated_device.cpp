#include "kernels/base/simt/emulator/emulated_device.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <new>

#include "kernels/base/simt/emulator/emulated_like.hpp"
#include "kernels/base/simt/emulator/fault_guard.hpp"
#include "kernels/base/simt/emulator/global_watch.hpp"

namespace tilestep::simt {
namespace emulated {
namespace {

// What cudaMalloc aligns to, at least.
constexpr std::align_val_t kAlignment{256};
// The most that any GPU so far gives a block (compute capability 9.0: 227 KiB).
constexpr std::size_t kSharedBytesPerBlock = 227 * 1024;

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

}  // namespace

EmulatedDevice::EmulatedDevice(std::span<const KernelEntry> table, const EmulationOptions& options)
    : table_(table), pool_(options), launched_(options.launched) {
  info_.backend = "emulated";
  info_.name = cpu_name();
  info_.multiprocessors = pool_.os_threads();
  info_.memory_bytes = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  info_.shared_bytes_per_block = kSharedBytesPerBlock;
}

const KernelSet& EmulatedDevice::kernels(std::string_view lesson) const {
  for (const KernelEntry& entry : table_) {
    if (entry.belongs_to(lesson)) return entry.kernels();
  }
  throw Error(fmt::format("the lesson {} has no kernels for the CPU emulation", lesson),
              ExitCode::unavailable);
}

void* EmulatedDevice::allocate(std::size_t bytes) {
  void* memory = FaultGuard::armed() ? fenced_.allocate(bytes)
                                     : ::operator new(bytes, kAlignment, std::nothrow);
  if (memory == nullptr) {
    throw Error(fmt::format("this machine has no room for {} more bytes", bytes),
                ExitCode::unavailable);
  }
  // Fresh device memory holds anything. NaNs make a kernel that counts on zeros show it.
  std::memset(memory, 0xFF, bytes);
  return memory;
}

void EmulatedDevice::release(void* memory) noexcept {
  if (!fenced_.release(memory)) ::operator delete(memory, kAlignment);
}

void EmulatedDevice::copy_in(void* device, const void* host, std::size_t bytes) {
  std::memcpy(device, host, bytes);
}

void EmulatedDevice::copy_out(void* host, const void* device, std::size_t bytes) {
  std::memcpy(host, device, bytes);
}

void EmulatedDevice::copy_on_device(void* to, const void* from, std::size_t bytes) {
  if (streams_ == nullptr) {
    std::memmove(to, from, bytes);
    return;
  }
  streams_->submit({"copy", {{from, bytes, false}, {to, bytes, true}}, [to, from, bytes] {
                      std::memmove(to, from, bytes);
                    }});
}

void EmulatedDevice::fill(void* device, int byte, std::size_t bytes) {
  if (streams_ == nullptr) {
    std::memset(device, byte, bytes);
    return;
  }
  streams_->submit({"fill", {{device, bytes, true}}, [device, byte, bytes] {
                      std::memset(device, byte, bytes);
                    }});
}

/// Work waits in closures until the log says that it is its turn.
class EmulatedDevice::StreamsHere final : public Streams {
 public:
  StreamsHere(EmulatedDevice& device, const StreamOptions& options)
      : Streams(options), device_(device) {}
  ~StreamsHere() override { device_.streams_ = nullptr; }

 protected:
  void on_enter(int) override { device_.streams_ = this; }
  void on_leave() override { device_.streams_ = nullptr; }
  std::function<void()> on_upload(int, void* to, const void* host, std::size_t bytes) override {
    const auto* from = static_cast<const unsigned char*>(host);
    return [this, to, kept = std::vector<unsigned char>(from, from + bytes)] {
      device_.copy_in(to, kept.data(), kept.size());
    };
  }

 private:
  EmulatedDevice& device_;
};

std::shared_ptr<Streams> EmulatedDevice::make_streams(const StreamOptions& options) {
  return std::make_shared<StreamsHere>(*this, options);
}

std::vector<double> EmulatedDevice::time_ms(const std::function<void()>&, const TimingPlan&) {
  throw Error("emulated kernels are not timed: their run time says nothing about a GPU",
              ExitCode::unavailable);
}

void EmulatedDevice::run(const Launch& launch, ThreadFunction thread, void* data) {
  check_launch(launch, info_);
  const unsigned threads = launch.block.x * launch.block.y * launch.block.z;
  if (launch.cluster > 1 && threads % 32 != 0) {
    throw Error(
        fmt::format("{}: the blocks of a cluster have {} threads (allowed under emulation: "
                    "multiples of 32)",
                    launch.name, threads));
  }
  if (FaultGuard::armed()) global_watch().begin_launch();
  // Arguments lie behind the kernel that they are for: emulated_dialect.hpp binds them so.
  if (launched_ != nullptr) launched_->push_back(*static_cast<const void* const*>(data));
  pool_.run(launch, thread, data, stop_, &watched_);
}

std::unique_ptr<Device> EmulatedDevice::like(const EmulationOptions& options) const {
  return make_emulated_device(table_, options);
}

std::vector<Watched> EmulatedDevice::watched() const {
  return watched_.sorted();
}

std::size_t EmulatedDevice::watched_dropped() const {
  return watched_.dropped();
}

}  // namespace emulated

std::unique_ptr<Device> make_emulated_device(std::span<const KernelEntry> table,
                                             EmulationOptions options) {
  return std::make_unique<emulated::EmulatedDevice>(table, options);
}

std::unique_ptr<Device> make_emulated_like(const Device& device, std::span<const KernelEntry> table,
                                           EmulationOptions options) {
  const auto* emulated = dynamic_cast<const emulated::EmulatedDevice*>(&device);
  if (emulated == nullptr) return make_emulated_device(table, options);
  options.launched = emulated->launched();
  return emulated->like(options);
}

}  // namespace tilestep::simt
