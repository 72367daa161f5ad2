// What ranks do together against sums in double and by hand: all algorithms and operations, any number of ranks, any
// order of threads and of ranks; calls made again; what a mistake leaves; who waits for whom.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/base/lab/random.hpp"
#include "kernels/systems/parallelism/run/message.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/device.hpp"

using namespace tilestep;
using namespace tilestep::parallelism;

namespace {

simt::KernelEntry kRanksTable[] = {{"parallelism", kernels_emulated}};

Params of_run(Algorithm algorithm, int ranks, int message, std::int64_t seed = 1) {
  Params params;
  params.algorithm = algorithm;
  params.ranks = ranks;
  params.message = message;
  params.seed = seed;
  return params;
}
Trace trace_of(const Params& params) {
  Trace trace;
  trace.algorithm = params.algorithm;
  trace.ranks = params.ranks;
  trace.message = params.message;
  return trace;
}

/// Ranks with one call, and what it left.
struct OneCall {
  Team team;
  std::vector<std::vector<float>> in;
  std::vector<simt::Span<float>> from, to;

  OneCall(simt::Device& device, const CallShape& shape, std::size_t numbers, std::size_t room,
          std::uint64_t seed)
      : team(device, shape.ranks, seed, simt::ThreadOrder::shuffled) {
    std::mt19937 generator = lab::generator_of(static_cast<std::int64_t>(seed));
    team.add(shape);
    for (int rank = 0; rank < shape.ranks; ++rank) {
      in.push_back(lab::uniform_floats(generator, numbers));
      from.push_back(team.uploaded(rank, in.back()));
      to.push_back(team.unwritten<float>(rank, room));
    }
    for (int rank = 0; rank < shape.ranks; ++rank) team.join(0, rank, from[at(rank)], to[at(rank)]);
  }
  void run() {
    team.ranks().run([&](int rank) { team.make(0, rank); });
  }
  std::vector<float> out(int rank) { return team.download(to[at(rank)]); }
};

}  // namespace

TEST_CASE("Parallelism: all-reduces of 2 to 8 ranks in any order", "[parallelism]") {
  const auto device = tests::device_under_test(kRanksTable);
  for (const Algorithm algorithm : all_of<Algorithm>()) {
    for (const int ranks : {2, 3, 4, 5, 8}) {
      for (const int message : {128, 144, 1040}) {
        CAPTURE(name_of(algorithm), ranks, message);
        const Params params = of_run(algorithm, ranks, message, ranks + message);
        int wrong = 0;
        const Message timed = reduced(*device, params, Break::none, false, nullptr);
        CHECK(compared(timed, wrong).ok());
        CHECK(wrong == 0);
        for (const std::vector<float>& out : timed.out) CHECK(out == timed.out.front());
        Trace trace = trace_of(params);
        const Message shuffled =
            reduced(*device, params, Break::none, false, &trace, simt::ThreadOrder::shuffled);
        CHECK(shuffled.out == timed.out);
        CHECK(timed.waits.empty());
      }
    }
  }
}

TEST_CASE("Parallelism: bytes of a rank in an all-reduce, by its own accesses", "[parallelism]") {
  const auto device = tests::device_under_test(kRanksTable);
  for (const int ranks : {2, 4, 8}) {
    Params params = of_run(Algorithm::ring, ranks, 1024);
    Trace trace = trace_of(params);
    reduced(*device, params, Break::none, true, &trace);
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(trace.link_at(rank, (rank + 1) % ranks) == 2.0 * (ranks - 1) / ranks * 1024);
      for (int chunk = 0; chunk < ranks; ++chunk) {
        CHECK(trace.used_at(rank, chunk) == all_of_ranks(ranks));
        CHECK(trace.held_at(trace.beats(), rank, chunk) == all_of_ranks(ranks));
      }
    }
    CHECK(std::ssize(trace.sent) == trace.beats() * ranks);
    params.algorithm = Algorithm::one_shot;
    Trace at_once = trace_of(params);
    reduced(*device, params, Break::none, true, &at_once);
    CHECK(std::accumulate(at_once.links.begin(), at_once.links.end(), 0.0) ==
          1024.0 * ranks * (ranks - 1));
    params.algorithm = Algorithm::tree;
    Trace tree = trace_of(params);
    reduced(*device, params, Break::none, true, &tree);
    CHECK(std::accumulate(tree.links.begin(), tree.links.end(), 0.0) == 2048.0 * (ranks - 1));
  }
}

