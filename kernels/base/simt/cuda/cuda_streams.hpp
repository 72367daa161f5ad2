#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <vector>

#include "kernels/base/simt/stream.hpp"

namespace tilestep::simt::cuda {

/// The words of stream.hpp as CUDA has them.
class CudaStreams final : public Streams {
 public:
  using Check = std::function<void(cudaError_t error, const char* what)>;
  /// Launches go to this stream from now on, and are told to its streams; null: to the default one, and to nobody.
  using Direct = std::function<void(Streams* streams, cudaStream_t stream)>;

  CudaStreams(const StreamOptions& options, Check check, Direct direct)
      : Streams(options), check_(std::move(check)), direct_(std::move(direct)) {}
  ~CudaStreams() override;

 protected:
  void on_make_stream(int stream) override;
  void on_enter(int stream) override;
  void on_leave() override;
  std::function<void()> on_upload(int stream, void* to, const void* host,
                                  std::size_t bytes) override;
  void on_record(int event, int stream) override;
  void on_wait(int stream, int event) override;
  void on_synchronize(int stream) override;
  void on_begin_capture(int stream) override;
  void on_end_capture(int stream, int graph) override;
  void on_instantiate(int exec, int graph) override;
  bool on_update(int exec, int graph) override;
  void on_set(int exec, int node, const std::function<void()>& work) override;
  void on_replay(int exec, int stream) override;

 private:
  cudaStream_t stream(int id) const { return streams_.at(static_cast<std::size_t>(id)); }
  struct Exec {
    cudaGraphExec_t started = nullptr;
    int graph = 0;  ///< whose nodes its nodes are named by
  };
  /// The kernel nodes of a graph in the order in which they were captured.
  std::vector<cudaGraphNode_t> nodes_of(int graph);

  Check check_;
  Direct direct_;
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;
  std::vector<cudaGraph_t> graphs_;
  std::vector<Exec> execs_;
};

}  // namespace tilestep::simt::cuda
