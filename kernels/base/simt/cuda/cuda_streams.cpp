#include "kernels/base/simt/cuda/cuda_streams.hpp"

#include <utility>

namespace tilestep::simt::cuda {

// What is still at work ends first: its memory may go with the caller.
CudaStreams::~CudaStreams() {
  direct_(nullptr, nullptr);
  for (const cudaStream_t each : streams_) {
    cudaStreamSynchronize(each);
    cudaStreamDestroy(each);
  }
  for (const cudaEvent_t each : events_) cudaEventDestroy(each);
  for (const Exec& each : execs_) cudaGraphExecDestroy(each.started);
  for (const cudaGraph_t each : graphs_) cudaGraphDestroy(each);
}

void CudaStreams::on_make_stream(int) {
  cudaStream_t made = nullptr;
  check_(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "make a stream");
  streams_.push_back(made);
}

void CudaStreams::on_enter(int id) {
  direct_(this, stream(id));
}
void CudaStreams::on_leave() {
  direct_(nullptr, nullptr);
}

std::function<void()> CudaStreams::on_upload(int id, void* to, const void* host,
                                             std::size_t bytes) {
  // From pageable memory: the call returns once the bytes have been taken.
  check_(cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, stream(id)), "copy to the GPU");
  return nullptr;
}

void CudaStreams::on_record(int, int id) {
  cudaEvent_t made = nullptr;
  check_(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "make an event");
  events_.push_back(made);
  check_(cudaEventRecord(made, stream(id)), "record an event");
}
void CudaStreams::on_wait(int id, int event) {
  check_(cudaStreamWaitEvent(stream(id), events_.at(static_cast<std::size_t>(event)), 0),
         "wait for an event");
}
void CudaStreams::on_synchronize(int id) {
  check_(cudaStreamSynchronize(stream(id)), "finish a stream's work");
}

void CudaStreams::on_begin_capture(int id) {
  check_(cudaStreamBeginCapture(stream(id), cudaStreamCaptureModeRelaxed), "begin a capture");
}
void CudaStreams::on_end_capture(int id, int) {
  cudaGraph_t made = nullptr;
  check_(cudaStreamEndCapture(stream(id), &made), "end a capture");
  graphs_.push_back(made);
}
void CudaStreams::on_instantiate(int, int graph) {
  Exec made{nullptr, graph};
  check_(
      cudaGraphInstantiateWithFlags(&made.started, graphs_.at(static_cast<std::size_t>(graph)), 0),
      "instantiate a graph");
  execs_.push_back(made);
}

bool CudaStreams::on_update(int exec, int graph) {
  cudaGraphExecUpdateResultInfo why{};
  Exec& to = execs_.at(static_cast<std::size_t>(exec));
  const cudaError_t error =
      cudaGraphExecUpdate(to.started, graphs_.at(static_cast<std::size_t>(graph)), &why);
  if (error == cudaErrorGraphExecUpdateFailure) {
    cudaGetLastError();  // an answer, no error
    return false;
  }
  check_(error, "update a graph");
  return true;
}

std::vector<cudaGraphNode_t> CudaStreams::nodes_of(int graph) {
  const cudaGraph_t of = graphs_.at(static_cast<std::size_t>(graph));
  std::size_t count = 0;
  check_(cudaGraphGetNodes(of, nullptr, &count), "count a graph's nodes");
  std::vector<cudaGraphNode_t> nodes(count);
  check_(cudaGraphGetNodes(of, nodes.data(), &count), "list a graph's nodes");
  return nodes;
}

// The arguments of a launch are only to be had from a node: it is captured into a graph of its own.
void CudaStreams::on_set(int exec, int node, const std::function<void()>& work) {
  Exec& to = execs_.at(static_cast<std::size_t>(exec));
  cudaStream_t spare = nullptr;
  cudaGraph_t one = nullptr;
  check_(cudaStreamCreateWithFlags(&spare, cudaStreamNonBlocking), "make a stream");
  direct_(this, spare);
  cudaError_t error = cudaStreamBeginCapture(spare, cudaStreamCaptureModeRelaxed);
  const auto end = [&] {
    const cudaError_t ended = cudaStreamEndCapture(spare, &one);
    cudaStreamDestroy(spare);
    if (error == cudaSuccess) error = ended;
  };
  try {
    if (error == cudaSuccess) work();
  } catch (...) {
    end();
    if (one != nullptr) cudaGraphDestroy(one);
    throw;
  }
  end();
  cudaGraphNode_t made = nullptr;
  std::size_t count = 1;
  cudaKernelNodeParams params{};
  if (error == cudaSuccess) error = cudaGraphGetNodes(one, &made, &count);
  if (error == cudaSuccess) error = cudaGraphKernelNodeGetParams(made, &params);
  if (error == cudaSuccess) {
    const std::vector<cudaGraphNode_t> nodes = nodes_of(to.graph);
    error = cudaGraphExecKernelNodeSetParams(to.started, nodes.at(static_cast<std::size_t>(node)),
                                             &params);
  }
  if (one != nullptr) cudaGraphDestroy(one);
  check_(error, "set the arguments of a graph's node");
}

void CudaStreams::on_replay(int exec, int id) {
  check_(cudaGraphLaunch(execs_.at(static_cast<std::size_t>(exec)).started, stream(id)),
         "start a graph");
}

}  // namespace tilestep::simt::cuda
