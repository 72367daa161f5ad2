#pragma once

#include <span>

#include "kernels/base/simt/backends.hpp"
#include "kernels/base/simt/emulator/block_pool.hpp"
#include "kernels/base/simt/emulator/fenced_memory.hpp"
#include "kernels/base/simt/emulator/watched.hpp"
#include "kernels/base/simt/stream.hpp"

namespace tilestep::simt::emulated {

/// The CPU as a device. Kernels run when they are launched, or in a stream when that comes to them. Tests derive devices
/// from it that pretend to a clock.
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
  std::shared_ptr<Streams> make_streams(const StreamOptions& options) override;
  bool can_time() const override { return false; }
  std::vector<double> time_ms(const std::function<void()>& work, const TimingPlan& plan) override;
  void stop_when(std::function<bool()> asked) override { stop_ = std::move(asked); }

  std::vector<Watched> watched() const override;
  std::size_t watched_dropped() const override;

  std::span<const KernelEntry> table() const { return table_; }
  std::vector<const void*>* launched() const { return launched_; }
  /// Where launches go now, inside Streams::in; null: they run at once.
  Streams* streams() const { return streams_; }

  /// Runs a launch. Throws Error, Cancelled.
  virtual void run(const Launch& launch, ThreadFunction thread, void* data);
  /// Another device of its kind with its kernels.
  virtual std::unique_ptr<Device> like(const EmulationOptions& options) const;

 private:
  class StreamsHere;

  std::span<const KernelEntry> table_;
  Streams* streams_ = nullptr;
  WatchedValues watched_;
  FencedMemory fenced_;  ///< what an edited kernel works on
  BlockPool pool_;
  std::vector<const void*>* launched_;
  DeviceInfo info_;
  std::function<bool()> stop_;
};

}  // namespace tilestep::simt::emulated
