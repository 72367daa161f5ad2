// Clusters under emulation: blocks that come to each other's shared memory.

#include <string>
#include <vector>

#include "kernels/base/simt/tensor_map.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/simt/hopper_cluster_kernels.cu"
#include "tests/kernels/base/simt/hopper_testing.hpp"
#include "tests/kernels/base/simt/testing.hpp"

namespace tilestep::simt {
namespace {

using emulated_backend::ClusterFault;
constexpr int kTiles = 5;

std::string line_of(const std::string& text) {
  return line_in("hopper_cluster_kernels.cu", text);
}

TEST_CASE("hopper: blocks of a cluster have their own places, votes and memory", "[hopper]") {
  for (const unsigned cluster : {1u, 2u, 4u, 8u}) {
    for (const EmulationOptions& options : all_completions()) {
      const auto device = make_emulated_device({}, options);
      constexpr unsigned kBlocks = 16 * 2;
      Buffer<unsigned> out(*device, kBlocks * 64 * 4);
      launch(*device,
             {.name = "cluster_places",
              .grid = {16, 2},
              .block = {64},
              .shared_bytes = 256 + 1024,
              .cluster = cluster},
             emulated_backend::cluster_places, global(out.span(), "out"));
      const std::vector<unsigned> got = out.download();
      std::vector<unsigned> expected;
      for (unsigned block = 0; block < kBlocks; ++block) {
        for (unsigned thread = 0; thread < 64; ++thread) {
          const unsigned next = thread % 32 == 31 ? thread : thread + 1;
          for (const unsigned value : {block % 16 % cluster, std::min(block + 1, 64u),
                                       block * 100 + next, block * 64 + 63 - thread}) {
            expected.push_back(value);
          }
        }
      }
      CHECK(got == expected);
    }
  }
}

std::vector<float> passed_on(const EmulationOptions& options, unsigned blocks,
                             ClusterFault fault = ClusterFault::none) {
  const auto device = make_emulated_device({}, options);
  Buffer<float> out(*device, std::size_t{blocks} * 32);
  launch(*device,
         {.name = "pass_on",
          .grid = {blocks},
          .block = {32},
          .shared_bytes = 128 + 1024,
          .cluster = blocks},
         emulated_backend::pass_on, global(out.span(), "out"), fault);
  return out.download();
}

std::vector<float> from_all(const EmulationOptions& options, unsigned blocks,
                            ClusterFault fault = ClusterFault::none) {
  const auto device = make_emulated_device({}, options);
  Buffer<float> out(*device, std::size_t{blocks} * 32);
  launch(*device,
         {.name = "all_to_all",
          .grid = {blocks},
          .block = {32},
          .shared_bytes = 1024 + 1024,
          .cluster = blocks},
         emulated_backend::all_to_all, global(out.span(), "out"), fault);
  return out.download();
}

TEST_CASE("hopper: blocks of a cluster read and write each other's memory", "[hopper]") {
  for (const unsigned blocks : {2u, 4u, 8u}) {
    std::vector<float> passed;
    std::vector<float> summed;
    for (unsigned rank = 0; rank < blocks; ++rank) {
      for (unsigned i = 0; i < 32; ++i) {
        passed.push_back(static_cast<float>((rank + 1) % blocks * 100 + 31 - i));
        summed.push_back(static_cast<float>(blocks * (blocks - 1) / 2 * 100 + blocks * i));
      }
    }
    for (const EmulationOptions& options : all_completions()) {
      CHECK(passed_on(options, blocks) == passed);
      CHECK(from_all(options, blocks) == summed);
    }
  }
  const std::string write = line_of("static_cast<float>(rank * 100 + threadIdx.x);");
  // Who comes second is named, with what the other did.
  names([](const EmulationOptions& options) { passed_on(options, 2, ClusterFault::no_between); },
        {"pass_on: thread (", "of shared memory of block ", " of the cluster in ",
         "nothing tells this thread that it is done; cluster_barrier()"});
  names([](const EmulationOptions& options) { passed_on(options, 2, ClusterFault::no_last); },
        {"pass_on: ", "reads in " + line_of("= next[31"), "a block must not end while",
         "cluster_barrier() before its end is missing"});
  const std::string unmet =
      outcome_of([] { from_all({.os_threads = 1}, 4, ClusterFault::no_between); });
  CHECK(missing_in(unmet, {"all_to_all: ", "of its cluster", "cluster_barrier()"}) == "");
}

std::vector<double> sent_around(const EmulationOptions& options, unsigned blocks,
                                ClusterFault fault = ClusterFault::none) {
  const auto device = make_emulated_device({}, options);
  Buffer<double> sums(*device, blocks);
  launch(*device,
         {.name = "send_around",
          .grid = {blocks},
          .block = {32},
          .shared_bytes = 80,
          .cluster = blocks},
         emulated_backend::send_around, global(sums.span(), "sums"), static_cast<int>(blocks),
         fault);
  return sums.download();
}

TEST_CASE("hopper: numbers sent to a block count at its barrier", "[hopper]") {
  for (const unsigned blocks : {2u, 4u, 8u}) {
    const std::vector<double> sums(blocks, blocks * (blocks + 1) / 2.0);
    for (const EmulationOptions& options : all_completions()) {
      CHECK(sent_around(options, blocks) == sums);
    }
  }
  names([](const EmulationOptions& options) { sent_around(options, 2, ClusterFault::full_wait); },
        {"send_around: thread (", "nothing tells this thread that it is done"});
  names([](const EmulationOptions& options) { sent_around(options, 2, ClusterFault::far_arrival); },
        {"send_around: ", "at block 2 of its cluster, which has 2 (allowed: 0–1"});
}

template <int kBlocks>
std::vector<float> ring_sums(const EmulationOptions& options,
                             ClusterFault fault = ClusterFault::none) {
  const auto device = make_emulated_device({}, options);
  constexpr int kColumns = 8 * kBlocks * kTiles;
  const Buffer<float> matrix(*device, counting<float>(8 * kColumns));
  Buffer<float> sums(*device, kBlocks * 32);
  sums.fill(0xFF);
  const auto map =
      tensor_map(matrix.span(), {.rows = 8, .columns = kColumns, .box_rows = 8, .box_columns = 8});
  launch(*device,
         {.name = "shared_ring",
          .grid = {kBlocks},
          .block = {64},
          .shared_bytes = 2 * (kBlocks * 256 + 16) + 1024,
          .cluster = kBlocks},
         emulated_backend::shared_ring<kBlocks>, map, global(sums.span(), "sums"), kTiles, fault);
  return sums.download();
}

template <int kBlocks>
std::vector<float> ring_reference() {
  constexpr int kColumns = 8 * kBlocks * kTiles;
  std::vector<double> sums(32);
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      sums[static_cast<std::size_t>((row * 8 + column % 8) % 32)] += row * kColumns + column;
    }
  }
  std::vector<float> all;
  for (int rank = 0; rank < kBlocks; ++rank) {
    for (const double sum : sums) all.push_back(static_cast<float>(sum));
  }
  return all;
}

