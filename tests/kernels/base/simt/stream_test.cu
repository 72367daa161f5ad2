// Streams, events and graphs under emulation: any order that the calls allow, and no other; what a graph keeps; what is
// named.

#include <algorithm>
#include <set>

#include "kernels/base/simt/grid.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/base/simt/stream.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/simt/testing.hpp"

namespace tilestep::simt {
namespace {

constexpr int kMany = 16;

__global__ void stream_set(Global<int> to, int value) {
  to[threadIdx.x] = value + static_cast<int>(threadIdx.x);
}
__global__ void stream_add(Global<const int> from, Global<int> to, int value) {
  to[threadIdx.x] = from[threadIdx.x] + value;
}

/// Arrays and two streams.
struct StreamBench {
  explicit StreamBench(StreamOptions options = {}) : streams(device->make_streams(options)) {
    streams->name(x.span(), "x");
    streams->name(y.span(), "y");
    streams->name(z.span(), "z");
    x.fill(0);
    y.fill(0);
    z.fill(0);
  }
  void set(Stream stream, const char* label, Buffer<int>& to, int value) {
    streams->in(stream, label, [&] {
      launch(*device, {.name = "set", .block = kMany}, stream_set, global(to.span(), "to"), value);
    });
  }
  void add(Stream stream, const char* label, const Buffer<int>& from, Buffer<int>& to, int value) {
    streams->in(stream, label, [&] {
      launch(*device, {.name = "add", .block = kMany}, stream_add, global(from.span(), "from"),
             global(to.span(), "to"), value);
    });
  }
  std::vector<std::string> order() const {
    std::vector<std::pair<int, std::string>> done;
    for (const auto& work : streams->log().works) done.emplace_back(work.tick, work.label);
    std::stable_sort(done.begin(), done.end(),
                     [](const auto& one, const auto& two) { return one.first < two.first; });
    std::vector<std::string> labels;
    for (const auto& each : done) labels.push_back(each.second);
    return labels;
  }
  std::string named() const {
    std::string all;
    for (const StreamFinding& each : findings_of(streams->log())) {
      all += text_of(each, streams->log()) + "\n";
    }
    return all;
  }

  std::unique_ptr<Device> device = make_emulated();
  Buffer<int> x{*device, kMany}, y{*device, kMany}, z{*device, kMany};
  std::shared_ptr<Streams> streams;
  Stream a = streams->make_stream(), b = streams->make_stream();
};

std::vector<StreamOptions> all_work_orders() {
  std::vector<StreamOptions> all = {
      {WorkOrder::earliest, 1}, {WorkOrder::earliest, 2}, {WorkOrder::latest, 1}};
  for (std::uint64_t seed = 1; seed <= 12; ++seed) all.push_back({WorkOrder::shuffled, seed});
  return all;
}

/// x in stream a, y in stream b, then z from both, once they have met or, without `ordered`, too early.
void fork_and_join(StreamBench& bench, bool ordered) {
  bench.set(bench.a, "set x", bench.x, 10);
  bench.streams->wait(bench.b, bench.streams->record(bench.a));
  bench.add(bench.b, "x to y", bench.x, bench.y, 100);
  const Event y_is_there = bench.streams->record(bench.b);
  if (ordered) bench.streams->wait(bench.a, y_is_there);
  bench.add(bench.a, "y to z", bench.y, bench.z, 1000);
  if (!ordered) bench.streams->wait(bench.a, y_is_there);
}

}  // namespace

TEST_CASE("streams: what an event orders comes right in every order that is left", "[simt]") {
  for (const StreamOptions& options : all_work_orders()) {
    for (const bool captured : {false, true}) {
      CAPTURE(static_cast<int>(options.order), options.seed, captured);
      StreamBench bench(options);
      if (captured) {
        bench.streams->begin_capture(bench.a);
        fork_and_join(bench, true);
        const GraphExec exec = bench.streams->instantiate(bench.streams->end_capture(bench.a));
        bench.streams->replay(exec, bench.a);
      } else {
        fork_and_join(bench, true);
      }
      bench.streams->synchronize(bench.a);
      CHECK(bench.z.download()[3] == 10 + 3 + 100 + 1000);
      CHECK(bench.named() == "");
      for (const auto& work : bench.streams->log().works) {
        CHECK(work.tick >= 0);
        for (const int before : work.after) {
          CHECK(bench.streams->log().works[static_cast<std::size_t>(before)].tick < work.tick);
        }
      }
    }
  }
}

TEST_CASE("streams: without the event some order is wrong, and every one is named", "[simt]") {
  for (const bool captured : {false, true}) {
    int wrong = 0;
    for (const StreamOptions& options : all_work_orders()) {
      StreamBench bench(options);
      if (captured) {
        bench.streams->begin_capture(bench.a);
        fork_and_join(bench, false);
        bench.streams->replay(bench.streams->instantiate(bench.streams->end_capture(bench.a)),
                              bench.a);
      } else {
        fork_and_join(bench, false);
      }
      bench.streams->synchronize(bench.a);
      wrong += bench.z.download()[3] != 1113 ? 1 : 0;
      CHECK(missing_in(bench.named(), {"y to z (call ", "reads y, which x to y (call ",
                                       "nothing orders them"}) == "");
    }
    CHECK(wrong > 0);
    CHECK(wrong < static_cast<int>(all_work_orders().size()));
  }
}

TEST_CASE(
    "streams: all orders that are allowed are taken, and work waits for the host alone where it "
    "may",
    "[simt]") {
  std::set<std::vector<std::string>> orders;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    StreamBench bench({WorkOrder::shuffled, seed});
    bench.set(bench.a, "a1", bench.x, 1);
    bench.set(bench.a, "a2", bench.x, 2);
    bench.set(bench.b, "b1", bench.y, 3);
    bench.set(bench.b, "b2", bench.y, 4);
    CHECK(bench.x.download()[0] == 0);  // nothing waits yet
    bench.streams->wait(bench.a, bench.streams->record(bench.b));
    bench.streams->synchronize(bench.a);
    CHECK(bench.x.download()[0] == 2);
    orders.insert(bench.order());
  }
  CHECK(orders.size() == 6);  // of two and two
}