TEST_CASE("Parallelism: parts are gathered, scattered and exchanged", "[parallelism]") {
  const auto device = tests::device_under_test(kRanksTable);
  for (const int ranks : {2, 3, 8}) {
    const int units = 2 * ranks + 1, unit = 2;
    const auto first = [&](int rank) { return at(part_begin(units, ranks, rank) * unit * kPack); };
    const std::size_t numbers = first(ranks);
    CallShape shape{.op = Op::reduce_scatter, .ranks = ranks, .units = units, .unit = unit};
    OneCall scatter(*device, shape, numbers, numbers, 3);
    scatter.run();
    shape.op = Op::all_gather;
    OneCall gather(*device, shape, numbers, numbers, 4);
    gather.run();
    shape.algorithm = Algorithm::one_shot;
    OneCall at_once(*device, shape, numbers, numbers, 4);
    at_once.run();
    at_once.run();
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<float> sum = scatter.out(rank), all = gather.out(rank);
      CHECK(at_once.out(rank) == all);
      for (std::size_t i = 0; i < numbers; ++i) {
        const bool own = i >= first(rank) && i < first(rank + 1);
        double want = 0;
        for (const std::vector<float>& one : scatter.in) want += static_cast<double>(one[i]);
        if (own) CHECK(static_cast<double>(sum[i]) == Approx(want).margin(1e-6));
        if (!own) CHECK(std::isnan(sum[i]));
        int owner = 0;
        while (i >= first(owner + 1)) ++owner;
        CHECK(all[i] == gather.in[at(owner)][i - first(owner)]);
      }
    }
    CallShape exchange{.op = Op::all_to_all, .ranks = ranks, .unit = unit};
    exchange.slot = 3;
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) exchange.counts[at(from)][at(to)] = (from + 2 * to) % 4;
    }
    const std::size_t slot = at(exchange.slot * unit * kPack);
    OneCall to_all(*device, exchange, slot * at(ranks), slot * at(ranks), 5);
    to_all.run();
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<float> out = to_all.out(rank);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t from = i / slot;
        const bool sent = i % slot < at(exchange.counts[from][at(rank)] * unit * kPack);
        const float its = to_all.in[from][at(rank) * slot + i % slot];
        if (sent) CHECK(out[i] == its);
        if (!sent) CHECK(std::isnan(out[i]));
      }
    }
  }
}

TEST_CASE("Parallelism: a call is made again and again, by several blocks", "[parallelism]") {
  const auto device = tests::device_under_test(kRanksTable);
  for (const Algorithm algorithm : all_of<Algorithm>()) {
    const CallShape shape{.op = Op::all_reduce,
                          .algorithm = algorithm,
                          .ranks = 4,
                          .units = 37,
                          .blocks = 3,
                          .threads = 64};
    OneCall call(*device, shape, 148, 148, 7);
    call.team.ranks().run([&](int rank) {
      for (int i = 0; i < 5; ++i) call.team.make(0, rank);
    });
    const std::vector<float> once = call.out(0);
    for (int rank = 0; rank < 4; ++rank) CHECK(call.out(rank) == once);
    for (std::size_t i = 0; i < once.size(); ++i) {
      double want = 0;
      for (const std::vector<float>& one : call.in) want += static_cast<double>(one[i]);
      CHECK(static_cast<double>(once[i]) == Approx(want).margin(1e-6));
    }
  }
}

