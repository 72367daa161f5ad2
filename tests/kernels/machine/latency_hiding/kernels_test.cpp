#include "kernels/machine/latency_hiding/kernels.hpp"

#include <bit>
#include <map>
#include <numeric>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/machine/latency_hiding/run/node_ring.hpp"
#include "kernels/machine/latency_hiding/run/run.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::latency_hiding;
using namespace tilestep::tests;

namespace {

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

std::vector<float> some_numbers(std::int64_t count) {
  std::mt19937 random = lab::generator_of(5);
  return lab::uniform_floats(random, static_cast<std::size_t>(count));
}

/// What `launch(tape)` writes to `output`, with probes or without.
template <class T, class Launch>
std::vector<T> written(simt::Device& device, const Grid& grid, simt::Buffer<T>& output, bool probed,
                       const Launch& launch) {
  ProbeRoom room(device, grid);
  return lab::result_of(device, output, [&] { launch(probed ? room.tape() : simt::Tape()); });
}

/// The same of `launch(in, out, tape)`, an array of numbers to an equal one.
template <class Launch>
std::vector<float> of_numbers(simt::Device& device, const Grid& grid,
                              const std::vector<float>& host, bool probed, const Launch& launch) {
  const simt::Buffer<float> in(device, host);
  simt::Buffer<float> out(device, host.size());
  return written(device, grid, out, probed,
                 [&](const simt::Tape& tape) { launch(in.span(), out.span(), tape); });
}

std::vector<float> copied(simt::Device& device, const CopyShape& shape,
                          const std::vector<float>& host, bool probed) {
  return of_numbers(device, shape.grid, host, probed, [&](auto in, auto out, const auto& tape) {
    latency_hiding::kernels_of(device).copy(device, shape, in, out, tape);
  });
}

std::vector<float> bulk_copied(simt::Device& device, const BulkShape& shape, int blocks,
                               int threads, const std::vector<float>& host, bool probed) {
  const Grid grid{blocks, threads, shape.shared_bytes()};
  return of_numbers(device, grid, host, probed, [&](auto in, auto out, const auto& tape) {
    latency_hiding::kernels_of(device).bulk_copy(device, grid, shape, in, out, tape);
  });
}

/// What a kernel computes, against what rounding may do; with probes it is the same.
void check_computes(simt::Device& device, const Compute& what, std::int64_t threads) {
  CAPTURE(what.chains, what.registers, what.ways, what.rounds, what.steps, threads);
  const bool spills = what.kernel == Kernel::spill;
  const std::vector<float> host = some_numbers(threads * (spills ? what.rounds : 1));
  const simt::Buffer<float> in(device, host);
  simt::Buffer<float> out(device, static_cast<std::size_t>(threads));
  const auto launch = [&](const simt::Tape& tape) {
    latency_hiding::kernels_of(device).compute(device, what, in.span(), out.span(), tape);
  };
  const std::vector<double> want = compute_reference(what, host);
  const std::vector<float> got = written(device, what.grid, out, false, launch);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("thread " << i);
    REQUIRE(std::abs(static_cast<double>(got[i]) - want[i]) <= compute_bound(what));
  }
  REQUIRE(written(device, what.grid, out, true, launch) == got);
}

const std::vector<int> kBytes = {4, 8, 16}, kLoadCounts = {1, 2, 4, 8};

}  // namespace

TEST_CASE("every streaming copy copies, whatever its length", "[latency_hiding][latency_kernels]") {
  in_other_orders(1, [](simt::Device& device) {
    for (const std::size_t count : {0, 1, 3, 31, 127, 1021, 4099, 20011}) {
      const std::vector<float> host = counting(count);
      for (const int bytes : kBytes) {
        for (const int loads : kLoadCounts) {
          for (const Order order : {Order::together, Order::serialized, Order::by_arms}) {
            for (const int threads : {32, 96}) {
              CAPTURE(count, bytes, loads, static_cast<int>(order), threads);
              const CopyShape shape{{3, threads, 0}, bytes, loads, order, 4};
              REQUIRE(copied(device, shape, host, false) == host);
              REQUIRE(copied(device, shape, host, true) == host);
            }
          }
        }
      }
    }
  });
  const auto device = test_device();
  CHECK(contains(error_of([&] {
                   copied(*device, {{1, 32, 0}, 12, 1}, counting(8), false);
                 }),
                 "4, 8, 16"));
  CHECK(contains(error_of([&] {
                   copied(*device, {{1, 32, 0}, 4, 3}, counting(8), false);
                 }),
                 "1, 2, 4, 8"));
}

