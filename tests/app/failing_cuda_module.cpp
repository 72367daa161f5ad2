// A CUDA module without CUDA, whose GPU takes every kernel and does what $TILESTEP_FAKE_GPU says: "fails" as after an
// illegal address, or "hangs".

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "kernels/base/simt/cuda/cuda_module.hpp"
#include "kernels/base/simt/source_hash.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace tilestep::simt {
namespace {

class FailingDevice final : public Device {
 public:
  FailingDevice() {
    info_.backend = "cuda";
    info_.name = "a GPU that nobody has";
    info_.compute_capability = 90;
  }
  const DeviceInfo& info() const override { return info_; }
  const KernelSet& kernels(std::string_view) const override {
    const char* does = std::getenv("TILESTEP_FAKE_GPU");
    while (does != nullptr && std::string_view(does) == "hangs") ::pause();
    throw DeviceLost(std::string("online_softmax") + kFailedOnGpu + "an error of the GPU");
  }
  void* allocate(std::size_t) override { return nullptr; }
  void release(void*) noexcept override {}
  void copy_in(void*, const void*, std::size_t) override {}
  void copy_out(void*, const void*, std::size_t) override {}
  void copy_on_device(void*, const void*, std::size_t) override {}
  void fill(void*, int, std::size_t) override {}
  void synchronize() override {}
  bool can_time() const override { return false; }
  std::vector<double> time_ms(const std::function<void()>&, const TimingPlan&) override {
    return {};
  }
  void stop_when(std::function<bool()>) override {}
  void use_image(std::span<const char>) override {}

 private:
  DeviceInfo info_;
};

}  // namespace
}  // namespace tilestep::simt

EXPORT const char* tilestep_cuda_source_hash() {
  return tilestep::simt::source_hash();
}
EXPORT void tilestep_cuda_status(tilestep::simt::CudaStatus& status) {
  status.available = true;
  status.device.name = "a GPU that nobody has";
}
EXPORT tilestep::simt::Device* tilestep_cuda_make_device() {
  return new tilestep::simt::FailingDevice;
}
EXPORT const char* tilestep_cuda_last_launch() {
  return "online_softmax";
}
EXPORT void tilestep_cuda_use_edited(bool) {}