TEST_CASE("hopper: a ring that a cluster fills together", "[hopper]") {
  for (const EmulationOptions& options : all_completions()) {
    CHECK(ring_sums<2>(options) == ring_reference<2>());
    CHECK(ring_sums<4>(options) == ring_reference<4>());
  }
}

TEST_CASE("hopper: what a cluster's ring lacks is named, with the block", "[hopper]") {
  const auto with = [](ClusterFault fault) {
    return [fault](const EmulationOptions& options) { ring_sums<2>(options, fault); };
  };
  const std::string fetch = line_of("hopper::fetch<kBlocks>(map");
  const std::string read = line_of("sum += numbers[i]");
  names(with(ClusterFault::no_publish), {"of block ", "publish_barriers() after its barrier_init"});
  names(with(ClusterFault::no_meeting), {"mbarrier", "of block ", " of the cluster"});
  names(with(ClusterFault::full_wait),
        {"shared_ring: thread (", " stage 0, byte ", "of the cluster", read, fetch, "may still"});
  names(with(ClusterFault::own_release),
        {"starts a copy to stage 0, byte ", " of the cluster in " + fetch, "may still "});
  names(with(ClusterFault::no_last),
        {"shared_ring: ", "a block must not end while", "cluster_barrier() before its end"});
  names(with(ClusterFault::wide_copy), {"copies in ", "block 7 of its cluster, which has 2"});
  names(with(ClusterFault::far_arrival), {"arrives in ", "block 2 of its cluster, which has 2"});
  names(with(ClusterFault::parts_missed),
        {"shared_ring: block (1,0,0) ends while the copy to stage 0", fetch,
         "no thread has waited for mbarrier full 0 of block 1 of the cluster"});
  const auto changes = [](ClusterFault fault) {
    int changed = 0;
    for (EmulationOptions options : all_completions()) {
      options.report_unsafe = false;
      std::vector<float> got;
      const std::string said = outcome_of([&] { got = ring_sums<2>(options, fault); });
      changed += said != "no error" || got != ring_reference<2>() ? 1 : 0;
    }
    return changed;
  };
  CHECK(changes(ClusterFault::none) == 0);
  CHECK(changes(ClusterFault::full_wait) > 0);
}

TEST_CASE("hopper: a cluster that no device can launch, or the emulation not run", "[hopper]") {
  const auto device = make_emulated_device({}, {.os_threads = 1});
  Buffer<float> out(*device, 32);
  const auto refused = [&](unsigned blocks, unsigned threads, unsigned cluster) {
    return outcome_of([&] {
      launch(
          *device,
          {.name = "with_static_shared", .grid = {blocks}, .block = {threads}, .cluster = cluster},
          emulated_backend::with_static_shared, global(out.span(), "out"));
    });
  };
  CHECK(refused(4, 32, 3) ==
        "with_static_shared: the number of blocks of a cluster is 3 (allowed: 1, 2, 4, 8)");
  CHECK(refused(6, 32, 4) ==
        "with_static_shared: grid.x is 6 (allowed: multiples of the cluster's 4 blocks)");
  CHECK(missing_in(refused(4, 16, 4), {"16 threads", "multiples of 32"}) == "");
  for (const bool known_before : {false, true}) {
    INFO(known_before);
    CHECK(missing_in(refused(4, 32, 2),
                     {"with_static_shared", "static shared memory", "simt::dynamic_shared"}) == "");
    CHECK(refused(4, 32, 1) == "no error");
  }
}

}  // namespace
}  // namespace tilestep::simt
