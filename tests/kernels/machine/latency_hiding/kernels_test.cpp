#include "kernels/machine/latency_hiding/kernels.hpp"

#include <bit>
#include <map>
#include <numeric>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/machine/latency_hiding/reference.hpp"
#include "kernels/machine/latency_hiding/run/run.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::latency_hiding;
using namespace tilestep::tests;

namespace {

/// Probes of a launch, kept from its first on.
struct Probed {
  Probed(simt::Device& device, const Grid& grid)
      : warps(device, static_cast<std::size_t>(grid.warps())),
        kept(device, static_cast<std::size_t>(grid.warps()) * kMostProbes) {
    warps.fill(0xFF);
    kept.fill(0xFF);
  }
  Probing probing() { return {warps.span(), kept.span(), 0}; }
  simt::Buffer<WarpRecord> warps;
  simt::Buffer<ProbeRecord> kept;
};

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

std::vector<float> some_numbers(std::int64_t count) {
  std::mt19937 random = lab::generator_of(5);
  return lab::uniform_floats(random, static_cast<std::size_t>(count));
}

std::vector<float> copied(simt::Device& device, const CopyShape& shape,
                          const std::vector<float>& host, bool probed) {
  const simt::Buffer<float> in(device, host);
  simt::Buffer<float> out(device, host.size());
  Probed probes(device, shape.grid);
  return lab::result_of(device, out, [&] {
    latency_hiding::kernels_of(device).copy(device, shape, in.span(), out.span(),
                                            probed ? probes.probing() : Probing{});
  });
}

std::vector<float> bulk_copied(simt::Device& device, const BulkShape& shape, int blocks,
                               int threads, const std::vector<float>& host, bool probed) {
  const Grid grid{blocks, threads, shape.shared_bytes()};
  const simt::Buffer<float> in(device, host);
  simt::Buffer<float> out(device, host.size());
  Probed probes(device, grid);
  return lab::result_of(device, out, [&] {
    latency_hiding::kernels_of(device).bulk_copy(device, grid, shape, in.span(), out.span(),
                                                 probed ? probes.probing() : Probing{});
  });
}

/// The worst of a kernel's numbers, in parts of what rounding may do.
void check_close(const std::vector<float>& got, const std::vector<double>& want, double bound) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("thread " << i);
    REQUIRE(std::abs(static_cast<double>(got[i]) - want[i]) <= bound);
  }
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
    const auto& kernels = latency_hiding::kernels_of(device);
    for (int chains = 1; chains <= 8; ++chains) {
      for (const auto& [segments, steps] : {std::pair{1, 0}, {1, 1}, {3, 7}, {5, 64}}) {
        const Grid grid{3, 64, 0};
        const std::vector<float> host = some_numbers(grid.all_threads());
        const simt::Buffer<float> in(device, host);
        simt::Buffer<float> out(device, host.size());
        Probed probes(device, grid);
        CAPTURE(chains, segments, steps);
        const auto run = [&, segments = segments, steps = steps](const Probing& probing) {
          return lab::result_of(device, out, [&] {
            kernels.fma(device, grid, chains, segments, steps, ~0u, in.span(), out.span(), probing);
          });
        };
        const std::vector<float> plain = run({});
        check_close(plain, fma_reference(host, chains, std::int64_t{segments} * steps),
                    fma_bound(chains));
        REQUIRE(run(probes.probing()) == plain);
      }
    }
  });
}

TEST_CASE("warps that are left out write nothing", "[latency_hiding][latency_kernels]") {
  const auto device = test_device();
  const Grid grid{1, 128, 0};
  const simt::Buffer<float> in(*device, counting(128));
  simt::Buffer<float> out(*device, 128);
  const std::vector<float> got = lab::result_of(*device, out, [&] {
    latency_hiding::kernels_of(*device).fma(*device, grid, 2, 1, 4, 0b1010u, in.span(), out.span(),
                                            {});
  });
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::isnan(got[i]) == (i / 32 % 2 == 0));
}