TEST_CASE("the copy by TMA copies, and so do its parts that are no whole stage",
          "[latency_hiding][latency_kernels]") {
  in_other_orders(1, [](simt::Device& device) {
    for (const std::size_t count : {0, 1, 31, 32, 257, 1021, 4099, 20011}) {
      const std::vector<float> host = counting(count);
      for (const auto& [columns, rows] : {std::pair{32, 1}, {256, 1}, {256, 3}}) {
        for (const int stages : {1, 2, 3, 8}) {
          CAPTURE(count, columns, rows, stages);
          const BulkShape shape{columns, rows, stages};
          REQUIRE(bulk_copied(device, shape, 3, 32, host, false) == host);
          REQUIRE(bulk_copied(device, shape, 2, 64, host, true) == host);
          // A block for so many stages, and blocks enough for all.
          for (const int of_block : {1, 2, 5, 11}) {
            CAPTURE(of_block);
            BulkShape neighbours = shape;
            neighbours.of_block = of_block;
            const auto blocks = static_cast<int>(simt::blocks_for(
                static_cast<std::int64_t>(4 * count + 1), shape.stage_bytes() * of_block));
            REQUIRE(bulk_copied(device, neighbours, blocks, 32, host, false) == host);
          }
        }
      }
    }
  });
}

TEST_CASE("words of a copy are found again, and wrong ones counted",
          "[latency_hiding][latency_kernels]") {
  const auto device = test_device();
  const auto& kernels = latency_hiding::kernels_of(*device);
  for (const std::size_t count : {0, 1, 257, 1021}) {
    simt::Buffer<unsigned> words(*device, count);
    simt::Buffer<unsigned long long> wrong(*device, 1);
    wrong.fill(0);
    kernels.fill_words(*device, words.span(), 4);
    kernels.count_wrong(*device, words.span(), 4, wrong.span());
    REQUIRE(wrong.download().front() == 0);
    kernels.count_wrong(*device, words.span(), 5, wrong.span());
    REQUIRE(wrong.download().front() + 2 >= count);  // chance may make a word or two the same
  }
}

TEST_CASE("chains of multiply-adds against their closed form",
          "[latency_hiding][latency_kernels]") {
  in_other_orders(1, [](simt::Device& device) {
    for (int chains = 1; chains <= 8; ++chains) {
      for (const auto& [segments, steps] : {std::pair{1, 0}, {1, 1}, {3, 7}, {5, 64}}) {
        check_computes(device,
                       {.grid = {3, 64, 0}, .chains = chains, .rounds = segments, .steps = steps},
                       3 * 64);
      }
    }
  });
}

TEST_CASE("warps that are left out write nothing", "[latency_hiding][latency_kernels]") {
  const auto device = test_device();
  const Compute what{.grid = {1, 128, 0}, .chains = 2, .steps = 4, .active = 0b1010u};
  const std::vector<float> got = of_numbers(
      *device, what.grid, counting(128), false, [&](auto in, auto out, const auto& tape) {
        latency_hiding::kernels_of(*device).compute(*device, what, in, out, tape);
      });
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::isnan(got[i]) == (i / 32 % 2 == 0));
}

TEST_CASE("the spilling fragment computes the same with any number of registers",
          "[latency_hiding][latency_kernels]") {
  in_other_orders(1, [](simt::Device& device) {
    for (const int rounds : {0, 1, 2, 13}) {
      for (const int registers : kRegisterLimits) {
        check_computes(
            device,
            {.kernel = Kernel::spill, .grid = {2, 64, 0}, .registers = registers, .rounds = rounds},
            2 * 64);
      }
    }
  });
}

TEST_CASE("lanes take their arms, and vote for them", "[latency_hiding][latency_kernels]") {
  in_other_orders(2, [](simt::Device& device) {
    for (const int ways : {1, 2, 3, 4, 8, 16, 32}) {
      for (const auto& [rounds, steps] : {std::pair{1, 0}, {1, 1}, {3, 21}}) {
        simt::Buffer<unsigned> voted(device, static_cast<std::size_t>(ways));
        check_computes(device,
                       {.kernel = Kernel::diverge,
                        .grid = {2, 96, 0},
                        .ways = ways,
                        .rounds = rounds,
                        .steps = steps,
                        .voted = voted.span()},
                       2 * 96);
        const std::vector<unsigned> votes = voted.download();
        for (unsigned lane = 0; lane < 32; ++lane) {
          for (std::size_t arm = 0; arm < votes.size(); ++arm) {
            REQUIRE((votes[arm] >> lane & 1) ==
                    (lane % static_cast<unsigned>(ways) == arm ? 1 : 0));
          }
        }
      }
    }
  });
}

