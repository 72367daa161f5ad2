#pragma once

/// \file
/// Streams, events and graphs: the words by which a host says what must come after what. They are CUDA's own on a GPU
/// (cuda_streams.cpp). Under emulation order and dependencies are real too: work is done in an order that the host's
/// calls allow, which WorkOrder and a seed choose, and there are no times.
///
///     const auto streams = device.make_streams({});
///     const simt::Stream a = streams->make_stream(), b = streams->make_stream();
///     streams->in(a, "norm", [&] { kernels.norm(device, …); });   // launches, fills, copies on the device
///     streams->wait(b, streams->record(a));                       // b goes on when a has come so far
///     streams->begin_capture(a); …; const simt::Graph graph = streams->end_capture(a);
///     const simt::GraphExec exec = streams->instantiate(graph);
///     streams->replay(exec, a);
///     streams->synchronize(a);
///
/// CUDA C++ Programming Guide, "Asynchronous Concurrent Execution" and "CUDA Graphs". Streams are made as with
/// cudaStreamNonBlocking; a capture that a stream joins by an event must be joined again before its end.
///
/// All calls and all work are logged. A kernel's arrays are known from its arguments: what is const is read, everything
/// else written. So two launches that use the same memory unordered are found whatever came out, and so is a replay
/// whose arguments lead to memory that the host has replaced since.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/simt/device.hpp"

namespace tilestep::simt {

struct Stream {
  int id = 0;
};
struct Event {
  int id = 0;
};
struct Graph {
  int id = 0;
};
struct GraphExec {
  int id = 0;
};

/// In which of the allowed orders an emulated device does its work.
enum class WorkOrder {
  earliest,  ///< each stream does the next of its work with every call of the host, once it may
  latest,    ///< only when the host waits, and on later streams only what is waited for
  shuffled   ///< only when the host waits, in an order that the seed chooses
};
struct StreamOptions {
  WorkOrder order = WorkOrder::earliest;
  std::uint64_t seed = 1;
};

enum class CallKind {
  upload,
  launch,
  record,
  wait,
  begin_capture,
  end_capture,
  instantiate,
  update,
  set,
  replay,
  synchronize
};
constexpr auto names_of(CallKind) {
  return std::to_array<std::string_view>({"copy in", "launch", "record", "wait", "begin capture",
                                          "end capture", "instantiate", "update", "set arguments",
                                          "replay", "synchronize"});
}

/// The log of one Streams. A tick is a call of the host, or a piece of work that it waits for: order, not time.
struct StreamLog {
  struct Call {
    CallKind kind = CallKind::launch;
    int stream = 0;
    int object = -1;  ///< the event, graph or executable graph
    std::string label;
    bool captured = false;  ///< it became part of a graph, and nothing was done
    int tick = 0;
    double begin_ms = 0, end_ms = 0;  ///< by the host's clock, since the streams were made
  };
  struct Work {
    int call = 0;
    int node = -1;  ///< of the graph that was replayed; −1: it was submitted by itself
    int stream = 0;
    std::string label, kernel;
    std::vector<int> after;  ///< the work that must be done before, as the host's calls order it
    std::vector<MemoryUse> uses;
    int tick = -1;  ///< when it was done; −1: not yet
  };
  struct Node {
    int stream = 0;
    std::string label, kernel;
    std::vector<int> after;
    std::vector<MemoryUse> uses;
  };
  /// What a name stands for, from one call on and until another.
  struct Named {
    std::string name;
    const void* begin = nullptr;
    std::size_t bytes = 0;
    int since_call = 0, until_call = -1;
  };
  std::vector<Call> calls;
  std::vector<Work> works;
  std::vector<std::vector<Node>> graphs;
  std::vector<Named> names;
  int ticks = 0;
  double start_ms = 0;  ///< when the streams were made, by std::chrono::steady_clock
};

/// What is wrong with a log, whether or not the numbers came out right.
struct StreamFinding {
  enum Kind {
    unordered,  ///< `work` and `other` use the same memory, one of them writes, and nothing orders them
    stale       ///< `work` uses memory that its name no longer stands for
  } kind = unordered;
  int work = 0, other = -1;  ///< the later and the earlier submitted
  std::string memory;
};
/// One for each pair of labels, or label, and memory.
std::vector<StreamFinding> findings_of(const StreamLog& log);
/// "down 1 (call 9) reads up, which up 1 (call 8) writes, and nothing orders them".
std::string text_of(const StreamFinding& finding, const StreamLog& log);
/// The name of memory in use at `call`: "h"; of memory that it no longer stands for, "h, replaced"; "memory": it has
/// none.
std::string memory_name(const StreamLog& log, const MemoryUse& use, int call);

/// A device's streams, events and graphs. One of them at a time per device, which must outlive it. Throws Error for calls
/// that CUDA refuses.
class Streams {
 public:
  explicit Streams(const StreamOptions& options);
  virtual ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  Stream make_stream();
  /// From now on `name` stands for this memory, and no longer for what it stood for before.
  template <class T>
  void name(Span<T> span, std::string name) {
    name_memory(span.data, span.count * sizeof(T), std::move(name));
  }
  void name_memory(const void* begin, std::size_t bytes, std::string name);