TEST_CASE("the spilling fragment computes the same with any number of registers",
          "[latency_hiding][latency_kernels]") {
  in_other_orders(1, [](simt::Device& device) {
    const auto& kernels = latency_hiding::kernels_of(device);
    for (const int rounds : {0, 1, 2, 13}) {
      const Grid grid{2, 64, 0};
      const std::vector<float> host = some_numbers(grid.all_threads() * rounds);
      const simt::Buffer<float> in(device, host);
      simt::Buffer<float> out(device, static_cast<std::size_t>(grid.all_threads()));
      Probed probes(device, grid);
      const std::vector<double> want = spill_reference(host, grid.all_threads(), rounds);
      for (const int registers : kRegisterLimits) {
        CAPTURE(rounds, registers);
        for (const bool probed : {false, true}) {
          check_close(lab::result_of(device, out,
                                     [&] {
                                       kernels.spill(device, grid, registers, rounds, in.span(),
                                                     out.span(),
                                                     probed ? probes.probing() : Probing{});
                                     }),
                      want, spill_bound(rounds));
        }
      }
    }
  });
}

TEST_CASE("lanes take their arms, and vote for them", "[latency_hiding][latency_kernels]") {
  in_other_orders(2, [](simt::Device& device) {
    const auto& kernels = latency_hiding::kernels_of(device);
    for (const int ways : {1, 2, 3, 4, 8, 16, 32}) {
      for (const auto& [rounds, steps] : {std::pair{1, 0}, {1, 1}, {3, 21}}) {
        const Grid grid{2, 96, 0};
        const std::vector<float> host = some_numbers(grid.all_threads());
        const simt::Buffer<float> in(device, host);
        simt::Buffer<float> out(device, host.size());
        simt::Buffer<unsigned> voted(device, static_cast<std::size_t>(ways));
        Probed probes(device, grid);
        CAPTURE(ways, rounds, steps);
        for (const bool probed : {false, true}) {
          const std::vector<float> got =
              lab::result_of(device, out, [&, rounds = rounds, steps = steps] {
                kernels.diverge(device, grid, ways, rounds, steps, in.span(), out.span(),
                                voted.span(), probed ? probes.probing() : Probing{});
              });
          check_close(got, diverge_reference(host, ways, std::int64_t{rounds} * steps),
                      diverge_bound(ways));
        }
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
        const Grid grid{simt::blocks_for(count, 128), 128, 0};
        const std::vector<float> host = some_numbers(count);
        const simt::Buffer<float> in(device, host);
        simt::Buffer<float> out(device, host.size());
        Probed probes(device, grid);
        std::vector<double> want;
        for (const float add : host)
          want.push_back(chain_after(0, kScale, static_cast<double>(add), steps));
        for (const bool probed : {false, true}) {
          CAPTURE(count, steps, probed);
          check_close(lab::result_of(device, out,
                                     [&] {
                                       latency_hiding::kernels_of(device).tail(
                                           device, grid, steps, in.span(), out.span(),
                                           probed ? probes.probing() : Probing{});
                                     }),
                      want, chain_bound(0, kScale, 1));
        }
      }
    }
  });
}