TEST_CASE("streams: as early as may be, each stream does one piece of work per call", "[simt]") {
  StreamBench bench;
  bench.set(bench.a, "a1", bench.x, 1);
  bench.set(bench.b, "b1", bench.y, 1);
  bench.set(bench.a, "a2", bench.x, 2);
  const auto& works = bench.streams->log().works;
  CHECK(works[0].tick == 1);
  CHECK(works[1].tick == 2);
  CHECK(works[2].tick == 3);
  bench.streams->synchronize(bench.a);
  CHECK(bench.x.download()[0] == 2);
}

TEST_CASE("streams: a graph keeps the addresses of its capture", "[simt]") {
  StreamBench bench;
  bench.streams->begin_capture(bench.a);
  bench.add(bench.a, "x to z", bench.x, bench.z, 5);
  const Graph graph = bench.streams->end_capture(bench.a);
  CHECK(bench.z.download()[0] == 0);  // a capture does nothing
  const GraphExec exec = bench.streams->instantiate(graph);
  const std::vector<int> first(kMany, 7), second(kMany, 70);
  bench.streams->upload(bench.a, "x", bench.x.span(), first);
  bench.streams->replay(exec, bench.a);
  bench.streams->synchronize(bench.a);
  CHECK(bench.z.download()[0] == 12);
  CHECK(bench.named() == "");
  // The numbers are elsewhere now, and the graph does not know.
  Buffer<int> other(*bench.device, second);
  bench.streams->name(other.span(), "x");
  bench.streams->replay(exec, bench.a);
  bench.streams->synchronize(bench.a);
  CHECK(bench.z.download()[0] == 12);
  CHECK(missing_in(bench.named(), {"x to z (call ", "uses x at the address that was captured"}) ==
        "");
  // New arguments for its node, then a whole new capture of the same shape, and one of another.
  const auto launch_with = [&](int value) {
    launch(*bench.device, {.name = "add", .block = kMany}, stream_add,
           global(Span<const int>(other.span()), "from"), global(bench.z.span(), "to"), value);
  };
  bench.streams->set_arguments(exec, 0, [&] { launch_with(6); });
  bench.streams->replay(exec, bench.a);
  bench.streams->synchronize(bench.a);
  CHECK(bench.z.download()[0] == 76);
  bench.streams->begin_capture(bench.a);
  bench.streams->in(bench.a, "other to z", [&] { launch_with(8); });
  CHECK(bench.streams->update(exec, bench.streams->end_capture(bench.a)));
  bench.streams->replay(exec, bench.a);
  bench.streams->synchronize(bench.a);
  CHECK(bench.z.download()[0] == 78);
  bench.streams->begin_capture(bench.a);
  bench.set(bench.a, "one", bench.x, 1);
  bench.set(bench.a, "two", bench.x, 2);
  CHECK_FALSE(bench.streams->update(exec, bench.streams->end_capture(bench.a)));
}

