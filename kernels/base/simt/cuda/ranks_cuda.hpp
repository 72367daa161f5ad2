#pragma once

/// \file
/// Ranks on GPUs of one host, in one process: a device and a stream each, or streams of one device. For launch files.

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "kernels/base/simt/cuda/cuda_launch.hpp"
#include "kernels/base/simt/ranks.hpp"

namespace tilestep::simt {

class CudaRanks final : public Ranks {
 public:
  /// `kernels`: all that ranks will launch. They are loaded here: a load during a launch may wait for kernels that wait
  /// for it (CUDA C++ Programming Guide, "Lazy Loading").
  CudaRanks(Device& device, int count, std::span<const void* const> kernels)
      : device_(device),
        streams_(static_cast<std::size_t>(count)),
        second_(streams_.size()),
        marks_(streams_.size()),
        in_use_(streams_.size(), 0) {
    if (count < 1 || count > kMostRanks) {
      throw Error("ranks is " + std::to_string(count) + "; allowed: 1–" +
                  std::to_string(kMostRanks));
    }
    count_ = count;
    int gpus = 0;
    check(cudaGetDeviceCount(&gpus), "count the GPUs");
    apart_ = gpus >= count && count > 1;
    for (int a = 0; a < count && apart_; ++a) {
      for (int b = 0; b < count && apart_; ++b) {
        int can = 1;
        if (a != b) check(cudaDeviceCanAccessPeer(&can, a, b), "ask for peer memory");
        apart_ = can == 1;
      }
    }
    for (int rank = 0; rank < count; ++rank) {
      use(rank);
      for (int other = 0; other < count && apart_; ++other) {
        if (other == rank) continue;
        static std::array<std::array<bool, kMostRanks>, kMostRanks> opened{};
        bool& is_open = opened[static_cast<std::size_t>(rank)][static_cast<std::size_t>(other)];
        if (!is_open) check(cudaDeviceEnablePeerAccess(other, 0), "open a peer's memory");
        is_open = true;
      }
      check(cudaStreamCreateWithFlags(&streams_[static_cast<std::size_t>(rank)],
                                      cudaStreamNonBlocking),
            "make a stream");
      check(cudaStreamCreateWithFlags(&second_[static_cast<std::size_t>(rank)],
                                      cudaStreamNonBlocking),
            "make a stream");
      check(
          cudaEventCreateWithFlags(&marks_[static_cast<std::size_t>(rank)], cudaEventDisableTiming),
          "make an event");
      for (const void* kernel : kernels) {
        cudaFuncAttributes attributes{};
        check(cudaFuncGetAttributes(&attributes, kernel), "load a kernel");
      }
    }
    check(cudaHostAlloc(reinterpret_cast<void**>(&page_), sizeof(StuckPage), cudaHostAllocPortable),
          "allocate shared memory");
    clear();
    use(0);
  }
  ~CudaRanks() override {
    for (int rank = 0; rank < count_; ++rank) {
      cudaSetDevice(gpu(rank));
      cudaStreamSynchronize(streams_[static_cast<std::size_t>(rank)]);
      cudaStreamDestroy(streams_[static_cast<std::size_t>(rank)]);
      cudaStreamDestroy(second_[static_cast<std::size_t>(rank)]);
      cudaEventDestroy(marks_[static_cast<std::size_t>(rank)]);
    }
    cudaFreeHost(page_);
    cudaSetDevice(0);
  }