TEST_CASE("a ring of the chase has every node once, and walks go round it",
          "[latency_hiding][latency_kernels]") {
  const auto device = test_device();
  const auto& kernels = latency_hiding::kernels_of(*device);
  for (const std::int64_t count : {1, 2, 3, 31, 257}) {
    std::vector<unsigned> order = random_ring(count, 3);
    REQUIRE(order.front() == 0);
    const simt::Buffer<unsigned> ways(*device, order);
    simt::Buffer<Node> nodes(*device, order.size());
    kernels.link(*device, nodes.span(), ways.span());
    simt::Buffer<Walked> walked(*device, 1);
    for (const std::int64_t warm : {0, 1, 5}) {
      for (const std::int64_t hops : {0, 1, 8, 300}) {
        for (const bool past_l1 : {false, true}) {
          kernels.walk(*device, past_l1, nodes.span(), warm, hops, walked.span());
          CAPTURE(count, warm, hops);
          REQUIRE(walked.download().front().node ==
                  order[static_cast<std::size_t>((warm + hops) % count)]);
        }
      }
    }
    const std::size_t hops = 40;
    simt::Buffer<unsigned> visited(*device, hops), cycles(*device, hops + 1);
    kernels.time_hops(*device, nodes.span(), 2, visited.span(), cycles.span());
    const std::vector<unsigned> there = visited.download();
    for (std::size_t h = 0; h < hops; ++h) {
      REQUIRE(there[h] == order[(h + 3) % order.size()]);
    }
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i) REQUIRE(order[i] == i);
  }
  simt::Buffer<Walked> walked(*device, 1);
  unsigned place = 0;
  for (int hop = 0; hop < 1000; ++hop) place = (place * 5 + 3) % 32;
  kernels.walk_shared(*device, 1000, walked.span());
  REQUIRE(walked.download().front().node == place);
}

TEST_CASE("a chase visits what the list says, each warp its own",
          "[latency_hiding][latency_kernels]") {
  in_other_orders(1, [](simt::Device& device) {
    const std::vector<unsigned> order = random_ring(1021, 9);
    const simt::Buffer<unsigned> ways(device, order);
    simt::Buffer<Node> nodes(device, order.size());
    latency_hiding::kernels_of(device).link(device, nodes.span(), ways.span());
    for (const auto& [blocks, threads] : {std::pair{1, 32}, {2, 64}, {3, 128}}) {
      const Grid grid{blocks, threads, kRingBytes};
      std::vector<unsigned> starts, start_nodes;
      for (std::int64_t i = 0; i < 3 * grid.warps(); ++i) {
        starts.push_back(static_cast<unsigned>(7 * i % 1021));
        start_nodes.push_back(order[starts.back()]);
      }
      const simt::Buffer<unsigned> from(device, start_nodes);
      simt::Buffer<unsigned long long> visited(device,
                                               static_cast<std::size_t>(grid.warps() * kProbes));
      Probed probes(device, grid);
      for (const bool probed : {false, true}) {
        std::vector<unsigned long long> there = lab::result_of(device, visited, [&] {
          latency_hiding::kernels_of(device).chase(device, grid, nodes.span(), from.span(),
                                                   visited.span(),
                                                   probed ? probes.probing() : Probing{});
        });
        const std::vector<unsigned> want = chase_reference(order, starts);
        REQUIRE(there.size() == want.size());
        for (std::size_t i = 0; i < there.size(); ++i) {
          if (i % kProbes >= kHops) {
            there[i] =
                (there[i] - reinterpret_cast<std::uintptr_t>(nodes.span().data)) / sizeof(Node);
          }
          REQUIRE(there[i] == want[i]);
        }
      }
    }
  });
}

TEST_CASE("without a GPU a probe counts turns: loads are issued before they are used",
          "[latency_hiding]") {
  const auto device = test_device();
  const Grid grid{1, 64, 0};
  const std::vector<float> host = counting(64 * 8);
  const auto clocks_of = [&](Order order, int loads) {
    const simt::Buffer<float> in(*device, host);
    simt::Buffer<float> out(*device, host.size());
    Probed probes(*device, grid);
    latency_hiding::kernels_of(*device).copy(*device, {grid, 4, loads, order, 1}, in.span(),
                                             out.span(), probes.probing());
    std::vector<ProbeRecord> kept = probes.kept.download();
    kept.resize(8);
    return kept;
  };
  const std::vector<ProbeRecord> together = clocks_of(Order::together, 4);
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(together[k].issue < together[0].use);
    CHECK(together[4 + k].issue > together[3].use);
  }
  const std::vector<ProbeRecord> serialized = clocks_of(Order::serialized, 4);
  for (std::size_t k = 0; k < 8; ++k) {
    CHECK(serialized[k].use == serialized[k].issue + 1);
    if (k > 0) CHECK(serialized[k].issue == serialized[k - 1].use + 1);
  }
}