  /// Launches of `work` go to the stream, under this label.
  void in(Stream stream, std::string label, const std::function<void()>& work);
  /// A copy to the device in stream order; the host's array may change after the call.
  template <class T>
  void upload(Stream stream, std::string label, Span<T> to, const std::vector<T>& host) {
    upload_bytes(stream, std::move(label), to.data, host.data(), host.size() * sizeof(T));
  }
  Event record(Stream stream);
  void wait(Stream stream, Event event);
  void synchronize(Stream stream);

  void begin_capture(Stream stream);
  Graph end_capture(Stream stream);
  GraphExec instantiate(Graph graph);
  /// Gives an executable graph the arguments of another graph, of the same shape; false, and nothing done, if the shape
  /// is another ("cudaGraphExecUpdate").
  bool update(GraphExec exec, Graph graph);
  /// Gives one node the arguments of the one launch of `work` ("cudaGraphExecKernelNodeSetParams").
  void set_arguments(GraphExec exec, int node, const std::function<void()>& work);
  void replay(GraphExec exec, Stream stream);

  const StreamLog& log() const { return log_; }

  /// What a backend is given of a launch in a stream. `run` does the work; empty: the device does it by itself.
  struct Submitted {
    std::string kernel;
    std::vector<MemoryUse> uses;
    std::function<void()> run;
  };
  /// By the backend, inside `in`.
  void submit(Submitted submitted);

 protected:
  // What a backend does beside the log. The emulation has nothing to add to most of them.
  virtual void on_make_stream(int /*stream*/) {}
  virtual void on_enter(int /*stream*/) {}
  virtual void on_leave() {}
  virtual std::function<void()> on_upload(int stream, void* to, const void* host,
                                          std::size_t bytes) = 0;
  virtual void on_record(int /*event*/, int /*stream*/) {}
  virtual void on_wait(int /*stream*/, int /*event*/) {}
  virtual void on_synchronize(int /*stream*/) {}
  virtual void on_begin_capture(int /*stream*/) {}
  virtual void on_end_capture(int /*stream*/, int /*graph*/) {}
  virtual void on_instantiate(int /*exec*/, int /*graph*/) {}
  virtual bool on_update(int /*exec*/, int /*graph*/) { return true; }
  virtual void on_set(int /*exec*/, int /*node*/, const std::function<void()>& work) { work(); }
  virtual void on_replay(int /*exec*/, int /*stream*/) {}

 private:
  using Run = std::function<void()>;
  struct Recorded {  ///< an event
    std::vector<int> works, nodes;
    bool captured = false;
  };
  struct Lane {             ///< a stream
    std::vector<int> tail;  ///< works, or nodes while it is captured
    std::vector<int> kept;  ///< meanwhile, the works that came before
    bool captured = false;
  };
  struct Exec {
    int graph = 0;
    std::vector<StreamLog::Node> nodes;
    std::vector<Run> runs;
  };

  void upload_bytes(Stream stream, std::string label, void* to, const void* host,
                    std::size_t bytes);
  int call(CallKind kind, int stream, int object, std::string label);
  void finish_call(int call);
  int add_work(StreamLog::Work work, Run run);
  void add(int call, int stream, const std::string& label, Submitted submitted);
  Lane& lane(Stream stream);
  bool ready(int work) const;
  void do_work(int work);
  void advance();
  bool advance_waiting(const std::vector<bool>& wanted);
  std::vector<bool> needed_by(const std::vector<int>& works) const;

  StreamOptions options_;
  std::mt19937_64 random_;
  StreamLog log_;
  std::vector<Run> runs_;  ///< of works
  std::vector<Lane> lanes_;
  std::vector<Recorded> events_;
  std::vector<std::vector<Run>> graph_runs_;
  std::vector<Exec> execs_;
  std::vector<int>
      waited_;  ///< works that the host has waited for: what it submits later comes after them
  int capturing_ = -1;  ///< the stream whose capture it is
  std::string label_;
  int current_ = -1;                         ///< the stream of `in`
  std::vector<Submitted>* taken_ = nullptr;  ///< where launches go instead
  double entered_ms_ = 0;
};

}  // namespace tilestep::simt