  bool apart() const override { return apart_; }
  Device& at(int rank) override {
    use(rank);
    return device_;
  }
  void run(const std::function<void(int rank)>& program) override {
    for (int rank = 0; rank < count_; ++rank) {
      use(rank);
      check(cudaDeviceSynchronize(), "wait for copies");
    }
    for (int rank = 0; rank < count_; ++rank) {
      use(rank);
      program(rank);
    }
    wait();
    use(0);
  }
  World world(int rank, int call) override { return {page_, rank, call}; }
  std::vector<Stuck> stuck() const override {
    std::vector<Stuck> all;
    for (int rank = 0; rank < count_; ++rank) {
      if (page_->from[rank] >= 0) all.push_back({rank, page_->call[rank], page_->from[rank]});
    }
    return all;
  }
  void give_up() override { page_->dead = 1; }
  void use_stream(int rank, int which) override { in_use_[static_cast<std::size_t>(rank)] = which; }
  void come_after(int rank, int stream) override {
    use(rank);
    const cudaEvent_t mark = marks_[static_cast<std::size_t>(rank)];
    check(cudaEventRecord(mark, at_stream(rank, 1 - stream)), "record");
    check(cudaStreamWaitEvent(at_stream(rank, stream), mark, 0), "wait for a stream");
  }
  void copy(int rank, void* to, const void* from, std::size_t bytes) override {
    use(rank);
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault,
                          static_cast<cudaStream_t>(stream(rank))),
          "copy from a peer");
  }
  void* stream(int rank) const override {
    return at_stream(rank, in_use_[static_cast<std::size_t>(rank)]);
  }
  int gpu(int rank) const override { return apart_ ? rank : 0; }
  Device& device() { return device_; }

  std::vector<double> time_ms(const std::function<void()>& enqueue, int calls,
                              int samples) override {
    if (!apart_) throw Error("links are timed between GPUs, one per rank", ExitCode::unavailable);
    std::vector<cudaGraphExec_t> graphs(streams_.size());
    for (int rank = 0; rank < count_; ++rank) {
      use(rank);
      check(cudaStreamBeginCapture(at_stream(rank), cudaStreamCaptureModeRelaxed), "capture");
    }
    try {
      for (int call = 0; call < calls; ++call) enqueue();
    } catch (...) {
      for (int rank = 0; rank < count_; ++rank) {
        cudaGraph_t half = nullptr;
        if (cudaStreamEndCapture(at_stream(rank), &half) == cudaSuccess) cudaGraphDestroy(half);
      }
      cudaGetLastError();
      throw;
    }
    for (int rank = 0; rank < count_; ++rank) {
      use(rank);
      cudaGraph_t graph = nullptr;
      check(cudaStreamEndCapture(at_stream(rank), &graph), "end a capture");
      check(cudaGraphInstantiate(&graphs[static_cast<std::size_t>(rank)], graph, 0),
            "make a graph ready");
      cudaGraphDestroy(graph);
    }
    const auto replay = [&] {
      for (int rank = 0; rank < count_; ++rank) {
        use(rank);
        check(cudaGraphLaunch(graphs[static_cast<std::size_t>(rank)], at_stream(rank)), "replay");
      }
    };
    // Between events of rank 0. Each call waits for all ranks, so that no rank is ahead by more than one.
    use(0);
    cudaEvent_t begin = nullptr, end = nullptr;
    check(cudaEventCreate(&begin), "make an event");
    check(cudaEventCreate(&end), "make an event");
    std::vector<double> all;
    for (int i = 0; i < 2; ++i) replay();
    wait();
    for (int sample = 0; sample < samples && page_->dead == 0; ++sample) {
      replay();  // the ranks meet
      use(0);
      check(cudaEventRecord(begin, at_stream(0)), "record");
      replay();
      use(0);
      check(cudaEventRecord(end, at_stream(0)), "record");
      wait();
      float ms = 0;
      check(cudaEventElapsedTime(&ms, begin, end), "read an event");
      all.push_back(static_cast<double>(ms) / calls);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    for (cudaGraphExec_t graph : graphs) cudaGraphExecDestroy(graph);
    use(0);
    for (const Stuck& one : stuck()) {
      throw Error("rank " + std::to_string(one.rank) + " waited in vain for rank " +
                      std::to_string(one.from) + ", in call " + std::to_string(one.call + 1),
                  ExitCode::check_failed);
    }
    return all;
  }

 private:
  static void check(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    cudaGetLastError();
    throw Error(std::string("the GPUs did not ") + what + ": " + cudaGetErrorString(error),
                ExitCode::unavailable);
  }
  void use(int rank) const { check(cudaSetDevice(gpu(rank)), "choose a GPU"); }
  cudaStream_t at_stream(int rank, int which = 0) const {
    return (which == 0 ? streams_ : second_)[static_cast<std::size_t>(rank)];
  }
  void wait() const {
    for (int rank = 0; rank < count_; ++rank) {
      use(rank);
      check(cudaStreamSynchronize(at_stream(rank)), "finish what the ranks do");
    }
  }
  void clear() {
    page_->dead = 0;
    std::fill_n(page_->from, kMostRanks, -1);
    std::fill_n(page_->call, kMostRanks, -1);
  }

  Device& device_;
  bool apart_ = false;
  std::vector<cudaStream_t> streams_, second_;
  std::vector<cudaEvent_t> marks_;
  std::vector<int> in_use_;  ///< by rank: 0 or 1
  StuckPage* page_ = nullptr;
};

/// A launch by a rank's host, in its stream.
template <class... Params, class... Args>
void launch_at(Ranks& ranks, int rank, const Launch& shape, void (*kernel)(Params...),
               Args&&... args) {
  auto& gpus = static_cast<CudaRanks&>(ranks);
  Device& device = gpus.at(rank);
  cuda::before_launch(device, shape, reinterpret_cast<const void*>(kernel));
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = static_cast<cudaStream_t>(gpus.stream(rank));
  const void* edited = cuda::edited_kernel(device, reinterpret_cast<const void*>(kernel));
  if (edited == nullptr) {
    static_cast<void>(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...));
  } else {
    cuda::launch_edited<Params...>(config, edited, static_cast<Params>(args)...);
  }
  cuda::after_launch(device, shape);
}

}  // namespace tilestep::simt