TEST_CASE("streams: what the host has waited for comes before what it submits then", "[simt]") {
  for (const StreamOptions& options : all_work_orders()) {
    StreamBench bench(options);
    bench.set(bench.a, "set x", bench.x, 1);
    bench.streams->synchronize(bench.a);
    bench.add(bench.b, "x to y", bench.x, bench.y, 1);
    bench.streams->synchronize(bench.b);
    CHECK(bench.y.download()[0] == 2);
    CHECK(bench.named() == "");
  }
}

TEST_CASE("streams: a stream that joined a capture still has its own work before", "[simt]") {
  for (const StreamOptions& options : all_work_orders()) {
    StreamBench bench(options);
    bench.set(bench.b, "set y", bench.y, 1);
    bench.streams->begin_capture(bench.a);
    bench.set(bench.a, "set x", bench.x, 1);
    bench.streams->wait(bench.b, bench.streams->record(bench.a));
    bench.add(bench.b, "x to z", bench.x, bench.z, 1);
    bench.streams->wait(bench.a, bench.streams->record(bench.b));
    bench.streams->end_capture(bench.a);
    bench.add(bench.b, "y to x", bench.y, bench.x, 1);
    bench.streams->synchronize(bench.b);
    CHECK(bench.x.download()[0] == 2);
    CHECK(bench.named() == "");
  }
}

TEST_CASE("streams: what CUDA refuses is refused", "[simt]") {
  StreamBench bench;
  const auto unjoined = [&] {
    bench.streams->begin_capture(bench.a);
    bench.set(bench.a, "first", bench.x, 1);
    bench.streams->wait(bench.b, bench.streams->record(bench.a));
    bench.set(bench.b, "aside", bench.y, 1);
    bench.streams->end_capture(bench.a);
  };
  CHECK(missing_in(outcome_of(unjoined), {"the stream of aside is joined"}) == "");
  StreamBench other;
  other.streams->begin_capture(other.a);
  CHECK(missing_in(outcome_of([&] { other.streams->synchronize(other.a); }),
                   {"is being captured"}) == "");
  CHECK(missing_in(outcome_of([&] { other.streams->begin_capture(other.b); }),
                   {"inside another"}) == "");
  StreamBench failing;
  CHECK(missing_in(outcome_of([&] {
                     failing.streams->in(failing.a, "too wide", [&] {
                       launch(*failing.device, {.name = "set", .block = 2000}, stream_set,
                              global(failing.x.span(), "to"), 1);
                     });
                   }),
                   {"set: block.x is 2000"}) == "");
  failing.set(failing.a, "goes on", failing.x, 4);
  failing.streams->synchronize(failing.a);
  CHECK(failing.x.download()[0] == 4);
}

namespace {

/// Each block adds what all blocks left in the round before.
__global__ void rounds(Global<int> numbers, Global<unsigned> arrived, int count, bool barriers) {
  const int blocks = static_cast<int>(gridDim.x), block = static_cast<int>(blockIdx.x);
  for (int round = 0; round < count; ++round) {
    int sum = 1;
    for (int i = 0; i < blocks; ++i) sum += numbers[round * blocks + i];
    if (threadIdx.x == 0) numbers[(round + 1) * blocks + block] = sum;
    if (barriers) grid_barrier(arrived, round);
  }
}

}  // namespace

TEST_CASE("streams: blocks of a grid meet at its barrier", "[simt]") {
  constexpr int kBlocks = 4, kRounds = 5;
  for (const EmulationOptions& options : all_orders()) {
    const auto device = make_emulated_device({}, options);
    std::vector<int> start(kBlocks * (kRounds + 1));
    Buffer<int> numbers(*device, start);
    Buffer<unsigned> arrived(*device, std::vector<unsigned>(1));
    launch(*device, {.name = "rounds", .grid = kBlocks, .block = 64, .cluster = kBlocks}, rounds,
           global(numbers.span(), "numbers"), global(arrived.span(), "arrived"), kRounds, true);
    int expected = 0;
    const std::vector<int> got = numbers.download();
    for (int round = 0; round < kRounds; ++round) {
      expected = 1 + kBlocks * expected;
      for (int i = 0; i < kBlocks; ++i)
        CHECK(got[static_cast<std::size_t>((round + 1) * kBlocks + i)] == expected);
    }
    CHECK(arrived.download().front() == kBlocks * kRounds);
  }
}

}  // namespace tilestep::simt
