// The bench on tiny problems, under an emulation that pretends to a clock and to counters; its peers as shells.

#include "kernels/attention/flash_attention/bench/bench.hpp"

#include <filesystem>
#include <fstream>

#include "kernels/attention/shared/bench/peers.hpp"
#include "tests/kernels/attention/flash_attention/testing.hpp"
#include "tests/kernels/base/lab/stand_in.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"

using namespace tilestep;
using namespace tilestep::flash_attention;
using tests::contains;
using tests::Environment;
using tests::error_of;

namespace {

BenchSizes tiny() {
  BenchSizes sizes;
  sizes.lengths = {136};
  sizes.heads = {2, 1};
  sizes.longest_flash_1 = 200;
  sizes.counted_length = 64;
  sizes.counted_heads = 1;
  sizes.pace.rounds = 1;
  sizes.pace.peers = false;
  return sizes;
}

simt::KernelEntry kTable[] = {{"flash_attention", kernels_emulated}};

/// A shell script in the place of PyTorch's.
struct FakePeer : tests::StandIn {
  explicit FakePeer(const std::string& script) : StandIn("attention.py", script) {}
};

constexpr const char* kGoodPeer =
    "while read -r line; do echo '{\"ms\": [2, 2, 2], \"name\": \"PyTorch 9\"}'; done";

}  // namespace

TEST_CASE("attention's bench compares, times and counts all that it has", "[flash_attention]") {
  tests::TimedEmulation device(kTable);
  device.pretend().memory_bytes = std::size_t{1} << 34;
  const lab::Report report = bench_report(device, tests::unwatched, tiny());
  tests::check_holds(report);
  CHECK(report.checks.size() == count_of<Variant>());
  const lab::Table& ladder = tests::table_in(report, "ladder_measured");
  CHECK(ladder.rows.size() == 2 * 2 * count_of<Variant>());  // head dimensions, masks
  CHECK(tests::table_in(report, "causal").rows.size() == 2 * count_of<Variant>());
  CHECK(tests::table_in(report, "bytes").rows.size() == 2 * count_of<Variant>());
  CHECK(tests::table_in(report, "pipes").rows.size() == 2 * count_of<Variant>());
  CHECK(tests::table_in(report, "peers").rows.empty());
  for (const char* id : {"ladder", "resources"}) {
    CAPTURE(id);
    CHECK_FALSE(tests::table_in(report, id).rows.empty());
  }
  // In 1 ms: 4 N² d h, half of that with a causal mask.
  const double full = 4.0 * 136 * 136 * 128 / 1e9;
  REQUIRE(report.measurement("attention_rate", "flash-2 128 full 136") != nullptr);
  CHECK(report.measurement("attention_rate", "flash-2 128 full 136")->value == Approx(full));
  CHECK(report.measurement("attention_rate", "flash-2 128 causal 136")->value == Approx(full / 2));
  CHECK(report.measurement("fraction_of_cudnn") == nullptr);
  CHECK(contains(report.summary, "cuDNN"));
}

TEST_CASE("attention's quick bench has the ladder at one length", "[flash_attention]") {
  tests::TimedEmulation device(kTable);
  device.pretend().memory_bytes = std::size_t{1} << 34;
  BenchSizes sizes = tiny();
  sizes.head_dims = {64};
  sizes.quick = true;
  const lab::Report report = bench_report(device, tests::unwatched, sizes);
  tests::check_quick(report, {"bytes", "pipes"});
  CHECK(tests::table_in(report, "ladder_measured").rows.size() == 2 * count_of<Variant>());
  const BenchSizes quick = BenchSizes::of_quick();
  REQUIRE(quick.lengths.size() == 1);
  CHECK(quick.lengths[0] <= quick.longest_flash_1);  // all rungs are timed
}

TEST_CASE("kernels whose scores find no room, or that take all day, are not timed",
          "[flash_attention]") {
  tests::TimedEmulation device(kTable);
  device.pretend().memory_bytes = 200'000;
  BenchSizes sizes = tiny();
  sizes.head_dims = {64};
  sizes.longest_flash_1 = 100;
  const lab::Report report = bench_report(device, tests::unwatched, sizes);
  // A head's scores are 37 KB: of two heads two matrices do not fit in the half of memory.
  CHECK(report.measurement("attention_rate", "naive 64 full 136") == nullptr);
  CHECK(report.measurement("attention_rate", "flash-1 64 full 136") == nullptr);
  CHECK(report.measurement("attention_rate", "flash-2 64 full 136") != nullptr);
}

TEST_CASE("attention refuses GPUs that its kernels are not compiled for", "[flash_attention]") {
  tests::TimedEmulation device(kTable);
  const auto run = [&] {
    return lesson().run(knob_table().settings({.seq = 64}), device, tests::unwatched);
  };
  device.pretend().compute_capability = 80;
  CHECK_NOTHROW(run());
  device.pretend().compute_capability = 75;
  CHECK(contains(error_of(run), "needs compute capability 8.0 or newer"));
}

TEST_CASE("attention's bench brings PyTorch's script with it", "[flash_attention]") {
  const auto python =
      std::filesystem::temp_directory_path() / ("tilestep-python-" + std::to_string(getpid()));
  std::ofstream(python) << "#!/bin/sh\ncase \"$1 $2\" in '-c #!'*'Attention by PyTorch'*'main()'*) "
                        << kGoodPeer << ";; esac\n";
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  {
    const Environment named("TILESTEP_PYTHON", python.string());
    const TorchPeers peers(true);
    CHECK(peers.reason().empty());
    CHECK(peers.name("cudnn") == "PyTorch 9");
  }
  std::filesystem::remove(python);
}

TEST_CASE("attention's bench stands beside PyTorch in another process", "[flash_attention]") {
  const FakePeer peer(kGoodPeer);
  tests::TimedEmulation device(kTable);
  device.pretend().memory_bytes = std::size_t{1} << 34;
  BenchSizes sizes = tiny();
  sizes.head_dims = {64};
  sizes.pace.peers = true;
  const lab::Report report = bench_report(device, tests::unwatched, sizes);
  // cuDNN and FlashAttention 2, by PyTorch, full and causal.
  CHECK(tests::table_in(report, "peers").rows.size() == 4);
  // Ours take 1 ms, theirs 2.
  REQUIRE(report.measurement("fraction_of_cudnn", "flash-2 64 causal 136") != nullptr);
  CHECK(report.measurement("fraction_of_cudnn", "flash-2 64 causal 136")->value == Approx(2));
  CHECK(report.measurement("fraction_of_torch", "flash-2 64 full 136")->value == Approx(2));
}

TEST_CASE("a peer that cannot be asked is named with the reason", "[flash_attention]") {
  const auto reason_of = [](const std::string& script) {
    const FakePeer peer(script);
    const TorchPeers peers(true);
    CHECK_FALSE(peers.available());
    return peers.reason();
  };
  CHECK(contains(reason_of("echo '{\"error\": \"PyTorch is not installed\"}'; cat >/dev/null"),
                 "PyTorch is not installed"));
  CHECK(contains(reason_of("exit 3"), "ended"));
  CHECK(contains(reason_of("echo hello; cat >/dev/null"), "hello"));
  const Environment none("TILESTEP_PYTHON", "/nowhere/python");
  CHECK(contains(TorchPeers(true).reason(), "/nowhere/python"));
  CHECK(TorchPeers(false).reason() == "PyTorch was not asked");
}