TEST_CASE("Parallelism: each mistake is found, and in the marks one sees which", "[parallelism]") {
  const auto device = tests::device_under_test(kRanksTable);
  for (const Algorithm algorithm : all_of<Algorithm>()) {
    for (const int ranks : {2, 3, 4, 8}) {
      const Params params = of_run(algorithm, ranks, 1024, 1);
      CAPTURE(name_of(algorithm), ranks);
      for (const Break broken : all_of<Break>()) {
        if (broken == Break::none) continue;
        // On a GPU it may be that all comes in time.
        const bool emulated = device->info().backend == "emulated";
        if (broken == Break::stale_gather && !emulated) continue;
        CAPTURE(name_of(broken));
        Trace trace = trace_of(params), unused = trace;
        reduced(*device, params, broken, true, &trace);
        const Message message = reduced(*device, params, broken, false, &unused);
        int wrong = 0;
        compared(message, wrong);
        CHECK(trace.waits.empty() == (broken != Break::wrong_order));
        CHECK(message.waits.empty() == trace.waits.empty());
        // On a GPU a wait that is given up ends all others, and which came first depends on time.
        if (emulated) CHECK(trace.waits == message.waits);
        if (emulated || broken != Break::wrong_order) CHECK(wrong > 0);
        if (broken == Break::wrong_order)
          CHECK(std::any_of(message.waits.begin(), message.waits.end(),
                            [](const Waits& one) { return one.call != one.other_call; }));
        if (broken == Break::missing_all_reduce) {
          for (int rank = 0; rank < ranks; ++rank) CHECK(trace.used_at(rank, 0) == 1 << (3 * rank));
        }
        if (broken == Break::sum_twice) {
          CHECK(times_in(trace.used_at(0, 0), 0) == 2);
          CHECK(times_in(trace.used_at(0, 0), 1) == 1);
        }
      }
    }
  }
}

TEST_CASE("Parallelism: a deadlock names both calls, and a rank that is gone its waiters",
          "[parallelism]") {
  const auto device = tests::device_under_test(kRanksTable);
  Trace trace = trace_of(of_run(Algorithm::ring, 3, 1024));
  reduced(*device, of_run(Algorithm::ring, 3, 1024), Break::wrong_order, true, &trace);
  REQUIRE(trace.waits.size() == 3);
  // Rank 0 is in the second call and hears nothing from rank 2, which is in the first.
  CHECK(trace.waits[0] == Waits{0, 1, 2, 0});
  CHECK(trace.waits[1] == Waits{1, 0, 0, 1});
  const CallShape shape{.op = Op::all_reduce, .ranks = 4, .units = 16};
  OneCall call(*device, shape, 64, 64, 1);
  call.team.ranks().run([&](int rank) {
    if (rank != 2) call.team.make(0, rank);
  });
  const std::vector<simt::Stuck> stuck = call.team.ranks().stuck();
  REQUIRE_FALSE(stuck.empty());
  for (const simt::Stuck& one : stuck) CHECK(one.rank != 2);
  CHECK(std::any_of(stuck.begin(), stuck.end(), [](const auto& one) { return one.from == 2; }));
}

TEST_CASE("Parallelism: what a rank throws ends all, and too many ranks are refused",
          "[parallelism]") {
  const auto device = simt::make_emulated_device(kRanksTable);
  const CallShape shape{.op = Op::all_reduce, .ranks = 3, .units = 16};
  OneCall call(*device, shape, 64, 64, 1);
  CHECK_THROWS_WITH(call.team.ranks().run([&](int rank) {
    if (rank == 1) throw Error("rank 1 has died");
    call.team.make(0, rank);
  }),
                    "rank 1 has died");
  CHECK_THROWS_WITH(Team(*device, 9), "ranks is 9; allowed: 1–8");
  CHECK_THROWS_WITH(OneCall(*device, {.ranks = 4, .units = 3}, 12, 12, 1).run(),
                    "parallelism: units is 3; allowed: 4–268435456");
}
