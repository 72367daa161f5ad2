#pragma once

#include <span>

#include "kernels/base/simt/backends.hpp"
#include "kernels/base/simt/block_pool.hpp"
#include "kernels/base/simt/fenced_memory.hpp"
#include "kernels/base/simt/watched.hpp"

namespace tilestep::simt::emulated {

/// The CPU as a device. Kernels run when they are launched; nothing is asynchronous. Tests derive
/// devices from it that pretend to a clock.
class EmulatedDevice : public Device {
 public:
  EmulatedDevice(std::span<const KernelEntry> table, const EmulationOptions& options);

  const DeviceInfo& info() const override { return info_; }
  const KernelSet& kernels(std::string_view lesson) const override;
  void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void copy_in(void* device, const void* host, std::size_t bytes) override;
  void copy_out(void* host, const void* device, std::size_t bytes) override;
  void copy_on_device(void* to, const void* from, std::size_t bytes) override;
  void fill(void* device, int byte, std::size_t bytes) override;
  void synchronize() override {}
  bool can_time() const override { return false; }
  std::vector<double> time_ms(const std::function<void()>& work, const TimingPlan& plan) override;
  void stop_when(std::function<bool()> asked) override { stop_ = std::move(asked); }

  std::vector<Watched> watched() const override;
  std::size_t watched_dropped() const override;

  std::span<const KernelEntry> table() const { return table_; }
  std::vector<const void*>* launched() const { return launched_; }

  /// Runs a launch. Throws Error, Cancelled.
  virtual void run(const Launch& launch, ThreadFunction thread, void* data);
  /// Another device of its kind with its kernels.
  virtual std::unique_ptr<Device> like(const EmulationOptions& options) const;

 private:
  std::span<const KernelEntry> table_;
  WatchedValues watched_;
  FencedMemory fenced_;  ///< what an edited kernel works on
  BlockPool pool_;
  std::vector<const void*>* launched_;
  DeviceInfo info_;
  std::function<bool()> stop_;
};

}  // namespace tilestep::simt::emulated
