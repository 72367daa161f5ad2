#pragma once

// What kernels are watched by while they run: a parameter of each, which a timed launch leaves empty.

#include "kernels/systems/launches/device.hpp"
#include "kernels/systems/triage/kernels.hpp"

namespace tilestep::triage::SIMT_BACKEND {

namespace parts = launches::SIMT_BACKEND;

/// Nothing: what is timed.
struct NoWatch {
  __device__ void begin() const {}
  __device__ void end() const {}
  template <class Array>
  __device__ auto load(const Array& from, std::ptrdiff_t at) const {
    return from[at];
  }
  __device__ uint4 early(const simt::Global<const uint4>& from, std::ptrdiff_t at) const {
    return simt::load_early(from, at);
  }
  template <class T>
  __device__ void store(const simt::Global<T>& to, std::ptrdiff_t at, T value) const {
    to[at] = value;
  }
};
/// The first begin and the last end of its blocks.
struct ByClock : NoWatch {
  parts::Clock clock;
  __device__ void begin() const { clock.begin(); }
  __device__ void end() const { clock.end(); }
};
/// The bytes asked for, and the addresses of the first warp's loads.
struct Counter : NoWatch {
  simt::Global<unsigned long long> bytes;
  int slot;
  simt::Tape tape;

  __device__ void count(unsigned long long more) const { atomicAdd(&bytes[slot], more); }
  template <class T>
  __device__ void note(std::ptrdiff_t at) const {
    count(sizeof(T));
    if (blockIdx.x + blockIdx.y + blockIdx.z > 0 || threadIdx.x >= 32) return;
    tape.access(static_cast<unsigned>(slot), static_cast<std::uint64_t>(at) * sizeof(T), sizeof(T),
                simt::AccessKind::load);
  }
  template <class Array>
  __device__ auto load(const Array& from, std::ptrdiff_t at) const {
    note<std::remove_cvref_t<decltype(from[at])>>(at);
    return from[at];
  }
  __device__ uint4 early(const simt::Global<const uint4>& from, std::ptrdiff_t at) const {
    note<uint4>(at);
    return simt::load_early(from, at);
  }
  template <class T>
  __device__ void store(const simt::Global<T>& to, std::ptrdiff_t at, T value) const {
    count(sizeof(T));
    to[at] = value;
  }
};

/// Calls `run` with what `watch` says.
template <class Run>
void with_watch(const Watch& watch, Run run) {
  if (watch.bytes.count > 0) {
    return run(Counter{{}, simt::global(watch.bytes, "bytes"), watch.slot, watch.tape});
  }
  if (watch.begins.count > 0) {
    return run(ByClock{
        {}, {simt::global(watch.begins, "begins"), simt::global(watch.ends, "ends"), watch.slot}});
  }
  run(NoWatch{});
}

/// Launches, and says so.
template <class... Params, class... Args>
void start(simt::Device& device, const Watch& watch, const simt::Launch& launch,
           void (*kernel)(Params...), Args&&... args) {
  if (watch.launched != nullptr) {
    *watch.launched = {launch.name, launch.grid.x * launch.grid.y * launch.grid.z, launch.block.x,
                       launch.shared_bytes, simt::resources_of(launch, kernel)};
  }
  simt::launch(device, launch, kernel, std::forward<Args>(args)...);
}

}  // namespace tilestep::triage::SIMT_BACKEND