TEST_CASE("the tail's threads beyond the last write nothing", "[latency_hiding][latency_kernels]") {
  in_other_orders(1, [](simt::Device& device) {
    for (const std::int64_t count : {1, 31, 128, 1021}) {
      for (const int steps : {0, 1, 33}) {
        check_computes(device,
                       {.kernel = Kernel::tail,
                        .grid = {simt::blocks_for(count, 128), 128, 0},
                        .steps = steps},
                       count);
      }
    }
  });
}

TEST_CASE("a ring of the chase has every node once, and walks go round it",
          "[latency_hiding][latency_kernels]") {
  const auto device = test_device();
  const auto& kernels = latency_hiding::kernels_of(*device);
  simt::Buffer<Walked> walked(*device, 1);
  for (const std::int64_t count : {1, 2, 3, 31, 257}) {
    const NodeRing ring(*device, count, 3);
    REQUIRE(ring.node_at(0) == 0);
    for (const std::int64_t warm : {0, 1, 5}) {
      for (const std::int64_t hops : {0, 1, 8, 300}) {
        for (const bool past_l1 : {false, true}) {
          kernels.walk(*device, past_l1, ring.nodes(), warm, hops, walked.span());
          CAPTURE(count, warm, hops);
          REQUIRE(walked.download().front().node == ring.node_at(warm + hops));
        }
      }
    }
    const std::size_t hops = 40;
    simt::Buffer<unsigned> visited(*device, hops), cycles(*device, hops + 1);
    kernels.time_hops(*device, ring.nodes(), 2, visited.span(), cycles.span());
    const std::vector<unsigned> there = visited.download();
    for (int h = 0; h < 40; ++h) REQUIRE(there[static_cast<std::size_t>(h)] == ring.node_at(h + 3));
    std::vector<unsigned> order = ring.order();
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i) REQUIRE(order[i] == i);
  }
  unsigned place = 0;
  for (int hop = 0; hop < 1000; ++hop) place = (place * 5 + 3) % 32;
  kernels.walk_shared(*device, 1000, walked.span());
  REQUIRE(walked.download().front().node == place);
}

TEST_CASE("a chase visits what the list says, each warp its own",
          "[latency_hiding][latency_kernels]") {
  in_other_orders(1, [](simt::Device& device) {
    const NodeRing ring(device, 1021, 9);
    for (const auto& [blocks, threads] : {std::pair{1, 32}, {2, 64}, {3, 128}}) {
      const Grid grid{blocks, threads, kRingBytes};
      std::vector<unsigned> starts, start_nodes;
      for (std::int64_t i = 0; i < 3 * grid.warps(); ++i) {
        starts.push_back(static_cast<unsigned>(7 * i % 1021));
        start_nodes.push_back(ring.node_at(starts.back()));
      }
      const simt::Buffer<unsigned> from(device, start_nodes);
      simt::Buffer<unsigned long long> visited(device,
                                               static_cast<std::size_t>(grid.warps() * kProbes));
      for (const bool probed : {false, true}) {
        const auto there = written(device, grid, visited, probed, [&](const simt::Tape& tape) {
          latency_hiding::kernels_of(device).chase(device, grid, ring.nodes(), from.span(),
                                                   visited.span(), tape);
        });
        REQUIRE(ring.numbers(there) == chase_reference(ring.order(), starts));
      }
    }
  });
}

TEST_CASE("without a GPU a probe counts turns: loads are issued before they are used",
          "[latency_hiding]") {
  const auto device = test_device();
  const Grid grid{1, 64, 0};
  const simt::Buffer<float> in(*device, counting(64 * (kFirstProbed + 8)));
  simt::Buffer<float> out(*device, in.count());
  const auto clocks_of = [&](Order order) {
    ProbeRoom room(*device, grid);
    latency_hiding::kernels_of(*device).copy(*device, {grid, 4, 4, order, 1}, in.span(), out.span(),
                                             room.tape());
    std::vector<ProbeRecord> kept = room.records().kept;
    kept.resize(8);
    return kept;
  };
  const std::vector<ProbeRecord> together = clocks_of(Order::together);
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(together[k].issue < together[0].use);
    CHECK(together[4 + k].issue > together[3].use);
  }
  const std::vector<ProbeRecord> serialized = clocks_of(Order::serialized);
  for (std::size_t k = 0; k < 8; ++k) {
    CHECK(serialized[k].use == serialized[k].issue + 1);
    if (k > 0) CHECK(serialized[k].issue == serialized[k - 1].use + 1);
  }
}
